"""Descent-to-Delete of one's own records: gradient descent without noise, Gaussian noise on what is published.

Source: Neel, Roth, Sharifi-Malvajerdi, Descent-to-Delete (ALT 2021). The counterpart of `learner` for a single model
whose requests are not known in advance.
"""

import math
from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from certified_unlearning import accounting, assumptions, dynamics, randomness
from certified_unlearning.accounting import Problem, descent_shifted
from certified_unlearning.accounting.checks import require_count, require_positive, require_probability
from certified_unlearning.accounting.descent_to_delete import extra_steps
from certified_unlearning.accounting.search import least_whole
from certified_unlearning.assumptions import NoiseSource
from certified_unlearning.certificate import Certificate
from certified_unlearning.errors import ParameterError
from certified_unlearning.experiments.model import Accountant
from certified_unlearning.files import content_key
from certified_unlearning.learner import STATIONARITY, LinearLearner, Removal, require_number, require_one_of
from certified_unlearning.parameters import DType
from certified_unlearning.progress import Progress
from certified_unlearning.version import code_version

DescentVariant = Literal["secret-state", "published-state"]
DescentAccountant = Literal["shifted", "as published"]
_Adjacency = Literal["zero-out", "replace"]


class DescentLearner(LinearLearner):
    """Everything that is fixed before the first step.

    The loss and its constants are those of `learner.LangevinLearner`; the step size is ``2 / (L + m)``.

    Attributes:
        n: Number of records at the start: the normaliser.
        features: Columns of a row.
        classes: Number of classes, at least 2.
        regularisation: ``lambda / n``, above 0.
        epsilon: The target after every removal.
        delta: Of the target.
        sigma: Standard deviation of the published noise.
        steps: ``I`` of the published theorems; 0 with ``shifted``, which plans every removal by itself.
        learning_steps: ``T``.
        radius: Of the ball that every step projects on, which the published theorems need; None for no projection.
        variant: ``secret-state`` keeps the noiseless weights and goes on from them (Theorem 9 there, N.1 of Langevin
            unlearning); ``published-state`` keeps what it published (Theorem 28, N.2).
        accountant: ``shifted``, or the theorems ``as published``: one record at a time.
        adjacency: ``zero-out`` or ``replace``.
        dtype: Of weights and rows.
    """

    steps: int
    radius: float | None
    variant: DescentVariant
    accountant: DescentAccountant
    adjacency: _Adjacency

    @classmethod
    def plan(
        cls,
        *,
        n: int,
        features: int,
        classes: int,
        regularisation: float,
        epsilon: float,
        delta: float | Literal["1/n"],
        variant: DescentVariant,
        sigma: float | None = None,
        steps: int | None = None,
        records: int = 1,
        accountant: str = "shifted",
        adjacency: str = "zero-out",
        dtype: str = "float32",
    ) -> "DescentLearner":
        """Choose the noise, and the learning steps, before anything is learned.

        Args:
            n: Number of records.
            features: Columns of a row.
            classes: Number of classes.
            regularisation: ``lambda / n``.
            epsilon: The target, above 0.
            delta: Strictly between 0 and 1, or ``"1/n"``.
            variant: ``secret-state`` or ``published-state``.
            sigma: Standard deviation of the published noise. None: the least with which ``steps`` steps remove
                ``records`` records in the first request.
            steps: Steps of that request. None, with no ``sigma`` either: as many as let what was learned fade by a
                factor ``e``.
            records: How many records ``steps`` steps shall be able to remove at once; 1 for ``as published``.
            accountant: ``shifted`` or ``as published``.
            adjacency: What a model is compared with.
            dtype: Of weights and rows.

        Raises:
            ParameterError: A value makes no sense, or both ``sigma`` and ``steps`` are given.
            InfeasibleError: The target cannot be met.
        """
        require_positive(epsilon=epsilon, regularisation=regularisation)
        require_count(least=1, n=n, features=features, records=records)
        if sigma is not None:
            require_positive(sigma=sigma)
        if delta != "1/n":
            require_number(delta=delta)
            require_probability(delta=delta)
        if sigma is not None and steps is not None:
            raise ParameterError(f"give sigma or steps, not both (the other is planned), got {sigma} and {steps}")
        require_one_of(get_args(DescentAccountant), accountant=accountant)
        require_one_of(get_args(_Adjacency), adjacency=adjacency)
        require_one_of(get_args(DType), dtype=dtype)
        learner = cls.model_validate(
            {
                "n": n,
                "features": features,
                "classes": classes,
                "regularisation": regularisation,
                "epsilon": epsilon,
                "delta": 1 / n if delta == "1/n" else delta,
                "sigma": 1.0,
                "steps": 0,
                "learning_steps": 1,
                "radius": None,
                "variant": variant,
                "accountant": accountant,
                "adjacency": adjacency,
                "dtype": dtype,
            }
        )
        if steps is not None:
            require_count(least=1, steps=steps)
        # NumPy's whole numbers, as parameter searches give them, become Python's.
        records, steps = int(records), None if steps is None else int(steps)
        problem = learner.problem
        fading = 1 / (problem.step_size * problem.strong_convexity)
        if variant == "published-state" and accountant == "as published" and (sigma, steps) != (None, None):
            raise ParameterError("Theorem N.2 prescribes both sigma and steps: leave them out")
        if steps is None and sigma is None:
            steps = math.ceil(fading)
        if accountant == "as published":
            require_records_one_by_one(records)
            planned = learner._as_published(problem, sigma, steps)
            assumptions.require_publication_above_rounding(problem, sigma=planned.sigma, dtype=learner.dtype)
            return planned
        if steps is not None:
            least = learner._mu([Removal(records, steps)]) / accounting.mu_from_epsilon(epsilon, learner.delta)
            # Many steps need so little noise that rounding would swallow it; more than they need is as private.
            sigma = max(least, assumptions.publication_above_rounding(problem, dtype=learner.dtype))
        assert sigma is not None
        assumptions.require_publication_above_rounding(problem, sigma=sigma, dtype=learner.dtype)
        learning_steps = math.ceil(-math.log(STATIONARITY) * fading)
        return learner.model_copy(update={"sigma": sigma, "learning_steps": learning_steps})

    @property
    def problem(self) -> Problem:
        """The constants as the accountants take them, with the step size ``2 / (L + m)``."""
        return accounting.descent_problem(super().problem)

    def plan_removal(self, history: Sequence[Removal], records: int) -> Removal:
        """Return the least steps that remove ``records`` more records, given what was removed before.

        Raises:
            ParameterError: More records are removed than there are, or several at once by the published theorems.
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
        target = accounting.mu_from_epsilon(self.epsilon, self.delta)

        def is_enough(steps: int) -> bool:
            return self._mu([*history, Removal(records, steps)]) <= target

        # Each step takes away a share step_size * m of what the request leaves.
        excess = self._mu([*history, Removal(records, 1)]) / target
        estimate = math.log(max(excess, 1.0)) / -math.log1p(-self.problem.step_size * self.problem.strong_convexity)
        return Removal(records, least_whole(estimate, is_enough, minimum=1))

    def learn(self, rows: Tensor, labels: Tensor, *, progress: Progress | None = None) -> Tensor:
        """Learn from the origin without noise.

        Args:
            rows: Shape ``(n, features)``, of norm at most 1.
            labels: Shape ``(n,)``: -1 or +1 for two classes, else 0 to ``classes - 1``.
            progress: Told of the work done, in steps.

        Returns:
            Noiseless weights, shape ``(1, d)``: of one trial, for all are equal.
        """
        start = torch.zeros(1, self.dimension, dtype=rows.dtype, device=rows.device)
        return self._steps(start, rows, labels, self.learning_steps, progress)

    def unlearn(
        self,
        weights: Tensor,
        rows: Tensor,
        labels: Tensor,
        history: Sequence[Removal],
        *,
        progress: Progress | None = None,
    ) -> Tensor:
        """Carry out the last removal of ``history`` without noise; its result must be published by `publish`.

        Args:
            weights: The noiseless weights with secret state, else the published ones, shape ``(trials, d)``.
            rows: The rows after all removals.
            labels: Theirs.
            history: All removals so far, this one last.
            progress: Told of the work done, in steps of all trials.
        """
        return self._steps(weights, rows, labels, history[-1].steps, progress)

    def publish(self, weights: Tensor, history: Sequence[Removal], keys: Sequence[int]) -> Tensor:
        """Return weights with noise of standard deviation ``sigma``, one address of noise for each trial."""
        addresses = [randomness.address(str(key), f"publication-{len(history)}") for key in keys]
        return weights + self.sigma * randomness.normal_rows(addresses, weights)

    def certificate(
        self,
        history: Sequence[Removal],
        *,
        dataset: str,
        features: Literal["declared", "given"],
        noise_source: NoiseSource,
        data_digest: str,
    ) -> Certificate:
        """Return what is guaranteed of the model published after all removals of ``history``; see `learner`."""
        problem = self.problem
        mu = None
        if not history:
            mu = epsilon = 0.0
        elif self.accountant == "shifted":
            mu = max(self._mu(history[: number + 1]) for number in range(len(history)))
            epsilon = accounting.epsilon_from_mu(mu, self.delta)
        elif self.variant == "secret-state":
            epsilon = accounting.secret_state_epsilon(problem, sigma=self.sigma, delta=self.delta, steps=self.steps)
        else:
            epsilon = accounting.published_state_epsilon(
                problem,
                sigma=self.sigma,
                delta=self.delta,
                dimension=self.dimension,
                steps_per_request=[removal.steps for removal in history],
            )
        return Certificate(
            run_key=content_key([self.model_dump(mode="json"), history, data_digest]),
            mechanism="descent-to-delete",
            variant=self.variant,
            accountant=self._accountant,
            guarantee=assumptions.guarantee(self._accountant, "bound"),
            comparator=assumptions.comparator(self._accountant, self.variant),
            adjacency=self.adjacency,
            epsilon=epsilon,
            mu=mu,
            delta=self.delta,
            extra_delta=0.0,
            n=self.n,
            d=self.dimension,
            classes=self.classes,
            largest_eigenvalue=None,
            strong_convexity=problem.strong_convexity,
            smoothness="bound",
            smoothness_constant=problem.smoothness,
            lipschitz=problem.lipschitz,
            step_size=problem.step_size,
            sigma=self.sigma,
            learning_steps=self.learning_steps,
            unlearning_steps=tuple(removal.steps for removal in history),
            records_per_request=tuple(removal.records for removal in history),
            radius=self.radius,
            start=0.0,
            assumptions=assumptions.assumptions(
                self._accountant, "bound", self.dtype, dataset, features, self.classes, noise_source
            ),
            dtype=self.dtype,
            dataset=dataset,
            features=features,
            noise_source=noise_source,
            data_sha256=data_digest,
            code_version=code_version(),
        )

    @property
    def _accountant(self) -> Accountant:
        if self.accountant == "shifted":
            return "descent-to-delete shifted"
        return "descent-to-delete N.1" if self.variant == "secret-state" else "descent-to-delete N.2"

    def _mu(self, history: Sequence[Removal]) -> float:
        records, steps = tuple(each.records for each in history), tuple(each.steps for each in history)
        if self.variant == "secret-state":
            return descent_shifted.secret_state_history_mu(
                self.problem, sigma=self.sigma, records_per_request=records, steps_per_request=steps
            )
        return descent_shifted.published_state_curve(
            self.problem, sigma=self.sigma, steps_per_request=steps, records_per_request=records
        ).mu

    def _as_published(self, problem: Problem, sigma: float | None, steps: int | None) -> "DescentLearner":
        """Return the plan of Theorem N.1 or N.2, with a ball that holds the optimum."""
        epsilon, delta = self.epsilon, self.delta
        if self.variant == "published-state":
            plan = accounting.published_state_plan(
                problem, epsilon=epsilon, delta=delta, dimension=self.dimension, request_count=1
            )
            sigma, steps = plan.sigma, max(1, math.ceil(plan.bound_on_steps))
        elif steps is not None:
            sigma = accounting.secret_state_sigma(problem, epsilon=epsilon, delta=delta, steps=steps)
        else:
            assert sigma is not None
            given = sigma

            def is_enough(steps: int) -> bool:
                return accounting.secret_state_sigma(problem, epsilon=epsilon, delta=delta, steps=steps) <= given

            steps = least_whole(1.0, is_enough, minimum=1)
        radius = problem.lipschitz / problem.strong_convexity
        planned = self.model_copy(update={"sigma": sigma, "steps": steps, "radius": radius})
        first = planned.plan_removal([], 1).steps
        learning_steps = accounting.least_learning_steps(problem, radius=radius, steps=first)
        return planned.model_copy(update={"learning_steps": learning_steps})

    def _steps(self, start: Tensor, rows: Tensor, labels: Tensor, steps: int, progress: Progress | None) -> Tensor:
        trials = len(start)
        phase = dynamics.Phase(removed=0, steps=[steps] * trials, sigma=[0.0] * trials, keys=[0] * trials)
        return self._descend(start, rows, labels, phase, normaliser=self.n, radius=self.radius, progress=progress)


def require_records_one_by_one(records: int) -> None:
    """Raise `ParameterError` unless a request is for one record, of which alone the published theorems speak."""
    if records != 1:
        raise ParameterError(f"the published theorems speak of one record a request, got records = {records}")
