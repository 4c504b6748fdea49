"""Langevin unlearning of one's own records: planned once, learned once, then any number of removals.

The pipeline's mechanisms (`mechanisms`) run whole sweeps of a plan; this is the same algorithm for a single model
whose requests are not known in advance. Source: Chien, Wang, Chen, Li, Langevin unlearning (NeurIPS 2024).
"""

import math
from collections.abc import Sequence
from itertools import accumulate
from numbers import Real
from typing import Literal, NamedTuple, Self, cast, get_args

import torch
from pydantic import BaseModel, ConfigDict, field_validator
from torch import Tensor

from certified_unlearning import accounting
from certified_unlearning.accounting import Problem, Schedule, assumptions
from certified_unlearning.accounting.core.checks import require_count, require_positive, require_probability
from certified_unlearning.accounting.core.losses import loss_constants, scores_per_record
from certified_unlearning.accounting.core.rounding import LARGEST_SIGMA
from certified_unlearning.accounting.guarantees import added_to_delta, as_computed
from certified_unlearning.accounting.langevin.accountants import ACCOUNTANTS, accountant_called
from certified_unlearning.accounting.langevin.learning_start import learned_steps
from certified_unlearning.accounting.shifted.arithmetic import (
    FloorOf,
    chosen_arithmetic,
    langevin_floor,
    triangle_floor,
)
from certified_unlearning.engine import descent, randomness
from certified_unlearning.engine.devices import threads_for
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.engine.objectives.softmax import SoftmaxObjective
from certified_unlearning.engine.progress import Progress
from certified_unlearning.errors import ParameterError
from certified_unlearning.files import content_key
from certified_unlearning.mechanisms.langevin import starting_weights
from certified_unlearning.mechanisms.run import Constants, Request, Run
from certified_unlearning.vocabulary import Adjacency, DType

START = 0.0
"""Mean of every coordinate of the start."""
ARITHMETICS: tuple[DType, ...] = get_args(DType)
"""The types of weights, coarsest first."""


class Removal(NamedTuple):
    """One answered request: how many records it removed, and by how many steps."""

    records: int
    steps: int


