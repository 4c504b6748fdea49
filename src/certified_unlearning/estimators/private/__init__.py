"""Differentially private linear models: no record matters much, so a deletion needs no work."""
