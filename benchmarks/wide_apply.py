"""`unlearn apply` on wide rows: all of it, the removal itself, and what copying and syncing the same bytes takes.

Makes a model directory of rows as of embeddings, then answers requests of ten records one by one. Run on an idle
machine: ``OMP_NUM_THREADS=1 python benchmarks/wide_apply.py`` (``--help`` for sizes). It needs six times the rows on
the disk, 614 MB each time by default; the files are removed at the end.
"""

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from certified_unlearning.files import write_json
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.methods.exact_refit import ExactRefit
from certified_unlearning.papers.cheaper_than_retraining.wide.sweep import WideTable
from certified_unlearning.papers.cheaper_than_retraining.wide.tables import made
from ledger import START, python, unlearn
from timing import machine, seconds

RECORDS = 10
STRENGTH = 100


def write_table(root: Path, n: int, d: int) -> Path:
    """Write rows as of embeddings, with a label and an identifier, and their declaration; return the declaration."""
    table = WideTable(rows="embeddings", n=n, features=d, classes=2, strength=STRENGTH, tolerance=1e-6)
    data = made(table, seed=1)
    names = [f"x{column}" for column in range(d)]
    columns: dict[str, Any] = dict(zip(names, data.rows.T, strict=True))
    columns |= {"label": np.where(data.labels, "yes", "no"), "customer": np.arange(n)}
    pa.parquet.write_table(pa.table(columns), root / "rows.parquet")
    lines = ["path: rows.parquet", "label: label", "classes: ['no', 'yes']", "identifier: customer", "ranges:"]
    declaration = root / "rows.yaml"
    declaration.write_text("\n".join([*lines, *(f"  {name}: [-1, 1]" for name in names)]), encoding="utf-8")
    return declaration


def copied_and_synced(source: Path, target: Path) -> None:
    """Copy a file, as a command that must not lose anything does."""
    shutil.copyfile(source, target)
    with target.open("rb") as written:
        os.fsync(written.fileno())


def measure(root: Path, n: int, d: int, requests: int) -> dict[str, Any]:
    """Return all timings; those of requests are medians."""
    declaration, model = write_table(root, n, d), root / "model"
    init = unlearn("init", model, "--table", declaration, "--epsilon", 1, "--delta", 1e-6, "--C", STRENGTH / n)
    features = ModelDirectory(model).features
    copying = [seconds(lambda: copied_and_synced(features, root / "copy")) for _ in range(3)]
    (root / "copy").unlink()
    removing: list[float] = []
    original = ExactRefit.remove

    def timed(*given: Any, **named: Any) -> Any:
        found: list[Any] = []
        action: Callable[[], object] = lambda: found.append(original(*given, **named))  # noqa: E731
        removing.append(seconds(action))
        return found[0]

    applying, processor = [], []
    with mock.patch.object(ExactRefit, "remove", timed):
        for first in range(0, requests * RECORDS, RECORDS):
            unlearn("request", model, *(each for one in range(first, first + RECORDS) for each in ("--id", one)))
            used = time.process_time()
            applying.append(seconds(lambda: apply(model)))
            processor.append(time.process_time() - used)
    return {
        "init_seconds": init,
        "start_seconds": min(python(START) for _ in range(3)),
        "apply_seconds": {"median": float(np.median(applying)), "largest": max(applying)},
        "apply_processor_seconds": float(np.median(processor)),
        "removal_seconds": {"median": float(np.median(removing)), "largest": max(removing)},
        "copy_and_sync_seconds": float(np.median(copying)),
        "copied_bytes": features.stat().st_size,
    }


def main() -> None:
    """Measure and print; write where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=768)
    parser.add_argument("--requests", type=int, default=5)
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        found = measure(Path(root), arguments.records, arguments.features, arguments.requests)
    sizes = {"records": arguments.records, "features": arguments.features, "requests": arguments.requests}
    results: dict[str, Any] = machine() | sizes | found
    print(json.dumps(results, indent=2))
    if arguments.output is not None:
        write_json(arguments.output, results)


if __name__ == "__main__":
    main()
