"""Measures for the claims of Langevin unlearning."""
