"""The figures of Langevin unlearning, drawn from rows."""
