"""What claims measure: formulas, small exact problems, and rows of the experiments."""
