"""The order of the tests: what takes longest begins first, and one file alone makes what several wait for.

Hypothesis draws the same examples in every run, so that a change is judged by what it changed.
`pytest --hypothesis-profile=new` looks for others.
"""

from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("new", deadline=None)
hypothesis.settings.register_profile("same", deadline=None, derandomize=True)
hypothesis.settings.load_profile("same")

FIRST = ("test_pipeline.py", "test_own_data.py", "test_interruption.py", "test_dvc.py", "test_reruns.py")
"""Of `tests/workflow`: `test_pipeline` makes the run of smoke that the last two need, while the others need none."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the files of `FIRST` to the front; the sort is stable."""

    def place(item: pytest.Item) -> int:
        path = Path(item.path)
        return FIRST.index(path.name) if path.parent.name == "workflow" and path.name in FIRST else len(FIRST)

    items.sort(key=place)
