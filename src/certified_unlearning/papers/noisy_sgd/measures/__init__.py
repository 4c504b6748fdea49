"""Measures for the claims of Noisy SGD: formulas, and exact laws of quadratic losses."""
