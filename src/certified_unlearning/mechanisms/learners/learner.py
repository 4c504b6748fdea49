"""Learners: a user's own model, planned once, learned once, then any number of removals not known in advance.

A learner is what is fixed before the first step; `LinearLearner.run` returns the resulting `Run`. Its phases are those
of its mechanism's module, which sweeps of a plan use, too.
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
"""The types of weights, coarsest first."""


class LinearLearner(BaseModel):
    """Base of learners of l2-regularised logistic (two classes) or softmax regression on rows of norm at most 1.

    Their constants hold for all such rows: ``L = 1/4 + lambda``, ``M = 1``, or ``L = 1/2 + lambda``, ``M = sqrt(2)``.
    One class means ridge regression, if a learner supports it: targets lie in [-1, 1], every step projects onto a ball
    of radius ``R``, and ``L = 1 + lambda``, ``M = R + 1`` (`accounting.core.losses.ridge_constants`).

    Attributes:
        n: Number of records at the start.
        features: Number of columns of a row.
        classes: Number of classes, at least 2; 1 for ridge regression.
        regularisation: ``lambda / n``, above 0; `accounting.core.losses.regularisation_of` gives it for scikit-learn's
            ``C``.
        epsilon: Target epsilon after every removal.
        delta: Target delta.
        sigma: Noise scale.
        learning_steps: Number of learning steps ``T``.
        adjacency: The data of the comparator: a removed record's loss is 0 (``zero-out``), another record takes its
            place (``replace``), or the mean is over the others (``remove``).
        dtype: Type of weights and rows.
        class_weights: Factors between 0 and 1 on the losses of records of each class, for two classes in the order -1,
            +1; None for 1. All constants stay bounds.
        target_range: The public range that the targets of ridge regression were clipped to; None for classes.
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
        """The mini-batches of a step; None where every step uses all records."""
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

    _mechanism: ClassVar[str]
    """The mechanism's name."""

    @property
    @abstractmethod
    def _accountant(self) -> str:
        """Name of the analysis in certificates."""

    @property
    def _variant(self) -> str:
        """Name of the mechanism's variant in certificates."""
        return "least-steps"

    @property
    def problem(self) -> Problem:
        """`exact_problem` as computed in ``dtype``, for the accountants."""
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
        # `files.content_key` of a list of these, assembled from parts because each request needs it.
        stated = canonical(self.model_dump(mode="json"))
        return key_of(f"[{','.join([stated, *self.history(history).texts, canonical(data_digest)])}]")

    @property
    def _ball(self) -> float | None:
        """The radius of the ball that every step projects onto; None for no projection."""
        return ridge_radius(self.exact_problem.strong_convexity) if self.classes == 1 else None

    @property
    def _projects(self) -> bool:
        """Whether every step projects onto a ball."""
        return self._ball is not None

    def _computed_finely_enough(self, floor_of: FloorOf, sigma: float, *, may_rise: bool) -> Self:
        """Return the learner in its type, or in a finer one if rounding would cost too much of epsilon.

        Args:
            floor_of: The cost of rounding.
            sigma: The noise scale, or the least one that suffices without rounding.
            may_rise: Whether a larger one may be used.

        Raises:
            AssumptionError: It would in all types; the message names a sufficient noise.
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
        """Return removals with what follows from them; a history of this learner is returned unchanged."""
        return History.of(self, removals)

    def schedule(self, history: Sequence[Removal]) -> Schedule | None:
        """Return the noisy steps of learning and of the removals so far; None if steps have no noise."""
        return None

    def stream(self, history: Sequence[Removal]) -> Stream | None:
        """Return the effect of the removals so far; None if the learner does not keep it between requests."""
        return None

    def places_of(self, positions: ArrayLike) -> Places | None:
        """Return the mini-batches of rows, by their positions in learning; None if there are no mini-batches."""
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
        """Draw published models: learned ones, these after their first removal, and the comparator.

        Args:
            whole: All rows and labels.
            left: Rows and labels after the removal, as for `unlearn`.
            removal: Its records and steps.
            learning: The address of the noise of each model that learns.
            removing: The same for its removal.
            comparing: The same for each comparator model.

        Returns:
            Weights, each of shape ``(trials, d)``.
        """

    def run(self, history: Sequence[Removal], *, dataset: str, features: str, data_digest: str | None) -> Run:
        """Return the run up to the last removal of ``history``, for `certificate.of`.

        Args:
            history: All removals so far; with none nothing is guaranteed (epsilon = 0).
            dataset: The data set's name, not one of the built-in ones.
            features: ``declared`` if rows were made from a table by its declaration, ``given`` if used unchanged.
            data_digest: Digest of the training data, with a key if removed records must not be guessed from it; None if
                not stated.
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
        # Requests were checked one by one on arrival, so they are not all checked again with each.
        return begun.model_copy(update={"records_per_request": known.records, "requests": known.requests})

    def _batch(self, history: Sequence[Removal], trials: int, keys: Sequence[int] = ()) -> OwnBatch:
        """Return the run so far in the form for the mechanisms' phases."""
        return OwnBatch((self.run(history, dataset="own", features="given", data_digest=None),), trials, keys)

    def _objective(self, rows: Tensor | StreamedRows, labels: Tensor, normaliser: int) -> descent.Objective:
        """Return logistic regression for two classes, softmax regression for more, least squares for targets."""
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
        """Return all trials' weights after the steps of a phase on these rows, which are already the remaining ones."""
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
    """Its name in the ledger, with or without mini-batches."""
    _dynamics: ClassVar[Any]
    """The mechanism's module: the start of trials, and their phases."""

    @property
    def strong_convexity(self) -> float:
        """Strong convexity of the regulariser, in the mean loss of a step's records."""
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
            rows: Shape ``(n, features)``, of norm at most 1; their dtype and device are the weights'.
            labels: Shape ``(n,)``: -1 or +1 for two classes, 0 to ``classes - 1`` for more; targets from -1 to 1 for
                ridge regression.
            keys: The address of each trial's noise. With it, the noise can be subtracted.
            progress: Receives the work done, in steps of all trials.

        Returns:
            Weights, shape ``(trials, d)``; for softmax class after class.
        """
        batch = self._batch([], len(keys), keys)
        like = torch.empty(0, self.dimension, dtype=rows.dtype, device=rows.device)
        start, phase = self._dynamics.start(batch, like), self._dynamics.learning_phase(batch)
        if self._ball is not None:
            # The first step's gradient is bounded, too.
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
        """Carry out the last removal of ``history`` by continuing noisy descent on the data without its records.

        Args:
            weights: Shape ``(trials, d)``; not changed.
            rows: The rows after all removals. A removed record is left out, except with adjacency ``replace``, where
                another takes its place; with ``zero-out`` it may also be a row of zeros.
            labels: Their labels.
            history: All removals so far, this one last.
            keys: The address of each trial's noise, never the same as for learning or another removal.
            progress: Receives the work done, in steps of all trials.

        Returns:
            New weights, shape ``(trials, d)``.
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
        """Draw models; the comparator's have the same start and total number of steps; see `LinearLearner`."""
        learned = self.learn(*whole, learning)
        unlearned = self.unlearn(learned, *left, [removal], removing)
        begun = self.model_copy(update={"learning_steps": 0})
        all_steps = removal._replace(steps=self.learning_steps + removal.steps)
        start = begun.learn(*left, comparing)
        return learned, unlearned, begun.unlearn(start, *left, [all_steps], comparing)


def require_one_to_plan(sigma: float | None, steps: int | None) -> None:
    """Raise `ParameterError` if both are given, because one of them is planned."""
    if sigma is not None and steps is not None:
        raise ParameterError(f"give sigma or steps, not both (the other is planned), got {sigma} and {steps}")


def require_one_of(choices: Sequence[str], **values: str) -> None:
    """Raise `ParameterError` unless every value is one of the choices."""
    for name, value in values.items():
        if value not in choices:
            raise ParameterError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
