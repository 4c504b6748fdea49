"""Shifted interpolation, which is exact on quadratics, and what rounding costs."""
