"""One pass over records in random order, on noisy prefix sums: `prefix_sums` learns and unlearns, others plug in."""
