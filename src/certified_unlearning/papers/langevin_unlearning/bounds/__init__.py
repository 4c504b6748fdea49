"""Results of bounds alone on Langevin unlearning, without any simulation."""
