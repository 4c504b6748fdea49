"""Interval arithmetic on networks: what outputs and gradients can be while parameters lie in a box."""
