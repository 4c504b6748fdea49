"""The guarantees of private learners of linear models, computed from constants alone, and the choice of the constants.

Source: Ullah (2024), Algorithms 1 to 3 with Theorems 8 to 10, 12 and 32, corrected; results marked *derived* are not in
the source. Privacy holds for every choice of radius, steps and strength. A poor choice affects only accuracy. The
attributes of the Python classes in this module are public numbers, so a certificate can be recomputed from these
numbers.

Some of the source's noise is not used here. The noise of Theorem 12 is too small. Theorems 9 and 32 ignore that
embedded rows are longer and that the ball's radius doubles. The proof of Theorem 10 uses an invalid bound on gradients.
The noise of Theorem 8 is larger than necessary.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from pydantic import Field

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.core.checks import require_count, require_non_negative, require_positive
from certified_unlearning.accounting.core.conversion import mu_from_epsilon
from certified_unlearning.accounting.core.rounding import required_sigma
from certified_unlearning.accounting.private.arithmetic import displaced, moved
from certified_unlearning.accounting.private.guarantee import GaussianPlan
from certified_unlearning.accounting.private.losses import LinearProblem
from certified_unlearning.accounting.private.plan import (
    UNKNOWN_NOISE,
    Calibration,
    PlanConstants,
    PrivatePlan,
    RunConstants,
    Words,
)
from certified_unlearning.accounting.private.releases import mean_sensitivity, mu_of, noise_multiplier, sigma_for
from certified_unlearning.accounting.residual.rounding import OUTWARD, UNIT
from certified_unlearning.errors import AssumptionError, ParameterError

USUAL_STEPS = 1000
"""Default number of steps. If there are fewer records than this, the default is the number of records."""
ROUNDING_SHARE = 0.01
"""Share of the sensitivity that rounding may add."""
SOLVER_SHARE = 1e-3
"""Twice the error of the computed minimiser, as a share of the sensitivity."""


class PrivateRun(RunConstants):
    """The constants of one run of noisy gradient descent or output perturbation. A search has several runs.

    Attributes:
        radius: Radius of the ball onto which weights are projected, or which contains the minimiser.
        sigma: Standard deviation of the noise on each mean gradient, or on the minimiser, per coordinate.
        steps: Number of iterates of noisy gradient descent, including the start. The number of noisy gradients is one
            less.
        step_size: Step size of noisy gradient descent.
        strong_convexity: Strong convexity of the objective in output perturbation.
        inexactness: Largest distance of the computed minimiser from the exact one, in output perturbation.
    """

    radius: float = Field(gt=0)
    sigma: float = Field(gt=0)
    steps: int | None = Field(default=None, ge=2)
    step_size: float | None = Field(default=None, gt=0)
    strong_convexity: float | None = Field(default=None, gt=0)
    inexactness: float | None = Field(default=None, gt=0)


class Learner(GaussianPlan, PrivatePlan):
    """A learner that estimators run. Searches and boosting run it several times and select one of the models.

    Attributes:
        own: Names of the constants of a run, except the radius and sigma.
    """

    run_constants = PrivateRun
    words = Words(
        constants="the radius, the strength of the regulariser, the number and size of steps",
        noise="weights' noise",
        unknown=Assumption(
            statement=UNKNOWN_NOISE,
            status="checked",
            by="it comes from the operating system's entropy and is not kept",
        ),
    )
    own: ClassVar[tuple[str, ...]]
    problem: LinearProblem
    sigma: float

    @property
    def radius(self) -> float:
        """The radius of the ball onto which weights are projected, or which contains the minimiser."""
        return self.problem.radius

    @property
    def learners(self) -> tuple[Self]:
        """The only run, which is this learner. A search has several runs."""
        return (self,)

    @classmethod
    def from_constants(cls, constants: PlanConstants) -> Self:
        """Return the plan of the first run in the constants."""
        return cls.of_runs(constants)[0]

    @classmethod
    def of_runs(cls, constants: PlanConstants) -> tuple[Self, ...]:
        """Return the plans of all runs in the constants; raises the errors of `from_constants`."""
        return tuple(cls._of_run(constants, run) for run in constants.runs_of(PrivateRun))

    @classmethod
    def _of_run(cls, constants: PlanConstants, run: PrivateRun) -> Self:
        given = run.model_dump(exclude_none=True, exclude={"radius", "sigma"})
        if foreign := [name for name in given if name not in cls.own]:
            raise ParameterError(f"{cls.name} has no {' and no '.join(foreign)}")
        if len(given) < len(cls.own):
            raise ParameterError(f"{cls.name.replace('-', ' ')} needs {' and '.join(cls.own)}")
        planned: Callable[..., Self] = cls
        return planned(problem=constants.problem(radius=run.radius), sigma=run.sigma, **given)

    def longest_published(self, candidates: int) -> float:
        """Return a bound on the norm of published weights. Weights with noise may exceed it, but rarely.

        Args:
            candidates: Number of candidate models, including this one.
        """
        return self.problem.longest_weights


@dataclass(frozen=True, kw_only=True)
class NoisyDescent(Learner):
    """Algorithm 1: full-batch projected descent with noise on every gradient, which publishes its mean iterate.

    The first of ``T`` iterates is 0, so there are ``T - 1`` noisy gradients. Their guarantees compose exactly.
    Publishing only the mean of the iterates neither improves nor weakens the guarantee.

    Attributes:
        problem: Public bounds of the records.
        steps: Number of iterates ``T``, including the start; at least 2.
        step_size: Step size ``eta``.
        sigma: Standard deviation of the noise on a mean gradient, per coordinate.
        regulariser: Curvature of a term that is added to the loss and does not depend on records, such as a regulariser
            around public weights.
    """

    name = "noisy-gradient-descent"
    own = ("steps", "step_size")
    problem: LinearProblem
    steps: int
    step_size: float
    sigma: float
    regulariser: float = 0.0

    def __post_init__(self) -> None:
        """Check every value."""
        require_count(least=2, steps=self.steps)
        require_positive(step_size=self.step_size)
        require_non_negative(regulariser=self.regulariser)
        required_sigma(self.sigma)

    @property
    def releases(self) -> int:
        """Number of noisy gradients."""
        return self.steps - 1

    @property
    def displacement(self) -> float:
        """Largest distance between the stored weights and the weights that a step with exact noise would give."""
        return displaced(
            features=self.problem.features,
            noise_std=self.step_size * self.sigma,
            weight_norm=self.problem.longest_weights * (1 + 2 * self.step_size * self.regulariser)
            + self.step_size * self.problem.gradient_bound,
        )

    @property
    def sensitivity(self) -> float:
        """How far one record moves a computed mean gradient."""
        at = self.displacement
        exact = mean_sensitivity(self.problem.gradient_bound, n=self.problem.n, relation=self.problem.relation)
        # A step starts from the stored weights of the previous step. Divided by eta, the error of these weights counts
        # as an error of the gradient.
        return moved(
            exact, self.problem.gradient_error + (1 / self.step_size + self.problem.smoothness + self.regulariser) * at
        )

    @property
    def mu(self) -> float:
        """``mu`` of all noisy gradients together."""
        return mu_of(self.sensitivity, sigma=self.sigma, releases=self.releases)

    @property
    def noise_resolution(self) -> float:
        """Largest distance between a step's weights and the weights that exact noise would give."""
        return self.displacement

    @property
    def calibration(self) -> Calibration:
        """The noise and the steps of the run, and the cost of both."""
        return Calibration(self.sigma, self.steps, step_size=self.step_size, cost=self.regret_bound)

    @property
    def parts(self) -> tuple[Self]:
        """The runs that a certificate lists: only this run.

        Raises:
            ParameterError: The run has a regulariser.
        """
        if self.regulariser:
            raise ParameterError("certificates cover only descent on the loss alone: the regulariser must be 0")
        return (self,)

    @classmethod
    def plan(
        cls,
        problem: LinearProblem,
        *,
        epsilon: float,
        delta: float,
        steps: int | None = None,
        step_size: float | None = None,
        runs: int = 1,
        regulariser: float = 0.0,
    ) -> Self:
        """Return the (epsilon, delta)-private run with the least noise.

        For losses without a bound on slopes, the step size is that of Theorem 8. For other losses, it follows from the
        bound for Lipschitz and smooth losses (derived).

        Args:
            problem: Bounds of the records.
            epsilon: Target epsilon, above 0.
            delta: Target delta, strictly between 0 and 1.
            steps: Number of iterates ``T``; None for the number of records, at most `USUAL_STEPS`.
            step_size: Step size ``eta``; None for the step size of the analysis.
            runs: Number of runs that use the same records and share epsilon and delta.
            regulariser: Curvature of a term that is added to the loss (see the class).

        Raises:
            AssumptionError: float64 is too coarse for so little noise.
        """
        require_count(least=1, runs=runs)
        steps = max(2, min(problem.n, USUAL_STEPS)) if steps is None else steps
        require_count(least=2, steps=steps)
        exact = mean_sensitivity(problem.gradient_bound, n=problem.n, relation=problem.relation)
        releases = (steps - 1) * runs
        sigma = sigma_for(exact, epsilon=epsilon, delta=delta, releases=releases)
        eta = usual_step_size(problem, steps, sigma) if step_size is None else step_size
        for _ in range(3):  # Rounding depends on sigma, but this effect is far below sigma's last digits.
            planned = cls(problem=problem, steps=steps, step_size=eta, sigma=sigma, regulariser=regulariser)
            _require_fine(planned.sensitivity, exact)
            sigma = sigma_for(planned.sensitivity, epsilon=epsilon, delta=delta, releases=releases)
        return replace(planned, sigma=_enough(sigma, planned, math.sqrt(runs), mu_from_epsilon(epsilon, delta)))

    @property
    def regret_bound(self) -> float:
        """Bound on the mean regret of the iterates; infinite if the step size is too large for the bound.

        Lemma 7 with explicit constants is ``D^2 / (eta T) + 4 eta (H Y^2 + sigma^2 d)`` for ``eta <= 1 / (4 H)``,
        without a regulariser.
        """
        smoothness, noise = self.problem.smoothness, self.sigma**2 * self.problem.features
        if self.regulariser or self.step_size > 1 / (4 * smoothness) * (1 + 1e-12):
            return math.inf
        at_zero = smoothness * self.problem.loss.at_zero**2
        return self.problem.radius**2 / (self.step_size * self.steps) + 4 * self.step_size * (at_zero + noise)


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation(Learner):
    """Algorithm 3: the minimiser of a strongly convex objective in a ball, published once with Gaussian noise.

    One record moves the minimiser by at most ``2 G_w / (lambda n)`` (half of this under ``add-remove``), and by at most
    the ball's diameter. The loss must be convex. A solver stops when its weights are certified to be within
    `inexactness` of the exact minimiser. This distance is counted twice in the sensitivity.

    Attributes:
        problem: Bounds of the records.
        strong_convexity: Strong convexity ``lambda``.
        sigma: Standard deviation of the noise, per coordinate.
        inexactness: Largest distance of computed weights from the minimiser.

    Raises:
        ParameterError: The loss is not convex.
    """

    name = "output-perturbation"
    own = ("strong_convexity", "inexactness")
    problem: LinearProblem
    strong_convexity: float
    sigma: float
    inexactness: float

    def __post_init__(self) -> None:
        """Check every value."""
        require_positive(strong_convexity=self.strong_convexity, inexactness=self.inexactness)
        required_sigma(self.sigma)
        if not self.problem.loss.convex:
            raise ParameterError(
                f"output perturbation needs a convex loss, but the {self.problem.loss.name} loss is not convex: one "
                "record may move the minimiser by any amount"
            )

    @property
    def exact_sensitivity(self) -> float:
        """How far one record moves the exact minimiser."""
        return _minimiser_sensitivity(self.problem, self.strong_convexity)

    @property
    def sensitivity(self) -> float:
        """How far one record moves computed weights, including rounding."""
        stored = (self.problem.features + 8) * UNIT * self.problem.longest_weights
        return moved(self.exact_sensitivity, self.inexactness + stored)

    @property
    def mu(self) -> float:
        """``mu`` of the published weights."""
        return mu_of(self.sensitivity, sigma=self.sigma)

    @property
    def noise_resolution(self) -> float:
        """Largest distance between the published weights and the weights that exact noise would give."""
        return self.resolution(self.sigma)

    @property
    def calibration(self) -> Calibration:
        """The noise and the strong convexity of the run, and the cost of both."""
        return Calibration(self.sigma, None, strong_convexity=self.strong_convexity, cost=self.privacy_cost)

    def longest_published(self, candidates: int) -> float:
        """Return a bound that the norms of all candidates do not exceed, except with a probability of about 5 %."""
        return super().longest_published(candidates) + self.sigma * math.sqrt(2 * math.log(8 * candidates / 0.05))

    @classmethod
    def plan(
        cls,
        problem: LinearProblem,
        *,
        epsilon: float,
        delta: float,
        strong_convexity: float | None = None,
        runs: int = 1,
    ) -> Self:
        """Return the (epsilon, delta)-private run with the least noise.

        Args:
            problem: Public bounds of the records.
            epsilon: Target epsilon, above 0.
            delta: Target delta, strictly between 0 and 1.
            strong_convexity: Strong convexity ``lambda``; None for `least_cost_strength`.
            runs: Number of runs that use the same records and share epsilon and delta.

        Raises:
            AssumptionError: float64 is too coarse for so little noise.
        """
        require_count(least=1, runs=runs)
        strength = strong_convexity
        if strength is None:
            strength = least_cost_strength(problem, noise_multiplier(epsilon, delta) * math.sqrt(runs))
        require_positive(strong_convexity=strength)
        exact = _minimiser_sensitivity(problem, strength)
        inexactness = SOLVER_SHARE / 2 * exact
        if problem.gradient_error / strength > inexactness / 2:
            raise AssumptionError(
                f"strong_convexity = {strength:.3g} is too small for float64: the gradient of {problem.n} records is "
                f"off by up to {problem.gradient_error:.3g}, so the minimiser is off by up to "
                f"{problem.gradient_error / strength:.3g}, but at most {inexactness / 2:.3g} is allowed"
            )
        planned = cls(problem=problem, strong_convexity=strength, sigma=1.0, inexactness=inexactness)
        _require_fine(planned.sensitivity, exact)
        sigma = sigma_for(planned.sensitivity, epsilon=epsilon, delta=delta, releases=runs)
        return replace(planned, sigma=_enough(sigma, planned, math.sqrt(runs), mu_from_epsilon(epsilon, delta)))

    @property
    def privacy_cost(self) -> float:
        """Bound on the increase of the empirical risk that the regulariser and the noise cause.

        The regulariser adds at most ``lambda D^2 / 2``. The noise adds at most ``H sigma^2 X^2 / 2`` (Theorem 10) or
        ``sqrt(2 / pi) G X sigma`` (Theorem 12).
        """
        return self.strong_convexity / 2 * self.problem.radius**2 + _noise_cost(self.problem, self.sigma)


