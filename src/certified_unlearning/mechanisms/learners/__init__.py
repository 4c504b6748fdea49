"""Learners of a user's own models, each planned once and learned once; removals are not known in advance."""
