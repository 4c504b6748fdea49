"""What claims on Langevin unlearning measure."""
