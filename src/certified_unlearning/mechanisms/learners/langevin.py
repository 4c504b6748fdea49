"""Langevin unlearning for a user's own records.

Source: Chien, Wang, Chen, Li, Langevin unlearning (NeurIPS 2024).
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar, get_args

from pydantic import field_validator

from certified_unlearning import accounting
from certified_unlearning.accounting import Problem
from certified_unlearning.accounting.core.checks import (
    require_class_weights,
    require_count,
    require_positive,
    required_delta,
)
from certified_unlearning.accounting.core.curves import Places
from certified_unlearning.accounting.core.rounding import required_sigma
from certified_unlearning.accounting.guarantees import added_to_delta
from certified_unlearning.accounting.langevin.accountants import ACCOUNTANTS, accountant_called
from certified_unlearning.accounting.langevin.learning_start import learned_steps
from certified_unlearning.accounting.shifted.arithmetic import langevin_floor, triangle_floor
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms import langevin
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.mechanisms.learners.learner import START, NoisyLearner, require_one_of, require_one_to_plan
from certified_unlearning.vocabulary import Adjacency, Delta, DType


class LangevinLearner(NoisyLearner):
    """A `NoisyLearner` with step size ``1 / L``.

    Losses are divided by ``n``, or by the number of remaining records if the adjacency is ``remove``. Learning that
    stops before stationarity adds ``extra_delta`` with ``lsi`` and ``lsi-tight``, and adds nothing with ``shifted``.

    Attributes:
        accountant: Name of the accountant.
    """

    accountant: str
    _dynamics: ClassVar[Any] = langevin
    _mechanism: ClassVar[str] = langevin.LANGEVIN.name

    @property
    def _accountant(self) -> str:
        return self.accountant

    @field_validator("accountant")
    @classmethod
    def _known(cls, name: str) -> str:
        return accountant_called(name).name

    @classmethod
    def plan(
        cls,
        *,
        n: int,
        features: int,
        classes: int,
        regularisation: float,
        epsilon: float,
        delta: Delta,
        sigma: float | None = None,
        steps: int | None = None,
        records: int = 1,
        accountant: str = "shifted",
        adjacency: str = "zero-out",
        learning_steps: int | None = None,
        dtype: str = "float32",
        class_weights: tuple[float, ...] | None = None,
        target_range: tuple[float, float] | None = None,
    ) -> "LangevinLearner":
        """Choose the noise, and the number of learning steps, before anything is learned.

        Args:
            n: Number of records.
            features: Number of columns of a row.
            classes: Number of classes; 1 for ridge regression.
            regularisation: Strength of the regulariser per record, ``lambda / n``.
            epsilon: Target epsilon, above 0.
            delta: Target delta, strictly between 0 and 1, or ``"auto"`` or ``"1/n"`` (`required_delta`).
            sigma: Noise scale. None: the smallest scale with which ``steps`` steps remove ``records`` records, but
                large enough that rounding does not exceed the noise.
            steps: Number of steps that remove ``records`` records, at least 1. If ``steps`` and ``sigma`` are both
                None, there are ``1 / (step_size strong_convexity)`` steps. In this number of steps, the influence of
                earlier learning decreases by a factor ``e``.
            records: Number of records that ``steps`` steps must be able to remove at once. Any number of records can be
                removed later, by more steps.
            accountant: Name of the accountant.
            adjacency: Adjacency of the comparator's data.
            learning_steps: Number of learning steps ``T``. None: the smallest number after which the distance to the
                stationary distribution is certified to be negligible.
            dtype: Floating-point type of weights and rows.
            class_weights: One weight between 0 and 1 for each class; two classes are in the order -1, +1. None: all
                weights are 1.
            target_range: The public range to which the targets of ridge regression were clipped; None for classes.

        Raises:
            ParameterError: Both ``sigma`` and ``steps`` are given.
            AssumptionError: The noise is too small compared with rounding.
            InfeasibleError: The target cannot be met.
        """
        require_positive(epsilon=epsilon, regularisation=regularisation)
        epsilon = float(epsilon)  # Parameter searches give NumPy numbers, which are not JSON and may be imprecise.
        require_count(least=1, n=n, features=features, records=records)
        require_count(least=1, classes=classes)
        if (classes == 1) != (target_range is not None):
            raise ParameterError(
                "classes must be at least 2, or 1 with a target_range for ridge regression, got "
                f"classes = {classes} and target_range = {target_range}"
            )
        require_one_of(tuple(ACCOUNTANTS), accountant=accountant)
        require_one_of(get_args(Adjacency), adjacency=adjacency)
        require_one_of(get_args(DType), dtype=dtype)
        require_class_weights(class_weights, classes=classes)
        if sigma is not None:
            sigma = required_sigma(sigma)
        if steps is not None:
            require_count(least=1, steps=steps)
        if learning_steps is not None:
            require_count(least=1, learning_steps=learning_steps)
        target_delta = required_delta(delta, n)
        require_one_to_plan(sigma, steps)
        learner = cls.model_validate(
            {
                "n": n,
                "features": features,
                "classes": classes,
                "regularisation": regularisation,
                "epsilon": epsilon,
                "delta": target_delta,
                "sigma": 1.0 if sigma is None else sigma,
                "learning_steps": 1 if learning_steps is None else learning_steps,
                "accountant": accountant,
                "adjacency": adjacency,
                "dtype": dtype,
                "class_weights": class_weights,
                "target_range": target_range,
            }
        )
        # NumPy integers, as from parameter searches, become Python integers.
        records, steps = int(records), None if steps is None else int(steps)

        def least_sigma(problem: Problem) -> float:
            fading = 1 / (problem.step_size * problem.strong_convexity)
            return accounting.least_sigma(
                problem,
                steps=math.ceil(fading) if steps is None else steps,
                epsilon=epsilon,
                delta=learner.delta,
                records=records,
                accountant=learner.accountant,
            )

        least = least_sigma(learner.exact_problem) if sigma is None else sigma
        floor_of = langevin_floor if ACCOUNTANTS[learner.accountant].counts_rounding else triangle_floor(langevin_floor)
        learner = learner._computed_finely_enough(floor_of, least, may_rise=sigma is None)
        problem = learner.problem
        if sigma is None:
            # Many steps need so little noise that rounding would exceed it. More noise is also private.
            sigma = max(least_sigma(problem), floor_of(problem).least_sigma(epsilon, learner.delta))
        planned_steps = learned_steps(
            problem, sigma=sigma, dimension=learner.dimension, start=START, epsilon=epsilon, delta=learner.delta
        )
        if learning_steps is None:
            learning_steps = planned_steps
        learner = learner.model_copy(update={"sigma": sigma, "learning_steps": learning_steps})
        learner._require_payable([])
        return learner

    def _require_payable(self, history: Sequence[Removal]) -> None:
        """Raise `AssumptionError` if the addition to delta would be too large for a certificate.

        This must be called before anything is removed, because a removal cannot be undone.
        """
        added_to_delta(
            self.problem,
            self.schedule(history),
            delta=self.delta,
            accountant=self.accountant,
            dimension=self.dimension,
            start=START,
            exact_epsilon=self.epsilon,
            epsilon=self.epsilon,
        )

    def plan_removal(self, history: Sequence[Removal], records: int, places: Places | None = None) -> Removal:
        """Return the fewest steps, at least 1, that remove ``records`` more records, given the earlier removals.

        Args:
            history: The earlier removals.
            records: Number of removed records.
            places: Not used, because every step reads all records.

        Raises:
            ParameterError: More records are removed than are present.
            AssumptionError: The additions to delta, for learning, rounding and noise, would exceed delta.
            InfeasibleError: The target cannot be met.
        """
        planned = accounting.least_steps_after(
            self.problem,
            self.schedule(history),
            records=records,
            epsilon=self.epsilon,
            delta=self.delta,
            minimum_steps=1,
            accountant=self.accountant,
        )
        removal = Removal(records, planned.steps)
        self._require_payable([*history, removal])
        return removal
