"""The table of attacks on deletion: every attack on every mechanism to which it applies."""

import pandas as pd

from certified_unlearning.papers.forget_unlearning.services.cases import Case
from certified_unlearning.papers.forget_unlearning.services.construction_cases import construction_cases
from certified_unlearning.papers.forget_unlearning.services.gradient_cases import gradient_cases
from certified_unlearning.papers.forget_unlearning.sweeps import Deletion
from certified_unlearning.version import code_version

FAILURE_PROBABILITY = 0.05
"""The largest probability that a confidence interval in the rows misses the true advantage."""
FALSE_ALARM = 1e-8
"""The largest probability that an interval for comparing measurement with theory misses the true advantage.

The probability that at least one interval of the table misses the true advantage is below 1e-6.
"""


def cases(settings: Deletion) -> list[Case]:
    """Return every attack on every mechanism to which it applies."""
    return [*construction_cases(settings), *gradient_cases(settings)]


def attack_table(sweep: Deletion) -> pd.DataFrame:
    """Run all attacks of the sweep, and return rows that follow `experiments.ATTACK_ROWS`.

    Raises:
        AssumptionError: The settings violate an assumption of a theorem.
    """
    version = code_version()
    return pd.DataFrame([_row(case, sweep.seed, sweep.interactions, version) for case in cases(sweep)])


def _row(case: Case, seed: int, interactions: int, version: str) -> dict[str, object]:
    measured = case.scenario.measure(interactions, (seed, "deletion", case.mechanism, case.attack))
    low, high = measured.interval(FAILURE_PROBABILITY)
    least, most = measured.interval(FALSE_ALARM)
    return {
        "experiment": "deletion",
        "attack": case.attack,
        "mechanism": case.mechanism,
        "secret_state": case.secret_state,
        "observed": case.observed,
        "requests": case.scenario.requests,
        "deletion": case.scenario.deletion,
        "interactions": interactions,
        "right": measured.right,
        "wrong": measured.wrong,
        "advantage": measured.advantage,
        "low": low,
        "high": high,
        "expected": case.expected,
        "promised": case.promised,
        "bound": case.bound,
        "promise_broken": least > case.promised,
        "consistent": (case.expected is None or least <= case.expected <= most)
        and (case.bound is None or least <= case.bound),
        "seed": seed,
        "seconds": measured.seconds,
        "code_version": version,
    }
