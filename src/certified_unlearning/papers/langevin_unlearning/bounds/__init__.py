"""Results on Langevin unlearning that are computed from bounds alone, without any simulation."""
