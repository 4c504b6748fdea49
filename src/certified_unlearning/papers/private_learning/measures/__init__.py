"""Measures of claims on private learning."""
