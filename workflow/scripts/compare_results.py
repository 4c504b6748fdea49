"""Compare two trees of results bit for bit, whatever their layout: `compare_results.py BEFORE AFTER [--but NAME]`.

Every table and every certificate of BEFORE must be in AFTER. A table is found there by its rows: one table with at
least its columns and, in them, the same rows, floats to the last bit, in any order. What may differ between two runs of
the same inputs is left out: content keys of runs, versions of the code, wall times.
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
    """Yield every table below a directory as texts that tell all bits of a float."""
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
    """Return how often each row occurs, in some columns."""
    return Counter(frame[columns].itertuples(index=False, name=None))


def certificates(root: Path) -> Counter[str]:
    """Return what the certificates below a directory state."""
    stated: Counter[str] = Counter()
    for path in root.rglob("certificates/**/*.json"):
        content = json.loads(path.read_text())
        stated[json.dumps({key: value for key, value in content.items() if key not in MAY_DIFFER}, sort_keys=True)] += 1
    return stated


def compare(before: Path, after: Path, but: Collection[str] = ()) -> list[str]:
    """Return what is not in the second tree as it is in the first, a line each; ``but`` names tables to leave out."""
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
    """Compare the trees that are named; exit status 1 where they differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--but", action="append", default=[], help="a table of BEFORE that is left out; repeatable")
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
