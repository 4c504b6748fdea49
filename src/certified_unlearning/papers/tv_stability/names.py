"""The names of systems in figures and tables: systems of exact unlearning, and other systems for comparison."""

from certified_unlearning.reproduction.simulation.power_laws import Part

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
"""The systems in the order of legends. All are exact except the last one."""
PANELS = {
    "mini-batches": ("retraining", "subsample-gd", "noisy-sgd", "accelerated-noisy-sgd", "quantized-sgd"),
    "noisy sums": ("retraining", "full-batches", "frank-wolfe", "dual-averaging", "projected-dual-averaging"),
    "compared with": ("retraining", "sisa", "langevin"),
}
"""The systems in each panel; retraining is in all panels."""
_RISK, _RECORDS, _STABILITY, _COLUMNS = (
    "Excess risk",
    ("n", "Records n"),
    ("rho", "Stability ρ"),
    ("features", "Columns d"),
)
_OF_RECORDS = {
    "sub-sample-GD": -1 / 2,
    "accelerated noisy SGD": -4 / 5,
    "accelerated noisy SGD, stable": -1.0,
    "noisy SGD": -2 / 3,
    "noisy SGD, stable": -1.0,
    "quantized SGD": -2 / 3,
}
_OF_COLUMNS = {
    "sub-sample-GD": 0.0,
    "accelerated noisy SGD": 2 / 5,
    "accelerated noisy SGD, stable": 1 / 2,
    "noisy SGD": 1 / 3,
    "noisy SGD, stable": 1 / 2,
    "quantized SGD": 1.0,
}
_OF_A_PASS = {"Frank-Wolfe": -1.0, "dual averaging": -1 / 2}
RATE_PARTS = {
    "4 records": Part("Chapter 4: records", *_RECORDS, _RISK, _OF_RECORDS),
    "4 stability": Part("Chapter 4: stability", *_STABILITY, _RISK, _OF_RECORDS),
    "4 columns": Part("Chapter 4: columns", *_COLUMNS, _RISK, _OF_COLUMNS),
    "4 population": Part("Theorem 48: records", *_RECORDS, _RISK, {"sub-sample-GD": -1 / 2, "noisy SGD": -1 / 2}),
    "5 records": Part("Chapter 5: records", *_RECORDS, _RISK, _OF_A_PASS),
    "5 stability": Part("Chapter 5: stability", *_STABILITY, _RISK, _OF_A_PASS),
    "5 columns": Part("Chapter 5: columns", *_COLUMNS, _RISK, {"Frank-Wolfe": 1 / 2, "dual averaging": 1 / 4}),
    "5 projected": Part(
        "Theorems 28 and 29: records",
        *_RECORDS,
        _RISK,
        {"projected Frank-Wolfe": -2 / 3, "projected dual averaging": -1 / 3},
    ),
}
"""The panels of `exact_rates`, with their axes and theoretical slopes; the keys are the names of its parts."""
