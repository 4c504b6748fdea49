"""Turn the description of a problem (``C``, the number of records, a table) into constants and an estimated time."""

import functools
import json
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from certified_unlearning.accounting import Problem
from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.core.losses import (
    LossConstants,
    loss_constants,
    regularisation_of,
    scores_per_record,
)
from certified_unlearning.accounting.core.scale import QUICK_CONDITION, score_noise, weights_bound
from certified_unlearning.data.tables import declaration
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.data.tables.table import feature_names, read_blocks, resolve
from certified_unlearning.errors import ParameterError
from certified_unlearning.files import read_yaml

_CALIBRATED_NUMBERS = 40_000_000
"""Largest number of entries of the matrix with which a machine's rate is measured. A much smaller matrix might fit into
the processor's caches, which are ten times as fast as memory."""
_STEP_OVERHEAD = 3e-4
"""Seconds that a step spends outside its matrix products, measured with a small matrix."""
_BLOCK = 16_384
"""Number of rows in a block, as in the engine's objectives. So few rows are still in a cache when the second matrix
product reads them."""
_ENGINE = 2.0
"""Time of an engine's step divided by that of its matrix products alone. It was 0.7 to 5 when measured, most often 1 to
2."""


@dataclass(frozen=True)
class KnownProblem:
    """A logistic regression (two classes) or softmax regression, on rows of norm at most 1.

    Attributes:
        n: The number of records.
        C: Inverse strength of the regulariser, as in scikit-learn; the intercept is regularised, too.
        classes: The number of classes, at least 2.
        features: The number of columns of a record after encoding, without the intercept; None if it is not known.
        intercept: Whether there is an intercept.
    """

    n: int
    C: float
    classes: int = 2
    features: int | None = None
    intercept: bool = True

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ParameterError: A value is invalid.
        """
        require_count(least=1, n=self.n)
        require_positive(C=self.C)
        require_count(least=2, classes=self.classes)
        if self.features is not None:
            require_count(least=1, features=self.features)

    @property
    def constants(self) -> LossConstants:
        """The losses' constants, as estimators and ledgers compute them."""
        regularisation = regularisation_of(C=self.C, n=self.n, intercept=self.intercept)
        return loss_constants(classes=self.classes, n=self.n, regularisation=regularisation, bounds="tight")

    @property
    def dimension(self) -> int | None:
        """The number of weights; None without ``features``."""
        if self.features is None:
            return None
        return (self.features + self.intercept) * scores_per_record(self.classes)

    def facts(self, problem: Problem, sigma: float, steps: int) -> dict[str, float | None]:
        """Return what a noise scale and a number of steps mean in practice, for JSON.

        ``score_noise`` is an upper bound on the standard deviation of the noise in the score of a record of norm 1.
        ``score_bound`` is an upper bound on the absolute value of that score without noise. ``seconds_estimated`` is
        the estimated time of the steps (see `seconds`).
        """
        return {
            "score_noise": score_noise(problem, sigma=sigma),
            "score_bound": weights_bound(strong_convexity=problem.strong_convexity, classes=self.classes),
            "seconds_estimated": self.seconds(steps),
        }

    def seconds(self, steps: int) -> float | None:
        """Estimate the time of steps that read all records, on this machine's processor; None without ``features``.

        A step multiplies the matrix of records twice. The time of these two products is measured with a
        matrix of the same shape or, if the matrix of records is large, with fewer rows. The estimate leaves out the
        time to start and to read files, and it does not hold for a GPU. Expect a factor of four either way.
        """
        if self.features is None:
            return None
        width, scores = self.features + self.intercept, scores_per_record(self.classes)
        rows = min(self.n, max(1, _CALIBRATED_NUMBERS // width))
        return steps * (_STEP_OVERHEAD + _ENGINE * self.n / rows * _seconds_of_step(rows, width, scores))


@functools.cache
def _seconds_of_step(rows: int, width: int, scores: int) -> float:
    """Measure the two products of a step with a matrix of ``rows`` rows, block by block; return the median time."""
    records = np.full((rows, width), 0.5, np.float32)
    weights = np.ones((width, scores), np.float32)
    times = []
    for _ in range(6):
        begun = time.perf_counter()
        for first in range(0, rows, _BLOCK):
            block = records[first : first + _BLOCK]
            block.T @ np.tanh(block @ weights)
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])  # The first run is slower, because it touches the memory first.


