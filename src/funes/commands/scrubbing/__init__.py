"""The parts of `funes scrub`: stored blocks, their new ids, what takes their place."""
