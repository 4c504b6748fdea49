"""Runs, which are one mechanism with all its constants and requests, and plans, which are all runs of an experiment."""

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
        d: Number of parameters: the number of features, times that of classes if there are more than two.
        classes: Number of classes: 2 for the logistic loss, more for softmax, 1 for the squared loss of targets.
        largest_eigenvalue: Largest eigenvalue of ``X'X / n``, which the spectral rules for ``L`` use; None if not
            stated.
        strong_convexity: Strong convexity ``m``, the l2 coefficient lambda.
        smoothness_constant: ``L`` of each record's loss, regulariser included.
        lipschitz: ``M``, a bound on the norm of each record's data-loss gradient.
        delta: The target delta.
        adjacency: The data after a removal.
        smoothness: The rule that gave ``L``.
        dataset: The data set's name.
        features: Name of its features in certificates; None for the only or usual ones.
        data_sha256: Digest of the prepared data set; None if not stated.
        class_weights: Factors, at most 1, on the losses of records of each class; None for 1.
        target_range: The public range that the targets of ridge regression were clipped to; None for classes.
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
    """One removal request of a run, and the work of answering it.

    Attributes:
        records_removed: Number of records removed so far, including this request.
        unlearning_steps: Number of steps for this request (``K``, or Descent-to-Delete's iterations).
        epsilon: Epsilon certified after this request at the plan's delta; None if not requested.
        mu: The same guarantee as Gaussian differential privacy, at every delta; None where the accountant gives none.
        places: Places of its records in a cycle of mini-batches; None if not stated.
    """

    records_removed: int
    unlearning_steps: int
    epsilon: float | None
    mu: float | None
    places: Places | None = Field(default=None, exclude_if=lambda places: places is None)


class Run(_Model):
    """One sweep point: a mechanism with all its constants. Certificates, rows and MLflow entries are made from it.

    Attributes:
        experiment: The experiment that it belongs to; empty for a user's own model.
        mechanism: The mechanism's name.
        variant: Variant of the mechanism (``least-sigma``, ``least-steps``, ``secret-state``, ``published-state``,
            ``noisy``, ``noiseless``).
        accountant: The accountant that gave ``epsilon`` (for a noisy retraining: the noise, if accountants differ in
            it).
        guarantee: The kind of ``epsilon``: an upper bound, exact, as published (the theorem is applied outside its
            statement), or a heuristic.
        method: Name of mechanism and accountant for people, such as ``Langevin (lsi)``.
        member: What distinguishes the lines of one method, such as ``K = 1``; empty if there is one line.
        line: The line that the run belongs to: method, member and what is kept.
        point: Its name: the line, and the value of the experiment's sweep.
        constants: Constants of the problem.
        epsilon_target: The requested epsilon.
        initial_epsilon: Epsilon before any unlearning step, at the plan's delta; None where it has no meaning.
        sigma: The noise scale. Langevin and noisy retraining: per-step standard deviation ``sqrt(2 step_size) sigma``.
            Descent-to-Delete: the standard deviation of the noise added on publication.
        step_size: Step size ``eta``.
        learning_steps: Number of learning steps ``T``.
        radius: Radius of the ball that every step projects onto; None for no projection.
        start: Mean of every coordinate of the start.
        extra_delta: Added to delta: for finite learning (`accounting.langevin.stationarity`), rounding and noise.
        rounding_error: Largest distance of the end of a computed step from that of the exact one; None if nothing is
            guaranteed.
        records_per_request: Size of each request; if sizes differ, a list of them.
        dtype: The type of its weights: the plan's, or float64 if the noise on publication needs it.
        cycle: The mini-batches of a step; None where every step uses all records.
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
        """Noise, learning steps, and the steps of every request."""
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
        """The problem with the rounding of the engine."""
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
        """Return the guarantee after all requests; errors as for `accounting.guarantees.guarantee_of`.

        Args:
            stream: The requests and their stored effect, if it was kept.
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
        preset: The preset's name, for the rows.
        settings: Settings that the preset's experiments share.
        sweep: The experiment's sweep, as in `params.yaml`.
        features: Description of the features.
        constants: Constants of the problem that all runs share.
        runs: The runs, in the order of tables and legends.
        left_out: Why there are no runs, in a sentence; None if there are runs.
    """

    preset: str
    settings: Settings
    sweep: Mapping[str, Any]
    features: str
    constants: ProblemConstants
    runs: tuple[Run, ...]
    left_out: str | None = Field(default=None, exclude_if=lambda reason: reason is None)

    def key(self, run: Run) -> str:
        """Return the content key of a run: equal inputs give equal keys, whatever else the plan holds."""
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