class LinearLearner(BaseModel):
    """What learners of l2-regularised logistic (two classes) or softmax regression on rows of norm at most 1 share.

    Their constants hold for all such rows: ``L = 1/4 + lambda``, ``M = 1``, or ``L = 1/2 + lambda``, ``M = sqrt(2)``.

    Attributes:
        n: Number of records at the start.
        features: Columns of a row.
        classes: Number of classes, at least 2.
        regularisation: ``lambda / n``, above 0; `accounting.core.losses.regularisation_of` gives it for scikit-learn's
            ``C``.
        epsilon: The target after every removal.
        delta: Of the target.
        sigma: Noise scale.
        learning_steps: ``T``.
        adjacency: What a model is compared with.
        dtype: Of weights and rows.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    n: int
    features: int
    classes: int
    regularisation: float
    epsilon: float
    delta: float
    sigma: float
    learning_steps: int
    adjacency: Adjacency
    dtype: DType

    @property
    def dimension(self) -> int:
        """``d``, the number of weights."""
        return self.features * scores_per_record(self.classes)

    @property
    def exact_problem(self) -> Problem:
        """The constants, with the step size ``1 / L`` and exact arithmetic."""
        constants = loss_constants(
            classes=self.classes, n=self.n, regularisation=self.regularisation, smoothness="bound", bounds="tight"
        )
        return Problem(
            n=self.n,
            strong_convexity=constants.strong_convexity,
            smoothness=constants.smoothness,
            lipschitz=constants.lipschitz,
            step_size=1 / constants.smoothness,
            adjacency=self.adjacency,
        )

    @property
    def _variant(self) -> str:
        """What a certificate calls the form of the mechanism."""
        return "least-steps"

    @property
    def problem(self) -> Problem:
        """`exact_problem` as it is computed in ``dtype``: what the accountants take."""
        return as_computed(
            self.exact_problem,
            dimension=self.dimension,
            classes=self.classes,
            dtype=self.dtype,
            variant=self._variant,
            start=START,
            projects=self._projects,
        )

    @property
    def all_published_is_known(self) -> bool:
        """Whether epsilon is known for who kept every published model."""
        return False

    def run_key(self, history: Sequence[Removal], data_digest: str) -> str:
        """Return the content key of what was run up to the last removal of ``history``."""
        records, steps = [each.records for each in history], [each.steps for each in history]
        return content_key([self.model_dump(mode="json"), records, steps, data_digest])

    @property
    def _projects(self) -> bool:
        """Whether every step projects on a ball."""
        return False

    def _computed_finely_enough(self, floor_of: FloorOf, sigma: float, *, may_rise: bool) -> Self:
        """Return the learner in its type, or in a finer one where rounding would take too much of epsilon.

        Args:
            floor_of: What rounding costs.
            sigma: The noise scale, or the least that does without rounding.
            may_rise: Whether a larger one may be taken.

        Raises:
            AssumptionError: It would in all; the message names the noise that is enough.
        """
        finer = [dtype for dtype in ARITHMETICS if ARITHMETICS.index(dtype) >= ARITHMETICS.index(self.dtype)]
        candidates = {dtype: self.model_copy(update={"dtype": dtype}) for dtype in finer}
        chosen = chosen_arithmetic(
            {dtype: learner.problem for dtype, learner in candidates.items()},
            floor_of,
            sigma=sigma,
            may_rise=may_rise,
            epsilon=self.epsilon,
            delta=self.delta,
        )
        return candidates[cast(DType, chosen)]

    def _run(
        self,
        history: Sequence[Removal],
        *,
        mechanism: str,
        accountant: str,
        radius: float | None,
        dataset: str,
        features: str,
        data_digest: str,
    ) -> Run:
        problem = self.exact_problem
        removed = accumulate(removal.records for removal in history)
        requests = [
            Request(records_removed=count, unlearning_steps=removal.steps, epsilon=None, mu=None)
            for count, removal in zip(removed, history, strict=True)
        ]
        return Run(
            experiment="",
            mechanism=mechanism,
            variant=self._variant,
            accountant=accountant,
            guarantee=assumptions.guarantee(accountant, "bound"),
            constants=Constants(
                n=self.n,
                d=self.dimension,
                classes=self.classes,
                largest_eigenvalue=None,
                strong_convexity=problem.strong_convexity,
                smoothness_constant=problem.smoothness,
                lipschitz=problem.lipschitz,
                delta=self.delta,
                adjacency=self.adjacency,
                smoothness="bound",
                dataset=dataset,
                features=features,
                data_sha256=data_digest,
            ),
            epsilon_target=self.epsilon,
            sigma=self.sigma,
            step_size=problem.step_size,
            learning_steps=self.learning_steps,
            radius=radius,
            start=START,
            records_per_request=tuple(removal.records for removal in history),
            dtype=self.dtype,
            requests=tuple(requests),
        )

    def _descend(
        self,
        start: Tensor,
        rows: Tensor | StreamedRows,
        labels: Tensor,
        phase: descent.Phase,
        *,
        normaliser: int,
        radius: float | None = None,
        progress: Progress | None,
    ) -> Tensor:
        """Return all trials' weights after a phase."""
        problem = self.exact_problem
        with threads_for(math.prod(rows.shape) * len(start)):
            return descent.run(
                _objective(problem, self.classes, rows, labels, normaliser),
                start,
                [phase],
                step_size=problem.step_size,
                measure=_unmeasured,
                radius=radius,
                progress=progress,
            ).weights


