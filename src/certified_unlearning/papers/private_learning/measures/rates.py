"""Measures of rows: slopes with intervals, errors divided by bounds, and comparisons of errors."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from certified_unlearning.papers.private_learning.names import PARTS, RISK_PARTS
from certified_unlearning.papers.private_learning.private_rates import PRIVATE_GRADIENTS, PRIVATE_RISK
from certified_unlearning.papers.private_learning.runs.instances import sign_instance
from certified_unlearning.papers.private_learning.theory.linear_models import Setting, theorem_8_bound
from certified_unlearning.reproduction.claims.evidence import Evidence, MissingEvidence, table_of
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity
from certified_unlearning.reproduction.simulation.power_laws import LEAST_RANGE, Statistic, cells, fitted
from certified_unlearning.reproduction.summaries import Row

FEWEST_TRIALS = 20
"""The smallest number of trials that is enough for a statement about a mean."""
FEWEST_LENGTHS = 3
STANDARD_ERRORS = 3
"""A mean counts as above a bound if it exceeds the bound by this number of standard errors."""
REMEDY = "run `snakemake --config preset=private`"


@measure
def slope(
    evidence: Sequence[Evidence],
    *,
    part: str,
    method: str,
    of: str = "error",
    statistic: Statistic = "mean",
    epsilon: list[float] | None = None,
) -> list[Quantity]:
    """Return the slope of a line on logarithmic axes, with its 95 % bootstrap interval."""
    rows = rows_of(evidence, part, method)
    x = PARTS[part].x
    found = []
    for value in epsilon or sorted(set(rows["epsilon"])):
        own = rows[rows["epsilon"] == value]
        fit = fitted(own, x=x, y=of, statistic=statistic) if len(set(own[x])) > 1 else None
        if fit is None or fit.reach < LEAST_RANGE:
            raise MissingEvidence(f"{part} was run over less than a {LEAST_RANGE}-fold range of {x}; {REMEDY}")
        found.append(Quantity(fit.slope, f"epsilon = {value:g}", fit.half_width))
    return found


@sweep("{method}")
def error_over_bound(evidence: Sequence[Evidence], *, part: str, method: str) -> list[Quantity]:
    """Return the mean error of every setting divided by its explicit bound.

    The uncertainty is three standard errors of the mean.
    """
    return [
        _mean(own["error"].to_numpy() / own["bound"].to_numpy(), f"{method}, {_where(own.iloc[0])}")
        for _, own in rows_of(evidence, part, method).groupby(["n", "features", "epsilon", "level"])
    ]


@measure
def growth(evidence: Sequence[Evidence], *, part: str, method: str) -> Quantity:
    """Return the largest mean error in a sweep divided by the smallest.

    The uncertainty is three standard errors of the quotient, computed from the standard errors of the two means.
    """
    rows = rows_of(evidence, part, method)
    across, trials = cells(rows, x=PARTS[part].x)
    _require_range(part, float(across[0]), float(across[-1]))
    means = [each.mean() for each in trials]
    least, largest = trials[int(np.argmin(means))], trials[int(np.argmax(means))]
    return _ratio(largest, least, method)


@measure
def error_over_theorem_8(evidence: Sequence[Evidence], *, noise: bool = True) -> list[Quantity]:
    """Return noisy descent's mean excess risk divided by ``18 R + 17 sqrt(H) D Y / sqrt(n)``, with regret R.

    Without ``noise``, the risk is that of noiseless descent, whose regret at Corollary 2's step size is ``5 sqrt(H) D Y
    / sqrt(n)``.
    """
    rows = rows_of(evidence, "X2", "noisy descent")
    radius = sign_instance().radius
    found = []
    for n in sorted(set(rows["n"])):
        own = rows[rows["n"] == n]
        setting = Setting(n=int(n), d=50, delta=1e-6, radius=radius)
        regret = float(own["bound"].iloc[0]) if noise else 5 * setting.reach * setting.at_zero / math.sqrt(n)
        errors = own["error" if noise else "noiseless"].to_numpy(dtype=float)
        found.append(_mean(errors / theorem_8_bound(regret, setting), f"n = {n}"))
    return found


@measure
def method_over_method(
    evidence: Sequence[Evidence], *, part: str, method: str, other: str, at: Literal["least", "largest"] = "largest"
) -> Quantity:
    """Return a method's mean error divided by another's, at the smallest or the largest value of the sweep."""
    x = PARTS[part].x
    both = [rows_of(evidence, part, each) for each in (method, other)]
    shared = set(both[0][x]) & set(both[1][x])
    _require_range(part, min(shared), max(shared))
    where = min(shared) if at == "least" else max(shared)
    one, two = (each.loc[each[x] == where, "error"].to_numpy() for each in both)
    return _ratio(one, two, f"{x} = {where}")


@measure
def slope_difference(evidence: Sequence[Evidence], *, part: str, method: str, other: str) -> Quantity:
    """Return a line's slope minus another's, with an interval from the intervals of both slopes."""
    one, two = (slope(evidence, part=part, method=each)[0] for each in (method, other))
    return Quantity(one.value - two.value, uncertainty=math.hypot(one.uncertainty, two.uncertainty))


@sweep("{method}")
def trend_over_bound(evidence: Sequence[Evidence], *, part: str, method: str) -> Quantity:
    """Return the mean ratio of error to bound at the largest n, divided by the same ratio at the smallest n."""
    rows = rows_of(evidence, part, method)
    rows = rows[rows["features"] == rows["features"].iloc[0]] if method == "noisy mean" else rows
    _require_range(part, rows["n"].min(), rows["n"].max())
    first, last = ((own["error"] / own["bound"]).to_numpy() for own in _ends(rows))
    return _ratio(last, first, method)


@measure
def noisy_mean_over_bound(evidence: Sequence[Evidence]) -> list[Quantity]:
    """Return the root mean square of the gradient at a noisy mean, divided by Theorem 17's bound, for every n and d."""
    rows = rows_of(evidence, "X11", "noisy mean")
    found = []
    for _, own in rows.groupby(["n", "features"]):
        squares = (own["error"] / own["bound"]).to_numpy() ** 2
        root = float(np.sqrt(squares.mean()))
        found.append(Quantity(root, _where(own.iloc[0]), STANDARD_ERRORS * _standard_error(squares) / (2 * root)))
    return found


