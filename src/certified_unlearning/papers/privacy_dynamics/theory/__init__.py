"""Formulas of Differential Privacy Dynamics that only claims, figures or tests use."""
