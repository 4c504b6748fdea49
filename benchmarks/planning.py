"""The time of planning, for every planner and accountant, on MNIST 3 against 8 and on the longest stream that it
allows.

Each plan is made once to warm up. Then the rounds are timed in turn, to reduce the effect of a machine whose speed
drifts. Run: ``python benchmarks/planning.py`` (``--help`` for sizes).
"""

import argparse
import platform
from collections.abc import Callable
from statistics import median

import numpy as np

from certified_unlearning.accounting import (
    ACCOUNTANTS,
    AccountantName,
    Problem,
    least_sigma,
    least_steps,
    least_stream_steps,
    most_records,
)
from timing import seconds

MNIST = Problem(11_982, 0.011982, 0.261982, 1, 1 / 0.261982)
TARGET = {"epsilon": 1.0, "delta": 1 / MNIST.n}
SINGLE_LIMIT, STREAM_LIMIT = 0.050, 2.0


def plans(accountant: AccountantName, requests: int) -> dict[str, tuple[Callable[[], object], float]]:
    """Return all plans to time, and the limit of each in seconds."""
    target = TARGET | {"accountant": accountant}

    def stream(records: int, count: int) -> Callable[[], object]:
        return lambda: least_stream_steps(MNIST, sigma=0.03, records_per_request=records, requests=count, **target)

    return {
        "least steps, 100 records": (lambda: least_steps(MNIST, sigma=0.03, records=100, **target), SINGLE_LIMIT),
        "least steps, 1 record, sigma 1e-6": (
            lambda: least_steps(MNIST, sigma=1e-6, records=1, **target),
            SINGLE_LIMIT,
        ),
        "least sigma, 1 record": (lambda: least_sigma(MNIST, steps=1, records=1, **target), SINGLE_LIMIT),
        "most records, 60 steps": (lambda: most_records(MNIST, sigma=0.1, steps=60, **target), SINGLE_LIMIT),
        "20 requests of 5": (stream(5, 20), STREAM_LIMIT),
        f"{requests} requests of 1": (stream(1, requests), STREAM_LIMIT),
        f"{requests} requests of 10": (stream(10, requests), STREAM_LIMIT),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()

    rows = {name: plans(name, options.requests) for name in ACCOUNTANTS}
    timings: dict[tuple[str, str], list[float]] = {}
    for round_number in range(options.rounds + 1):
        for accountant, actions in rows.items():
            for name, (action, _) in actions.items():
                measured = seconds(action)
                if round_number:
                    timings.setdefault((accountant, name), []).append(measured)

    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}; median of rounds in ms\n")
    print("| plan | " + " | ".join(rows) + " | limit |")
    print("|---|" + "---:|" * (len(rows) + 1))
    for name, (_, limit) in rows["lsi"].items():
        times = [f"{1e3 * median(timings[accountant, name]):.2f}" for accountant in rows]
        print(f"| {name} | " + " | ".join(times) + f" | {1e3 * limit:.0f} |")


if __name__ == "__main__":
    main()
