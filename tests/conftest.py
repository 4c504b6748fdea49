"""The order of the tests, and the cases and examples that each of the three sizes of the suite tries.

What takes longest begins first, and one file alone makes what several wait for.

Hypothesis draws the same examples in every run, so that a change is judged by what it changed: few in the profile
`quick`, more in `default`, many in `full`. `--hypothesis-profile=new` looks for others.
"""

import ctypes
import random
import secrets
from collections import defaultdict
from pathlib import Path
from typing import Any

import hypothesis
import pytest

for name, examples in {"quick": 5, "default": 50, "full": 200}.items():
    hypothesis.settings.register_profile(name, deadline=None, derandomize=True, max_examples=examples)
hypothesis.settings.register_profile("new", deadline=None, max_examples=200)
hypothesis.settings.load_profile("default")

FIRST = ("test_pipeline.py", "test_own_data.py", "test_interruption.py", "test_dvc.py", "test_reruns.py")
"""Of `tests/workflow`: `test_pipeline` makes the run of smoke that the last two need, while the others need none."""
GIVE_BACK = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""Of glibc; None elsewhere. It keeps freed memory for itself otherwise."""
ONE_IN = 10
"""Of so many cases of a test that is marked as sampled one is drawn; the others are exhaustive."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the seed of the drawn cases."""
    parser.addoption(
        "--case-seed",
        type=int,
        default=None,
        help="what draws the cases of sampled tests that are not exhaustive (default: a new seed, which is printed)",
    )

    parser.addoption("--one-case", action="store_true", help="draw one case of every test; the others are exhaustive")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed; a worker has that of the process that started it."""
    if config.option.case_seed is None:
        given = getattr(config, "workerinput", {})
        config.option.case_seed = given.get("case_seed", secrets.randbelow(10**6))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give the seed to a worker of pytest-xdist."""
    node.workerinput["case_seed"] = node.config.option.case_seed


def pytest_report_header(config: pytest.Config) -> str:
    """Print the seed."""
    return f"cases of sampled tests drawn with --case-seed={config.option.case_seed}"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the cases that were not drawn as exhaustive, and move the files of `FIRST` to the front.

    This comes before pytest selects tests by their marks. The sort is stable.
    """
    sampled: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if config.option.one_case or item.get_closest_marker("sampled"):
            sampled[item.nodeid.partition("[")[0]].append(item)
    for test, cases in sampled.items():
        count = 1 if config.option.one_case else -(-len(cases) // ONE_IN)
        drawn = random.Random(f"{config.option.case_seed} {test}").sample(cases, count)
        for case in cases:
            if case not in drawn:
                case.add_marker("exhaustive")

    def place(item: pytest.Item) -> int:
        path = Path(item.path)
        return FIRST.index(path.name) if path.parent.name == "workflow" and path.name in FIRST else len(FIRST)

    items.sort(key=place)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Give the memory of a finished file back to the system: a worker runs hundreds of files."""
    if GIVE_BACK is not None and (nextitem is None or nextitem.path != item.path):
        GIVE_BACK(0)
