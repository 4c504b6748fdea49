"""How long tests wait for what other processes do."""

PATIENCE = 1800
"""Seconds after which a process hangs. Beside ten busy ones, what takes seconds alone takes minutes."""
