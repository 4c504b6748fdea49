"""The measures for the claims on private learning."""
