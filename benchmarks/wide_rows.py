"""Requests compared with scikit-learn's refits, for hundreds of features, several classes, and sparse text.

The tables, requests and refits are those of the experiment `wide`, by default in the sizes of the preset `cost`. Every
table is measured several times. The printed numbers are medians over these runs, of means over requests. With many
records, scikit-learn's warm refit makes no iteration at its default tolerance, and is labelled so; the warm refit with
a finer tolerance ends near the minimiser. Everything is measured in one process. Ratios are relative to the mean
request, including its certificate. Run it on an idle machine with one thread:
``OMP_NUM_THREADS=1 python benchmarks/wide_rows.py --output wide.json``. ``--quick`` uses small tables.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from certified_unlearning.files import write_json
from certified_unlearning.papers import parameters
from certified_unlearning.papers.cheaper_than_retraining.counting import counted
from certified_unlearning.papers.cheaper_than_retraining.wide.measured import measured
from certified_unlearning.papers.cheaper_than_retraining.wide.names import title_of
from certified_unlearning.papers.cheaper_than_retraining.wide.page import MOVES_NOTHING
from certified_unlearning.papers.cheaper_than_retraining.wide.sweep import Wide
from certified_unlearning.text import table_lines
from timing import machine

PROJECT = Path(__file__).parents[1]
PAPER = "cheaper_than_retraining"
RUNS, QUICK_RUNS = 5, 2
POINT = ["rows", "n", "d", "classes", "strength"]
WANTED = {
    ("embeddings", 20_000, 2, 100.0): (8, 35, 50, 2.2),
    ("embeddings", 20_000, 2, 20_000.0): (2, 25, 18, 2.8),
    ("embeddings", 200_000, 2, 100.0): (150, 600, 1100, 2.2),
    ("embeddings", 20_000, 5, 100.0): (1.8, 11, 9, 2.5),
    ("embeddings", 20_000, 20, 100.0): (0.7, 5, 3, 5),
    ("words", 20_000, 4, 20_000.0): (1, None, 3, 2),
}
"""Targets for a request: how many times as fast as the warm refit, the warm refit that moves, and the cold refit. The
last number is the target for `fit`, in cold fits.
"""
WANTED_ONE_VS_REST = (2.5, 15, 13, None)
NOTHING_WANTED = (None,) * 4
COLUMNS = [
    "table",
    "request, ms: mean; median; largest",
    "scikit-learn warm",
    "warm that moves",
    "from zero",
    "fit, in fits from zero",
    "passes: request; moving; from zero",
    "accuracy: ours; moving; from zero",
    "distance over certified: ours; warm; moving; from zero",
    "gradient over bound",
    "MB while fitting: ours; from zero; the data",
]


def sweep_of(preset: str, requests: int | None) -> Wide:
    """Return the section `wide` of a preset of params.yaml."""
    own = parameters.load(PROJECT / "params.yaml").presets[preset].papers[PAPER]["wide"]
    given = own.model_dump() if isinstance(own, Wide) else dict(own)
    return Wide.model_validate(given | ({} if requests is None else {"requests": requests}))


def medians(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each table and model: medians of seconds over runs, and all other columns from the first run."""
    seconds = [name for name in runs.columns if "seconds" in name]
    grouped = runs.groupby([*POINT, "system"], sort=False)
    first = grouped.first()
    first[seconds] = grouped[seconds].median()
    return first.reset_index()


def lines(rows: pd.DataFrame) -> list[list[str]]:
    """Return the table's lines for one kind and size of rows: one line, or two if there is a one-vs-rest model."""
    by = {row["system"]: row for _, row in rows.iterrows()}
    point = tuple(by["certified"][name] for name in ("rows", "n", "classes", "strength"))
    found = [_line(by["certified"], by, WANTED.get(point, NOTHING_WANTED))]
    if "one-vs-rest" in by:
        found.append(_line(by["one-vs-rest"], by, WANTED_ONE_VS_REST))
    return found


