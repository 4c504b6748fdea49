"""Formulas of Langevin unlearning that only claims, figures or tests use."""
