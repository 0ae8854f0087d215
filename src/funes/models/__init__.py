"""The pinned models and their forward pass."""
