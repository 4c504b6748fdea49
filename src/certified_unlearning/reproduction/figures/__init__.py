"""Figures: what all of them share, and the one function that draws the figure of an experiment."""
