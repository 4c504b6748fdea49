"""One pass over records in random order, with models that are computed from noisy prefix sums.

Methods plug into the learner of `prefix_sums`.
"""
