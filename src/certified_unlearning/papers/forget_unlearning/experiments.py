"""The declarations of the experiments of Forget Unlearning; the code that they run is imported only when they run."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.forget_unlearning.sweeps import Deletion, DeletionRisk
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

ATTACK_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "attack", "mechanism"),
        column("secret_state", "flag", "constant"),
        *columns("whole", "constant", "observed", "requests", "deletion", "interactions"),
        *columns("whole", "measure", "right", "wrong"),
        *columns("number", "measure", "advantage", "low", "high"),
        column("expected", "number", "measure", empty=True),
        column("promised", "number", "measure"),
        column("bound", "number", "measure", empty=True),
        *columns("flag", "measure", "promise_broken", "consistent"),
        column("seed", "whole", "constant"),
        column("seconds", "number", "cost"),
        column("code_version", "text", "origin"),
    ]
)
"""The columns of the table of attacks on deletion, which has one row for each attack and mechanism.

Each attack runs in ``interactions`` interactions under each hypothesis. ``right`` is the number of guesses of 1 under
hypothesis 1, and ``wrong`` is the number of guesses of 1 under hypothesis 0. The ``advantage`` is the difference of the
two rates, with a 95 % interval from ``low`` to ``high``. ``expected`` is the advantage that theory predicts. This value
is exact, with two exceptions: for counting, it is the advantage over infinitely many releases, and for encoded records,
it assumes that these records are read without error. ``promised`` is the largest advantage that the published
certificate allows, for requests fixed in advance. ``bound`` is the largest advantage that a valid certificate allows.
Other, wider confidence intervals decide ``promise_broken`` and ``consistent``. The probability that at least one of
these intervals misses the true advantage is below 1e-6.
"""

RISK_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "requester"),
        *columns("whole", "constant", "n", "d", "records_per_request"),
        column("sigma", "number", "constant"),
        *columns("whole", "constant", "learning_steps", "deletion_steps", "gradients_saved"),
        column("request", "whole", "point"),
        column("trials", "whole", "constant"),
        *columns("number", "measure", "risk", "standard_error"),
        column("certified", "number", "constant"),
        column("seed", "whole", "constant"),
        column("code_version", "text", "origin"),
    ]
)
"""The columns of the table of mean excess risk along a stream of deletions, with the certified risk.

Request 0 stands for learning.
"""


def make_attacks(inputs: Inputs) -> pd.DataFrame:
    """Run all attacks. Raises the same errors as `attacks.attack_table`."""
    from certified_unlearning.papers.forget_unlearning.attacks import attack_table

    return attack_table(inputs.sweep)


def make_risk(inputs: Inputs) -> pd.DataFrame:
    """Measure the excess risk along a stream; it raises the same errors as `risk.risk_table`."""
    from certified_unlearning.papers.forget_unlearning.risk import risk_table

    return risk_table(inputs.sweep)


DELETION = Experiment(
    name="deletion",
    source="Section 3, Theorems 3.1 to 4.5",
    sweep=Deletion,
    rows=ATTACK_ROWS,
    make=make_attacks,
    needs_data=False,
    draw="certified_unlearning.papers.forget_unlearning.figure:draw",
    tracked=True,
    caption=Caption(
        "What leaks to whom: the advantage of attacks on a deleted record, by mechanism",
        "Each number is an attack’s advantage: from the releases after a deletion, the attack guesses which of two "
        "values the deleted record had. The advantage is the rate at which the attack guesses a value if the record "
        "had this value, minus the rate at which it guesses the same value if the record had the other one. The "
        "figure states the number of independent interactions for each value. The small print is the exact 95 % "
        "confidence interval of the advantage, which follows from two Clopper-Pearson intervals with a Bonferroni "
        "correction. A triangle means that the advantage significantly exceeds the advantage that the mechanism’s "
        "certificate promises. The certificates of mechanisms that learn by gradient descent assume requests that "
        "are fixed in advance; the certificate of Langevin unlearning is computed by shifted interpolation. An empty "
        "cell means that the attack does not apply. Mechanisms that learn by gradient descent use linear losses of "
        "one coordinate, and their releases have the same variance. The figure does not depend on any data set.",
        "A matrix of mechanisms by attacks: nearly everything leaks if requests depend on published models, almost "
        "nothing leaks if they are fixed, and nothing leaks from the constant model.",
    ),
)
RISK = Experiment(
    name="risk",
    source="Theorem 5.1",
    sweep=DeletionRisk,
    rows=RISK_ROWS,
    make=make_risk,
    needs_data=False,
    shown=False,
    caption=Caption("Excess risk along a stream of deletions, measured and certified"),
)
