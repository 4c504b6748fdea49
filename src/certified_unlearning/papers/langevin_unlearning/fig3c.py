"""Figure 3c: a group of records removed at once, for several sigma."""

from collections.abc import Iterable

from certified_unlearning.mechanisms.constants import constants_and_problem
from certified_unlearning.mechanisms.planner import Planner, at
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from certified_unlearning.papers.langevin_unlearning.captions import SPREAD
from certified_unlearning.papers.langevin_unlearning.sweeps import Figure3c
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import RUN_ROWS


def make(inputs: Inputs) -> ExperimentPlan:
    """Plan the experiment.

    Raises the same errors as `fig3a.plan`.
    """
    sweep = inputs.sweep
    constants, exact = constants_and_problem(inputs.settings, inputs.data, records=sweep.records)
    noise = [(sigma, sweep.epsilon) for sigma in sweep.sigma]
    planner = Planner(inputs.settings, FIG3C.name, constants, exact, [sweep.epsilon], noise)
    return inputs.plan(planner.constants, _runs(planner, sweep))


def _runs(planner: Planner, sweep: Figure3c) -> Iterable[Run]:
    langevin = [
        planner.least_steps(accountant, sigma, sweep.epsilon, sweep.records)
        for accountant in planner.accountants
        for sigma in sweep.sigma
    ]
    *noisy, noiseless = planner.retraining(langevin)
    yield from (at(run, f"sigma = {run.sigma:g}") for run in (*langevin, *noisy))
    yield noiseless
    yield from planner.scikit_learn(langevin)


FIG3C = Experiment(
    name="fig3c",
    source="Fig. 3c",
    sweep=Figure3c,
    rows=RUN_ROWS,
    make=make,
    mechanisms=("langevin", "retraining", "scikit-learn"),
    draw="certified_unlearning.papers.langevin_unlearning.figures.fig3c:draw",
    x="sigma",
    y={"unlearning_steps": "unlearning steps K", "accuracy_mean": "mean test accuracy"},
    caption=Caption(
        "A group of records removed at once, for several noise scales σ",
        "All panels have the same target ε. They show the smallest number K of unlearning steps according to each "
        "accountant, the ε before any unlearning step at the same δ, and the test accuracy after unlearning and after "
        "retraining. "
        f"{SPREAD}",
        "Panels with σ on the horizontal axis. Unlearning steps, initial ε and test accuracy fall as σ grows.",
    ),
)
