"""The constants of an ensemble of certified networks for a user's own records, fixed before anything is learned.

The constants depend on the records only through the number of records at the start. They are part of the training with
which every answer is compared, so no request changes them.
"""

import secrets
from collections.abc import Sequence
from typing import Literal, Self

import torch
from pydantic import BaseModel, ConfigDict

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.certified_sgd.ensemble import CertifiedEnsemble
from certified_unlearning.mechanisms.certified_sgd.sgd import dense_network
from certified_unlearning.mechanisms.certified_sgd.shards import Sharding
from certified_unlearning.mechanisms.learners.duration import SECONDS_OF_A_BOX, Work
from certified_unlearning.vocabulary import NetworkLoss

USUAL_SHARDS = 5
"""Default number of shards."""
USUAL_SLICES = 2
"""Default number of slices of a shard."""
USUAL_BUDGETS = (1, 2, 4, 8)
"""Default budgets."""
USUAL_EPOCHS = 5
"""Default number of updates of a stage."""
USUAL_STEP_SIZE = 4.0
"""Default step size, for rows of norm 1 and clipped gradients."""
USUAL_BOUND = 0.1
"""Default bound to which the entries of a gradient are clipped."""
_KEY_BITS = 62


class EnsemblePlan(BaseModel):
    """The constants that are fixed before anything is learned.

    Attributes:
        mechanism: ``certified-ensemble``.
        n: Number of records at the start.
        features: Number of columns of a row.
        classes: Number of classes, at least 2.
        shards: Number of shards ``S``.
        slices: Number of slices of each shard, ``R``.
        budgets: The budget ``k`` of each box, in rising order.
        hidden: Number of units of each hidden layer of a shard's network.
        epochs: Number of updates in each stage. Each update reads all records of the stage.
        step_size: Step size ``alpha``.
        bound: Bound to which the entries of a record's gradient are clipped.
        key: Key from which slices and starts are drawn; it does not depend on the records.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    mechanism: Literal["certified-ensemble"] = "certified-ensemble"
    n: int
    features: int
    classes: int
    shards: int
    slices: int
    budgets: tuple[int, ...]
    hidden: tuple[int, ...]
    epochs: int
    step_size: float
    bound: float
    key: int

    @classmethod
    def make(
        cls,
        *,
        n: int,
        features: int,
        classes: int,
        shards: int | None = None,
        slices: int | None = None,
        budgets: Sequence[int] | None = None,
        hidden: Sequence[int] = (),
        epochs: int | None = None,
        step_size: float | None = None,
        bound: float | None = None,
    ) -> Self:
        """Return the plan.

        Arguments that are None get default values. The arguments are the attributes of the plan. The key comes from the
        operating system's entropy.
        """
        require_count(least=1, features=features)
        require_count(least=2, classes=classes)
        for place, units in enumerate(hidden):
            require_count(least=1, **{f"hidden[{place}]": units})
        made = cls(
            n=n,
            features=features,
            classes=classes,
            shards=USUAL_SHARDS if shards is None else shards,
            slices=USUAL_SLICES if slices is None else slices,
            budgets=tuple(USUAL_BUDGETS if budgets is None else budgets),
            hidden=tuple(hidden),
            epochs=USUAL_EPOCHS if epochs is None else epochs,
            step_size=USUAL_STEP_SIZE if step_size is None else step_size,
            bound=USUAL_BOUND if bound is None else bound,
            key=secrets.randbits(_KEY_BITS),
        )
        require_positive(step_size=made.step_size, bound=made.bound)
        require_count(least=1, epochs=made.epochs)
        smallest = min(made.sharding.sizes)
        if made.budgets[-1] >= smallest:
            raise ParameterError(
                f"budgets must be below the number of records in the smallest slice, {smallest}, got "
                f"{made.budgets[-1]}: use smaller budgets, or fewer shards or slices"
            )
        return made

    @property
    def sharding(self) -> Sharding:
        """The shards, slices and budgets."""
        return Sharding(self.n, self.shards, self.slices, self.budgets)

    @property
    def work(self) -> Work:
        """The work of learning: a shard learns its first slice, then its first two slices, and so on."""
        # A box needs about ten products, parameters alone need two.
        stages, width = (self.slices + 1) / 2, sum(self.hidden) or 1
        passes = 5 * self.epochs * stages * len(self.budgets) * width
        return Work(self.epochs * self.shards * self.slices * SECONDS_OF_A_BOX, passes)

    @property
    def loss(self) -> NetworkLoss:
        """The loss of a record."""
        return loss_of(self.classes)

    @property
    def settings(self) -> CertifiedEnsemble:
        """The constants in the mechanism's form."""
        descent = Descent(self.loss, self.step_size, clipping="clamp", bound=self.bound)
        network = dense_network(self.features, self.hidden, self.classes)
        return CertifiedEnsemble(network, descent, self.sharding, self.epochs)

    @property
    def generator(self) -> torch.Generator:
        """A new generator of slices and starts."""
        return torch.Generator().manual_seed(self.key)


def loss_of(classes: int) -> NetworkLoss:
    """Return the loss for a number of classes."""
    return "binary-cross-entropy" if classes == 2 else "cross-entropy"
