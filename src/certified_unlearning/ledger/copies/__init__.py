"""Copies of a model elsewhere: where they went, and which of them are older than the current version."""
