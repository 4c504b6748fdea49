"""The number of deletions that it takes until unlearning is cheaper than a private model that covers them.

After one request for ``k`` deletions, every system promises the same: its model is (epsilon, delta)-close to the model
that its algorithm learns if those ``k`` records are replaced by others. Exact systems promise more. A private model
keeps this promise without any work if it was learned with a ``mu`` that is ``k`` times smaller. The constants of the
private model, like those of SGD, are chosen from a grid on held-out records. No promise includes what this choice
reveals about records.
"""

import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from certified_unlearning.accounting.private.learners import Learner, NoisyDescent, OutputPerturbation
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.estimators import LangevinLogisticRegression, SecretStateDescentToDelete
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.expected import expected_deletion
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.private import searches
from certified_unlearning.papers.private_learning.covered import CLOSE
from certified_unlearning.papers.private_learning.sweeps import GroupPrivacy
from certified_unlearning.reproduction.simulation.held_out import HeldOut, with_error

LOGISTIC = ScalarLoss(name="logistic")


def groups_table(sweep: GroupPrivacy) -> pd.DataFrame:
    """Return accuracy and gradients of every system for every number of deletions.

    Raises:
        DataError: The raw files of a data set are missing.
    """
    rows = [
        {"data": name, "epsilon": epsilon, **row}
        for name in sweep.data
        for epsilon in sweep.epsilon
        for row in _systems(HeldOut.load(name, sweep.seed), epsilon, sweep)
    ]
    return pd.DataFrame(rows).assign(
        experiment="group_privacy", delta=sweep.delta, trials=sweep.trials, seed=sweep.seed
    )


def _systems(task: HeldOut, epsilon: float, sweep: GroupPrivacy) -> Iterator[dict[str, Any]]:
    asked = [count for count in sweep.deletions if 2 * count <= task.n]
    shape = {"n": task.n, "d": task.rows.shape[1]}
    private = [_private(task, count, epsilon, sweep) for count in asked]
    langevin = list(_approximate("langevin", LangevinLogisticRegression, task, asked, epsilon, sweep))
    rows = [*_exact(task, asked, sweep), *private, *_renewed(private, langevin), *langevin]
    rows += _approximate("descent-to-delete", SecretStateDescentToDelete, task, asked, epsilon, sweep)
    for row in rows:
        yield {**shape, **row}


def _private(task: HeldOut, count: int, epsilon: float, sweep: GroupPrivacy) -> dict[str, Any]:
    """Return the row of the private model that is best on held-out records and covers ``count`` deletions."""
    begun = time.monotonic()
    choices = [_plan_with(sweep, epsilon, count, *each) for each in product(sweep.radius, (0, *sweep.steps))]
    validated = []
    for number, plan in enumerate(choices):
        keys = [address(sweep.seed, task.name, "select", epsilon, count, number, each) for each in range(sweep.trials)]
        validated.append(task.validated(_learned(plan, task, task.first, keys)[0]))
    best = int(np.argmax(validated))
    keys = [address(sweep.seed, task.name, "report", epsilon, count, each) for each in range(sweep.trials)]
    models, gradients = _learned(choices[best], task, task.n, keys)
    return {
        "system": "private", "deletions": count, **with_error("accuracy", task.tested(models)), "gradients": 0.0,
        "learning_gradients": gradients, "seconds": time.monotonic() - begun,
    }  # fmt: skip


def _plan_with(
    sweep: GroupPrivacy, epsilon: float, count: int, radius: float, steps: int
) -> Callable[[int, int], Learner]:
    """Return a function that plans noisy descent, or output perturbation if ``steps`` is 0."""

    def planned(n: int, features: int) -> Learner:
        problem = LinearProblem(n=n, features=features, row_norm=1.0, loss=LOGISTIC, radius=radius)
        # Gaussian DP for k records has k mu, and so do k^2 runs on the same records. This noise thus covers k records.
        if steps:
            return NoisyDescent.plan(problem, epsilon=epsilon, delta=sweep.delta, steps=steps, runs=count**2)
        return OutputPerturbation.plan(problem, epsilon=epsilon, delta=sweep.delta, runs=count**2)

    return planned


def _learned(planned: Callable[[int, int], Learner], task: HeldOut, n: int, keys: list[int]) -> tuple[Tensor, float]:
    """Return models of the first ``n`` records, and the number of gradients for learning one model.

    A solver is assumed to make `SOLVER_PASSES` passes.
    """
    records = BoundedRecords(task.rows[:n], task.labels[:n], loss=LOGISTIC, row_norm=1.0)
    plan = planned(n, records.features)
    passes = SOLVER_PASSES if plan.calibration.steps is None else plan.releases
    return searches.learn(plan, records, keys).weights, float(passes * n)


