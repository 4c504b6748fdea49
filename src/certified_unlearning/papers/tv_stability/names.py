"""Systems of exact unlearning, and what they are compared with, as figures and tables call them."""

SYSTEMS = {
    "retraining": "Retraining (plain SGD)",
    "sisa": "SISA",
    "subsample-gd": "Sub-sample-GD",
    "noisy-sgd": "Noisy SGD",
    "accelerated-noisy-sgd": "Accelerated noisy SGD",
    "quantized-sgd": "Quantized SGD",
    "full-batches": "Full batches (linear queries)",
    "frank-wolfe": "Frank-Wolfe (prefix sums)",
    "dual-averaging": "Dual averaging (prefix sums)",
    "projected-dual-averaging": "Dual averaging of projected rows",
    "langevin": "Langevin unlearning (ε > 0)",
}
"""In the order of legends. All are exact but the last."""
PANELS = {
    "mini-batches": ("retraining", "subsample-gd", "noisy-sgd", "accelerated-noisy-sgd", "quantized-sgd"),
    "noisy sums": ("retraining", "full-batches", "frank-wolfe", "dual-averaging", "projected-dual-averaging"),
    "compared with": ("retraining", "sisa", "langevin"),
}
"""Which systems stand together in a panel: retraining in all."""
