"""What a person or an agent reads."""
