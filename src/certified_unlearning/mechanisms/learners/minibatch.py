"""Mini-batch Langevin unlearning for a user's own records."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from pydantic import Field
from torch import Tensor

from certified_unlearning.accounting import Problem, Schedule
from certified_unlearning.accounting.core.checks import (
    require_class_weights,
    require_count,
    require_positive,
    required_delta,
)
from certified_unlearning.accounting.core.curves import Cycle, Places
from certified_unlearning.accounting.core.losses import regularisation_of
from certified_unlearning.accounting.core.rounding import required_sigma
from certified_unlearning.accounting.cyclic import planning
from certified_unlearning.accounting.cyclic.accountants import CYCLIC
from certified_unlearning.accounting.shifted.arithmetic import failure_delta, langevin_floor
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.engine.compiled import minibatch as compiled
from certified_unlearning.engine.minibatch import CyclicObjective
from certified_unlearning.engine.objectives.rows import StreamedRows
from certified_unlearning.engine.progress import Progress
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.mechanisms import minibatch_langevin
from certified_unlearning.mechanisms.batch import own_key
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.learners.learner import NoisyLearner, require_one_of, require_one_to_plan
from certified_unlearning.vocabulary import Delta, DType

SCORE_NOISE = 0.05
"""Default for the largest standard deviation of the noise in the score of a row of norm 1."""
NOISE_OF_LONGEST = 5e-4
"""Upper limit of the default noise in a score, as a share of ``1 / m``.

``1 / m`` bounds the norm of logistic regression's weights, so all scores are smaller if the regulariser is stronger.
"""
BATCHES_LEARNED = 5.0
"""Number of times that the influence of the start fades by a factor ``e`` during learning."""
ROWS_PER_FADING = 50
"""Rows of a batch, divided by the number of steps in which the influence of earlier steps fades by a factor ``e``.

With this number, the noise of the gradient itself is equally small for every regulariser, however weak it is.
"""
ROWS_FOR_LONGEST = 160_000
"""Rows of a batch for each unit of ``m``.

With this number, the noise of the gradient is the same small share of ``1 / m`` for every regulariser, however strong
it is. This number and `ROWS_PER_FADING` are for the longest steps, ``2 / (L + m)``, which contract most.
"""
ROWS_OF_SHORT_STEPS = 0.43
"""Rows that suffice for a batch if steps have half the length, as a share of the rows that `ROWS_PER_FADING` gives.

Half the length means twice as many steps, but fewer rows to read. Long steps overshoot along the direction that all
rows have in common; shorter steps reduce the noise in that direction to a quarter or less. If the regulariser is so
strong that ``ROWS_FOR_LONGEST`` decides, fewer rows cost too much accuracy: on MNIST with ``C n = 20``, the accuracy
differed by 0.013 between orders of the records.