class LangevinLearner(LinearLearner):
    """Everything that is fixed before the first step: the constants of the problem, the noise, the target.

    The loss is l2-regularised logistic regression (two classes) or softmax regression on rows of norm at most 1, with
    the constants that hold for all such rows: ``L = 1/4 + lambda``, ``M = 1``, or ``L = 1/2 + lambda``,
    ``M = sqrt(2)``; the step size is ``1 / L``.

    Attributes:
        n: Number of records at the start: the normaliser, unless the adjacency is ``remove``.
        features: Columns of a row.
        classes: Number of classes, at least 2.
        regularisation: ``lambda / n``, above 0; `accounting.core.losses.regularisation_of` gives it for scikit-learn's
            ``C``.
        epsilon: The target after every removal.
        delta: Of the target; learning that stops before stationarity adds ``extra_delta`` with ``lsi`` and
            ``lsi-tight``, nothing with ``shifted``.
        sigma: Noise scale: a step adds noise of standard deviation ``sqrt(2 step_size) sigma``.
        learning_steps: ``T``.
        accountant: Which analysis.
        adjacency: What a model is compared with: retraining on data where a removed record's loss is 0
            (``zero-out``), or where another record stands in its place (``replace``), or on the mean of the others
            (``remove``).
        dtype: Of weights and rows.
    """

    accountant: str

    @field_validator("accountant")
    @classmethod
    def _known(cls, name: str) -> str:
        return accountant_called(name).name

    @property
    def all_published_is_known(self) -> bool:
        """Whether epsilon is known for who kept every published model."""
        return True

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
        sigma: float | None = None,
        steps: int | None = None,
        records: int = 1,
        accountant: str = "shifted",
        adjacency: str = "zero-out",
        learning_steps: int | None = None,
        dtype: str = "float32",
    ) -> "LangevinLearner":
        """Choose the noise, and the learning steps, before anything is learned.

        Args:
            n: Number of records.
            features: Columns of a row.
            classes: Number of classes.
            regularisation: ``lambda / n``.
            epsilon: The target, above 0.
            delta: Strictly between 0 and 1, or ``"1/n"``.
            sigma: Noise scale. None: the least with which ``steps`` steps remove ``records`` records and which rounding
                does not swallow.
            steps: Steps that a removal of ``records`` records shall take, at least 1. None, with no ``sigma`` either:
                ``1 / (step_size strong_convexity)``, the steps in which what was learned fades by a factor ``e``.
            records: How many records ``steps`` steps shall be able to remove at once. Whatever it is, any number can
                be removed later: by more steps.
            accountant: Which analysis.
            adjacency: What a model is compared with.
            learning_steps: ``T``. None: the least number after which the distance to the stationary law is certified
                to be negligible.
            dtype: Of weights and rows.

        Raises:
            ParameterError: A value makes no sense, or both ``sigma`` and ``steps`` are given.
            AssumptionError: The noise would drown in rounding.
            InfeasibleError: The target cannot be met.
        """
        require_positive(epsilon=epsilon, regularisation=regularisation)
        epsilon = float(epsilon)  # Parameter searches give NumPy's numbers, which are no JSON and may be short.
        require_count(least=1, n=n, features=features, records=records)
        require_count(least=2, classes=classes)
        require_one_of(tuple(ACCOUNTANTS), accountant=accountant)
        require_one_of(get_args(Adjacency), adjacency=adjacency)
        require_one_of(get_args(DType), dtype=dtype)
        if sigma is not None:
            sigma = required_sigma(sigma)
        if steps is not None:
            require_count(least=1, steps=steps)
        if learning_steps is not None:
            require_count(least=1, learning_steps=learning_steps)
        if delta != "1/n":
            require_number(delta=delta)
            require_probability(delta=delta)
        if sigma is not None and steps is not None:
            raise ParameterError(f"give sigma or steps, not both (the other is planned), got {sigma} and {steps}")
        learner = cls.model_validate(
            {
                "n": n,
                "features": features,
                "classes": classes,
                "regularisation": regularisation,
                "epsilon": epsilon,
                "delta": 1 / n if delta == "1/n" else float(delta),
                "sigma": 1.0 if sigma is None else sigma,
                "learning_steps": 1 if learning_steps is None else learning_steps,
                "accountant": accountant,
                "adjacency": adjacency,
                "dtype": dtype,
            }
        )
        # NumPy's whole numbers, as parameter searches give them, become Python's.
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
            # Many steps need so little noise that rounding would take it; more than they need is as private.
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
        """Raise `AssumptionError` if so much would be added to delta that no certificate can be written.

        Called before anything is removed: then it is too late.
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

    def schedule(self, history: Sequence[Removal]) -> Schedule:
        """Return the noisy steps of learning and of the removals so far."""
        return Schedule(
            sigma=self.sigma,
            records_per_request=tuple(removal.records for removal in history),
            steps=tuple(removal.steps for removal in history),
            learning_steps=self.learning_steps,
        )

    def plan_removal(self, history: Sequence[Removal], records: int) -> Removal:
        """Return the least steps, at least 1, that remove ``records`` more records, given what was removed before.

        Raises:
            ParameterError: More records are removed than there are.
            AssumptionError: Learning, rounding or noise would add more than delta to delta.
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

    def learn(
        self, rows: Tensor | StreamedRows, labels: Tensor, keys: Sequence[int], *, progress: Progress | None = None
    ) -> Tensor:
        """Learn a model for each key by noisy gradient descent.

        Args:
            rows: Shape ``(n, features)``, of norm at most 1; their dtype and device are the weights'.
            labels: Shape ``(n,)``: -1 or +1 for two classes, else 0 to ``classes - 1``.
            keys: The address of each trial's noise. Whoever knows it can subtract the noise.
            progress: Told of the work done, in steps of all trials.

        Returns:
            Weights, shape ``(trials, d)``; for softmax class after class.
        """
        like = torch.empty(0, self.dimension, dtype=rows.dtype, device=rows.device)
        start = starting_weights(
            _addresses(keys, "start"),
            [self.sigma] * len(keys),
            mean=START,
            strong_convexity=self.exact_problem.strong_convexity,
            like=like,
        )
        return self._steps(start, rows, labels, self.n, self.learning_steps, _addresses(keys, "learning"), progress)

    def unlearn(
        self,
        weights: Tensor,
        rows: Tensor | StreamedRows,
        labels: Tensor,
        history: Sequence[Removal],
        keys: Sequence[int],
        *,
        progress: Progress | None = None,
    ) -> Tensor:
        """Carry out the last removal of ``history``: go on with noisy gradient descent on the data without its records.

        Args:
            weights: Shape ``(trials, d)``; not changed.
            rows: The rows after all removals. A removed record is left out, except with adjacency ``replace``, where
                another stands in its place; with ``zero-out`` it may also be a row of zeros.
            labels: Theirs.
            history: All removals so far, this one last.
            keys: The address of each trial's noise, never the same as for learning or another removal.
            progress: Told of the work done, in steps of all trials.

        Returns:
            New weights, shape ``(trials, d)``.
        """
        removed = sum(removal.records for removal in history)
        normaliser = self.n - removed if self.adjacency == "remove" else self.n
        keys = _addresses(keys, f"removal-{len(history)}")
        return self._steps(weights, rows, labels, normaliser, history[-1].steps, keys, progress)

    def run(self, history: Sequence[Removal], *, dataset: str, features: str, data_digest: str) -> Run:
        """Return what was run up to the last removal of ``history``: what `certificate.of` states something about.

        Args:
            history: All removals so far; with none nothing is guaranteed (epsilon = 0).
            dataset: The data set's name, none of the built-in ones.
            features: ``declared`` where rows were made from a table by its declaration, ``given`` where as they are.
            data_digest: Of the training data, keyed if a removed record shall not be guessed from it.
        """
        return self._run(
            history,
            mechanism="langevin",
            accountant=self.accountant,
            radius=None,
            dataset=dataset,
            features=features,
            data_digest=data_digest,
        )

    def _steps(
        self,
        start: Tensor,
        rows: Tensor | StreamedRows,
        labels: Tensor,
        normaliser: int,
        steps: int,
        keys: Sequence[int],
        progress: Progress | None,
    ) -> Tensor:
        trials = len(keys)
        phase = descent.Phase(removed=0, steps=[steps] * trials, sigma=[self.sigma] * trials, keys=keys)
        return self._descend(start, rows, labels, phase, normaliser=normaliser, progress=progress)


