"""The runs of the experiments of private learning: instances, their records for many trials, and rows of results."""
