"""One pipeline from a question to hits."""
