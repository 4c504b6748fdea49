"""Descent-to-Delete for a user's own records: gradient descent without noise, and Gaussian noise on published weights.

Source: Neel, Roth, Sharifi-Malvajerdi, Descent-to-Delete (ALT 2021). Like `learner`, this is for a single model whose
requests are not known in advance.
"""

import math
import sys
from collections.abc import Sequence
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

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
from certified_unlearning.accounting.core.search import least_whole
from certified_unlearning.accounting.descent import shifted as descent_shifted
from certified_unlearning.accounting.descent.conditional import (
    conditions_of,
    fed_back_noise,
    least_conditional_sigma,
    least_conditional_steps,
)
from certified_unlearning.accounting.descent.published import extra_steps
from certified_unlearning.accounting.shifted.arithmetic import descent_floor, triangle_floor
from certified_unlearning.engine import descent
from certified_unlearning.engine.descent import DescentPhase
from certified_unlearning.engine.progress import Progress
from certified_unlearning.errors import InfeasibleError, ParameterError
from certified_unlearning.mechanisms import descent_to_delete
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.mechanisms.learners.learner import LinearLearner, require_one_of, require_one_to_plan
from certified_unlearning.vocabulary import Delta, DType

DescentVariant = Literal["secret-state", "published-state"]
DescentAccountant = Literal["shifted", "conditional", "as published"]
_Adjacency = Literal["zero-out", "replace"]
CONVERGENCE = 1e-8
"""Share of the distance between start and optimum that remains after learning, if no theorem prescribes the steps."""