LEARNERS: dict[str, type[Learner]] = {kind.name: kind for kind in (NoisyDescent, OutputPerturbation)}
"""All learners, by name."""


def least_cost_strength(problem: LinearProblem, multiplier: float) -> float:
    """Return the ``lambda`` that minimises `OutputPerturbation.privacy_cost` (derived).

    For smooth losses, it is ``2 (z G_w sqrt(H) X / (D n))^(2/3)``, at a cost of ``3 lambda D^2 / 4``. For Lipschitz
    losses, it is ``(2 G X / D) sqrt(sqrt(2 / pi) z / n)``, at a cost of ``lambda D^2``. For a loss that is smooth and
    Lipschitz, the value with the smaller cost is returned.

    Args:
        problem: Bounds of the records.
        multiplier: Noise multiplier ``z``, in units of the sensitivity.
    """
    require_positive(multiplier=multiplier)
    # The sensitivity is 2 or 1 times G_w / (lambda n), depending on the relation. The formulas assume 2.
    z = multiplier * mean_sensitivity(1.0, n=1, relation=problem.relation) / 2
    bound, smooth = problem.gradient_bound, problem.smoothness
    for_smooth = 2 * math.pow(z * bound * math.sqrt(smooth) / (problem.radius * problem.n), 2 / 3)
    if problem.loss.lipschitz is None:
        return for_smooth
    slope = problem.loss.lipschitz * problem.longest_row
    for_lipschitz = 2 * slope / problem.radius * math.sqrt(math.sqrt(2 / math.pi) * z / problem.n)
    return for_smooth if 0.75 * for_smooth <= for_lipschitz else for_lipschitz


