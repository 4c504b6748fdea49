"""What all analyses share: the problem and its losses, curves and conversions, rounding, searches, checks."""
