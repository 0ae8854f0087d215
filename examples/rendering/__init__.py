"""Renders the example sessions from their scripts into the on-disk layouts of four harnesses."""
