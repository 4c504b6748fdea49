"""Epsilon against unlearning steps of noisy SGD, by batch size, position and analysis. Nothing is simulated."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa

from certified_unlearning.accounting.core.conversion import epsilon_from_mu, epsilon_of
from certified_unlearning.accounting.core.curves import Cycle
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.papers.noisy_sgd.sweeps import Minibatches
from certified_unlearning.papers.noisy_sgd.theory.bounds import averaged_curve, known_curve
from certified_unlearning.papers.noisy_sgd.theory.exact import averaged_epsilon, pooled, quadratic_mus
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

POINTS = 24
"""The largest number of step counts at which a bound is evaluated.

The step counts start at 1 and grow by equal factors.
"""

MINIBATCH_ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "analysis", "position"),
        *columns("text", "constant", "guarantee", "source"),
        column("n", "whole", "constant"),
        column("batch_size", "whole", "point"),
        column("batches", "whole", "constant"),
        *columns("number", "constant", "strong_convexity", "smoothness_constant", "lipschitz", "step_size", "sigma"),
        *columns("whole", "constant", "learning_epochs", "records_removed"),
        column("steps", "whole", "point"),
        *columns("number", "constant", "epochs", "delta"),
        column("epsilon", "number", "measure"),
    ]
)
"""The columns of the table, which has one row for each analysis, position, batch size and number of mini-batch steps.

``epochs`` is ``steps / batches``.

``position`` is ``worst`` (the last batch of the cycle) or ``drawn`` (each batch with the same probability).
"""


def make(inputs: Inputs) -> pd.DataFrame:
    """Return epsilon according to the paper's bounds and to our bounds, and the exact epsilon for quadratic losses.

    Raises:
        AssumptionError: The step is too long.
    """
    sweep: Minibatches = inputs.sweep
    rows = []
    for size in sweep.batch_size:
        cycle = Cycle(sweep.n // size, size)
        rate = 1 / sweep.smoothness
        problem = Problem(size, sweep.strong_convexity, sweep.smoothness, sweep.lipschitz, rate)
        counts = steps_up_to(sweep.unlearning_epochs * cycle.batches)
        for analysis, position, steps, epsilon in _epsilons(problem, cycle, sweep, counts):
            rows.append(
                {
                    "experiment": MINIBATCHES.name,
                    "analysis": analysis,
                    "position": position,
                    "guarantee": "exact" if analysis == "quadratic" else "upper bound",
                    "source": {"theirs": "paper"}.get(analysis, "own"),
                    "n": sweep.n,
                    "batch_size": size,
                    "batches": cycle.batches,
                    "strong_convexity": sweep.strong_convexity,
                    "smoothness_constant": sweep.smoothness,
                    "lipschitz": sweep.lipschitz,
                    "step_size": rate,
                    "sigma": sweep.sigma,
                    "learning_epochs": sweep.learning_epochs,
                    "records_removed": 1,
                    "steps": steps,
                    "epochs": steps / cycle.batches,
                    "delta": 1 / sweep.n,
                    "epsilon": epsilon,
                }
            )
    return pd.DataFrame(rows)


def steps_up_to(most: int) -> list[int]:
    """Return numbers of steps from 1 to ``most``, which grow by equal factors."""
    return sorted({round(float(steps)) for steps in np.geomspace(1, most, POINTS)})


def _epsilons(
    problem: Problem, cycle: Cycle, sweep: Minibatches, counts: list[int]
) -> Iterator[tuple[str, str, int, float]]:
    """Yield analysis, position, steps and epsilon."""
    delta, sigma, epochs = 1 / sweep.n, sweep.sigma, sweep.learning_epochs
    places = range(1, cycle.batches + 1)
    by_place = [quadratic_mus(problem, cycle, sigma=sigma, epochs=epochs, steps=counts, position=cycle.batches)]
    for number, steps in enumerate(counts):
        worst = known_curve(problem, cycle, sigma=sigma, epochs=epochs, steps=steps)
        yield "theirs", "worst", steps, epsilon_of(worst, delta)
        drawn = averaged_curve(problem, cycle, sigma=sigma, epochs=epochs, steps=steps)
        yield "theirs", "drawn", steps, epsilon_of(drawn, delta)
        mus = [pooled(problem, cycle, sigma=sigma, epochs=epochs, steps=steps, position=place) for place in places]
        yield "ours", "worst", steps, epsilon_from_mu(mus[-1], delta)
        yield "ours", "drawn", steps, averaged_epsilon(mus, delta)
        yield "quadratic", "worst", steps, epsilon_from_mu(by_place[0][number], delta)


MINIBATCHES = Experiment(
    name="minibatches",
    source="",
    sweep=Minibatches,
    rows=MINIBATCH_ROWS,
    make=make,
    needs_data=False,
    draw="certified_unlearning.papers.noisy_sgd.figures:draw",
    caption=Caption(
        "Epsilon of noisy SGD against passes of unlearning over the data, by batch size",
        "One record is replaced, and each panel has one batch size. For solid lines, the record is in the last batch "
        "of the cycle, the worst place; for dashed lines, its batch is drawn at random. Dotted lines are the exact "
        "value on quadratic losses, at the worst place. The paper’s bound is a Rényi bound, converted tightly; it uses "
        "only the noise of unlearning, which hides the W∞ distance after learning. Our bound is pooled shifted "
        "interpolation, which also uses the noise of learning. The ε axis begins at 0.005, and lines begin at one "
        "mini-batch step. The figure does not depend on any data set.",
        "Panels in which ε falls with the number of passes. Lines of smaller batches fall within a fraction of a "
        "pass. The paper’s bound begins above our bound and meets it, and our bound meets the exact value.",
    ),
)
