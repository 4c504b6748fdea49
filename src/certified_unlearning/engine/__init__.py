"""The descent loop, its randomness, objectives, checkpoints and devices: PyTorch code that knows nothing of privacy."""
