"""Systems of exact unlearning, and what they are compared with, as figures and tables call them."""

SYSTEMS = {
    "retraining": "Retraining (plain SGD)",
    "sisa": "SISA",
    "subsample-gd": "Sub-sample-GD",
    "noisy-sgd": "Noisy SGD",
    "accelerated-noisy-sgd": "Accelerated noisy SGD",
    "quantized-sgd": "Quantized SGD",
    "langevin": "Langevin unlearning (ε > 0)",
}
"""In the order of legends. All are exact but the last."""
