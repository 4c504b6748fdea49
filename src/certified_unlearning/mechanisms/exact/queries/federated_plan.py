"""The constants of federated averaging for a user's own records, fixed before anything is learned.

They depend on the records only through the numbers of clients and of rows at the start. They are part of the run with
which every later state is compared, so no request changes them.
"""

import math
from typing import Literal, Self

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from certified_unlearning.accounting.core.checks import (
    require_count,
    require_non_negative,
    require_positive,
    require_probability,
)
from certified_unlearning.accounting.core.losses import scores_per_record
from certified_unlearning.accounting.tv.planning import plan_queries
from certified_unlearning.errors import AssumptionError
from certified_unlearning.mechanisms.exact.plan import require_stable_steps
from certified_unlearning.mechanisms.exact.queries.clients import Clients, LocalTraining
from certified_unlearning.mechanisms.exact.queries.federated_averaging import (
    FederatedAveraging,
    FederatedAveragingSettings,
)
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, LinearQuerySettings
from certified_unlearning.mechanisms.learners.duration import SECONDS_OF_A_STEP, Work

USUAL_ROUNDS = 10
USUAL_LOCAL_STEPS = 10
USUAL_STEP_SIZE = 8.0
"""Default step size of a client's steps, for rows of norm at most 1."""
USUAL_CLIP = 3.0
USUAL_NOISE = 0.2
"""Approximate default standard deviation of the noise in a score. Predictions hardly change with it."""
USUAL_RECOMPUTE = 0.05
"""Default bound on the probability that a removal recomputes rounds.

This bound determines the default noise if the bound needs less noise than `USUAL_NOISE`.
"""
FEWEST_CLIENTS = 2
"""Smallest number of clients at the start, because the last client cannot be removed."""


class FederatedPlan(BaseModel):
    """The constants that are fixed before anything is learned.

    Attributes:
        mechanism: ``federated-averaging``.
        n: Number of rows at the start.
        clients: Number of clients at the start. All sums are divided by this number, also after removals.
        features: Number of columns of a row.
        classes: Number of classes, at least 2.
        strong_convexity: Strong convexity ``lambda`` of the regulariser, which is part of every client's mean loss.
        steps: Number of rounds ``T``.
        local_steps: Number of steps that a client runs in a round.
        step_size: Step size of a client's steps.
        clip: Largest norm of a client's update in a round.
        sigma: Standard deviation of the noise on a round's sum, per coordinate.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mechanism: Literal["federated-averaging"] = "federated-averaging"
    n: int
    clients: int
    features: int
    classes: int
    strong_convexity: float
    steps: int
    local_steps: int
    step_size: float
    clip: float
    sigma: float

    @classmethod
    def make(
        cls,
        *,
        n: int,
        clients: int,
        features: int,
        classes: int,
        strong_convexity: float,
        steps: int | None = None,
        local_steps: int | None = None,
        step_size: float | None = None,
        clip: float | None = None,
        recompute: float | None = None,
    ) -> Self:
        """Return the plan.

        Arguments that are None get default values.

        Args:
            n: Number of rows.
            clients: Number of clients.
            features: Number of columns of a row.
            classes: Number of classes, at least 2.
            strong_convexity: Strong convexity ``lambda``, at least 0.
            steps: Number of rounds ``T``. None: `USUAL_ROUNDS`.
            local_steps: Number of steps that a client runs in a round. None: `USUAL_LOCAL_STEPS`.
            step_size: Step size of a client's steps. None: `USUAL_STEP_SIZE`.
            clip: Largest norm of a client's update. None: `USUAL_CLIP`.
            recompute: Upper bound on the probability that the removal of one client recomputes rounds, strictly between
                0 and 1. The noise is the smallest that satisfies this bound. None: the noise in a score is
                `USUAL_NOISE`, or smaller if less noise satisfies the bound `USUAL_RECOMPUTE`. The actual bound then
                follows from the noise.

        Raises:
            AssumptionError: There is only one client.
        """
        require_count(least=1, n=n, features=features, clients=clients)
        require_count(least=2, classes=classes)
        require_non_negative(strong_convexity=strong_convexity)
        steps = USUAL_ROUNDS if steps is None else steps
        local_steps = USUAL_LOCAL_STEPS if local_steps is None else local_steps
        step_size = USUAL_STEP_SIZE if step_size is None else step_size
        clip = USUAL_CLIP if clip is None else clip
        require_count(least=1, steps=steps, local_steps=local_steps)
        require_positive(step_size=step_size, clip=clip)
        if clients < FEWEST_CLIENTS:
            raise AssumptionError(
                "federated-averaging needs two clients or more, got 1: without its only client, the model would learn "
                "from no record"
            )
        require_stable_steps(step_size, strong_convexity)
        if recompute is not None:
            require_probability(recompute=recompute)
        wanted = USUAL_RECOMPUTE if recompute is None else recompute
        sigma = plan_queries(queries=steps, bound=clip, recompute_probability=wanted).noise
        if recompute is None:
            sigma = min(sigma, USUAL_NOISE * clients / math.sqrt(steps))
        return cls(
            n=n,
            clients=clients,
            features=features,
            classes=classes,
            strong_convexity=strong_convexity,
            steps=steps,
            local_steps=local_steps,
            step_size=step_size,
            clip=clip,
            sigma=sigma,
        )

    @property
    def work(self) -> Work:
        """The work of learning."""
        passes = self.steps * self.local_steps
        return Work(passes * SECONDS_OF_A_STEP, passes)

    @property
    def loss(self) -> Literal["logistic", "softmax"]:
        """The loss of a row."""
        return "logistic" if self.classes == 2 else "softmax"

    @property
    def dimension(self) -> int:
        """Number of weights, ``d``."""
        return self.features * scores_per_record(self.classes)

    @property
    def noise_in_scores(self) -> float:
        """Approximate standard deviation of the noise in the score of a row of norm 1, if no round's noise fades."""
        return self.sigma * math.sqrt(self.steps) / self.clients

    def clients_of(self, rows: Tensor, labels: Tensor, owners: Tensor) -> Clients:
        """Return the clients of these rows; see `Clients`."""
        training = LocalTraining(self.local_steps, self.step_size, self.strong_convexity, self.classes)
        return Clients(rows, labels, owners, training)

    def method_of(self, clients: Clients) -> FederatedAveraging:
        """Return federated averaging of the given clients."""
        start = torch.zeros(self.dimension, dtype=torch.float64)
        return FederatedAveraging(clients.train, start, FederatedAveragingSettings(self.clip, self.clients))

    def learner_of(self, method: FederatedAveraging) -> LinearQueries:
        """Return the learner that learns and unlearns by the given method."""
        return LinearQueries(method, LinearQuerySettings(self.steps, self.sigma))
