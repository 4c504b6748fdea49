"""Calibration of a removal by an accountant: any three of records, sigma, steps and epsilon fix the fourth."""

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Any, TypedDict, cast

import numpy as np

from certified_unlearning import accounting
from certified_unlearning.accounting.langevin.accountants import AccountantName, accountant_called
from certified_unlearning.errors import ParameterError

MOST_REQUESTS = 1_000_000
"""The largest number of requests in a planned stream. The accounting handles requests one by one."""


@dataclasses.dataclass(frozen=True)
class Stream:
    """Successive removal requests.

    Attributes:
        requests: Number of requests.
        records: Number of records removed by each request.
    """

    requests: int
    records: int

    @classmethod
    def parse(cls, text: str) -> "Stream":
        """Read ``5x20``: 5 requests of 20 records each.

        Raises:
            ParameterError: The text has another form.
        """
        match = re.fullmatch(r"([1-9][0-9]*)x([1-9][0-9]*)", text)
        if match is None:
            raise ParameterError(f"stream must be REQUESTSxRECORDS, such as 5x20, got {text!r}")
        if int(match[1]) > MOST_REQUESTS:
            raise ParameterError(f"stream must have at most {MOST_REQUESTS:,} requests, got {text!r}")
        return cls(int(match[1]), int(match[2]))


