"""Models that learn by steps of descent and unlearn by more of them: Langevin unlearning and Descent-to-Delete."""