def problem_of(
    *,
    n: int | None,
    C: float | None,
    classes: int | None,
    features: int | None,
    intercept: bool,
    data: Path | None,
    label: str | None,
    identifier: str | None,
    table: Path | None,
    strong_convexity: float | None,
    smoothness: float | None,
    lipschitz: float | None,
) -> tuple[int, LossConstants, KnownProblem | None]:
    """Return the number of records, the constants of their losses, and the known problem if the flags describe one.

    Raises:
        ParameterError: Flags are missing or contradict each other.
        DataError: A table cannot be read, or a row cannot be used.
    """
    constants = {"--strong-convexity": strong_convexity, "--smoothness": smoothness, "--lipschitz": lipschitz}
    named = _given({"--C": C, "--data": data, "--table": table})
    if named:
        superfluous = _given(constants)
        if superfluous:
            raise ParameterError(f"give {', '.join(named)} or {', '.join(superfluous)}, not both")
        known = _known(
            n=n,
            C=C,
            classes=classes,
            features=features,
            intercept=intercept,
            data=data,
            label=label,
            identifier=identifier,
            table=table,
        )
        return known.n, known.constants, known
    needing = _given({"--classes": classes, "--features": features, "--label": label, "--id": identifier})
    needing += [] if intercept else ["--no-intercept"]
    if needing:
        raise ParameterError(f"{', '.join(needing)} needs --C or --data")
    if n is None or strong_convexity is None or smoothness is None or lipschitz is None:
        missing = [name for name, value in ({"--n": n} | constants).items() if value is None]
        raise ParameterError(
            f"{', '.join(missing)} must be given, or --C and --n of a logistic regression, or --data and --label"
        )
    return n, LossConstants(strong_convexity, smoothness, lipschitz), None


def _given(flags: Mapping[str, object]) -> list[str]:
    return [name for name, value in flags.items() if value is not None]


def _known(
    *,
    n: int | None,
    C: float | None,
    classes: int | None,
    features: int | None,
    intercept: bool,
    data: Path | None,
    label: str | None,
    identifier: str | None,
    table: Path | None,
) -> KnownProblem:
    """Return the problem that the flags describe. If they name a table, it is read, and every row is checked."""
    if data is None and table is None:
        superfluous = _given({"--label": label, "--id": identifier})
        if superfluous:
            raise ParameterError(f"{' and '.join(superfluous)} needs --data with a file")
        if n is None or C is None:
            raise ParameterError(f"{'--n' if n is None else '--C'} is missing; give it, or --data with a file")
        return KnownProblem(n, C, 2 if classes is None else classes, features, intercept)
    superfluous = _given({"--n": n, "--classes": classes, "--features": features})
    if superfluous:
        raise ParameterError(f"leave out {', '.join(superfluous)}, which the table determines")
    declared = resolve(_declared(data, label, identifier, table))
    if declared.is_regression:
        raise ParameterError(
            f"{table} has a target_range, but this command plans for classes only; for numbers, `unlearn init` prints "
            "the plan"
        )
    n = sum(len(block.labels) - int(block.test.sum()) for block in read_blocks(declared))
    require_count(least=1, n=n)
    C = QUICK_CONDITION / n if C is None else C
    return KnownProblem(n, C, len(declared.classes or ()), len(feature_names(declared)), intercept)


def _declared(data: Path | None, label: str | None, identifier: str | None, table: Path | None) -> Table:
    if table is not None:
        if data is not None or label is not None or identifier is not None:
            raise ParameterError("--table declares everything: leave out --data, --label and --id")
        content = read_yaml(table)
        if not isinstance(content, dict) or not isinstance(content.get("path"), str):
            raise ParameterError(f"{table} does not declare a table: it must be a mapping with at least path and label")
        return _parsed(content | {"path": str(table.parent / content["path"])}, str(table))
    if label is None:
        raise ParameterError("--label is missing: name the column of --data to predict")
    return _parsed({"path": str(data), "label": label, "identifier": identifier}, "the table")


def _parsed(content: dict[str, object], where: str) -> Table:
    return declaration.parse(json.dumps(content), where)


def in_words(seconds: float) -> str:
    """Return a duration as text with two significant digits; below a tenth of a second, the text is always the same."""
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} s" if seconds >= 0.1 else "< 0.1 s"
