"""The rows of the experiment `exact_rates`: every learner's excess risk, by records, stability and columns."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.papers.tv_stability.rates import mini_batches, one_pass
from certified_unlearning.papers.tv_stability.rates.instance import Blocks, geometric
from certified_unlearning.papers.tv_stability.sweeps import ExactRates

BLOCKS = 10
"""The number of blocks of every distribution; if the data have more columns, the additional columns are zero."""
LENGTHS = {"squared": 0.8, "logistic": 4.0, "absolute": 1.0}
"""The norms of the best models."""
LONG = 16
"""The factor by which the number of records is reduced for learners whose number of steps grows with it."""


def rates_table(sweep: ExactRates) -> pd.DataFrame:
    """Return the rows of all parts, one for each trial."""
    tables = [table for part in (_empirical, _population, _passes, _projected) for table in part(sweep)]
    return pd.concat(tables, ignore_index=True).assign(experiment="exact_rates", seed=sweep.seed)


def _empirical(sweep: ExactRates) -> Iterator[pd.DataFrame]:
    """Yield chapter 4's tables of empirical risk.

    In the data, the number of copies of each record is proportional to its probability, up to rounding.
    """
    law = geometric(BLOCKS, length=LENGTHS["squared"])
    for part, records, rho, dimension in _lines("4", sweep.n, sweep.rho, sweep.columns):
        for method, plan in mini_batches.EMPIRICAL.items():
            n = records // (LONG if method in mini_batches.LONG_RUNS else 1)
            counts = np.repeat(_nearest(law.law, n)[None], sweep.trials, axis=0)
            planned = plan(mini_batches.problem_of(n=n, dimension=dimension, rho=rho))
            excess = partial(mini_batches.excess_empirical, counts=counts)
            yield _mini_batches(part, method, planned, counts, excess, sweep, n=n, rho=rho, dimension=dimension)


def _population(sweep: ExactRates) -> Iterator[pd.DataFrame]:
    """Yield Theorem 48's tables: population risk, on records that every trial draws anew."""
    law = geometric(BLOCKS, length=LENGTHS["squared"])
    for n in sweep.population_n:
        key = address(sweep.seed, "exact_rates", "population", n)
        counts = np.random.default_rng(key).multinomial(n, law.law.numpy(), size=sweep.trials)
        problem = mini_batches.problem_of(n=n, dimension=BLOCKS, rho=sweep.population_rho)
        for method, plan in mini_batches.POPULATION.items():
            yield _mini_batches(
                "4 population", method, plan(problem), counts, law.excess, sweep,
                n=n, rho=sweep.population_rho, dimension=BLOCKS,
            )  # fmt: skip


def _mini_batches(
    part: str, method: str, planned: mini_batches.Planned, counts: np.ndarray, excess: Callable[[Tensor], Tensor],
    sweep: ExactRates, *, n: int, rho: float, dimension: int,
) -> pd.DataFrame:  # fmt: skip
    begun, where = time.monotonic(), (sweep.seed, "exact_rates", method, n, rho, dimension)
    weights = mini_batches.learned(
        planned.settings,
        counts,
        dimension=dimension,
        draws=Draws.at(*where, part),
        key=address(*where, part, "batches"),
    )
    return _rows(
        part, method, excess(weights), begun, n=n, rho=rho, features=dimension, rate=planned.rate,
        steps=planned.settings.steps,
    )  # fmt: skip


def _passes(sweep: ExactRates) -> Iterator[pd.DataFrame]:
    """Yield chapter 5's tables: population risk after one pass, on records that every trial draws anew."""
    for part, n, rho, dimension in _lines("5", sweep.pass_n, sweep.pass_rho, sweep.pass_columns):
        for method, (learn, loss) in one_pass.LEARNERS.items():
            law = geometric(BLOCKS, length=LENGTHS[loss], loss=loss)
            yield _passed(part, method, learn, law, sweep, n=n, rho=rho, dimension=dimension)


def _projected(sweep: ExactRates) -> Iterator[pd.DataFrame]:
    """Yield the tables of Theorems 28 and 29: population risk after one pass on projections of records.

    The records have many columns before the projection.
    """
    for n in sweep.projected_n:
        for method, (learn, loss) in one_pass.PROJECTED.items():
            law = geometric(BLOCKS, length=LENGTHS[loss], loss=loss)
            yield _passed(
                "5 projected",
                method,
                learn,
                law,
                sweep,
                n=n,
                rho=max(sweep.pass_rho),
                dimension=sweep.projected_columns,
            )


def _passed(
    part: str, method: str, learn: one_pass.Learner, law: Blocks, sweep: ExactRates, *, n: int, rho: float,
    dimension: int,
) -> pd.DataFrame:  # fmt: skip
    begun, key = time.monotonic(), (sweep.seed, "exact_rates", part, method, n, rho, dimension)
    excess, rate = learn(law, n=n, dimension=dimension, rho=rho, trials=sweep.trials, key=key)
    return _rows(part, method, excess, begun, n=n, rho=rho, features=dimension, rate=rate, steps=n)


def _lines(
    chapter: str, records: list[int], rhos: list[float], columns: list[int]
) -> Iterator[tuple[str, int, float, int]]:
    """Yield the settings of three lines as tuples ``(part, records, stability, columns)``.

    The lines cross at the largest number of records, the largest ``rho`` and the fewest columns.
    """
    n, rho, dimension = max(records), max(rhos), min(columns)
    yield from ((f"{chapter} records", each, rho, dimension) for each in records)
    yield from ((f"{chapter} stability", n, each, dimension) for each in rhos)
    yield from ((f"{chapter} columns", n, rho, each) for each in columns)


def _nearest(law: Tensor, n: int) -> np.ndarray:
    """Return whole numbers that sum to ``n`` and differ by less than 1 from ``n`` times the probabilities."""
    wanted = law.numpy() * n
    counts: np.ndarray = np.floor(wanted).astype(np.int64)
    counts[np.argsort(counts - wanted)[: n - counts.sum()]] += 1
    return counts


def _rows(part: str, method: str, errors: Tensor, begun: float, **columns: Any) -> pd.DataFrame:
    each = (time.monotonic() - begun) / len(errors)
    return pd.DataFrame(
        {
            "part": part,
            "method": method,
            "trial": range(len(errors)),
            "error": errors.tolist(),
            **columns,
            "seconds": each,
        }
    )
