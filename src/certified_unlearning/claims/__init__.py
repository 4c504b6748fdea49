"""The table of claims: what a paper says, checked against its own formulas and against our runs.

A claim (`model`, written down in YAML) names a measure (`registry`, `measures*`) and the relation that its numbers
should have to the paper's (`relations`). `evaluate` gives each a verdict: ``reproduced``, ``contradicted`` with both
numbers, or ``not run`` with what is missing. None of them is written by hand.

What is measured is of three kinds. Most measures evaluate the paper's formulas under its constants and need no results
(the spectral smoothness does). Others read accuracies, steps and data sets from the results of our runs. Self-checks,
whose source begins with "Self-check of our constants", "data" or "runs", find out whether our own numbers are sound;
that they are reproduced says nothing of what the paper found.
"""

# Importing the measures registers them.
from certified_unlearning.claims import (
    measures,
    measures_attacks,
    measures_deletion,
    measures_guarantees,
    measures_records,
    measures_streams,
)
from certified_unlearning.claims.evidence import Evidence
from certified_unlearning.claims.model import Claim, all_claims, load_claims
from certified_unlearning.claims.verdicts import (
    Change,
    Verdict,
    accept,
    as_table,
    compare_with_baseline,
    counts,
    evaluate,
    read,
    write,
)

__all__ = [
    "Change",
    "Claim",
    "Evidence",
    "Verdict",
    "accept",
    "all_claims",
    "as_table",
    "compare_with_baseline",
    "counts",
    "evaluate",
    "load_claims",
    "measures",
    "measures_attacks",
    "measures_deletion",
    "measures_guarantees",
    "measures_records",
    "measures_streams",
    "read",
    "write",
]
