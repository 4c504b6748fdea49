"""The parts of the experiments on private learning, with their axes and theoretical slopes in figures."""

from certified_unlearning.reproduction.simulation.power_laws import Part

_RISK, _GRADIENT = "Excess risk", "Norm of the gradient"
_RECORDS = ("n", "Records n")
PARTS = {
    "X1": Part("X1: output perturbation", *_RECORDS, _RISK, {"printed strength": -2 / 3, "least cost": -2 / 3}),
    "X2": Part("X2: noisy descent", *_RECORDS, _RISK, {"noisy descent": -1.0}),
    "X3": Part("X3: columns of zeros", "features", "Columns d", _RISK),
    "X4": Part("X4: absolute loss", *_RECORDS, _RISK, {"printed strength": -0.5, "least cost": -0.5}),
    "X5": Part("X5: search for the radius", "level", "Length of rows", f"{_RISK}, median"),
    "X6": Part("X6: boosting", "error", _RISK, "Share of runs above"),
    "X11": Part("X11: instances of lower bounds", *_RECORDS, "Error over lower bound", over_bound=True),
    "X13": Part("X13: Theorem 13's instance", "epsilon", "Epsilon", "Error over lower bound", over_bound=True),
    "X7": Part(
        "X7: errors of estimates",
        *_RECORDS,
        "Error of an estimate",
        {"SpiderBoost": -2 / 3},
        y="estimate_error",
        statistic="root mean square",
    ),
    "X8": Part("X8: one pass, population", *_RECORDS, _GRADIENT, {"tree": -1 / 3, "one pass": -1 / 4}),
    "X9": Part("X9: convex, population", *_RECORDS, _GRADIENT, {"recursive": -0.5}),
    "X10": Part("X10: embedding", "features", "Columns", _GRADIENT),
    "X14": Part("X14: linear time", *_RECORDS, _GRADIENT, {"halved blocks": -0.5, "equal blocks": -0.5}),
    "X15": Part("X15: embedding, any learner", "features", "Columns", _GRADIENT),
    "X16": Part("X16: embedding", *_RECORDS, _GRADIENT, {"recursive, embedding": -0.5}),
}
"""The parts; the keys are their names in the rows of a table."""
RISK_PARTS = ("X1", "X2", "X3", "X4", "X5", "X6", "X11", "X13")
"""The parts of the experiment `private_risk`."""
GRADIENT_PARTS = ("X7", "X8", "X9", "X10", "X14", "X15", "X16")
"""The parts of the experiment `private_gradients`."""
SYSTEMS = {
    "private": "Private, k covered",
    "private, renewed": "Private, learned anew when used up",
    "retraining": "Retraining (plain SGD)",
    "noisy-sgd": "Exact: noisy SGD",
    "langevin": "Langevin unlearning",
    "descent-to-delete": "Descent-to-Delete",
}
"""The systems of the experiment `group_privacy`, in the order of its legend."""
