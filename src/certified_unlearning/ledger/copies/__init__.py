"""Copies of a model outside the directory: where they are, and which of them are older than the current version."""
