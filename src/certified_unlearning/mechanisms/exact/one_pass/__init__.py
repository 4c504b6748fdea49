"""One pass over records in random order, on noisy prefix sums.

Methods plug into the learner of `prefix_sums`.
"""
