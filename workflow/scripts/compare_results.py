"""Compare two directories of results bit for bit, whatever their layout.

Usage: `compare_results.py BEFORE AFTER [--but NAME]`.

Every table and every certificate in BEFORE must be in AFTER. A table is identified by its rows: AFTER must have one
table with at least the same columns and, in these, the same rows in any order. Floats must be equal to the last bit.
Values that may differ between two runs with the same inputs are ignored: content keys of runs, versions of the code,
and wall times.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

import pandas as pd

MAY_DIFFER = (
    "run_key", "code_version", "seconds", "seconds_low", "seconds_high", "learning_seconds", "fit_seconds", "box_cost",
)  # fmt: skip
Cells = Counter[tuple[str, ...]]


def tables(root: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield every table below a directory, as texts that show all bits of a float."""
    for path in sorted(root.rglob("*")):
        if path.suffix == ".parquet":
            frame = pd.read_parquet(path)
        elif path.suffix == ".csv":
            frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        else:
            continue
        kept = frame.drop(columns=[name for name in MAY_DIFFER if name in frame])
        yield str(path.relative_to(root)), kept.map(_text)


def _text(value: object) -> str:
    return value.hex() if isinstance(value, float) else str(value)


def cells(frame: pd.DataFrame, columns: list[str]) -> Cells:
    """Return how often each row occurs, restricted to some columns."""
    return Counter(frame[columns].itertuples(index=False, name=None))


def certificates(root: Path) -> Counter[str]:
    """Return the statements of the certificates below a directory."""
    stated: Counter[str] = Counter()
    for path in root.rglob("certificates/**/*.json"):
        content = json.loads(path.read_text())
        stated[json.dumps({key: value for key, value in content.items() if key not in MAY_DIFFER}, sort_keys=True)] += 1
    return stated


def compare(before: Path, after: Path, but: Collection[str] = ()) -> list[str]:
    """Return a line for each thing in ``before`` that is missing or different in ``after``, except tables ``but``."""
    there = list(tables(after))
    wrong = []
    for name, frame in tables(before):
        if name in but:
            continue
        columns = list(frame.columns)
        candidates = [
            (other, each) for other, each in there if set(columns) <= set(each.columns) and len(each) == len(frame)
        ]
        expected = cells(frame, columns)
        if not any(cells(each, columns) == expected for _, each in candidates):
            alike = ", ".join(other for other, _ in candidates) or "none has these columns and so many rows"
            wrong.append(f"{name}: no equal table ({alike})")
    missing = certificates(before) - certificates(after)
    if missing:
        wrong.append(f"certificates: {missing.total()} of {certificates(before).total()} are not there as they were")
    return wrong


def main() -> int:
    """Compare the two given directories; the exit status is 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--but", action="append", default=[], help="table of BEFORE to ignore; can be repeated")
    given = parser.parse_args()
    for root in (given.before, given.after):
        if not any(tables(root)):
            parser.error(f"{root} holds no results")
    wrong = compare(given.before, given.after, given.but)
    for line in wrong:
        print(line)
    count = sum(name not in given.but for name, _ in tables(given.before))
    print(f"{count} tables and {certificates(given.before).total()} certificates compared, {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
