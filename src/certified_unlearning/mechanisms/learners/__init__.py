"""Learners of a user's own models, each planned once and learned once.

Removals are not known in advance.
"""
