"""Runs and plans: a run is a mechanism with its constants and requests, and a plan is all runs of an experiment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning import accounting
from certified_unlearning.accounting.core.curves import Cycle, Places
from certified_unlearning.accounting.guaranteed import Guaranteed
from certified_unlearning.accounting.guarantees import as_computed, guarantee_of
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.files import content_key, read_model, write_model
from certified_unlearning.mechanisms.settings import Settings
from certified_unlearning.vocabulary import Adjacency, DType, Guarantee, Smoothness


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ProblemConstants(_Model):
    """The constants of the problem that a run learns.

    Attributes:
        n: Number of training records.
        d: Number of weights: the number of features, multiplied by the number of classes if there are more than two.
        classes: Number of classes: 2 for the logistic loss, more for softmax, 1 for the squared loss of targets.
        largest_eigenvalue: Largest eigenvalue of ``X'X / n``, which the spectral rules for ``L`` use; None if it is not
            stated.
        strong_convexity: Strong convexity ``m``, the l2 coefficient lambda.
        smoothness_constant: Smoothness ``L`` of each record's loss, including the regulariser.
        lipschitz: Upper bound ``M`` on the norm of the gradient of each record's data loss.
        delta: Target delta.
        adjacency: The relation between the data before and after a removal.
        smoothness: Name of the rule that gave ``L``.
        dataset: Name of the data set.
        features: Name that certificates give to the features; None for the usual or the only features.
        data_sha256: SHA-256 digest of the prepared data set; None if it is not stated.
        class_weights: Factors, at most 1, on the losses of the records of each class; None if all are 1.
        target_range: The public range to which the targets of ridge regression were clipped; None for classes.
    """

    n: int
    d: int
    classes: int
    largest_eigenvalue: float | None
    strong_convexity: float
    smoothness_constant: float
    lipschitz: float
    delta: float
    adjacency: Adjacency
    smoothness: Smoothness
    dataset: str
    features: str | None
    data_sha256: str | None
    class_weights: tuple[float, ...] | None = Field(default=None, exclude_if=lambda weights: weights is None)
    target_range: tuple[float, float] | None = Field(default=None, exclude_if=lambda range_: range_ is None)

    def problem(self, step_size: float, cycle: Cycle | None = None) -> accounting.Problem:
        """Return the accountants' problem in exact arithmetic, for all records or for a batch of a cycle."""
        return accounting.Problem(
            n=self.n if cycle is None else cycle.batch_size,
            strong_convexity=self.strong_convexity,
            smoothness=self.smoothness_constant,
            lipschitz=self.lipschitz,
            step_size=step_size,
            adjacency=self.adjacency,
        )


class Request(_Model):
    """One removal request of a run, with the steps that answer it.

    Attributes:
        records_removed: Number of records that were removed so far, including this request.
        unlearning_steps: Number of steps for this request (``K``, or Descent-to-Delete's iterations).
        epsilon: Epsilon that is certified after this request at the plan's delta; None if it was not requested.
        mu: The ``mu`` of Gaussian differential privacy after this request, which holds at every delta; None if the
            accountant does not compute it.
        places: Positions of the request's records in a cycle of mini-batches; None if they are not stated.
    """

    records_removed: int
    unlearning_steps: int
    epsilon: float | None
    mu: float | None
    places: Places | None = Field(default=None, exclude_if=lambda places: places is None)


