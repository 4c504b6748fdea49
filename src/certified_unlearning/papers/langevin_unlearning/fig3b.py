"""Figure 3b: records that are removed by a stream of requests."""

from collections.abc import Iterable

from certified_unlearning import accounting
from certified_unlearning.mechanisms.constants import constants_and_problem
from certified_unlearning.mechanisms.planner import Planner, published_state_plan
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from certified_unlearning.papers.langevin_unlearning.captions import SPREAD
from certified_unlearning.papers.langevin_unlearning.sweeps import Figure3b
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import RUN_ROWS


def plan(inputs: Inputs, *, exact_arithmetic: bool = False) -> ExperimentPlan:
    """Plan streams of requests.

    The arguments and errors are those of `fig3a.plan`, but the sweep of the inputs is a `Figure3b`.
    """
    sweep, settings = inputs.sweep, inputs.settings
    constants, exact = constants_and_problem(settings, inputs.data, records=sweep.records)
    printed = published_state_plan(accounting.descent_problem(exact), constants, sweep.epsilon, sweep.records)
    planner = Planner(
        settings,
        FIG3B.name,
        constants,
        exact,
        [sweep.epsilon],
        [(sweep.sigma, sweep.epsilon)],
        "published-state",
        [(printed.sigma, sweep.epsilon)],
        exact_arithmetic=exact_arithmetic,
    )
    return inputs.plan(planner.constants, _runs(planner, sweep))


def _runs(planner: Planner, sweep: Figure3b) -> Iterable[Run]:
    langevin = [
        planner.stream(accountant, sweep.sigma, sweep.epsilon, size, sweep.records // size)
        for accountant in planner.accountants
        for size in sweep.records_per_request
    ]
    yield from langevin
    printed = published_state_plan(planner.descent[0], planner.constants, sweep.epsilon, sweep.records)
    yield planner.published_state(printed, sweep.epsilon)
    yield planner.tightened_published_state(printed, sweep.epsilon, sweep.records)
    yield from planner.retraining(langevin)
    yield from planner.scikit_learn(langevin)


FIG3B = Experiment(
    name="fig3b",
    source="Fig. 3b",
    sweep=Figure3b,
    rows=RUN_ROWS,
    make=plan,
    mechanisms=("langevin", "descent-to-delete", "retraining", "scikit-learn"),
    draw="certified_unlearning.papers.langevin_unlearning.figures.fig3b:draw",
    x="records_removed",
    y={"accumulated_steps": "accumulated unlearning steps"},
    caption=Caption(
        "Accumulated unlearning steps, and accuracy, while records are removed request by request",
        "All panels have the same ε. Each column is for one S, the number of records per request. A column’s title "
        "names the methods that were run with its S. Langevin unlearning takes the fewest steps that each "
        "accountant’s sequential analysis allows. Descent-to-Delete without secret state removes one record per "
        "request. One of its lines (printed) takes the steps of Theorem 28 of the paper on Descent-to-Delete; the "
        "paper on Langevin unlearning restates it as Theorem N.2. The other line (tightened) has the same noise and "
        "takes the fewest steps that our bound allows. The comparator of this bound is a retrained model that is "
        "published and continued at the same times. The steps of Descent-to-Delete are repeated as thin lines in "
        "the other columns. The numbers at the ends of the lines are the total steps. The horizontal lines show "
        "models that were retrained once, after all removals. The step axis is linear from 0 to 1, and logarithmic "
        "above. "
        f"{SPREAD}",
        "A column of panels for each S. Above: accumulated steps against removed records; the steps rise for every "
        "method. Below: test accuracy against removed records.",
    ),
)
