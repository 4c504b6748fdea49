"""A small table of people, some of them with two rows, and a model made from it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from certified_unlearning.data.tables.declaration import Table, Text
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.requests import Status

FEATURES = ("height", "weight", "age")
PEOPLE = 300
RANGE = (0.0, 60_000.0)
"""Of ``income``, which lies in it."""
LANGEVIN: dict[str, Any] = {"mechanism": "langevin", "epsilon": 1.0, "delta": "1/n"}


def write_table(path: Path, *, numbers: bool = False) -> pd.DataFrame:
    """Write 450 rows of 300 people: every second one has two. The label is ``ill``, or a number, ``income``."""
    people = [person for person in range(PEOPLE) for _ in range(1 + person % 2)]
    draw = np.random.default_rng(0)
    table = pd.DataFrame(draw.uniform(-1, 1, (len(people), 3)), columns=FEATURES)
    label = table["height"] + 0.3 * draw.standard_normal(len(table))
    if numbers:
        table["income"] = (30_000 + 10_000 * label).round()
    else:
        table["ill"] = np.where(label > 0, "yes", "no")
    table["person"] = [f"p{person}" for person in people]
    table.to_csv(path, index=False)
    return table


def make_model(path: Path, data: Path, batch_size: int | None = None) -> Status:
    """Make a model directory whose removals take a few noisy steps."""
    table = Table(path=str(data), label="ill", identifier="person")
    return initialise(path, table, **LANGEVIN, C=0.1, steps=5, records=3, device="cpu", batch_size=batch_size)


def make_regression(path: Path, data: Path, **asked: Any) -> Status:
    """Make a model directory that predicts ``income``, by default by Newton removal, which reads after 4 records."""
    table = Table(path=str(data), label="income", identifier="person", target_range=RANGE)
    usual = {"epsilon": 1.0, "C": 0.1, "sigma": 0.03, "records_between_reads": 4}
    return initialise(path, table, device="cpu", **(asked if "mechanism" in asked else usual | asked))


def make_refit(path: Path, data: Path, **asked: Any) -> Status:
    """Make a model directory by Newton removal, to which records can be added."""
    table = Table(path=str(data), label="ill", identifier="person", classes=("no", "yes"))
    usual: dict[str, Any] = {"epsilon": 1.0, "C": 0.1, "sigma": 0.03, "records_between_reads": 4}
    return initialise(path, table, **(usual | asked))


def write_new(path: Path, people: int = 20, first: int = PEOPLE, *, numbers: bool = False) -> pd.DataFrame:
    """Write 1.5 times as many rows of new people: every second one has two; labels as of `write_table`."""
    rows = [person for person in range(first, first + people) for _ in range(1 + person % 2)]
    draw = np.random.default_rng(first)
    table = pd.DataFrame(draw.uniform(-1, 1, (len(rows), 3)), columns=FEATURES)
    if numbers:
        table["income"] = (30_000 + 10_000 * table["height"]).round()
    else:
        table["ill"] = np.where(table["height"] > 0, "yes", "no")
    table["person"] = [f"p{person}" for person in rows]
    table.to_csv(path, index=False)
    return table


WIDTH = 2048
"""Columns that `said` is hashed into: too many for a matrix of columns by columns."""


def write_tickets(path: Path, people: int = 200, first: int = 0, *, numbers: bool = False) -> pd.DataFrame:
    """Write 1.5 times as many rows as people: what each said, an age, and a topic, or a number, ``income``."""
    rows = [person for person in range(first, first + people) for _ in range(1 + person % 2)]
    draw = np.random.default_rng(first)
    topic = draw.integers(0, 2, len(rows))
    words = np.array([f"word{number}" for number in range(300)])
    own = np.array([["invoice", "refund", "charge"], ["parcel", "late", "courier"]])
    said = [" ".join([*draw.choice(words, 8), *draw.choice(own[each], 2)]) for each in topic]
    table = pd.DataFrame({"said": said, "age": draw.integers(18, 90, len(rows))})
    if numbers:
        table["income"] = 20_000 + 20_000 * topic
    else:
        table["topic"] = np.array(["billing", "delivery"])[topic]
    table["person"] = [f"p{person}" for person in rows]
    table.to_csv(path, index=False)
    return table


def tickets(data: Path, width: int = WIDTH, **declared: Any) -> Table:
    """Return the declaration of such a table."""
    declared = {"label": "topic", "classes": ("billing", "delivery")} | declared
    return Table(
        path=str(data), identifier="person", text={"said": Text(width=width)}, ranges={"age": (0.0, 120.0)}, **declared
    )


def make_text(path: Path, data: Path, width: int = WIDTH, **asked: Any) -> Status:
    """Make a model directory of such a table; every request learns anew."""
    return initialise(path, tickets(data, width), **({"epsilon": 1.0} | asked))
