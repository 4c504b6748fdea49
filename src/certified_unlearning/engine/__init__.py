"""The descent loop, its randomness, objectives, checkpoints and devices: PyTorch code without any notion of privacy."""
