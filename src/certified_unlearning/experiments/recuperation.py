"""Privacy recuperation: certified epsilon against unlearning steps. Nothing is simulated."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from certified_unlearning.experiments.plan import constants_and_problem
from certified_unlearning.offers import recuperation, steps_up_to
from certified_unlearning.parameters import Common, Recuperation

POINTS = 120
"""Numbers of steps at which a bound is evaluated at most, 0 and the last among them."""


def recuperation_table(settings: Common, sweep: Recuperation, data: Mapping[str, Any]) -> pd.DataFrame:
    """Return certified epsilon against unlearning steps by every accountant (`results.BOUND_SCHEMA`).

    Args:
        settings: The preset's settings.
        sweep: What to sweep over.
        data: Summary of the prepared data set.

    Raises:
        ParameterError: More removals than records, or another value that makes no sense.
        AssumptionError: A theorem's assumption does not hold.
    """
    constants, problem = constants_and_problem(settings, data, records=sweep.records)
    rows = recuperation(
        problem,
        sweep.accountants,
        sigma=sweep.sigma,
        records=sweep.records,
        delta=constants.delta,
        steps=steps_up_to(sweep.steps, points=POINTS),
    )
    return pd.DataFrame(rows)
