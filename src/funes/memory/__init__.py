"""The Lance tables of a memory."""
