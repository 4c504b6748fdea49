"""Chourasia, Shah, Forget Unlearning (ICML 2023)."""
