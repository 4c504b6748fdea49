"""Learners: a user's own models, planned once and learned once, with any number of removals not known in advance."""
