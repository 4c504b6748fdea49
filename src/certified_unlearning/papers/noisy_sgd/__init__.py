"""Certified Machine Unlearning via Noisy Stochastic Gradient Descent (Chien, Wang, Chen, Li, NeurIPS 2024)."""
