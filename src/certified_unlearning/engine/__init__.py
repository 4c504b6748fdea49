"""Tensors in, tensors out, no privacy: the hot loop of descent, its randomness, objectives, checkpoints, devices."""
