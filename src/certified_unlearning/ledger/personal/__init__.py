"""A page about a model, written for one person in plain words without technical terms."""
