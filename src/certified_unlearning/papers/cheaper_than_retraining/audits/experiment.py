"""The declaration of the experiment `audit`. Its code is imported only when the experiment runs."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.cheaper_than_retraining.audits.sweep import Audits
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

AUDIT_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "kind", "system"),
        column("n", "whole", "point"),
        column("target", "number", "point"),
        column("d", "whole", "constant"),
        *columns("whole", "constant", "removed", "copies", "trials", empty=True),
        *columns("number", "constant", "strength", "delta", "alpha", "level"),
        column("seed", "whole", "constant"),
        *columns("text", "constant", "guarantee", "skipped"),
        *columns("number", "measure", "epsilon", "mu", empty=True),
        *columns("whole", "measure", "right", "right_before", empty=True),
        *columns("number", "measure", "epsilon_measured", "epsilon_before", "mu_measured", "mu_before", empty=True),
        *columns("number", "measure", "mu_estimated", "mu_computed", empty=True),
        *columns("flag", "measure", "violated", "has_power"),
        column("seconds", "number", "cost", empty=True),
        column("code_version", "text", "origin"),
    ]
)
"""The columns of the table, which has one row for each audit. ``kind`` is ``one run`` or ``two laws``.

``epsilon`` and ``mu`` are the certified upper bounds for all ``removed`` canaries together, each of which has
``copies`` copies. They are empty if nothing is certified. ``epsilon_measured`` and ``mu_measured`` are lower bounds
after the removal, each with probability ``1 - level``. ``epsilon_before`` and ``mu_before`` are the same lower bounds
for the control: the models before the removal, or, for private learning, models with a hundredth of the noise.
``mu_estimated`` is a point estimate from the counts, not a bound. ``mu_computed`` is the exact value for the records of
the audit, if the distributions are Gaussian around known weights. ``violated`` and ``has_power`` give the verdict at
the level ``alpha``. If both are false, the audit shows nothing. Systems without a certificate are compared with
retraining, so their claimed epsilon is 0. ``skipped`` is the reason why a row is empty.
"""


def make_audits(inputs: Inputs) -> pd.DataFrame:
    """Audit every system."""
    from certified_unlearning.papers.cheaper_than_retraining.audits.table import audit_table

    return audit_table(inputs.sweep)


_HERE = "certified_unlearning.papers.cheaper_than_retraining.audits"
AUDIT = Experiment(
    name="audit",
    source="",
    sweep=Audits,
    rows=AUDIT_ROWS,
    make=make_audits,
    needs_data=False,
    tracked=True,
    draw=f"{_HERE}.figure:draw",
    page=f"{_HERE}.page:page",
    caption=Caption(
        "How much models still reveal about removed records: certified upper bounds, and measured lower bounds",
        "In the left panel, each row is for one run: half of the canaries are learned and removed, and an adversary "
        "guesses from the published weights which canaries these are. Filled marks are the lower bound on epsilon "
        "after the removal, with 95 % confidence. Vertical bars are the certified epsilon. Hollow marks are the lower "
        "bound by the same attack before the removal; they show how much the attack can find. A square means that the "
        "attack finds more than is claimed, at the level of verdicts (`alpha` in params.yaml). Systems without a "
        "certificate are compared with retraining. A lower bound cannot exceed the bound for an adversary whose "
        "guesses are all right. In the right panel, each row is for many models of each distribution: bars are the "
        "certified mu, an upper bound, and filled marks are the measured mu, a lower bound with 95 % confidence. The "
        "line between them contains the true mu. Diamonds are computed for these records; crosses are estimates, not "
        "bounds. An audit that finds nothing proves nothing. The figure does not depend on the preset’s data set.",
        "Left: after the removal, exact and certified systems are at 0; practices without a certificate are far to "
        "the right if they do nothing, take a few steps, or start warm on many records. Right: the measured mu nearly "
        "reaches the certified mu for Langevin unlearning of ridge regression, and is about two thirds of it for "
        "logistic regression. Audits of certified refits find nothing.",
    ),
)
