"""Models whose removals are certified against an exact refit."""
