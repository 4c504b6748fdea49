"""Measures for the claims of our own analysis: formulas, and the rows of the experiment `cost`."""
