"""The rows of the experiments: one for each part, method, setting and trial."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pandas as pd
import torch
from torch import Tensor

Swept = TypeVar("Swept")
EMPTY: Mapping[str, Any] = {
    "features": 0,
    "epsilon": 1.0,
    "level": 0.0,
    "bound": None,
    "at_zero": None,
    "noiseless": None,
    "estimate_error": None,
}


def trial_rows(part: str, method: str, *, errors: Tensor, **columns: Any) -> pd.DataFrame:
    """Return one row for each trial.

    Args:
        part: The part of the experiments, ``X1`` to ``X16``.
        method: The name of the method in figures and claims.
        errors: The errors, shape ``(trials,)``: excess risks, or norms of gradients.
        columns: Other columns of the schema; a tensor of shape ``(trials,)``, or one value for all.
    """
    given = {**EMPTY, **columns}
    values = {name: value.tolist() if isinstance(value, Tensor) else value for name, value in given.items()}
    return pd.DataFrame(
        {"part": part, "method": method, "trial": range(len(errors)), "error": errors.tolist(), **values}
    )


def timed(parts: Sequence[Callable[[Swept], pd.DataFrame]], sweep: Swept) -> pd.DataFrame:
    """Return the rows of all parts; the seconds of a part are divided equally among its rows."""
    tables = []
    for part in parts:
        begun = time.monotonic()
        table = part(sweep)
        tables.append(table.assign(seconds=(time.monotonic() - begun) / len(table)))
    return pd.concat(tables, ignore_index=True)


def each_trial(values: list[float]) -> Tensor:
    """Return one number for each trial as a tensor."""
    return torch.tensor(values, dtype=torch.float64)