class Run(_Model):
    """One sweep point: a mechanism with all its constants. Certificates, rows and MLflow entries are made from it.

    Attributes:
        experiment: Name of the run's experiment; empty for a user's own model.
        mechanism: Name of the mechanism.
        variant: Variant of the mechanism (``least-sigma``, ``least-steps``, ``secret-state``, ``published-state``,
            ``noisy``, ``noiseless``).
        accountant: Name of the accountant that computed ``epsilon``. If the run is a noisy retraining whose noise
            depends on the accountant, this is the name of the accountant that determined the noise.
        guarantee: The kind of ``epsilon``: an upper bound, an exact value, a value as published (the theorem is applied
            outside its statement), or a heuristic value.
        method: Readable name of mechanism and accountant, such as ``Langevin (lsi)``.
        member: Part of the name that distinguishes the lines of one method, such as ``K = 1``; empty if there is only
            one line.
        line: Name of the run's line: the method, the member and the state that is kept.
        point: Name of the run: the line and the value of the experiment's sweep.
        constants: Constants of the problem.
        epsilon_target: The requested epsilon.
        initial_epsilon: Epsilon before any unlearning step, at the plan's delta; None if it has no meaning.
        sigma: The noise scale. For Langevin unlearning and noisy retraining, the standard deviation of a step's noise
            is ``sqrt(2 step_size) sigma``. For Descent-to-Delete, ``sigma`` is the standard deviation of the noise on
            publication.
        step_size: Step size ``eta``.
        learning_steps: Number of learning steps ``T``.
        radius: Radius of the ball onto which every step projects; None if there is no projection.
        start: Mean of every coordinate of the start.
        extra_delta: Addition to delta, for finite learning (`accounting.langevin.stationarity`), rounding and noise.
        rounding_error: Largest distance between the end of a computed step and that of the exact step; None if no bound
            is guaranteed.
        records_per_request: Number of records of each request; a list of numbers if they differ.
        dtype: Floating-point type of the weights: the plan's type, or float64 if the noise on publication needs it.
        cycle: The mini-batches of the steps; None if every step uses all records.
        requests: The requests in order.
    """

    experiment: str
    mechanism: str
    variant: str
    accountant: str
    guarantee: Guarantee
    method: str = ""
    member: str = ""
    line: str = ""
    point: str = ""
    constants: ProblemConstants
    epsilon_target: float
    initial_epsilon: float | None = None
    sigma: float
    step_size: float
    learning_steps: int
    radius: float | None
    start: float
    extra_delta: float = 0.0
    rounding_error: float | None = None
    records_per_request: int | tuple[int, ...]
    dtype: DType
    cycle: Cycle | None = Field(default=None, exclude_if=lambda cycle: cycle is None)
    requests: tuple[Request, ...]

    @property
    def schedule(self) -> accounting.Schedule:
        """The noise, the number of learning steps, and the number of steps of every request."""
        known = [request.places for request in self.requests if request.places is not None]
        return accounting.Schedule(
            sigma=self.sigma,
            records_per_request=self.records_per_request if self.requests else (),
            steps=tuple(request.unlearning_steps for request in self.requests),
            learning_steps=self.learning_steps,
            cycle=self.cycle,
            places=tuple(known) if known and len(known) == len(self.requests) else None,
        )

    @property
    def computed_problem(self) -> accounting.Problem:
        """The accountant's problem, with the rounding of the engine included."""
        return as_computed(
            self.constants.problem(self.step_size, self.cycle),
            dimension=self.constants.d,
            classes=self.constants.classes,
            dtype=self.dtype,
            variant=self.variant,
            start=self.start,
            projects=self.radius is not None,
        )

    def guaranteed(self, stream: Stream | None = None) -> Guaranteed:
        """Return the guarantee after all requests.

        Raises the same errors as `accounting.guarantees.guarantee_of`.

        Args:
            stream: The requests with their stored effect; None if no effect is stored.
        """
        return guarantee_of(
            self.computed_problem if stream is None else stream.problem,
            self.schedule if stream is None else stream.schedule,
            accountant=self.accountant,
            variant=self.variant,
            delta=self.constants.delta,
            dimension=self.constants.d,
            start=self.start,
            stream=stream,
        )


class ExperimentPlan(_Model):
    """All runs of one experiment.

    Attributes:
        preset: Name of the preset, for the rows.
        settings: Settings that the preset's experiments share.
        sweep: The experiment's sweep, as in `params.yaml`.
        features: Description of the features.
        constants: Constants of the problem that all runs share.
        runs: The runs, in the order of tables and legends.
        left_out: A sentence that says why there are no runs; None if there are runs.
    """

    preset: str
    settings: Settings
    sweep: Mapping[str, Any]
    features: str
    constants: ProblemConstants
    runs: tuple[Run, ...]
    left_out: str | None = Field(default=None, exclude_if=lambda reason: reason is None)

    def key(self, run: Run) -> str:
        """Return the content key of a run: equal inputs give equal keys, whatever other runs are in the plan."""
        settings = self.settings.model_dump(mode="json", exclude={"device", "accountants"})
        return content_key({"settings": settings, "features": self.features, "run": run.model_dump(mode="json")})

    def of(self, mechanism: str) -> tuple[Run, ...]:
        """Return the runs of one mechanism, in order."""
        return tuple(run for run in self.runs if run.mechanism == mechanism)

    def write(self, path: str | Path) -> None:
        """Write the plan as JSON, atomically."""
        write_model(path, self)

    @classmethod
    def read(cls, path: str | Path) -> "ExperimentPlan":
        """Read a plan.

        Raises:
            DataError: The file is missing or is not a plan.
        """
        return read_model(path, cls, "a plan")
