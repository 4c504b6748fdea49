"""What people know of their problem (``C``, how many records, a table) as the theorems' constants, and in time."""

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
"""Entries, at most, of the matrix that a machine's rate is measured with: a smaller one might lie in its caches, which
are ten times as fast."""
_STEP_OVERHEAD = 3e-4
"""Seconds of a step that are not its products: measured with a small matrix."""
_BLOCK = 16_384
"""Rows of a block, whose second product finds them in a cache: as the engine's objectives have them."""
_ENGINE = 2.0
"""How many times as long as the bare products a step of the engine takes: 0.7 to 5 were measured, most often 1 to 2."""


@dataclass(frozen=True)
class KnownProblem:
    """A logistic (two classes) or softmax regression on rows of norm at most 1.

    Attributes:
        n: Number of records.
        C: Inverse strength of the regulariser, as in scikit-learn; the intercept is regularised too.
        classes: At least 2.
        features: Columns of a record after encoding, without the intercept; None where that is not known.
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
        """The constants that estimators and ledgers compute with."""
        regularisation = regularisation_of(C=self.C, n=self.n, intercept=self.intercept)
        return loss_constants(classes=self.classes, n=self.n, regularisation=regularisation, bounds="tight")

    @property
    def dimension(self) -> int | None:
        """The number of weights."""
        if self.features is None:
            return None
        return (self.features + self.intercept) * scores_per_record(self.classes)

    def facts(self, problem: Problem, sigma: float, steps: int) -> dict[str, float | None]:
        """Return what a noise scale and a number of steps mean, for JSON.

        ``score_noise``: the noise's standard deviation in the score of a record of norm 1, at most; ``score_bound``:
        that score's absolute value without noise, at most; ``seconds_estimated`` of so many steps: see `seconds`.
        """
        return {
            "score_noise": score_noise(problem, sigma=sigma),
            "score_bound": weights_bound(strong_convexity=problem.strong_convexity, classes=self.classes),
            "seconds_estimated": self.seconds(steps),
        }

    def seconds(self, steps: int) -> float | None:
        """Estimate the time of steps that read all records, on this machine's processor; None without ``features``.

        A step multiplies the matrix of records twice. How long that takes is measured, with a matrix of the same
        shape (a part of it, if it is large), so the estimate leaves out starting and reading files, and knows nothing
        of a GPU. Expect a factor of four either way.
        """
        if self.features is None:
            return None
        width, scores = self.features + self.intercept, scores_per_record(self.classes)
        rows = min(self.n, max(1, _CALIBRATED_NUMBERS // width))
        return steps * (_STEP_OVERHEAD + _ENGINE * self.n / rows * _seconds_of_step(rows, width, scores))


@functools.cache
def _seconds_of_step(rows: int, width: int, scores: int) -> float:
    """Measure the two products of a step with a matrix of so many rows, block by block: the median of a few."""
    records = np.full((rows, width), 0.5, np.float32)
    weights = np.ones((width, scores), np.float32)
    times = []
    for _ in range(6):
        begun = time.perf_counter()
        for first in range(0, rows, _BLOCK):
            block = records[first : first + _BLOCK]
            block.T @ np.tanh(block @ weights)
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])  # The first one touches the memory.


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
    """Return how many records there are, the constants of their losses, and what is known where these follow from it.

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
    """Return what the flags say; a table is read, and every row of it checked."""
    if data is None and table is None:
        superfluous = _given({"--label": label, "--id": identifier})
        if superfluous:
            raise ParameterError(f"{' and '.join(superfluous)} needs --data with a file")
        if n is None or C is None:
            raise ParameterError(f"{'--n' if n is None else '--C'} is missing, or --data with a file")
        return KnownProblem(n, C, 2 if classes is None else classes, features, intercept)
    superfluous = _given({"--n": n, "--classes": classes, "--features": features})
    if superfluous:
        raise ParameterError(f"leave out {', '.join(superfluous)}: the table says it")
    declared = resolve(_declared(data, label, identifier, table))
    if declared.is_regression:
        raise ParameterError(
            f"{table} has a target_range, but this plan is made for classes; `unlearn init` prints that of numbers"
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
            raise ParameterError(
                f"{table} is no declaration of a table: it must be a mapping with at least path and label"
            )
        return _parsed(content | {"path": str(table.parent / content["path"])}, str(table))
    if label is None:
        raise ParameterError("--label is missing: which column of --data is to be predicted")
    return _parsed({"path": str(data), "label": label, "identifier": identifier}, "the table")


def _parsed(content: dict[str, object], where: str) -> Table:
    return declaration.parse(json.dumps(content), where)


def in_words(seconds: float) -> str:
    """Return a time for people, with two digits: a tenth of a second is not worth knowing."""
    for unit, size in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} s" if seconds >= 0.1 else "< 0.1 s"
