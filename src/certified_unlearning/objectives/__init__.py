"""Losses: their constants (`constants`, free of torch) and their gradient steps for many trials at once."""
