"""Models that learn by steps of descent and unlearn by further steps: Langevin unlearning and Descent-to-Delete."""
