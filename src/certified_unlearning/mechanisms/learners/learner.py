"""Learners of a user's own model, which is planned once and learned once.

Removals are not known in advance. A learner contains everything that is fixed before the first step.
`LinearLearner.run` returns the resulting `Run`. A learner uses the phases that its mechanism's module defines. Sweeps
of a plan use the same phases.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self, cast, get_args

import torch
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from certified_unlearning.accounting import Problem, Schedule, assumptions
from certified_unlearning.accounting.core.curves import Cycle, Places
from certified_unlearning.accounting.core.losses import loss_constants, ridge_radius, scores_per_record
from certified_unlearning.accounting.guarantees import as_computed
from certified_unlearning.accounting.shifted.arithmetic import FloorOf, chosen_arithmetic
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.engine import descent
from certified_unlearning.engine.devices import threads_for
from certified_unlearning.engine.objectives.logistic import LogisticObjective
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.engine.objectives.softmax import SoftmaxObjective
from certified_unlearning.engine.objectives.squared import SquaredObjective
from certified_unlearning.engine.progress import Progress
from certified_unlearning.errors import ParameterError
from certified_unlearning.files import canonical, key_of
from certified_unlearning.mechanisms.batch import OwnBatch
from certified_unlearning.mechanisms.learners.duration import SECONDS_OF_A_NOISY_STEP, Work
from certified_unlearning.mechanisms.learners.history import History, Removal
from certified_unlearning.mechanisms.run import ProblemConstants, Run
from certified_unlearning.vocabulary import Adjacency, DType

START = 0.0
"""Mean of every coordinate of the start."""
ARITHMETICS: tuple[DType, ...] = get_args(DType)
"""The floating-point types of weights, coarsest first."""


class LinearLearner(BaseModel):
    """Base of learners of l2-regularised logistic (two classes) or softmax regression on rows of norm at most 1.

    The constants of these learners hold for all rows of norm at most 1: ``L = 1/4 + lambda`` and ``M = 1`` for two
    classes, ``L = 1/2 + lambda`` and ``M = sqrt(2)`` for more. A single class means ridge regression, if a learner
    supports it: targets are in [-1, 1], every step projects onto a ball of radius ``R``, and ``L = 1 + lambda`` and
    ``M = R + 1`` (`accounting.core.losses.ridge_constants`).

    Attributes:
        n: Number of records at the start.
        features: Number of columns of a row.
        classes: Number of classes, at least 2; 1 for ridge regression.
        regularisation: Strength of the regulariser per record, ``lambda / n``, above 0.
            `accounting.core.losses.regularisation_of` computes it from scikit-learn's ``C``.
        epsilon: Target epsilon after every removal.
        delta: Target delta.
        sigma: Noise scale.
        learning_steps: Number of learning steps ``T``.
        adjacency: The data of the comparator: a removed record's loss is 0 (``zero-out``), another record takes its
            place (``replace``), or the mean is over the other records (``remove``).
        dtype: Floating-point type of weights and rows.
        class_weights: Factors between 0 and 1 on the losses of the records of each class; two classes are in the order
            -1, +1. None: all factors are 1. All constants remain valid bounds.
        target_range: The public range to which the targets of ridge regression were clipped; None for classes.
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
    class_weights: tuple[float, ...] | None = Field(default=None, exclude_if=lambda weights: weights is None)
    target_range: tuple[float, float] | None = Field(default=None, exclude_if=lambda range_: range_ is None)

    @property
    def cycle(self) -> Cycle | None:
        """The mini-batches of the steps; None if every step uses all records."""
        return None

    @property
    def dimension(self) -> int:
        """Number of weights, ``d``."""
        return self.features * scores_per_record(self.classes)

    @property
    def work(self) -> Work:
        """The work of learning."""
        rows_of_a_step = self.n if self.cycle is None else self.cycle.batch_size
        passes = 2 * self.learning_steps * rows_of_a_step / self.n
        return Work(self.learning_steps * SECONDS_OF_A_NOISY_STEP, passes, self.dtype)

    @property
    def exact_problem(self) -> Problem:
        """The problem in exact arithmetic, with the step size ``1 / L``."""
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

    _mechanism: ClassVar[str]
    """Name of the mechanism."""

    @property
    @abstractmethod
    def _accountant(self) -> str:
        """Name of the accountant in certificates."""

    @property
    def _variant(self) -> str:
        """Name of the mechanism's variant in certificates."""
        return "least-steps"

    @property
    def problem(self) -> Problem:
        """The problem `exact_problem` with the rounding of ``dtype``, for the accountants."""
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
        """Whether an epsilon is known for all published models together."""
        return False

    def run_key(self, history: Sequence[Removal], data_digest: str) -> str:
        """Return the content key of the run up to the last removal of ``history``."""
        # This equals `files.content_key` of a list of the parts. It is assembled from them, because every request needs
        # it.
        stated = canonical(self.model_dump(mode="json"))
        return key_of(f"[{','.join([stated, *self.history(history).texts, canonical(data_digest)])}]")

    @property
    def _ball(self) -> float | None:
        """The radius of the ball onto which every step projects; None if there is no projection."""
        return ridge_radius(self.exact_problem.strong_convexity) if self.classes == 1 else None

    @property
    def _projects(self) -> bool:
        """Whether every step projects onto a ball."""
        return self._ball is not None

    def _computed_finely_enough(self, floor_of: FloorOf, sigma: float, *, may_rise: bool) -> Self:
        """Return the learner in its floating-point type, or in a finer one if rounding would increase epsilon too much.

        Args:
            floor_of: Function that gives the cost of rounding for a problem.
            sigma: The noise scale, or the smallest one that suffices without rounding.
            may_rise: Whether a larger noise scale may be used.

        Raises:
            AssumptionError: Rounding increases epsilon too much in every floating-point type; the message names a
                sufficient noise.
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

    def history(self, removals: Sequence[Removal] = ()) -> History:
        """Return removals as a history.

        A history of the same learner is returned unchanged.
        """
        return History.of(self, removals)

    def schedule(self, history: Sequence[Removal]) -> Schedule | None:
        """Return the noisy steps of learning and of the removals so far; None if steps have no noise."""
        return None

    def stream(self, history: Sequence[Removal]) -> Stream | None:
        """Return the effect of the removals so far; None if the learner does not store it between requests."""
        return None

    def places_of(self, positions: ArrayLike) -> Places | None:
        """Return the mini-batches of rows, given the rows' positions in learning; None if there are no mini-batches."""
        return None

    @abstractmethod
    def laws(
        self,
        whole: tuple[Tensor, Tensor],
        left: tuple[Tensor, Tensor],
        removal: Removal,
        learning: Sequence[int],
        removing: Sequence[int],
        comparing: Sequence[int],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw published models: learned models, these models after their first removal, and models of the comparator.

        Args:
            whole: All rows and their labels.
            left: Rows and labels after the removal, as for `unlearn`.
            removal: The numbers of records and steps of the removal.
            learning: The address of the noise that each learned model gets in learning.
            removing: The address of the noise that each learned model gets in the removal.
            comparing: The address of the noise of each comparator model.

        Returns:
            The weights of the three kinds of models, each of shape ``(trials, d)``.
        """

    def run(self, history: Sequence[Removal], *, dataset: str, features: str, data_digest: str | None) -> Run:
        """Return the run up to the last removal of ``history``, for `certificate.of`.

        Args:
            history: All removals so far. If it is empty, the run has nothing to guarantee (epsilon = 0).
            dataset: Name of the data set; it must not be the name of a built-in data set.
            features: ``declared`` if rows were made from a table by its declaration, ``given`` if they were used
                unchanged.
            data_digest: Digest of the training data, made with a key if the digest must not allow guesses about removed
                records. None if it is not stated.
        """
        problem, known = self.exact_problem, self.history(history)
        begun = Run(
            experiment="",
            mechanism=self._mechanism,
            variant=self._variant,
            accountant=self._accountant,
            guarantee=assumptions.guarantee(self._accountant, "bound"),
            constants=ProblemConstants(
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
                class_weights=self.class_weights,
                target_range=self.target_range,
            ),
            epsilon_target=self.epsilon,
            sigma=self.sigma,
            step_size=problem.step_size,
            learning_steps=self.learning_steps,
            radius=self._ball,
            start=START,
            records_per_request=(),
            dtype=self.dtype,
            cycle=self.cycle,
            requests=(),
        )
        # Requests were checked on arrival, so they are not all checked again with every new one.
        return begun.model_copy(update={"records_per_request": known.records, "requests": known.requests})

    def _batch(self, history: Sequence[Removal], trials: int, keys: Sequence[int] = ()) -> OwnBatch:
        """Return the run so far, in the form that the phases of mechanisms need."""
        return OwnBatch((self.run(history, dataset="own", features="given", data_digest=None),), trials, keys)

    def _objective(self, rows: Tensor | StreamedRows, labels: Tensor, normaliser: int) -> descent.Objective:
        """Return the objective: logistic or softmax regression for classes, or least squares for targets."""
        problem = self.exact_problem
        if self.classes == 1:
            return SquaredObjective(rows, labels, strong_convexity=problem.strong_convexity, normaliser=normaliser)
        loss = LogisticObjective if self.classes == 2 else partial(SoftmaxObjective, classes=self.classes)
        return loss(
            rows,
            labels,
            strong_convexity=problem.strong_convexity,
            lipschitz=problem.lipschitz,
            normaliser=normaliser,
            class_weights=self.class_weights,
        )

    def _descend(
        self,
        start: Tensor,
        rows: Tensor | StreamedRows,
        labels: Tensor,
        phase: descent.DescentPhase,
        *,
        normaliser: int,
        progress: Progress | None,
    ) -> Tensor:
        """Return all trials' weights after the steps of a phase.

        The rows are already the remaining ones.
        """
        problem = self.exact_problem
        steps = replace(phase, removed=0, publication_sigma=(), publication_keys=(), feeds_back=False)
        rows_of_a_step = rows.shape[0] if self.cycle is None else self.cycle.batch_size
        with threads_for(rows_of_a_step * rows.shape[1] * len(start)):
            return descent.run(
                self._objective(rows, labels, normaliser),
                start,
                [steps],
                step_size=problem.step_size,
                radius=self._ball,
                progress=progress,
            ).weights


class NoisyLearner(LinearLearner):
    """A `LinearLearner` with noise of deviation ``sqrt(2 step_size) sigma`` in every step and no secret state."""

    mechanism: ClassVar[str] = "langevin"
    """The mechanism's name in the ledger, with or without mini-batches."""
    _dynamics: ClassVar[Any]
    """The mechanism's module, with the start of trials and their phases."""

    @property
    def strong_convexity(self) -> float:
        """Strong convexity that the regulariser gives to the mean loss of a step's records."""
        return self.exact_problem.strong_convexity

    @property
    def all_published_is_known(self) -> bool:
        """Whether an epsilon is known for all published models together."""
        return True

    def schedule(self, history: Sequence[Removal]) -> Schedule:
        """Return the noisy steps of learning and of the removals so far."""
        known = self.history(history)
        return Schedule(
            sigma=self.sigma,
            records_per_request=known.records,
            steps=known.steps,
            learning_steps=self.learning_steps,
            cycle=self.cycle,
            places=known.places,
        )

    def learn(
        self, rows: Tensor | StreamedRows, labels: Tensor, keys: Sequence[int], *, progress: Progress | None = None
    ) -> Tensor:
        """Learn a model for each key by noisy gradient descent.

        Args:
            rows: Rows of norm at most 1, shape ``(n, features)``. The weights get the dtype and device of the rows.
            labels: Labels, shape ``(n,)``: -1 or +1 for two classes, 0 to ``classes - 1`` for more; targets from -1 to
                1 for ridge regression.
            keys: The address of each trial's noise, with which the noise could be subtracted.
            progress: Function that receives the work done so far, in steps of all trials.

        Returns:
            Weights, shape ``(trials, d)``. For softmax regression, the weights of each class follow those of the class
            before.
        """
        batch = self._batch([], len(keys), keys)
        like = torch.empty(0, self.dimension, dtype=rows.dtype, device=rows.device)
        start, phase = self._dynamics.start(batch, like), self._dynamics.learning_phase(batch)
        if self._ball is not None:
            # The gradient of the first step must be bounded, too.
            descent.project(start, self._ball)
        return self._descend(start, rows, labels, phase, normaliser=self.n, progress=progress)

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
        """Carry out the last removal of ``history`` by continuing noisy descent without the removed records.

        Args:
            weights: Weights before the removal, shape ``(trials, d)``; they are not changed.
            rows: The rows after all removals. Removed records are left out; with ``zero-out``, they may also be rows of
                zeros. With ``replace``, other records are in their places.
            labels: Labels of these rows, shape ``(n,)``.
            history: All removals so far; the last one is carried out.
            keys: The address of each trial's noise; it must not have been used for learning or for another removal.
            progress: Function that receives the work done so far, in steps of all trials.

        Returns:
            The new weights, shape ``(trials, d)``.
        """
        removed = sum(removal.records for removal in history)
        normaliser = self.n - removed if self.adjacency == "remove" else self.n
        phase = self._dynamics.request_phase(self._batch(history, len(keys), keys), len(history) - 1)
        return self._descend(weights, rows, labels, phase, normaliser=normaliser, progress=progress)

    def laws(
        self,
        whole: tuple[Tensor, Tensor],
        left: tuple[Tensor, Tensor],
        removal: Removal,
        learning: Sequence[int],
        removing: Sequence[int],
        comparing: Sequence[int],
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw published models; see `LinearLearner.laws`.

        The comparator's models have the same start, and the same total number of steps, as the models after the
        removal.
        """
        learned = self.learn(*whole, learning)
        unlearned = self.unlearn(learned, *left, [removal], removing)
        begun = self.model_copy(update={"learning_steps": 0})
        all_steps = removal._replace(steps=self.learning_steps + removal.steps)
        start = begun.learn(*left, comparing)
        return learned, unlearned, begun.unlearn(start, *left, [all_steps], comparing)


def require_one_to_plan(sigma: float | None, steps: int | None) -> None:
    """Raise `ParameterError` if both ``sigma`` and ``steps`` are given, because one of them must be planned."""
    if sigma is not None and steps is not None:
        raise ParameterError(
            f"sigma and steps cannot both be given, because one of them is planned; got {sigma} and {steps}"
        )


def require_one_of(choices: Sequence[str], **values: str) -> None:
    """Raise `ParameterError` unless every value is one of the choices."""
    for name, value in values.items():
        if value not in choices:
            raise ParameterError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
