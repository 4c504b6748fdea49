"""What claims on Differential Privacy Dynamics measure: formulas, and the runs of the experiment `measured`."""
