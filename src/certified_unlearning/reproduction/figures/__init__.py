"""Figures: what all of them share, and the one function that draws an experiment's."""
