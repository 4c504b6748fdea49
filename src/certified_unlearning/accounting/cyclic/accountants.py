"""The accountant of mini-batch Langevin unlearning."""

from certified_unlearning.accounting.accountant import PROJECTION, Accountant, Assumption

CYCLIC = Accountant(
    "cyclic",
    "cyclic",
    "minibatch-langevin",
    {
        "least-steps": "the same steps in the same order, learning and every request's, from the same start, on data "
        "that lacked the removed records from the start"
    },
    (
        Assumption(
            statement="records were dealt into batches without looking at them, and keep their places",
            status="checked",
            by="dealt by a key of their own; a removed record becomes a row of zeros where it was",
        ),
        PROJECTION,
    ),
    bound="our bound",
)
"""Pooled shifted interpolation (`stream`). The worst quadratic losses come within a few per cent of this bound."""

ACCOUNTANTS: dict[str, Accountant] = {CYCLIC.name: CYCLIC}
