"""The measures of claims: formulas, small exact problems, and rows of the experiments."""
