"""Noisy gradient descent on cyclic mini-batches: a `stream` of requests, planning, the accountant."""
