"""Models whose removals are certified by comparison with an exact refit."""