def embedding_dimension(problem: LinearProblem, epsilon: float) -> int:
    """Return Algorithm 2's ``k`` without its constant and its logarithm. The result is at most the number of features.

    This is ``(sqrt(H) D X n epsilon / (Y + sqrt(H) D X))^(2/3)``, rounded up. Privacy needs no logarithm, because rows
    are capped. The expected error of an embedding, ``H D^2 X^2 / k``, needs no logarithm either. For Lipschitz losses,
    Theorem 32 sets ``k`` to ``n epsilon``, which is more weights than the records can determine.
    """
    require_positive(epsilon=epsilon)
    reach = math.sqrt(problem.loss.smoothness) * problem.radius * problem.row_norm
    dimension = math.pow(reach * problem.n * epsilon / (problem.loss.at_zero + reach), 2 / 3)
    return max(1, min(problem.features, math.ceil(dimension)))


def usual_step_size(problem: LinearProblem, steps: int, sigma: float) -> float:
    """Return the step size of noisy descent.

    For losses without a bound on slopes, the step size is the one in Theorem 8. For other losses, the step size is
    derived.

    Args:
        problem: Bounds of the records.
        steps: Number of iterates ``T``.
        sigma: Standard deviation of the noise on a mean gradient, per coordinate.
    """
    smoothness, noise = problem.smoothness, sigma**2 * problem.features
    if problem.loss.lipschitz is None:
        at_zero = smoothness * problem.loss.at_zero**2
        return min(problem.radius / math.sqrt(steps * max(at_zero, noise)), 1 / (4 * smoothness))
    return min(problem.radius / math.sqrt(steps * (problem.gradient_bound**2 + noise)), 1 / (2 * smoothness))


