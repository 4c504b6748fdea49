"""The page on comparing one's own method: the pipeline takes its paper, and its lines have the papers' noise."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from certified_unlearning.papers import parameters
from certified_unlearning.reproduction.experiment import Inputs
from certified_unlearning.reproduction.figures.drawing import render
from certified_unlearning.reproduction.rows import read_table, write_table
from tests.docs.code_blocks import blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "compare-your-method.md"


def block(language: str) -> str:
    return next(each.text for each in blocks(PAGE) if each.language == language)


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> parameters.Parameters:
    """Return the project's parameters with those of the page, beside the page's module."""
    (tmp_path / "my_comparison.py").write_text(block("python"))
    content = yaml.safe_load((ROOT / "params.yaml").read_text())
    added = yaml.safe_load(block("yaml"))
    content["papers_of_others"] = added["papers_of_others"]
    for key in ("papers", "presets"):
        content[key] |= added[key]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_comparison", raising=False)
    return parameters.load(tmp_path / "params.yaml")


@pytest.mark.filterwarnings("ignore:little can be learned")
def test_the_experiment_of_the_page_makes_rows_that_follow_its_columns_and_draws_them(
    given: parameters.Parameters, tmp_path: Path
) -> None:
    preset = given.presets["mine"]
    (paper,) = (each for each in given.known if each.name == "mine")
    (experiment,) = paper.experiments
    sweep = preset.papers["mine"]["against_epsilon"]
    assert set(preset.shows) == {"mine", "fig3a"}
    few = preset.settings.model_copy(update={"trials": 2})
    rows = experiment.table(Inputs("mine", few, sweep.model_copy(update={"epsilon": [0.5, 5.0]})))
    write_table(tmp_path / "rows.parquet", rows, experiment.rows)
    written = read_table(tmp_path / "rows.parquet", experiment.rows)
    assert set(written["experiment"]) == {experiment.name}  # without it the report would refuse the figure's numbers
    assert written["epsilon_target"].isna().sum() == 3
    assert len(written) == 3 + 4 * 2 * 2
    assert written["accuracy"].between(0.4, 0.95).all()
    for path in render(experiment, written, given.figures, tmp_path / "figure"):
        assert path.stat().st_size > 5000


def test_its_lines_have_the_noise_of_the_pipelines_fig3a(given: parameters.Parameters) -> None:
    """Against the committed runs of the preset digits, epsilon = 5, where nothing is warned of."""
    module: Any = sys.modules["my_comparison"]
    points = json.loads((ROOT / "workflow" / "baselines" / "metrics" / "digits.json").read_text())["points"]
    data = module.load("digits", seed=given.presets["digits"].settings.seed)
    C = 1 / (given.presets["mine"].settings.regularisation * len(data.train_labels) ** 2)
    for name, make in module.CURVES.items():
        line = name.replace("(its theorem)", "(printed)")
        (known,) = (
            point["constants"]
            for at, point in points.items()
            if re.fullmatch(rf"fig3a: {re.escape(line)}(, secret state)?, epsilon = 5, request 1", at)
        )
        model = make(epsilon=5.0, C=C, random_state=0, **module.AS_IN_THE_PAPERS)
        model.fit(data.train_features, data.train_labels).unlearn(module.GONE)
        certificate = model.certificate_
        assert certificate.sigma == pytest.approx(known["sigma"], rel=1e-6), name
        assert certificate.delta == pytest.approx(known["delta"], rel=1e-12)
        assert certificate.strong_convexity == pytest.approx(known["strong_convexity"], rel=1e-9)


def test_shards_that_a_request_does_not_reach_stay_as_they_were(given: parameters.Parameters) -> None:
    module: Any = sys.modules["my_comparison"]
    data = module.load("digits", seed=123)
    model = module.Shards(0.02).fit(data.train_features.astype(float), data.train_labels)
    before = list(model.models)
    model.unlearn([0, 5])
    assert [old is new for old, new in zip(before, model.models, strict=True)] == [False, True, True, True, True]
