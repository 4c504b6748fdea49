"""Noisy gradient descent on cyclic mini-batches: `single` requests, `stream` of them, planning, the accountant."""
