"""Measures for the claims of our own analysis, by formulas and by the rows of the experiment `cost`."""
