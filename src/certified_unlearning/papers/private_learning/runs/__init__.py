"""What the experiments of private learning run: instances, their records for many trials, rows of results."""
