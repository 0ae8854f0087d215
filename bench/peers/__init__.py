"""Drivers of other programs that search agent sessions, each at its defaults, behind one interface."""
