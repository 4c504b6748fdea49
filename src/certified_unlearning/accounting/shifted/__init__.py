"""Shifted interpolation, exact on quadratics: whole data sets, cyclic mini-batches, and what rounding costs."""
