"""Noisy sums over all records, step by step; methods plug into the learner of `linear_queries`."""
