"""The measures for the claims on exact unlearning."""
