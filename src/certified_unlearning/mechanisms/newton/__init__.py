"""The parts of Newton removal."""
