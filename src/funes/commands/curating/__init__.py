"""The parts of `funes curate`: the decisions file, and what the sessions' status is."""
