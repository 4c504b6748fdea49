"""Measures for the claims of Forget Unlearning."""
