"""Figures: what all figures share, and the function that draws an experiment's figure."""
