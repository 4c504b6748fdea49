"""Noisy sums over all records, step by step.

Methods plug into the learner of `linear_queries`.
"""
