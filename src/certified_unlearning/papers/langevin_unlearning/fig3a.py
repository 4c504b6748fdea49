"""Figure 3a (Figure 5b for Adult): accuracy against target epsilon, with one removed record."""

from collections.abc import Iterable

from certified_unlearning import accounting
from certified_unlearning.accounting.descent import shifted as descent_shifted
from certified_unlearning.mechanisms.constants import constants_and_problem
from certified_unlearning.mechanisms.planner import Planner, at, least_sigma
from certified_unlearning.mechanisms.run import ExperimentPlan, Run
from certified_unlearning.papers.langevin_unlearning.captions import SPREAD
from certified_unlearning.papers.langevin_unlearning.sweeps import Figure3a
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import RUN_ROWS


def planner(inputs: Inputs, *, exact_arithmetic: bool = False) -> Planner:
    """Return the planner of the runs."""
    sweep, settings = inputs.sweep, inputs.settings
    constants, exact = constants_and_problem(settings, inputs.data, records=1)
    descent = accounting.descent_problem(exact)
    return Planner(
        settings,
        FIG3A.name,
        constants,
        exact,
        sweep.epsilon,
        [
            (least_sigma(exact, constants.delta, accountant, epsilon, sweep.unlearning_steps), epsilon)
            for accountant in settings.accountants
            for epsilon in sweep.epsilon
        ],
        "secret-state",
        [
            (sigma, epsilon)
            for epsilon in sweep.epsilon
            for steps in sweep.descent_steps
            for sigma in (
                accounting.secret_state_sigma(descent, epsilon=epsilon, delta=constants.delta, steps=steps),
                descent_shifted.secret_state_sigma(
                    descent, mu=accounting.mu_from_epsilon(epsilon, constants.delta), steps=steps
                ),
            )
        ],
        exact_arithmetic=exact_arithmetic,
    )


def plan(inputs: Inputs, *, exact_arithmetic: bool = False) -> ExperimentPlan:
    """Plan Langevin unlearning (with a fixed K and the smallest sigma), Descent-to-Delete, and retraining.

    Args:
        inputs: The inputs, whose sweep is a `Figure3a`.
        exact_arithmetic: Whether the plan ignores rounding errors. Use True only for plans that are not carried out.

    Raises:
        AssumptionError: A theorem's assumption does not hold.
        InfeasibleError: A target cannot be met.
    """
    planned = planner(inputs, exact_arithmetic=exact_arithmetic)
    return inputs.plan(planned.constants, _runs(planned, inputs.sweep))


def _runs(planner: Planner, sweep: Figure3a) -> Iterable[Run]:
    langevin = [
        planner.least_sigma(accountant, epsilon, sweep.unlearning_steps)
        for accountant in planner.accountants
        for epsilon in sweep.epsilon
    ]
    descent = [
        run
        for steps in sweep.descent_steps
        for epsilon in sweep.epsilon
        for run in (planner.secret_state(epsilon, steps), planner.tightened_secret_state(epsilon, steps))
    ]
    *noisy, noiseless = planner.retraining_of_each(langevin)
    yield from (at(run, f"epsilon = {run.epsilon_target:g}") for run in (*langevin, *descent, *noisy))
    yield noiseless
    yield from planner.scikit_learn(langevin)


FIG3A = Experiment(
    name="fig3a",
    source="Fig. 3a",
    sources={"adult": "Fig. 5b"},
    sweep=Figure3a,
    rows=RUN_ROWS,
    make=plan,
    mechanisms=("langevin", "descent-to-delete", "retraining", "scikit-learn"),
    draw="certified_unlearning.papers.langevin_unlearning.figures.fig3a:draw",
    x="epsilon_target",
    y={"accuracy_mean": "mean test accuracy"},
    caption=Caption(
        "Test accuracy after one record was removed, against the target ε",
        "Left: Langevin unlearning takes K steps. For each accountant, the noise is the smallest that meets the target "
        "ε. The accountants are the paper’s bound (lsi), the same bound without slack (lsi-tight), and our bound "
        "(shifted), which needs the least noise. The broad pale line behind each of these lines is retraining with the "
        "same noise; if the pale line is hidden, the two lines coincide. Middle: Descent-to-Delete takes I steps from "
        "its secret, noiseless state, and adds the noise of its own theorem, which is Theorem 9 of the paper on "
        "Descent-to-Delete. The paper on Langevin unlearning restates it as Theorem N.1 and applies it to the "
        "replacement of records, as we do. Right: Descent-to-Delete adds only the noise that this one request needs "
        "(our bound, tightened). On the paper’s binary tasks, the theorem with L = 1/4 + λ requires more noise than "
        "Table 2 prints, because the authors’ code used the L of the data. The middle and right panels repeat the "
        "tightest Langevin line. A thin black "
        f"line is noiseless retraining. {SPREAD} Descent-to-Delete learns without noise, so its bands show only the "
        "published noise. The bands of Langevin unlearning also show the noise of learning.",
        "Three panels of lines, test accuracy against target ε: Langevin unlearning by each accountant, "
        "Descent-to-Delete by its own theorem, and Descent-to-Delete tightened, each with retraining.",
    ),
)
