"""Losses, and their gradient steps for many trials at once; the losses' constants are in `accounting.core.losses`."""