def _minimiser_sensitivity(problem: LinearProblem, strength: float) -> float:
    moves = mean_sensitivity(problem.gradient_bound, n=problem.n, relation=problem.relation)
    return min(moves / strength, 2 * problem.radius) * OUTWARD


def _noise_cost(problem: LinearProblem, sigma: float) -> float:
    smooth = problem.smoothness / 2 * sigma**2
    if problem.loss.lipschitz is None:
        return smooth
    return min(smooth, math.sqrt(2 / math.pi) * problem.loss.lipschitz * problem.longest_row * sigma)


def _require_fine(sensitivity: float, exact: float) -> None:
    if not sensitivity <= (1 + ROUNDING_SHARE) * exact:
        raise AssumptionError(
            f"float64 is too coarse: one record moves the released numbers by {exact:.3g}, and rounding adds "
            f"{sensitivity - exact:.3g}; use fewer records at once, a smaller radius or a larger epsilon"
        )


def _enough(sigma: float, planned: NoisyDescent | OutputPerturbation, scale: float, mu: float) -> float:
    """Return the noise, increased until the ``mu`` that a certificate will compute is at most the target."""
    nudge = 2.0**-50
    while replace(planned, sigma=sigma).mu * scale > mu:
        sigma *= 1 + nudge
        nudge *= 2
    return sigma