SOLVER_PASSES = 50
"""The number of passes that we assume for a solver, because its passes are not counted."""


def _renewed(private: list[dict[str, Any]], beside: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of a private model that is learned anew when the deletions that it covers are used up.

    The accuracy of this model is at least that of another system minus `CLOSE`. Among such private models, it is the
    one that covers the largest number of deletions. If there is no such model, there are no rows.

    Args:
        private: The rows of private models, ordered by the number of deletions.
        beside: The rows of the other system, for the same numbers of deletions.
    """
    good = [row for row, other in zip(private, beside, strict=True) if row["accuracy"] >= other["accuracy"] - CLOSE]
    if not good:
        return []
    chosen = good[-1]
    return [
        {
            **chosen,
            "system": "private, renewed",
            "deletions": row["deletions"],
            "gradients": (-(-row["deletions"] // chosen["deletions"]) - 1) * chosen["learning_gradients"],
            "seconds": 0.0,
        }
        for row in private
    ]


def _exact(task: HeldOut, asked: list[int], sweep: GroupPrivacy) -> list[dict[str, Any]]:
    """Return the rows of two systems: retraining by plain SGD, and unlearning by noisy SGD.

    Retraining uses the best plain SGD. The noisy SGD is the cheapest noisy SGD that is about as accurate as the best
    plain SGD. Several deletions take as many gradients as the same deletions one by one, or as many as learning,
    whichever is smaller.
    """
    begun = time.monotonic()
    found = []
    for steps, batch_size, step_size, sigma in product(
        sweep.sgd_steps, sweep.batch_size, sweep.step_size, (0.0, *sweep.sigma)
    ):
        descent = ExactDescent(
            NoisySgd(steps=steps, batch_size=batch_size, step_size=step_size, sigma=sigma), task.records
        )
        where = (sweep.seed, task.name, "sgd", steps, batch_size, step_size, sigma)
        chosen = descent.learn(torch.arange(task.first), Draws.at(*where, "select"), trials=sweep.trials)
        found.append((task.validated(chosen.model()), sigma, steps * batch_size, descent, where))
    plain = max((each for each in found if each[1] == 0), key=lambda each: each[0])
    noisy = [each for each in found if each[1] and each[0] >= plain[0] - CLOSE]
    rows = []
    for system, options in (("retraining", [plain]), ("noisy-sgd", noisy)):
        costs = []
        for _, _, learning, descent, where in options:
            draws = Draws.at(*where, "report")
            state = descent.learn(torch.arange(task.n), draws, trials=sweep.trials)
            one = (
                learning if system == "retraining" else float(expected_deletion(descent, state, draws).gradients.mean())
            )
            costs.append((one, learning, with_error("accuracy", task.tested(state.model()))))
        for one, learning, accuracy in sorted(costs, key=lambda each: each[0])[:1]:
            rows += [
                {
                    "system": system, "deletions": count, **accuracy, "gradients": float(min(count * one, learning)),
                    "learning_gradients": float(learning), "seconds": (time.monotonic() - begun) / len(asked),
                }
                for count in asked
            ]  # fmt: skip
    return rows


def _approximate(
    name: str,
    system: type[LangevinLogisticRegression | SecretStateDescentToDelete],
    task: HeldOut,
    asked: list[int],
    epsilon: float,
    sweep: GroupPrivacy,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of Langevin unlearning or Descent-to-Delete; each request has its own copy of a trial's model."""
    begun = time.monotonic()
    models: dict[int, list[Tensor]] = {count: [] for count in asked}
    gradients: dict[int, float] = {}
    rows, labels = task.rows.numpy(), task.labels.numpy()
    for trial in range(sweep.trials):
        fit = system(
            epsilon, sweep.delta, C=sweep.strength / task.n, adjacency="replace", fit_intercept=False,
            random_state=sweep.seed + trial,
        ).fit(rows, labels)  # fmt: skip
        for count in asked:
            copy = deepcopy(fit).unlearn(list(range(count)))
            stated = copy.certificate_
            reads = task.n if stated.cycle is None else stated.cycle.batch_size
            gradients[count] = float(reads * stated.unlearning_steps[-1])
            learning = float(reads * stated.learning_steps)
            models[count].append(torch.as_tensor(copy.coef_[0], dtype=torch.float64))
    for count in asked:
        yield {
            "system": name, "deletions": count, **with_error("accuracy", task.tested(torch.stack(models[count]))),
            "gradients": gradients[count], "learning_gradients": learning,
            "seconds": (time.monotonic() - begun) / len(asked),
        }  # fmt: skip
