"""Measures for the claims of Noisy SGD: formulas, and exact distributions of quadratic losses."""
