"""Readable names of the audited systems.

Code for plans and figures imports this module, so the module imports no large library.
"""

from certified_unlearning.papers.cheaper_than_retraining.names import SYSTEMS

ONE_RUN, TWO_LAWS = "one run", "two laws"
"""The two kinds of audit."""
UNCERTIFIED = {
    "nothing": "Nothing at all",
    "fine-tuning": "A few steps of fine-tuning",
    "gradient-ascent": "Gradient ascent on removed records",
    **{name: SYSTEMS[name] for name in ("lbfgs-warm", "lbfgs-warm-exact", "newton-cholesky-warm")},
}
"""Common practices that certify nothing."""
EXACT = {
    **{name: SYSTEMS[name] for name in ("lbfgs-cold", "newton-cholesky-cold", "sgd", "sisa")},
    "exact-steps": "Exact unlearning, noisy SGD",
}
"""Systems that are exact: they retrain, completely or in part."""
CERTIFIED = {
    name: SYSTEMS[name]
    for name in ("langevin-full", "langevin-minibatch", "descent-to-delete", "certified-refit", "newton-removal")
}
"""Systems that certify an epsilon."""
IN_ONE_RUN = {**UNCERTIFIED, **EXACT, **CERTIFIED}
BY_LAWS = {
    "langevin-ridge": "Langevin, ridge",
    "langevin-replace": "Langevin, ridge, replace",
    "langevin-full": SYSTEMS["langevin-full"],
    "langevin-minibatch": SYSTEMS["langevin-minibatch"],
    "descent-to-delete": SYSTEMS["descent-to-delete"],
    "certified-refit": SYSTEMS["certified-refit"],
    "newton-removal": SYSTEMS["newton-removal"],
    "certified-ridge": "Certified ridge",
    "private-descent": "Private learning, descent",
    "private-output": "Private learning, output",
}
"""The systems whose audits compare two distributions."""
