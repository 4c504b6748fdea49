"""Advice on a poor model. It is computed from the records without noise, so it is for the operator only."""
