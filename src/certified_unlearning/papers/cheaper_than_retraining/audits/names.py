"""Names of what is audited, for people; whatever plans or draws imports these, and nothing heavy."""

from certified_unlearning.papers.cheaper_than_retraining.names import SYSTEMS

ONE_RUN, TWO_LAWS = "one run", "two laws"
"""The two kinds of audit."""
UNCERTIFIED = {
    "nothing": "Nothing at all",
    "fine-tuning": "A few steps of fine-tuning",
    "gradient-ascent": "Gradient ascent on what leaves",
    **{name: SYSTEMS[name] for name in ("lbfgs-warm", "lbfgs-warm-exact", "newton-cholesky-warm")},
}
"""What people do, of which nothing is certified."""
EXACT = {
    **{name: SYSTEMS[name] for name in ("lbfgs-cold", "newton-cholesky-cold", "sgd", "sisa")},
    "exact-steps": "Exact unlearning, noisy SGD",
}
"""What is exact: learning again, as a whole or in part."""
CERTIFIED = {
    name: SYSTEMS[name]
    for name in ("langevin-full", "langevin-minibatch", "descent-to-delete", "certified-refit", "newton-removal")
}
"""What is certified with an epsilon."""
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
"""What audits of two laws are of."""
