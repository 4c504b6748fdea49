"""Measures for the claims of Differential Privacy Dynamics: formulas, and the runs of the experiment `measured`."""
