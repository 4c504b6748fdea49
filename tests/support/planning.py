"""Presets of `params.yaml`, and plans and rows of experiments as the pipeline makes them, without its command line."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from certified_unlearning.mechanisms.run import ExperimentPlan
from certified_unlearning.mechanisms.settings import Settings
from certified_unlearning.papers import parameters
from certified_unlearning.papers.all import PAPERS
from certified_unlearning.reproduction.experiment import Experiment, Inputs, Sweep
from certified_unlearning.reproduction.paper import Paper

ROOT = Path(__file__).parents[2]
ANEW = ("retraining", "scikit-learn")
"""Mechanisms that learn anew: nothing of theirs is certified."""


@cache
def preset(name: str) -> parameters.Preset:
    """A preset of the committed `params.yaml`."""
    return parameters.load(ROOT / "params.yaml").presets[name]


def settings_of(name: str, **changes: Any) -> Settings:
    """A preset's settings, some of them changed."""
    return Settings(**preset(name).settings.model_dump() | changes)


def paper_of(experiment: str) -> Paper:
    """The paper that has an experiment of that name."""
    (paper,) = (paper for paper in PAPERS if paper.experiment(experiment) is not None)
    return paper


def experiment_called(name: str) -> Experiment:
    """The experiment of that name."""
    found = paper_of(name).experiment(name)
    assert found is not None
    return found


def sweep_of(preset_name: str, experiment: str, **changes: Any) -> Sweep:
    """Return an experiment's sweep in a preset, some of it changed."""
    sweep = preset(preset_name).papers[paper_of(experiment).name][experiment]
    return type(sweep).model_validate(sweep.model_dump() | changes)


def make(
    experiment: str,
    settings: Settings,
    sweep: Sweep,
    data: Mapping[str, Any],
    *,
    plans: Mapping[str, ExperimentPlan] | None = None,
    preset_name: str = "smoke",
) -> Any:
    """Make an experiment: return its plan, or its table of rows."""
    return experiment_called(experiment).make(Inputs(preset_name, settings, sweep, data, plans or {}))