@measure
def search_over_best(evidence: Sequence[Evidence]) -> dict[str, float]:
    """Return a search's median error divided by the median error of the best radius.

    There is one value for each length of rows. The best radius is that of a run on all records.
    """
    rows = _searches(evidence)
    table = rows.pivot_table(values="error", index="level", columns="method", aggfunc="median")
    ratios = table["search"] / table.drop(columns="search").min(axis=1)
    return {f"length {level:g}": float(ratio) for level, ratio in ratios.items()}


@measure
def search_beyond_zero(evidence: Sequence[Evidence], *, share: float) -> dict[str, float]:
    """Return a quantile of a search's excess risk, divided by the excess risk of zero weights.

    There is one value for each length of rows.
    """
    rows = _searches(evidence)
    return {
        f"length {level:g}": float(each["error"].quantile(share) / each["at_zero"].iloc[0])
        for level, each in rows[rows["method"] == "search"].groupby("level")
    }


@measure
def boosted_failures(evidence: Sequence[Evidence]) -> Quantity:
    """Return the share of boosted models whose excess risk exceeds four times the mean excess risk of one chunk.

    The uncertainty of this share is also returned.
    """
    boosted, chunk = (rows_of(evidence, "X6", each)["error"].to_numpy() for each in ("boosted", "one chunk"))
    share = float((boosted > 4 * chunk.mean()).mean())
    return Quantity(share, "", STANDARD_ERRORS * math.sqrt(max(share, 1 / len(boosted)) / len(boosted)))


@measure
def boosted_quantile(evidence: Sequence[Evidence], *, share: float) -> float:
    """Return a quantile of a boosted model's excess risk, divided by the same quantile for one run on all records."""
    boosted, whole = (rows_of(evidence, "X6", each)["error"] for each in ("boosted", "all records"))
    return float(boosted.quantile(share) / whole.quantile(share))


@measure
def best_embedding_over_all_columns(
    evidence: Sequence[Evidence], *, least: int, part: str = "X10", learner: str | None = None
) -> list[Quantity]:
    """Return the ratio of the gradient with all columns to the gradient with the best embedding.

    There is one ratio for each number of columns that is at least ``least``. ``learner`` names the learner, if a part
    runs several.
    """
    start = f"{learner}, " if learner else ""
    embedded, full = (rows_of(evidence, part, f"{start}{each}") for each in ("embedding", "all columns"))
    trials = [own["error"].to_numpy() for _, own in embedded.groupby("features")]
    best = min(trials, key=lambda each: float(each.mean()))
    return [
        _ratio(own["error"].to_numpy(), best, f"d = {features}")
        for features, own in full[full["features"] >= least].groupby("features")
    ]


def _searches(evidence: Sequence[Evidence]) -> pd.DataFrame:
    name = PRIVATE_RISK.name
    rows_of(evidence, "X5", "search")  # At this point, there are enough trials.
    rows = table_of(evidence, name)
    rows = rows[rows["part"] == "X5"]
    if len(set(rows["level"])) < FEWEST_LENGTHS:
        raise MissingEvidence(f"X5 was run for fewer than {FEWEST_LENGTHS} lengths of rows; {REMEDY}")
    return rows


def _ends(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    return rows[rows["n"] == rows["n"].min()], rows[rows["n"] == rows["n"].max()]


def _require_range(part: str, least: float, largest: float) -> None:
    if largest < LEAST_RANGE * least:
        raise MissingEvidence(f"{part} was run over less than a {LEAST_RANGE}-fold range; {REMEDY}")


def rows_of(evidence: Sequence[Evidence], part: str, method: str) -> pd.DataFrame:
    """Return the rows of a method in a part.

    Raises:
        MissingEvidence: There are no rows, or too few trials.
    """
    name = (PRIVATE_RISK if part in RISK_PARTS else PRIVATE_GRADIENTS).name
    rows = table_of(evidence, name)
    rows = rows[(rows["part"] == part) & (rows["method"] == method)]
    if rows.empty:
        raise MissingEvidence(f"no results of {part}, {method}; {REMEDY}")
    if len(set(rows["trial"])) < FEWEST_TRIALS:
        raise MissingEvidence(f"{part} has {len(set(rows['trial']))} trials, fewer than {FEWEST_TRIALS}; {REMEDY}")
    return rows


def _where(row: Row) -> str:
    level = f", at {row['level']:g}" if row["level"] else ""
    return f"n = {row['n']}, d = {row['features']}, epsilon = {row['epsilon']:g}{level}"


def _mean(values: np.ndarray, name: str) -> Quantity:
    return Quantity(float(values.mean()), name, STANDARD_ERRORS * _standard_error(values))


def _ratio(above: np.ndarray, below: np.ndarray, name: str) -> Quantity:
    """Return a quotient of two means, with an uncertainty from the relative standard errors of both."""
    value = float(above.mean() / below.mean())
    relative = np.hypot(_standard_error(above) / above.mean(), _standard_error(below) / below.mean())
    return Quantity(value, name, STANDARD_ERRORS * value * float(relative))


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))
