"""Noisy sums over all records, step by step: `linear_queries` learns and unlearns, others plug in."""
