"""Private linear models and private stationary points (Ullah, PhD dissertation, Johns Hopkins University, 2024)."""
