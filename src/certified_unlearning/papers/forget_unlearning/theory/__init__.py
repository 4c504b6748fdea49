"""Formulas of Forget Unlearning that only claims, figures or tests use."""
