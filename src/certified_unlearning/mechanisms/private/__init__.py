"""Differentially private learning of linear models: for a batch of trials, or for one model."""
