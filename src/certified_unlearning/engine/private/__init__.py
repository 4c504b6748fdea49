"""Records whose bounds are enforced, for differential privacy."""