class DescentLearner(LinearLearner):
    """A `LinearLearner` with step size ``2 / (L + m)`` and noise of standard deviation ``sigma`` on published weights.

    Attributes:
        steps: Number of steps ``I`` of the published theorems; 0 with ``shifted``, which plans every removal
            separately.
        radius: Radius of the ball onto which every step projects; None if there is no projection. The published
            theorems need a projection.
        variant: ``secret-state`` keeps the noiseless weights and continues from them (Theorem 9 of the source, N.1 of
            Langevin unlearning). ``published-state`` keeps only the published weights (Theorem 28, N.2).
        accountant: ``shifted`` compares the learner's model with another model. Both models are published after the
            same numbers of steps, and then continued in the same way. ``conditional``, for published state only,
            compares with a retrained model to which noise is added a single time. ``as published`` uses the published
            theorems, which cover one record at a time.
        adjacency: ``zero-out`` or ``replace``.
    """

    steps: int
    radius: float | None
    variant: DescentVariant
    accountant: DescentAccountant
    adjacency: _Adjacency
    _mechanism: ClassVar[str] = descent_to_delete.DESCENT_TO_DELETE.name

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
        variant: DescentVariant,
        sigma: float | None = None,
        steps: int | None = None,
        records: int = 1,
        accountant: str = "shifted",
        adjacency: str = "zero-out",
        dtype: str = "float32",
        class_weights: tuple[float, ...] | None = None,
    ) -> "DescentLearner":
        """Choose the noise, and the number of learning steps, before anything is learned.

        Args:
            n: Number of records.
            features: Number of columns of a row.
            classes: Number of classes.
            regularisation: Strength of the regulariser per record, ``lambda / n``.
            epsilon: Target epsilon, above 0.
            delta: Target delta, strictly between 0 and 1, or ``"auto"`` or ``"1/n"`` (`required_delta`).
            variant: ``secret-state`` or ``published-state``.
            sigma: Standard deviation of the noise on published weights. None: the smallest with which ``steps`` steps
                remove ``records`` records in the first request.
            steps: Number of steps of the first request. If ``steps`` and ``sigma`` are both None, it is the number of
                steps in which the influence of earlier learning decreases by a factor of ``e``. With ``conditional``,
                there may be more steps, because the published noise must fade, too.
            records: Number of records that ``steps`` steps must be able to remove at once; 1 for ``as published``.
            accountant: ``shifted``, ``conditional`` (with published state) or ``as published``.
            adjacency: Adjacency of the comparator's data.
            dtype: Floating-point type of weights and rows.
            class_weights: One weight between 0 and 1 for each class; two classes are in the order -1, +1. None: all
                weights are 1.

        Raises:
            ParameterError: Both ``sigma`` and ``steps`` are given.
            InfeasibleError: The target cannot be met.
        """
        require_positive(epsilon=epsilon, regularisation=regularisation)
        require_count(least=1, n=n, features=features, records=records)
        epsilon = float(epsilon)  # Parameter searches give NumPy numbers, which are not JSON and may be imprecise.
        if sigma is not None:
            sigma = required_sigma(sigma)
        target_delta = required_delta(delta, n)
        require_one_to_plan(sigma, steps)
        require_one_of(get_args(DescentAccountant), accountant=accountant)
        if accountant == "conditional" and variant != "published-state":
            raise ParameterError("accountant 'conditional' needs published state; with a secret state, use 'shifted'")
        require_one_of(get_args(_Adjacency), adjacency=adjacency)
        require_one_of(get_args(DType), dtype=dtype)
        require_class_weights(class_weights, classes=classes)
        learner = cls.model_validate(
            {
                "n": n,
                "features": features,
                "classes": classes,
                "regularisation": regularisation,
                "epsilon": epsilon,
                "delta": target_delta,
                "sigma": 1.0,
                "steps": 0,
                "learning_steps": 1,
                "radius": None,
                "variant": variant,
                "accountant": accountant,
                "adjacency": adjacency,
                "dtype": dtype,
                "class_weights": class_weights,
            }
        )
        if steps is not None:
            require_count(least=1, steps=steps)
        # NumPy integers, as from parameter searches, become Python integers.
        records, steps = int(records), None if steps is None else int(steps)
        if variant == "published-state" and accountant == "as published" and (sigma, steps) != (None, None):
            raise ParameterError("Theorem N.2 prescribes both sigma and steps: leave them out")
        if accountant == "as published":
            require_records_one_by_one(records)
        exact = learner.exact_problem
        fading = 1 / (exact.step_size * exact.strong_convexity)
        learner = learner._converging(1.0)
        if steps is None and sigma is None:
            steps = math.ceil(learner._fadings * fading)
        least = learner._least_sigma(exact, steps, records) if sigma is None else sigma
        learner = learner._converging(least)
        # The published theorem prescribes its noise.
        may_rise = sigma is None and not (variant == "published-state" and accountant == "as published")
        floor_of = descent_floor if may_rise or sigma is not None else triangle_floor(descent_floor)
        learner = learner._computed_finely_enough(floor_of, least, may_rise=may_rise)
        problem = learner.problem
        if sigma is None:
            # Many steps need so little noise that rounding would exceed it; more noise is also private.
            sigma = learner._least_sigma(problem, steps, records)
            if may_rise:
                sigma = max(sigma, descent_floor(problem).least_sigma(epsilon, learner.delta))
        if accountant == "as published":
            return learner._as_published(sigma, steps)
        return learner.model_copy(update={"sigma": sigma})

    @property
    def exact_problem(self) -> Problem:
        """The problem in exact arithmetic, with the step size ``2 / (L + m)``."""
        return accounting.descent_problem(super().exact_problem)

    @property
    def _variant(self) -> DescentVariant:
        return self.variant

    @property
    def _ball(self) -> float | None:
        return self.radius

    @property
    def _projects(self) -> bool:
        return self.accountant == "as published"

    def plan_removal(self, history: Sequence[Removal], records: int, places: Places | None = None) -> Removal:
        """Return the fewest steps that remove ``records`` more records, given the earlier removals.

        Args:
            history: The earlier removals.
            records: Number of removed records.
            places: Not used, because every step reads all records.

        Raises:
            ParameterError: More records are removed than are present, or more than one record is removed at once with
                the accountant ``as published``.
            InfeasibleError: The target cannot be met.
        """
        removed = sum(removal.records for removal in history)
        self.problem.sensitivity(records, removed_before=removed)
        if self.accountant == "as published":
            require_records_one_by_one(records)
            steps = self.steps
            if self.variant == "published-state":
                extra = extra_steps(self.problem, delta=self.delta, dimension=self.dimension, request=len(history) + 1)
                steps += math.ceil(extra)
            return Removal(1, steps)
        problem, target = self.problem, accounting.mu_from_epsilon(self.epsilon, self.delta)
        if descent_floor(problem).mu(self.sigma) >= target:
            raise InfeasibleError(
                f"rounding alone ({self.dtype}) takes more than epsilon = {self.epsilon} with sigma = "
                f"{self.sigma:.6g}; learn again"
            )
        if self.accountant == "conditional":
            steps = least_conditional_steps(
                problem,
                sigma=self.sigma,
                records_per_request=tuple(removal.records for removal in history),
                steps_per_request=tuple(removal.steps for removal in history),
                next_records=records,
                epsilon=self.epsilon,
                delta=self.delta,
                **conditions_of(
                    problem, sigma=self.sigma, dimension=self.dimension, learning_steps=self.learning_steps
                ),
            )
            return Removal(records, max(1, steps))

        def is_enough(steps: int) -> bool:
            return self._mu(problem, [*history, Removal(records, steps)]) <= target

        # Each step reduces the request's effect by the share step_size * m.
        excess = self._mu(problem, [*history, Removal(records, 1)]) / target
        estimate = math.log(max(excess, 1.0)) / -math.log1p(-problem.step_size * problem.strong_convexity)
        return Removal(records, least_whole(estimate, is_enough, minimum=1))

    def learn(self, rows: Tensor, labels: Tensor, *, progress: Progress | None = None) -> Tensor:
        """Run all learning steps without noise, starting from weights of 0.

        Args:
            rows: Rows of norm at most 1, shape ``(n, features)``.
            labels: Labels, shape ``(n,)``: -1 or +1 for two classes, otherwise 0 to ``classes - 1``.
            progress: Function that receives the work done so far, in steps.

        Returns:
            Noiseless weights, shape ``(1, d)``. There is only one row, because all trials have the same noiseless
            weights.
        """
        start = torch.zeros(1, self.dimension, dtype=rows.dtype, device=rows.device)
        return self._steps(start, rows, labels, [], progress)

    def unlearn(
        self,
        weights: Tensor,
        rows: Tensor,
        labels: Tensor,
        history: Sequence[Removal],
        *,
        progress: Progress | None = None,
    ) -> Tensor:
        """Carry out the last removal of ``history`` without noise.

        The result must be published by `publish`.

        Args:
            weights: The weights from which the removal starts, shape ``(trials, d)``: the noiseless weights if the
                state is secret, otherwise the published weights.
            rows: The rows after all removals, shape ``(n, features)``.
            labels: Labels of these rows, shape ``(n,)``.
            history: All removals so far; the last one is carried out.
            progress: Function that receives the work done so far, in steps of all trials.
        """
        return self._steps(weights, rows, labels, history, progress)

    def publish(self, weights: Tensor, history: Sequence[Removal], keys: Sequence[int]) -> Tensor:
        """Return weights with noise of standard deviation ``sigma``.

        ``keys`` contains an address for each trial.
        """
        return descent.publish(weights, self._phase(history, len(weights), keys))

    def laws(
        self,
        whole: tuple[Tensor, Tensor],
        left: tuple[Tensor, Tensor],
        removal: Removal,
        learning: Sequence[int],
        removing: Sequence[int],
        comparing: Sequence[int],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw published weights; see `LinearLearner.laws`.

        The comparator is that of the accountant. With secret state, the comparator learns for the same total number of
        steps as the learner, and noise is added a single time. With published state, the comparator is published after
        the same numbers of steps as the learner, and then continued in the same way. With the accountant
        ``conditional``, the comparator learns, and noise is added a single time.
        """
        fed_back = self.variant == "published-state"

        def published(rows: tuple[Tensor, Tensor], keys: Sequence[int]) -> tuple[Tensor, Tensor]:
            """Return the state from which a removal continues, and its published form."""
            state = self.learn(*rows)
            weights = self.publish(state, [], keys)
            return weights if fed_back else state, weights

        def removed(state: Tensor, keys: Sequence[int]) -> Tensor:
            return self.publish(self.unlearn(state, *left, [removal]), [removal], keys)

        state, before = published(whole, learning)
        again, once = published(left, comparing)
        comparator = once if self.accountant == "conditional" else removed(again, comparing)
        return before, removed(state, removing), comparator

    @property
    def _accountant(self) -> str:
        if self.accountant != "as published":
            return "descent-to-delete shifted" if self.accountant == "shifted" else "descent-to-delete conditional"
        return "descent-to-delete N.1" if self.variant == "secret-state" else "descent-to-delete N.2"

    def _mu(self, problem: Problem, history: Sequence[Removal]) -> float:
        records, steps = tuple(each.records for each in history), tuple(each.steps for each in history)
        if self.variant == "secret-state":
            return descent_shifted.secret_state_history_mu(
                problem, sigma=self.sigma, records_per_request=records, steps_per_request=steps
            )
        return descent_shifted.published_state_curve(
            problem, sigma=self.sigma, steps_per_request=steps, records_per_request=records
        ).mu

    def _least_sigma(self, problem: Problem, steps: int | None, records: int) -> float:
        """Return the smallest noise with which these steps answer the first request, or the noise of Theorem N.2."""
        epsilon, delta = self.epsilon, self.delta
        if self.accountant == "conditional":
            assert steps is not None
            return self._least_conditional_sigma(problem, steps, records)
        if self.accountant == "shifted":
            assert steps is not None
            unit = self.model_copy(update={"sigma": 1.0})
            relative = descent_floor(problem).relative
            room = accounting.mu_from_epsilon(epsilon, delta) - relative
            if room <= 0:
                return math.inf
            return unit._mu(problem, [Removal(records, steps)]) / room
        if self.variant == "secret-state":
            assert steps is not None
            return accounting.secret_state_sigma(problem, epsilon=epsilon, delta=delta, steps=steps)
        return self._published_state_plan(problem).sigma

    def _converging(self, sigma: float) -> "DescentLearner":
        """Return the learner with enough learning steps.

        After learning, the remaining distance between the weights and the optimum is small, even compared with noise of
        scale ``sigma``.
        """
        problem = self.exact_problem
        distance = problem.lipschitz / problem.strong_convexity
        target = accounting.mu_from_epsilon(self.epsilon, self.delta)
        left = CONVERGENCE * min(1.0, max(sigma, sys.float_info.min) * target / (1e-5 * distance))
        fading = 1 / (problem.step_size * problem.strong_convexity)
        return self.model_copy(update={"learning_steps": math.ceil(-math.log(left) * fading)})

    def _least_conditional_sigma(self, problem: Problem, steps: int, records: int) -> float:
        sigma = 0.0
        while True:
            # More noise causes slightly more rounding, so this ends soon.
            given = conditions_of(problem, sigma=sigma, dimension=self.dimension, learning_steps=self.learning_steps)
            needed = least_conditional_sigma(
                problem, steps=steps, records=records, epsilon=self.epsilon, delta=self.delta, **given
            )
            if needed <= sigma:
                return sigma
            sigma = needed * (1 + 1e-9)

    @property
    def _fadings(self) -> float:
        """Logarithm of the factor by which a request's default steps reduce the influence of earlier learning."""
        if self.accountant != "conditional":
            return 1.0
        # The published noise must fade first, because learning continues from it.
        target = accounting.mu_from_epsilon(self.epsilon, self.delta)
        return 1 + math.log(max(1.0, fed_back_noise(self.dimension, self.delta) / target))

    def _published_state_plan(self, problem: Problem) -> accounting.PublishedStatePlan:
        return accounting.published_state_plan(
            problem, epsilon=self.epsilon, delta=self.delta, dimension=self.dimension, request_count=1
        )

    def _as_published(self, sigma: float, steps: int | None) -> "DescentLearner":
        """Return the plan of Theorem N.1 or N.2, with a ball that contains the optimum."""
        problem = self.problem
        if self.variant == "published-state":
            steps = max(1, math.ceil(self._published_state_plan(problem).bound_on_steps))
        elif steps is None:

            def is_enough(steps: int) -> bool:
                return self._least_sigma(problem, steps, 1) <= sigma

            steps = least_whole(1.0, is_enough, minimum=1)
        radius = problem.lipschitz / problem.strong_convexity
        planned = self.model_copy(update={"sigma": sigma, "steps": steps, "radius": radius})
        first = planned.plan_removal([], 1).steps
        learning_steps = accounting.least_learning_steps(problem, radius=radius, steps=first)
        return planned.model_copy(update={"learning_steps": learning_steps})

    def _phase(self, history: Sequence[Removal], trials: int, keys: Sequence[int] = ()) -> DescentPhase:
        batch = self._batch(history, trials, keys)
        return descent_to_delete.phase(batch, len(history), batch)

    def _steps(
        self,
        start: Tensor,
        rows: Tensor,
        labels: Tensor,
        history: Sequence[Removal],
        progress: Progress | None,
    ) -> Tensor:
        phase = self._phase(history, len(start))
        return self._descend(start, rows, labels, phase, normaliser=self.n, progress=progress)


def require_records_one_by_one(records: int) -> None:
    """Raise `ParameterError` unless a request is for one record, as the published theorems require."""
    if records != 1:
        raise ParameterError(f"the published theorems cover one record per request, got records = {records}")
