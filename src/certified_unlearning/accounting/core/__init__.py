"""Foundations of all analyses: the problem and its losses, curves and conversions, rounding, searches, checks."""
