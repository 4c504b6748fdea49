"""Learning and unlearning with mini-batches of several sizes, and with steps that use all records."""

from collections.abc import Iterable

from certified_unlearning.accounting import Problem
from certified_unlearning.mechanisms.constants import constants_and_problem
from certified_unlearning.mechanisms.minibatch_langevin import planned_run
from certified_unlearning.mechanisms.planner import Planner, at
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from certified_unlearning.papers.noisy_sgd.sweeps import BatchSizes
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import RUN_ROWS


def make(inputs: Inputs) -> ExperimentPlan:
    """Plan the experiment.

    Args:
        inputs: The inputs, whose sweep is a `BatchSizes`.

    Raises:
        AssumptionError: A theorem's assumption does not hold.
        InfeasibleError: A target cannot be met.
    """
    sweep = inputs.sweep
    # The largest eigenvalue of all data does not bound that of a batch.
    settings = inputs.settings.model_copy(update={"smoothness": "bound"})
    constants, exact = constants_and_problem(settings, inputs.data, records=sweep.records)
    noise = [(sweep.sigma, epsilon) for epsilon in sweep.epsilon]
    planner = Planner(settings, BATCH_SIZES.name, constants, exact, sweep.epsilon, noise)
    return inputs.plan(constants, _runs(planner, exact, sweep))


def _runs(planner: Planner, exact: Problem, sweep: BatchSizes) -> Iterable[Run]:
    for batch_size in sweep.batch_size:
        for epsilon in sweep.epsilon:
            yield planned_run(
                planner.told,
                experiment=BATCH_SIZES.name,
                batch_size=batch_size,
                step_size=exact.step_size,
                sigma=sweep.sigma,
                epsilon=epsilon,
                records=sweep.records,
                epochs=sweep.epochs,
            )
    whole = [
        planner.least_steps("shifted", sweep.sigma, epsilon, sweep.records, member=f"b = {planner.constants.n}")
        for epsilon in sweep.epsilon
    ]
    yield from (at(run, f"epsilon = {run.epsilon_target:g}") for run in whole)
    yield from planner.scikit_learn(whole)


BATCH_SIZES = Experiment(
    name="batch_sizes",
    source="",
    sweep=BatchSizes,
    rows=RUN_ROWS,
    make=make,
    mechanisms=("minibatch-langevin", "langevin", "scikit-learn"),
    draw="certified_unlearning.papers.noisy_sgd.figures:draw_batch_sizes",
    x="epsilon_target",
    y={"unlearning_steps": "unlearning steps K"},
    caption=Caption(
        (
            "Mini-batches of b records compared with full-batch steps: passes over the data, and test accuracy after a "
            "removal"
        ),
        "All runs have the same noise scale σ. A request of K steps on mini-batches of b records makes K b / n "
        "passes over the data. The removed records may be in any batch: the guarantee is for the worst one. Lines are "
        "means over trials. Bands reach one sample standard deviation of the trials above and below the mean, cut off "
        "at 0 and 1. Black lines are new fits by scikit-learn, which start from zero (dotted) or from the weights of "
        "the old fit (dash-dotted). The fit that starts from old weights guarantees nothing.",
        "Left: passes over the data against the target ε. Right: test accuracy. Each batch size has a line.",
    ),
)
