"""Figure 4: groups of several sizes removed at once, for several values of epsilon.

Figure 5a includes the same sizes.
"""

from collections.abc import Iterable

from certified_unlearning.mechanisms.constants import constants_and_problem
from certified_unlearning.mechanisms.planner import Planner, at
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from certified_unlearning.papers.langevin_unlearning.captions import SPREAD
from certified_unlearning.papers.langevin_unlearning.sweeps import Figure4
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import RUN_ROWS


def planner_of_groups(inputs: Inputs, experiment: str) -> Planner:
    """Return the planner of groups that are removed at once."""
    sweep = inputs.sweep
    constants, exact = constants_and_problem(inputs.settings, inputs.data, records=max(sweep.records))
    noise = [(sweep.sigma, epsilon) for epsilon in sweep.epsilon]
    return Planner(inputs.settings, experiment, constants, exact, sweep.epsilon, noise)


def make(inputs: Inputs) -> ExperimentPlan:
    """Plan the experiment; it raises the same errors as `fig3a.plan`."""
    planner = planner_of_groups(inputs, FIG4.name)
    return inputs.plan(planner.constants, _runs(planner, inputs.sweep))


def _runs(planner: Planner, sweep: Figure4) -> Iterable[Run]:
    for records in sweep.records:
        langevin = [
            planner.least_steps(accountant, sweep.sigma, epsilon, records)
            for accountant in planner.accountants
            for epsilon in sweep.epsilon
        ]
        yield from (at(run, f"epsilon = {run.epsilon_target:g}") for run in langevin)
        levels = [*planner.retraining(langevin), *planner.scikit_learn(langevin)]
        yield from (at(run, f"S = {records}") for run in levels)


FIG4 = Experiment(
    name="fig4",
    source="Fig. 4",
    sweep=Figure4,
    rows=RUN_ROWS,
    make=make,
    mechanisms=("langevin", "retraining", "scikit-learn"),
    draw="certified_unlearning.papers.langevin_unlearning.figures.fig4:draw",
    x="epsilon_target",
    y={"unlearning_steps": "unlearning steps K"},
    caption=Caption(
        "The smallest number of unlearning steps K by each accountant, against the target ε",
        "Each column is for groups of S records that are removed at once. The lower panels show the test accuracy "
        "after unlearning. Retraining does not depend on ε, so it is a horizontal line; the broad grey line is "
        f"retraining with noise. The step axis is linear from 0 to 1, and logarithmic above. {SPREAD}",
        "A column of panels for each S. Above: unlearning steps against target ε; the steps fall for every accountant. "
        "Below: test accuracy against target ε; it is nearly constant.",
    ),
)
