"""The notebook runs from top to bottom and is committed without outputs."""

import json
import re
from pathlib import Path

import pytest

from tests.docs.building import ROOT
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.exhaustive

NOTEBOOK = ROOT / "docs" / "own-table.ipynb"


def leftovers(notebook: dict) -> list[str]:
    """Return the cells that hold more than text and code: outputs, counts, settings of somebody's editor."""
    return [
        cell["id"]
        for cell in notebook["cells"]
        if cell.get("outputs") or cell.get("execution_count") is not None or cell["metadata"]
    ]


@pytest.fixture(scope="module")
def outputs() -> dict[str, list]:
    """What each cell gave, by its name."""
    # Not at the top: where the extra `test` is older than the notebook, only what runs it fails.
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    NotebookClient(notebook, timeout=PATIENCE).execute()
    return {cell["id"]: cell["outputs"] for cell in notebook.cells if cell["cell_type"] == "code"}


def printed(outputs: dict[str, list], cell: str) -> str:
    return "".join(output["text"] for output in outputs[cell] if output["output_type"] == "stream")


def test_no_output_is_committed() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert leftovers(notebook) == []
    ran = {"id": "fit", "outputs": [], "execution_count": 3, "metadata": {}}
    assert leftovers({"cells": [*notebook["cells"], ran]}) == ["fit"]


def test_the_model_beats_the_majority_and_keeps_its_promise(outputs: dict[str, list]) -> None:
    accuracy, majority = map(float, re.findall(r"accuracy ([\d.]+);.* class: ([\d.]+);", printed(outputs, "fit"))[0])
    assert accuracy > majority + 0.1
    epsilon = float(re.match(r"epsilon ([\d.]+) at delta", printed(outputs, "forget"))[1])
    assert 0.5 < epsilon <= 1
    assert "3 removed since, in 2 requests" in printed(outputs, "forget")


def test_a_forged_certificate_is_found_out(outputs: dict[str, list]) -> None:
    assert re.match(r"Found out: .* states epsilon = 0.1, but its constants give 0\.", printed(outputs, "certificate"))


def test_a_picture_is_drawn(outputs: dict[str, list]) -> None:
    assert [list(output["data"]) for output in outputs["picture"]] == [["text/plain", "image/png"]]


def test_the_documents_lead_to_it() -> None:
    assert "(own-table.ipynb)" in Path(ROOT / "docs" / "index.md").read_text(encoding="utf-8")