def require_number(delta: float | str) -> None:
    """Raise `ParameterError` unless ``delta``, if not "1/n", is a number."""
    if not isinstance(delta, Real):
        raise ParameterError(f'delta must be "1/n" or a number strictly between 0 and 1, got {delta!r}')


def required_sigma(sigma: float) -> float:
    """Return a noise scale as a number of Python's.

    Raises:
        ParameterError: It is not above 0, or so large that weights could overflow.
    """
    require_positive(sigma=sigma)
    if sigma > LARGEST_SIGMA:
        raise ParameterError(f"sigma must be at most {LARGEST_SIGMA:g}, or weights may overflow, got {sigma}")
    return float(sigma)


def require_one_of(choices: Sequence[str], **values: str) -> None:
    """Raise `ParameterError` unless every value is one of the choices."""
    for name, value in values.items():
        if value not in choices:
            raise ParameterError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def _objective(
    problem: Problem, classes: int, rows: Tensor | StreamedRows, labels: Tensor, normaliser: int
) -> descent.Objective:
    """Return logistic regression for two classes, softmax regression for more, with a problem's constants."""
    if classes == 2:
        return LogisticObjective(
            rows,
            labels,
            strong_convexity=problem.strong_convexity,
            lipschitz=problem.lipschitz,
            normaliser=normaliser,
        )
    return SoftmaxObjective(
        rows,
        labels,
        classes=classes,
        strong_convexity=problem.strong_convexity,
        lipschitz=problem.lipschitz,
        normaliser=normaliser,
    )


def _unmeasured(weights: Tensor) -> Tensor:
    """Measure nothing: a descent asks for a number a trial."""
    return weights.new_zeros(len(weights))


def _addresses(keys: Sequence[int], phase: str) -> list[int]:
    return [randomness.address(str(key), phase) for key in keys]
