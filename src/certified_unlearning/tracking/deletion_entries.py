"""What is logged of the experiment `deletion`: a run for each attack and mechanism, below one for all."""

from pathlib import Path

import pandas as pd

from certified_unlearning.files import content_key
from certified_unlearning.results import ATTACK_SCHEMA, read_table
from certified_unlearning.tracking.entries import Entry, Metric

EXPERIMENT = "deletion"
ATTACKS = Path("deletion") / "attacks.parquet"
_PARAMETERS = ("secret_state", "observed", "requests", "deletion", "interactions", "seed", "code_version")
_METRICS = ("advantage", "low", "high", "expected", "promised", "bound", "promise_broken", "consistent", "seconds")


def read_entries(directory: Path) -> tuple[Entry, list[Entry]]:
    """Read the attacks of a preset's results.

    Args:
        directory: The preset's results, ``results/<preset>``.

    Returns:
        The parent's entry, and one entry for each attack on each mechanism.

    Raises:
        DataError: The table is missing or damaged.
    """
    attacks = read_table(directory / ATTACKS, ATTACK_SCHEMA)
    tags = {"figure": EXPERIMENT, "preset": directory.name}
    figures = [directory / "figures" / f"{EXPERIMENT}.{kind}" for kind in ("png", "pdf")]
    first = attacks.iloc[0]
    parent = Entry(
        key=content_key([EXPERIMENT, directory.name]),
        name=EXPERIMENT,
        params={name: first[name] for name in ("interactions", "seed")} | {"attacks": len(attacks)},
        tags=tags,
        dataset=None,
        files={path.name: path.read_bytes() for path in figures if path.exists()},
    )
    return parent, [_entry(row, tags) for _, row in attacks.iterrows()]


def _entry(row: pd.Series, tags: dict[str, str]) -> Entry:
    names = {"attack": row["attack"], "mechanism": row["mechanism"]}
    return Entry(
        key=content_key([*tags.values(), *names.values()]),
        name=f"{row['attack']} on {row['mechanism']}",
        params={**names, **{name: row[name] for name in _PARAMETERS}},
        tags={**tags, **names},
        dataset=None,
        metrics=tuple(Metric(name, float(row[name])) for name in _METRICS if pd.notna(row[name])),
    )
