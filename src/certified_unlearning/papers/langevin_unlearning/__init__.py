"""Chien, Wang, Chen, Li, Langevin unlearning (NeurIPS 2024)."""
