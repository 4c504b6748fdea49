"""`unlearn apply` on rows like embeddings: the parts of a request's processor time, measured in one process.

It writes rows whose spectrum decreases like 1/sqrt(k), makes a model directory from them, and answers requests of ten
people one after another. It also measures the time to copy and sync the same bytes once. Run:
``OMP_NUM_THREADS=1 python benchmarks/wide_ledger.py`` (``--help`` for sizes). The files need four times the space of
the rows, and are deleted at the end.
"""

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.files import write_json
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.methods.exact_refit import ExactRefit
from certified_unlearning.ledger.training.dense import DenseCopy
from timing import machine, seconds

OF_A_REQUEST = 10
QUICK = 100
"""Value of ``C n``."""
PARTS = {"digests": (DenseCopy, "digests"), "zeroing": (DenseCopy, "changed"), "removal": (ExactRefit, "remove")}


def write_table(path: Path, n: int, d: int) -> Table:
    """Write rows of norm 1, a noisy label and an identifier for every row, and return the declaration of the table."""
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((n, d), dtype=np.float32) / np.sqrt(1 + np.arange(d, dtype=np.float32))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scores = rows @ draw.standard_normal(d, dtype=np.float32)
    label = np.where(scores + 0.3 * scores.std() * draw.standard_normal(n) > 0, "yes", "no")
    columns: dict[str, Any] = {f"x{column}": rows[:, column] for column in range(d)}
    pa.parquet.write_table(pa.table(columns | {"label": label, "person": np.arange(n)}), path, row_group_size=20_000)
    features = tuple(f"x{column}" for column in range(d))
    return Table(path=str(path), label="label", identifier="person", classes=("no", "yes"), features=features)


def copied_and_synced(source: Path, target: Path) -> None:
    """Copy a file and sync it, as a command does that must not lose anything."""
    shutil.copyfile(source, target)
    with target.open("rb") as written:
        os.fsync(written.fileno())


@contextmanager
def timed() -> Iterator[dict[str, float]]:
    """Yield the processor time that each of `PARTS` takes in the block, in seconds."""
    spent = dict.fromkeys(PARTS, 0.0)

    def counting(name: str, right: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            begun = time.process_time()
            try:
                return right(*given)
            finally:
                spent[name] += time.process_time() - begun

        return run

    right = {name: getattr(*where) for name, where in PARTS.items()}
    for name, where in PARTS.items():
        setattr(*where, counting(name, right[name]))
    try:
        yield spent
    finally:
        for name, where in PARTS.items():
            setattr(*where, right[name])


def measure(root: Path, n: int, d: int, count: int) -> dict[str, Any]:
    """Return the processor time of `init`, and the medians over ``count`` requests of the whole and of each part."""
    table, model = write_table(root / "rows.parquet", n, d), root / "model"
    init = seconds(lambda: initialise(model, table, epsilon=1.0, C=QUICK / n), time.process_time)
    features = ModelDirectory(model).features
    copying = [seconds(lambda: copied_and_synced(features, root / "copy")) for _ in range(3)]
    (root / "copy").unlink()
    found: list[dict[str, float]] = []
    for first in range(0, count * OF_A_REQUEST, OF_A_REQUEST):
        requests.request(model, [str(person) for person in range(first, first + OF_A_REQUEST)])
        with timed() as parts:
            begun = time.perf_counter()
            whole = seconds(lambda: apply(model), time.process_time)
            found.append({"apply": whole, "apply_by_the_clock": time.perf_counter() - begun, **parts})
    medians = {name: float(np.median([each[name] for each in found])) for name in found[0]}
    largest = {name: max(each[name] for each in found) for name in found[0]}
    secret = max(path.stat().st_size for path in model.glob("secret-*"))
    sizes = {"training_copy": 4 * n * (d + 1), "written": secret}
    copied = float(np.median(copying))
    return {"init": init, "median": medians, "largest": largest, "copy_and_sync": copied, "bytes": sizes}


def main() -> None:
    """Measure, print the results, and write them to a file if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--requests", type=int, default=5)
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        measured = measure(Path(root), arguments.records, arguments.features, arguments.requests)
    results = machine() | {"records": arguments.records, "features": arguments.features} | measured
    print(json.dumps(results, indent=2))
    if arguments.output is not None:
        write_json(arguments.output, results)


if __name__ == "__main__":
    main()
