"""Noise on weights whose gradient is certified to be small: certified refit and Newton removal."""
