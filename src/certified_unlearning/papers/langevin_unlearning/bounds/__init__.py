"""What bounds alone say of Langevin unlearning: nothing is simulated."""
