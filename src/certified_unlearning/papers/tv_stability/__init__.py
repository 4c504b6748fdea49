"""Exact unlearning by total-variation stability (Ullah, PhD dissertation, Johns Hopkins University, 2024)."""
