"""The parts of the worker behind the hooks: its events, the traces they are about, its log."""
