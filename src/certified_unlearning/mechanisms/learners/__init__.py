"""Learners: models of one's own, planned once, learned once, then any number of removals not known in advance."""
