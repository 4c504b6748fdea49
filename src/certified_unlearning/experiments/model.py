"""What a plan consists of: sweep points (runs) and their requests, with everything that was computed beforehand."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from certified_unlearning.files import content_key, read_model, write_model
from certified_unlearning.parameters import AccountantName, Common, DType

Experiment = Literal["fig3a", "fig3b", "fig3c", "fig4", "fig5a"]
Mechanism = Literal["langevin", "descent-to-delete", "retraining"]
DescentAccountant = Literal[
    "descent-to-delete N.1", "descent-to-delete N.2", "descent-to-delete shifted", "descent-to-delete conditional"
]
Accountant = AccountantName | DescentAccountant | Literal["none"]
Guarantee = Literal["upper bound", "exact", "as published", "heuristic"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Constants(_Model):
    """The constants of the problem that every run of a plan shares.

    Attributes:
        n: Number of training records.
        d: Number of parameters: of features, times the classes where there are more than two.
        classes: Number of classes: 2 for the logistic loss, more for softmax.
        largest_eigenvalue: Of ``X'X / n``: what the spectral rules for ``L`` start from.
        strong_convexity: ``m``, the l2 coefficient lambda.
        smoothness_constant: ``L`` of each record's loss, regulariser included.
        lipschitz: ``M``, a bound on the norm of each record's data-loss gradient.
        delta: The target delta.
        data_sha256: Digest of the prepared data set.
    """

    n: int
    d: int
    classes: int
    largest_eigenvalue: float
    strong_convexity: float
    smoothness_constant: float
    lipschitz: float
    delta: float
    data_sha256: str


class Request(_Model):
    """One removal request of a run, and what answering it takes.

    Attributes:
        records_removed: Records removed so far, this request included.
        unlearning_steps: Steps run for this request (``K``, or Descent-to-Delete's iterations).
        epsilon: Epsilon certified after this request at the plan's delta.
        mu: The same guarantee as Gaussian differential privacy, at every delta; None where the accountant gives none.
    """

    records_removed: int
    unlearning_steps: int
    epsilon: float
    mu: float | None


class Run(_Model):
    """One sweep point: a mechanism with all its constants.

    Attributes:
        experiment: The figure it belongs to.
        mechanism: The mechanism's name.
        variant: Which form of the mechanism (``least-sigma``, ``least-steps``, ``secret-state``,
            ``published-state``, ``noisy``, ``noiseless``).
        accountant: Which analysis gave ``epsilon`` (of a noisy retraining: the noise, where accountants differ in it).
        guarantee: What ``epsilon`` is: an upper bound, exact, as published (the theorem is applied outside its
            statement), or a heuristic.
        epsilon_target: The epsilon asked for.
        initial_epsilon: Epsilon before any unlearning step, at the plan's delta; None where it has no meaning.
        sigma: The noise scale. Langevin and noisy retraining: per-step standard deviation ``sqrt(2 step_size) sigma``.
            Descent-to-Delete: the standard deviation of the noise added on publication.
        step_size: ``eta``.
        learning_steps: ``T``.
        radius: Radius of the ball that every step projects on; None for no projection.
        extra_delta: Added to delta: for finite learning (`accounting.stationarity`), rounding and noise.
        rounding_error: How far a computed step may end from the exact one; None where nothing is guaranteed.
        records_per_request: Size of each request.
        dtype: The type of its weights: the plan's, or float64 where the noise on publication needs it.
        requests: The requests in order.
    """

    experiment: Experiment
    mechanism: Mechanism
    variant: str
    accountant: Accountant
    guarantee: Guarantee
    epsilon_target: float
    initial_epsilon: float | None
    sigma: float
    step_size: float
    learning_steps: int
    radius: float | None
    extra_delta: float
    rounding_error: float | None
    records_per_request: int
    dtype: DType
    requests: tuple[Request, ...]


class Plan(_Model):
    """All runs of one experiment."""

    preset: str
    settings: Common
    features: str
    constants: Constants
    runs: tuple[Run, ...]

    def key(self, run: Run) -> str:
        """Return the content key of a run: equal inputs give equal keys, whatever else the plan holds."""
        settings = self.settings.model_dump(mode="json", exclude={"device"})
        return content_key(
            {
                "settings": settings,
                "features": self.features,
                "constants": self.constants.model_dump(mode="json"),
                "run": run.model_dump(mode="json"),
            }
        )

    def of(self, mechanism: Mechanism) -> tuple[Run, ...]:
        """Return the runs of one mechanism, in order."""
        return tuple(run for run in self.runs if run.mechanism == mechanism)

    def write(self, path: str | Path) -> None:
        """Write the plan as JSON, atomically."""
        write_model(path, self)

    @classmethod
    def read(cls, path: str | Path) -> "Plan":
        """Read a plan.

        Raises:
            DataError: The file is missing or is no plan.
        """
        return read_model(path, cls, "a plan")
