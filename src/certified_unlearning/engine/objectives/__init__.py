"""Losses: their gradient steps for many trials at once; their constants are `accounting.core.losses`."""
