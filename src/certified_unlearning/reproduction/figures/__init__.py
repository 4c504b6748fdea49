"""Figures: what all of them share, and the function that draws an experiment's figure."""
