"""Rényi analyses of noisy gradient descent (*Differential Privacy Dynamics*)."""
