"""The accountant of mini-batch Langevin unlearning."""

from certified_unlearning.accounting.accountant import PROJECTION, Accountant, Assumption

CYCLIC = Accountant(
    "cyclic",
    "cyclic",
    "minibatch-langevin",
    {
        "least-steps": "the same steps of learning and of every request, in the same order and from the same start, on "
        "data that never contained the removed records"
    },
    (
        Assumption(
            statement="records were dealt into batches without looking at their contents, and keep their places",
            status="checked",
            by="a separate key, which does not depend on the records, determined the batches; a removed record "
            "becomes a row of zeros in its place",
        ),
        PROJECTION,
    ),
    bound="our bound",
)
"""Pooled shifted interpolation (`stream`). The worst quadratic losses come within a few per cent of this bound."""

ACCOUNTANTS: dict[str, Accountant] = {CYCLIC.name: CYCLIC}
