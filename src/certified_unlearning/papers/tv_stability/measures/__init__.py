"""Measures of the claims on exact unlearning."""