def _line(ours: Any, by: dict[str, Any], wanted: tuple[float | None, ...]) -> list[str]:
    warm, moving, cold = (by[name] for name in ("lbfgs-warm", "lbfgs-warm-moving", "lbfgs-cold"))

    def times(other: Any, wish: float | None) -> str:
        ratio = other["seconds"] / ours["seconds"]
        missed = "" if wish is None else f" ({wish:g} wanted{'' if ratio >= wish else ', missed'})"
        still = f", {MOVES_NOTHING}" if other["answers_that_moved"] == 0 else ""
        return f"{1000 * other['seconds']:.3g} ms{still}: {ratio:.2g} x{missed}"

    def several(name: str, *models: Any, form: str = ".3g", by: float = 1.0) -> str:
        return "; ".join("–" if pd.isna(each[name]) else f"{each[name] / by:{form}}" for each in models)

    fits = ours["fit_seconds"] / cold["fit_seconds"]
    fit = f"{1000 * ours['fit_seconds']:.3g} ms: {fits:.2g}"
    if wanted[3] is not None:
        fit += f" ({wanted[3]:g} wanted{'' if fits <= wanted[3] else ', missed'})"
    milliseconds = (1000 * ours[name] for name in ("seconds", "seconds_median", "seconds_largest"))
    return [
        title_of(ours) + (", one-vs-rest" if ours["system"] == "one-vs-rest" else ""),
        "; ".join(f"{each:.3g}" for each in milliseconds),
        times(warm, wanted[0]),
        f"{times(moving, wanted[1])}, tolerance {moving['tolerance']:g}",
        times(cold, wanted[2]),
        fit,
        several("passes", ours, moving, cold),
        several("accuracy", ours, moving, cold, form=".4f"),
        several("distance_share", ours, warm, moving, cold, form=".2g"),
        f"{ours['gradient_share']:.2g}",
        f"{several('memory_bytes', ours, cold, by=1e6)}; {ours['data_bytes'] / 1e6:.3g}",
    ]


def main() -> None:
    """Measure and print the table, line by line, and write all runs to a file if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="use the small tables of the preset smoke, with two runs")
    parser.add_argument(
        "--only", type=int, nargs="*", help="numbers of tables, counted from 1 in the order of params.yaml"
    )
    parser.add_argument(
        "--runs", type=int, help=f"number of runs of each table; {RUNS} by default, {QUICK_RUNS} with --quick"
    )
    parser.add_argument("--requests", type=int, help="number of requests in a run; by default that of the preset")
    parser.add_argument("--busy", action="store_true", help="measure processor time, for a machine that others use")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument("--output", type=Path, help="JSON file for the results")
    arguments = parser.parse_args()
    sweep = sweep_of("smoke" if arguments.quick else "cost", arguments.requests)
    clock = time.process_time if arguments.busy else time.perf_counter
    found: list[dict[str, Any]] = []
    shown: list[list[str]] = []
    torch.set_num_threads(sweep.threads)
    began = time.perf_counter()
    with threadpool_limits(sweep.threads), counted() as readings:
        for number, table in enumerate(sweep.tables, start=1):
            if arguments.only and number not in arguments.only:
                continue
            for run in range(arguments.runs or (QUICK_RUNS if arguments.quick else RUNS)):
                rows = measured(table, sweep, readings, clock, again=run > 0)
                found += [row | {"run": run + 1} for row in rows]
            shown.extend(added := lines(medians(pd.DataFrame(found[-len(rows) * (run + 1) :]))))
            if not arguments.json:
                # A line is printed as soon as it is known, after the heading.
                print(
                    "\n".join(table_lines(COLUMNS, shown)[0 if len(shown) == len(added) else -len(added) :]), flush=True
                )
    results = {
        **machine(),
        "clock": "processor" if arguments.busy else "wall",
        "minutes": (time.perf_counter() - began) / 60,
        "sweep": sweep.model_dump(mode="json"),
        "table": [dict(zip(COLUMNS, each, strict=True)) for each in shown],
        "runs": found,
    }
    if arguments.output is not None:
        write_json(arguments.output, results)
    print(json.dumps(results if arguments.json else machine() | {"minutes": results["minutes"]}))


if __name__ == "__main__":
    main()