@dataclasses.dataclass(frozen=True)
class Calibration:
    """One accountant's calibration of a removal, and the certified guarantee.

    Attributes:
        accountant: Name of the accountant.
        records: Number of records removed by each request.
        steps: Number of unlearning steps; for a stream, a list with one number for each request.
        sigma: Noise scale.
        epsilon: Certified epsilon, an upper bound after every request.
        delta: The delta at which epsilon holds.
        mu: ``mu`` of the same guarantee in the form of Gaussian differential privacy, which holds at every delta; None
            if the accountant gives none.
    """

    accountant: AccountantName
    records: int
    steps: int | list[int]
    sigma: float
    epsilon: float
    delta: float
    mu: float | None

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes by name. An infinite epsilon or mu becomes None, because JSON has no infinity."""
        return {name: None if value == math.inf else value for name, value in dataclasses.asdict(self).items()}


class _Target(TypedDict):
    epsilon: float
    delta: float
    accountant: AccountantName


def calibrate(
    problem: accounting.Problem,
    accountant: AccountantName,
    *,
    delta: float,
    records: int | None = None,
    sigma: float | None = None,
    steps: int | None = None,
    epsilon: float | None = None,
    stream: Stream | None = None,
) -> Calibration:
    """Calibrate a removal with one accountant, after learning to stationarity.

    Give all but one of ``records``, ``sigma``, ``steps`` and ``epsilon``. The omitted value is computed: the most
    records, the least noise, the fewest steps, or the certified epsilon. A ``stream`` replaces ``records``; then
    ``steps`` or ``epsilon`` must be omitted. With a stream, ``steps`` is the number of steps of every request.

    Raises:
        ParameterError: None of the four values is omitted, or more than one is omitted.
        AssumptionError: The accountant needs another step size, or strong convexity.
        InfeasibleError: The target cannot be met.
    """
    if stream is not None:
        if records is not None:
            raise ParameterError(
                "with stream, records must be left out: the stream contains the number of records of each request"
            )
        records = stream.records
    given = {"records": records, "sigma": sigma, "steps": steps, "epsilon": epsilon}
    missing = [name for name, value in given.items() if value is None]
    if len(missing) != 1:
        named = f"{', '.join(missing)} are missing" if missing else "all were given"
        raise ParameterError(
            f"exactly three of records, sigma, steps and epsilon must be given, and the fourth is computed: {named}"
        )
    if stream is not None and missing == ["sigma"]:
        raise ParameterError("with stream, sigma must be given: the least sigma is planned only for a single request")
    target = _Target(epsilon=cast(float, epsilon), delta=delta, accountant=accountant)
    count = 1 if stream is None else stream.requests
    if records is None:
        records = accounting.most_records(problem, sigma=cast(float, sigma), steps=cast(int, steps), **target)
    elif sigma is None:
        sigma = accounting.least_sigma(problem, steps=cast(int, steps), records=records, **target)
    if steps is None:
        planned = accounting.least_stream_steps(
            problem, sigma=cast(float, sigma), records_per_request=records, requests=count, **target
        )
        all_steps = tuple(request.steps for request in planned)
    else:
        all_steps = (steps,) * count
    schedule = accounting.Schedule(sigma=cast(float, sigma), records_per_request=records, steps=all_steps)
    guarantees = accounting.stream_guarantees(problem, schedule, delta=delta, accountant=accountant)
    worst = accounting.largest_guarantee(guarantees)
    return Calibration(
        accountant=accountant,
        records=records,
        steps=list(schedule.steps) if stream is not None else schedule.steps[0],
        sigma=schedule.sigma,
        epsilon=worst.epsilon,
        delta=delta,
        mu=worst.mu,
    )


def recuperation(
    problem: accounting.Problem,
    accountants: Sequence[AccountantName],
    *,
    sigma: float,
    records: int,
    delta: float,
    steps: Sequence[int],
) -> list[dict[str, Any]]:
    """Return each accountant's certified epsilon after each number of unlearning steps, and the exact epsilon.

    The exact epsilon is the epsilon of quadratic losses with curvature ``m``. The gradients of these losses differ by
    as much as the assumptions allow. No smaller epsilon holds under the same assumptions.

    Returns:
        Rows with the columns of `rows.BOUND_ROWS`.
    """
    common = {
        "experiment": "recuperation",
        "n": problem.n,
        "strong_convexity": problem.strong_convexity,
        "smoothness_constant": problem.smoothness,
        "lipschitz": problem.lipschitz,
        "step_size": problem.step_size,
        "sigma": sigma,
        "records_removed": records,
        "delta": delta,
        "alpha": None,
        "renyi": None,
    }
    rows = []
    for number in steps:
        schedule = accounting.Schedule(sigma=sigma, records_per_request=records, steps=(number,))
        for accountant in accountants:
            (after,) = accounting.stream_guarantees(problem, schedule, delta=delta, accountant=accountant)
            rows.append(
                _row(accountant, "upper bound", accountant_called(accountant).source, number, after.epsilon, after.mu)
            )
        mu = _exact_mu(problem, sigma=sigma, records=records, steps=number)
        epsilon = accounting.epsilon_from_mu(mu, delta)
        rows.append(_row("exact on quadratics", "exact", "derived", number, epsilon, mu))
    return [{**common, **row} for row in rows]


def steps_up_to(most: float, *, points: int) -> list[int]:
    """Return 0 and up to ``points`` logarithmically spaced numbers of steps from 1 to ``most``."""
    return sorted({0, *(round(float(step)) for step in np.geomspace(1, most, points))})


def _row(bound: str, guarantee: str, source: str, steps: int, epsilon: float, mu: float | None) -> dict[str, Any]:
    return {
        "bound": bound,
        "guarantee": guarantee,
        "source": source,
        "steps": steps,
        "epsilon": epsilon,
        "mu": mu,
    }


def _exact_mu(problem: accounting.Problem, *, sigma: float, records: int, steps: int) -> float:
    """Return the distance of two Gaussians in standard deviations, after steps that began at stationarity.

    The means start ``gap`` apart, and each step multiplies their distance by ``|1 - eta m|``. The variance, ``2 eta
    sigma^2 / (1 - (1 - eta m)^2)``, stays the same.
    """
    contraction = abs(1 - problem.step_size * problem.strong_convexity)
    gap = problem.sensitivity(records) / problem.strong_convexity
    variance = 2 * problem.step_size * sigma**2 / ((1 - contraction) * (1 + contraction))
    return float(gap * contraction**steps / variance**0.5)
