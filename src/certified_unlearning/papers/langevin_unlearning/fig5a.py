"""Figure 5a: accuracy against the number of records removed at once."""

from collections.abc import Iterable

from certified_unlearning.mechanisms.planner import Planner, at
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from certified_unlearning.papers.langevin_unlearning.captions import SPREAD
from certified_unlearning.papers.langevin_unlearning.fig4 import planner_of_groups
from certified_unlearning.papers.langevin_unlearning.sweeps import Figure5a
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import RUN_ROWS


def make(inputs: Inputs) -> ExperimentPlan:
    """Plan the experiment; it raises the same errors as `fig3a.plan`."""
    planner = planner_of_groups(inputs, FIG5A.name)
    return inputs.plan(planner.constants, _runs(planner, inputs.sweep))


def _runs(planner: Planner, sweep: Figure5a) -> Iterable[Run]:
    for records in sweep.records:
        langevin = [
            planner.least_steps(accountant, sweep.sigma, epsilon, records, member=f"epsilon = {epsilon:g}")
            for accountant in planner.accountants
            for epsilon in sweep.epsilon
        ]
        others = [*planner.retraining(langevin), *planner.scikit_learn(langevin)]
        yield from (at(run, f"S = {records}") for run in (*langevin, *others))


FIG5A = Experiment(
    name="fig5a",
    source="Fig. 5a",
    sweep=Figure5a,
    rows=RUN_ROWS,
    make=make,
    mechanisms=("langevin", "retraining", "scikit-learn"),
    draw="certified_unlearning.papers.langevin_unlearning.figures.fig5a:draw",
    x="records_removed",
    y={"accuracy_mean": "mean test accuracy"},
    caption=Caption(
        "Test accuracy against the number of records removed at once",
        "All runs have the same noise scale. Each run takes the fewest unlearning steps that meet the panel’s target ε "
        "according to the accountant of its line. Retraining does not depend on ε, so it is the same in all panels. "
        f"{SPREAD}",
        "Test accuracy against the number of records removed at once, with one line for each accountant, and with "
        "lines for retraining.",
    ),
)
