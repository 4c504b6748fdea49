"""The page on comparing one's own method: the pipeline takes its paper, and its lines have the papers' noise."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from matplotlib.collections import PolyCollection
from scipy.optimize import minimize
from scipy.special import expit

from certified_unlearning.accounting import delta_from_mu
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
    assert len(written) == 3 + 5 * 2 * 2
    assert written["accuracy"].between(0.4, 0.95).all()
    for path in render(experiment, written, given.figures, tmp_path / "figure"):
        assert path.stat().st_size > 5000


def test_its_lines_have_the_noise_of_the_pipelines_fig3a(given: parameters.Parameters) -> None:
    """Against the committed runs of the preset digits, epsilon = 5, where nothing is warned of."""
    module: Any = sys.modules["my_comparison"]
    points = json.loads((ROOT / "workflow" / "baselines" / "metrics" / "digits.json").read_text())["points"]
    data = module.load("digits", seed=given.presets["digits"].settings.seed)
    C = 1 / (given.presets["mine"].settings.regularisation * len(data.train_labels) ** 2)
    (mine,) = (name for name, make in module.CURVES.items() if make is module.NoisyNewton)
    for name, make in module.CURVES.items():
        if name == mine:
            continue
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


class Still:
    """Noise of size 1 in every coordinate, so that what is added is sigma."""

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.ones(shape)


def exact_refit(X: np.ndarray, y: np.ndarray, C: float) -> np.ndarray:
    """The minimiser without an intercept, by SciPy, in which no code of the page takes part."""

    def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margins = y * (X @ weights)
        return (
            float(weights @ weights / (2 * C) + np.logaddexp(0, -margins).sum()),
            weights / C - X.T @ (y * expit(-margins)),
        )

    found = minimize(objective, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-10})
    weights: np.ndarray = found.x
    return weights


def test_the_noisy_newton_steps_certificate_holds_for_the_refit_that_it_is_compared_with(
    given: parameters.Parameters,
) -> None:
    """The distance to the exact refit, divided by the noise, is at most the mu of the stated epsilon and delta."""
    module: Any = sys.modules["my_comparison"]
    data = module.load("digits", seed=123)
    X, y = data.train_features.astype(float), data.train_labels
    C, delta = 1 / (2e-5 * len(y) ** 2), 1 / len(y)
    refit = exact_refit(np.delete(X, 0, axis=0), np.delete(y, 0), C)
    plain = module.unlearn(module.learn(X, y, C), X, y, [0]).coef_[0]
    for epsilon in (0.05, 1.0):
        model = module.NoisyNewton(epsilon=epsilon, C=C, random_state=0).fit(X, y)
        model.random = Still()
        (sigma, *others) = model.unlearn([0]).coef_[0] - plain
        assert others == pytest.approx([sigma] * len(others), rel=1e-6)
        assert delta_from_mu(float(np.linalg.norm(plain - refit)) / sigma, epsilon) <= delta
        # Worst case: as far away as a gradient of the limit allows, the budget is used up, and not exceeded.
        assert delta_from_mu(module.LIMIT * C / sigma, epsilon) == pytest.approx(delta, rel=1e-6)
    planted = sigma / 20_000  # noise that hides less than the distance itself
    assert delta_from_mu(float(np.linalg.norm(plain - refit)) / planted, epsilon) > delta


def test_a_newton_step_that_leaves_too_large_a_gradient_publishes_nothing(given: parameters.Parameters) -> None:
    module: Any = sys.modules["my_comparison"]
    data = module.load("digits", seed=123)
    X, y = data.train_features.astype(float), data.train_labels
    model = module.NoisyNewton(epsilon=1.0, C=100.0, random_state=0).fit(X, y)
    with pytest.raises(RuntimeError, match=r"the gradient after the step has norm .*, above 0\.001: no certificate"):
        model.unlearn(list(range(100)))


def test_the_figure_has_a_band_for_each_curve_and_none_for_levels(given: parameters.Parameters) -> None:
    module: Any = sys.modules["my_comparison"]
    rows = pd.DataFrame(
        [("against_epsilon", name, epsilon, trial, 0.5 + epsilon / 10 + trial / 20)
         for name in module.CURVES for epsilon in (0.1, 1.0) for trial in (0, 1)]
        + [("against_epsilon", name, None, 0, 0.8) for name in module.LEVELS],
        columns=["experiment", "method", "epsilon_target", "trial", "accuracy"],
    )  # fmt: skip
    axes = module.draw(rows, given.figures).axes[0]
    bands = [each for each in axes.collections if isinstance(each, PolyCollection)]
    assert len(bands) == len(module.CURVES)
    for band in bands:
        (low, high) = np.asarray(band.get_paths()[0].vertices)[:, 1].min(), band.get_paths()[0].vertices[:, 1].max()
        spread = 0.05 / np.sqrt(2)  # the sample standard deviation of two trials
        assert (low, high) == pytest.approx((0.535 - spread, 0.625 + spread))
