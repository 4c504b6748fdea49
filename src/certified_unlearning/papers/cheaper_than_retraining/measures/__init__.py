"""Measures for the claims of our own analysis, from formulas and from rows of the experiments."""
