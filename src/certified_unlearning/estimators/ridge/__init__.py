"""Ridge regression, with the mechanisms of the classifiers."""