In measurements with these numbers, noise and gradients together reduced the accuracy by at most 0.0035. The reduction
is the mean over the orders in which records are dealt. The data sets had 30 000 records of 20 features, and 11 982
records of 784 features; ``C n`` was between 20 and 1280.
"""
LEAST_BATCH = 1000
"""Smallest number of rows in a batch. Smaller batches are not faster: rows no longer dominate the time of a step."""
LEAST_NUMBERS = 1 << 17
"""Smallest number of entries in a batch of wide rows. Batches with fewer entries are not faster."""
LEAST_BATCHES = 4
"""Smallest number of batches. Fewer batches save no time."""

_Adjacency = Literal["zero-out", "replace"]


class MiniBatches(NamedTuple):
    """The size of mini-batches, and the step size as a share of ``2 / (L + m)``."""

    batch_size: int
    step_share: float


def mini_batches_for(n: int, *, features: int, C: float, classes: int, intercept: bool) -> MiniBatches | None:
    """Return mini-batches for ``n`` rows and scikit-learn's ``C``; None if every step should use all records.

    Args:
        n: Number of rows.
        features: Number of columns of a row, including that of the intercept.
        C: Inverse strength of the regulariser.
        classes: Number of classes, at least 2.
        intercept: Whether the last column of the rows is that of an intercept.
    """
    curvature, strong_convexity = (0.25 if classes == 2 else 0.5), 1 / (C * n * (2 if intercept else 1))
    fading = (curvature + 2 * strong_convexity) / (2 * strong_convexity)
    least = min(LEAST_BATCH, math.ceil(LEAST_NUMBERS / features))
    for_fading, for_longest = ROWS_PER_FADING * fading, ROWS_FOR_LONGEST * strong_convexity
    short = for_fading >= for_longest and ROWS_OF_SHORT_STEPS * for_fading >= least
    size = ROWS_OF_SHORT_STEPS * for_fading if short else max(for_fading, for_longest)
    batches = n // max(least, math.ceil(size))
    return MiniBatches(math.ceil(n / batches), 0.5 if short else 1.0) if batches >= LEAST_BATCHES else None


class MiniBatchLearner(NoisyLearner):
    """A `NoisyLearner` with one mini-batch per step, and a step size of at most ``2 / (L + m)``.

    Rows must be in the order in which records were dealt into batches. For two classes, the rows must also be signed,
    as for `engine.minibatch.CyclicObjective`. Zeros or another row replace a removed row. A request reads only the
    batches of its records.

    Attributes:
        batch_size: Batch size ``b``. Rows of zeros fill the last batch, so ``m`` is ``1 / C`` divided by the number of
            rows including these.
        adjacency: ``zero-out`` or ``replace``.
        step_share: Step size as a share of ``2 / (L + m)``, above 0 and at most 1.
    """

    batch_size: int
    adjacency: _Adjacency
    step_share: float = Field(default=1.0, gt=0, le=1, exclude_if=lambda share: share == 1)
    accountant: ClassVar[str] = "shifted"
    """Name of the learner's accountant in `plan_learner`."""
    _dynamics: ClassVar[Any] = minibatch_langevin
    _mechanism: ClassVar[str] = minibatch_langevin.MINIBATCH_LANGEVIN.name

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
        batch_size: int,
        step_share: float = 1.0,
        sigma: float | None = None,
        steps: int | None = None,
        records: int = 1,
        adjacency: str = "zero-out",
        learning_steps: int | None = None,
        dtype: str = "float64",
        class_weights: tuple[float, ...] | None = None,
    ) -> "MiniBatchLearner":
        """Choose the noise, and the number of learning steps, before anything is learned.

        Args:
            n: Number of records.
            features: Number of columns of a row.
            classes: Number of classes.
            regularisation: Strength of the regulariser per record, ``lambda / n``.
            epsilon: Target epsilon, above 0.
            delta: Target delta, strictly between 0 and 1, or ``"auto"`` or ``"1/n"`` (`required_delta`).
            batch_size: Batch size ``b``.
            step_share: Step size as a share of ``2 / (L + m)``, above 0 and at most 1.
            sigma: Noise scale. If it is None and ``steps`` is given: the smallest scale with which these steps remove
                ``records`` records, whichever batches contain these records. If both are None: the largest scale with
                which the noise in scores stays within `SCORE_NOISE` and `NOISE_OF_LONGEST`.
            steps: Largest number of steps, at least 1, that a removal of ``records`` records may take.
            records: Number of records that ``steps`` steps must be able to remove at once.
            adjacency: Adjacency of the comparator's data.
            learning_steps: Number of learning steps ``T``. None: the smallest number of whole epochs in which the start
                fades.
            dtype: Floating-point type of weights and rows.
            class_weights: One weight between 0 and 1 for each class; two classes are in the order -1, +1. None: all
                weights are 1.

        Raises:
            ParameterError: Both ``sigma`` and ``steps`` are given.
            AssumptionError: The noise is too small compared with rounding.
            InfeasibleError: The target cannot be met.
        """
        require_positive(epsilon=epsilon, regularisation=regularisation, step_share=step_share)
        require_count(least=1, n=n, features=features, records=records, batch_size=batch_size)
        require_count(least=2, classes=classes)
        require_one_of(get_args(_Adjacency), adjacency=adjacency)
        require_one_of(get_args(DType), dtype=dtype)
        require_class_weights(class_weights, classes=classes)
        if steps is not None:
            require_count(least=1, steps=steps)
        if learning_steps is not None:
            require_count(least=1, learning_steps=learning_steps)
        target_delta = required_delta(delta, n)
        if step_share > 1:
            raise ParameterError(f"step_share must be at most 1, because longer steps contract less, got {step_share}")
        if batch_size > n:
            raise ParameterError(f"batch_size must be at most the number of records, {n}, got {batch_size}")
        require_one_to_plan(sigma, steps)
        learner = cls.model_validate(
            {
                "n": n,
                "features": features,
                "classes": classes,
                "regularisation": regularisation,
                "epsilon": float(epsilon),
                "delta": target_delta,
                "sigma": 1.0 if sigma is None else required_sigma(sigma),
                "learning_steps": 1 if learning_steps is None else int(learning_steps),
                "adjacency": adjacency,
                "batch_size": int(batch_size),
                "step_share": float(step_share),
                "dtype": dtype,
                "class_weights": class_weights,
            }
        )
        if learning_steps is None:
            learner = learner.model_copy(update={"learning_steps": learner._epochs() * learner.cycle.batches})
        if sigma is None:
            least = learner._least_sigma(learner.exact_problem, steps, int(records))
            learner = learner.model_copy(update={"sigma": least})
        learner = learner._computed_finely_enough(langevin_floor, learner.sigma, may_rise=sigma is None)
        problem = learner.problem
        if sigma is None:
            floor = langevin_floor(problem).least_sigma(learner.epsilon, learner.delta)
            least = learner._least_sigma(problem, steps, int(records))
            learner = learner.model_copy(update={"sigma": max(least, floor)})
        learner._require_payable(problem, learner.learning_steps)
        return learner

    @property
    def _accountant(self) -> str:
        return CYCLIC.name

    @property
    def cycle(self) -> Cycle:
        """The mini-batches."""
        return Cycle.of(self.n, batch_size=self.batch_size)

    @property
    def exact_problem(self) -> Problem:
        """The problem of a batch in exact arithmetic, with the learner's step size."""
        whole = super().exact_problem
        curvature = whole.smoothness - whole.strong_convexity
        strong_convexity = whole.strong_convexity * self.n / self.cycle.records
        smoothness = curvature + strong_convexity
        return Problem(
            n=self.batch_size,
            strong_convexity=strong_convexity,
            smoothness=smoothness,
            lipschitz=whole.lipschitz,
            step_size=self.step_share * (2 / (smoothness + strong_convexity)),
            adjacency=self.adjacency,
        )

    def places_of(self, positions: ArrayLike) -> Places:
        """Return the number of these rows in each batch; rows are given by their positions in the dealt order."""
        return tuple(sorted(Counter((np.ravel(positions) // self.batch_size).tolist()).items()))

    def schedule(self, history: Sequence[Removal]) -> Schedule:
        """Return the noisy steps of learning and of the removals so far."""
        return self.stream(history).schedule

    def stream(self, history: Sequence[Removal]) -> Stream:
        """Return the effect of the removals so far.

        The history stores the returned effect for the next request.
        """
        known = self.history(history)
        if known.stream is None:
            schedule = super().schedule(known)
            known.stream = Stream(self.problem, schedule, epsilon=self.epsilon, delta=self.delta)
        return known.stream

    def plan_removal(self, history: Sequence[Removal], records: int, places: Places | None = None) -> Removal:
        """Return the fewest steps, at least 1, that remove ``records`` more records, given the earlier removals.

        Args:
            history: The earlier removals.
            records: Number of removed records.
            places: Places of the removed records; None for the worst places.

        Raises:
            ParameterError: More records are removed than are present.
            AssumptionError: The additions to delta, for rounding and noise, would exceed delta.
            InfeasibleError: The target cannot be met.
        """
        stream = self.stream(history)
        left = self.n - sum(stream.schedule.records)
        if records > left:
            raise ParameterError(f"records must be at most n = {left}, the number of records left, got {records}")
        steps = planning.least_steps_after(stream, records=records, minimum_steps=1, places=places)
        self._require_payable(stream.problem, self.learning_steps + sum(stream.schedule.steps) + steps)
        return Removal(records, steps, places)

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
        """Carry out the last removal of ``history``; see `NoisyLearner.unlearn`."""
        on_cpu = {each.device.type for each in (weights, rows, labels)} == {"cpu"}
        if on_cpu and isinstance(rows, Tensor) and len(keys) == len(weights) == 1:
            arrays = weights.detach().numpy(), rows.detach().numpy(), labels.detach().numpy()
            return torch.from_numpy(self.unlearn_one(*arrays, history, keys[0], progress=progress))
        return super().unlearn(weights, rows, labels, history, keys, progress=progress)

    def unlearn_one(
        self,
        weights: NDArray[Any],
        rows: NDArray[Any],
        labels: NDArray[Any],
        history: Sequence[Removal],
        key: int,
        *,
        progress: Progress | None = None,
    ) -> NDArray[Any]:
        """Carry out the last removal of ``history`` from one model on the CPU; see `NoisyLearner.unlearn`.

        The compiled steps run directly, because preparing a phase for many trials would take longer than the steps.

        Args:
            weights: Weights before the removal, shape ``(1, d)``; they are not changed.
            rows: All rows, in memory, as for `unlearn`.
            labels: Labels of the rows.
            history: All removals so far; the last one is carried out.
            key: The address of the noise.
            progress: Function that receives the work done so far, in steps.

        Returns:
            The new weights, shape ``(1, d)``.
        """
        weighted = self.class_weights is not None
        if (
            self.classes != 2
            or weights.dtype != rows.dtype
            or weights.shape != (1, rows.shape[1])
            or not compiled.takes(rows, labels, batch_size=self.batch_size, weighted=weighted)
        ):
            start, given, of = (torch.as_tensor(each) for each in (weights.copy(), rows, labels))
            by_pytorch: NDArray[Any] = super().unlearn(start, given, of, history, [key], progress=progress).numpy()
            return by_pytorch
        answers, problem, moved = self.history(history).steps, self.exact_problem, weights.copy()
        place, steps = self.learning_steps + sum(answers[:-1]), range(answers[-1])
        key, batches = own_key(key, f"request-{len(history)}"), -(-len(rows) // self.batch_size)
        noise_std = math.sqrt(2 * problem.step_size) * self.sigma
        while steps:
            taken = compiled.noisy_steps(
                moved,
                rows,
                labels,
                batch=(place + steps.start) % batches,
                batch_size=self.batch_size,
                class_weights=self.class_weights,
                strong_convexity=problem.strong_convexity,
                step_size=problem.step_size,
                noise_std=noise_std,
                key=key,
                steps=steps,
            )
            steps = steps[taken:]
            if progress is not None:
                progress.advance(taken)
        return moved

    def _objective(self, rows: Tensor | StreamedRows, labels: Tensor, normaliser: int) -> CyclicObjective:
        return CyclicObjective(
            rows,
            labels,
            classes=self.classes,
            batch_size=self.batch_size,
            strong_convexity=self.exact_problem.strong_convexity,
            class_weights=self.class_weights,
        )

    def _epochs(self) -> int:
        problem = self.exact_problem
        fading = 1 / (problem.step_size * problem.strong_convexity)
        return math.ceil(BATCHES_LEARNED * fading / self.cycle.batches)

    def _least_sigma(self, problem: Problem, steps: int | None, records: int) -> float:
        if steps is None:
            # In every direction, the noise's stationary variance is 2 eta sigma^2 / (1 - c^2).
            rate = problem.step_size * problem.strong_convexity
            noise = min(SCORE_NOISE, NOISE_OF_LONGEST / problem.strong_convexity)
            return noise * math.sqrt(rate * (2 - rate) / (2 * problem.step_size))
        schedule = Schedule(
            sigma=1.0,
            records_per_request=(records,),
            steps=(int(steps),),
            learning_steps=self.learning_steps,
            cycle=self.cycle,
        )
        return planning.least_sigma(problem, schedule, epsilon=self.epsilon, delta=self.delta)

    def _require_payable(self, problem: Problem, steps: int) -> None:
        """Raise `AssumptionError` if the steps' addition to delta would be too large for a certificate."""
        added = failure_delta(problem, steps=steps, epsilon=self.epsilon)
        if added > self.delta:
            raise AssumptionError(
                f"after {steps} steps, {added:.2g} would be added to delta = {self.delta:.2g}, because random norms "
                "can be larger than assumed; raise delta, or learn again"
            )


def plan_learner(
    batch_size: int | Literal["auto"] | None,
    *,
    C: float,
    intercept: bool,
    accountant: str,
    adjacency: str,
    **asked: Any,
) -> LangevinLearner | MiniBatchLearner:
    """Plan a learner that uses all records in every step, or one that uses mini-batches.

    Args:
        batch_size: Number of records of a mini-batch. None: every step uses all records. ``"auto"``: mini-batches are
            used if `mini_batches_for` finds enough records, and the accountant and the adjacency allow them.
        C: Inverse strength of the regulariser, as in scikit-learn.
        intercept: Whether the last column of the rows is that of an intercept.
        accountant: Name of the accountant.
        adjacency: Adjacency of the comparator's data.
        asked: Other arguments of `LangevinLearner.plan` and `MiniBatchLearner.plan`.

    Raises:
        ParameterError: Mini-batches are requested but not possible.
        AssumptionError: The noise is too small compared with rounding.
        InfeasibleError: The target cannot be met.
    """
    asked |= {"adjacency": adjacency, "regularisation": regularisation_of(C=C, n=asked["n"], intercept=intercept)}
    whole = accountant != "shifted" or adjacency == "remove"
    if batch_size is not None and batch_size != "auto":
        require_count(least=1, batch_size=batch_size)
        if whole:
            raise ParameterError(
                "batch_size must be None or 'auto' with accountant lsi, accountant lsi-tight or adjacency remove, "
                f"because each of these needs all records in every step, got {batch_size}"
            )
        return MiniBatchLearner.plan(**asked, batch_size=int(batch_size))
    known = isinstance(asked["classes"], int) and asked["classes"] >= 2
    if batch_size == "auto" and known and not whole:
        sizes = {name: asked[name] for name in ("n", "features", "classes")}
        if (planned := mini_batches_for(**sizes, C=C, intercept=intercept)) is not None:
            return MiniBatchLearner.plan(**asked, **planned._asdict())
    return LangevinLearner.plan(**asked, accountant=accountant)


def learner_of(stated: Mapping[str, Any]) -> LangevinLearner | MiniBatchLearner:
    """Restore a learner that `plan_learner` planned, given the fields that a file contains."""
    learner: type[LangevinLearner] | type[MiniBatchLearner]
    learner = MiniBatchLearner if "batch_size" in stated else LangevinLearner
    return learner.model_validate(stated)
