"""Noisy gradient descent that learns and deletes (`noisy-gradient-deletion`), for batches of trials.

Source: Definition 5.1 of Chourasia and Shah, Forget Unlearning (ICML 2023). Learning takes `learning_steps` steps from
a Gaussian start. A request is answered by `deletion_steps` steps on the new data, from the published model. Only the
model is kept, and every call draws fresh noise. The steps are those of `engine.descent`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from certified_unlearning.accounting.deletion.planning import DeletionPlan
from certified_unlearning.engine import descent, randomness
from certified_unlearning.engine.descent import DescentPhase, Objective


@dataclass(frozen=True)
class NoisyGradientDeletion:
    """A learner that deletes according to a plan.

    The clipped variant needs an objective that clips, and a plan for clipping. Weights are float64, because noise
    decreases like ``1 / n``.

    Attributes:
        plan: Noise, numbers of steps, step size and start. The plan's guarantee holds for the losses for which it was
            made. It includes rounding only if the plan was made with ``dtype="float64"``.
    """

    plan: DeletionPlan

    def learn(self, objective: Objective, keys: Sequence[int], *, device: torch.device | str = "cpu") -> Tensor:
        """Learn one model for each key.

        Args:
            objective: The loss on the data.
            keys: The address of each trial; it must not be used again.
            device: Device of the objective's tensors.

        Returns:
            Weights, shape ``(trials, d)``.
        """
        start, learning = ([randomness.address(str(key), phase) for key in keys] for phase in ("start", "learning"))
        like = torch.empty(len(keys), objective.d, dtype=torch.float64, device=device)
        weights = self.plan.start_variance**0.5 * randomness.normal_rows(start, like)
        return self._descend(objective, weights, learning, self.plan.learning_steps)

    def delete(self, objective: Objective, weights: Tensor, keys: Sequence[int], *, removed: int = 0) -> Tensor:
        """Answer one request.

        Args:
            objective: The loss. When the first ``removed`` removals have been carried out, the data of the loss must be
                those *after* the request.
            weights: The published models, shape ``(trials, d)``; they are not changed.
            keys: The address of each trial; it must not have been used before, and must not be used again.
            removed: Argument of `Objective.remove`.

        Returns:
            The models to publish, shape ``(trials, d)``; the given models, bit for bit, if no step is planned.
        """
        return self._descend(objective, weights, keys, self.plan.deletion_steps, removed)

    def _descend(
        self, objective: Objective, weights: Tensor, keys: Sequence[int], steps: int, removed: int = 0
    ) -> Tensor:
        return noisy_descent(
            objective,
            weights,
            keys,
            steps=steps,
            sigma=self.plan.sigma,
            step_size=self.plan.step_size,
            removed=removed,
        )


def noisy_descent(
    objective: Objective,
    weights: Tensor,
    keys: Sequence[int],
    *,
    steps: int,
    sigma: float,
    step_size: float,
    removed: int = 0,
) -> Tensor:
    """Return all trials' weights after the steps of one phase.

    ``sigma = 0`` gives plain gradient descent.
    """
    phase = DescentPhase(removed=removed, steps=[steps] * len(weights), sigma=[sigma] * len(weights), keys=keys)
    run = descent.run(objective, weights, [phase], step_size=step_size)
    return run.weights
