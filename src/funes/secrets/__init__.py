"""Finding and redacting credentials."""
