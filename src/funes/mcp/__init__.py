"""The stdio server that agents talk to."""
