"""The parts of `funes index`: what was read before, reading, words, vectors, the report."""
