"""Figures, one module an experiment."""
