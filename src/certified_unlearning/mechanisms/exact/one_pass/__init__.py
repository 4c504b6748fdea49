"""One pass over records in random order, on noisy prefix sums; methods plug into the learner of `prefix_sums`."""
