"""Interval arithmetic for networks: bounds on outputs and gradients for all parameters in a box."""
