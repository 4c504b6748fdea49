"""Exact noisy gradient descent on bounded non-convex losses: waves on the line, computed by quadrature.

Theorems 5.2, G.22 and G.24 and Lemma G.23 of Chourasia and Shah, Forget Unlearning (ICML 2023), are compared with these
distributions, which are exact except for rounding. A record is a phase: its loss ``c sin(theta + phase)`` is within
``c`` of 0, ``c``-Lipschitz and ``c``-smooth. With the regulariser ``lambda theta^2 / 2``, a step is ``theta <- theta -
eta grad f_D(theta) + sqrt(2 eta) sigma N(0, 1)``.

A distribution is stored as its density divided by the density of the start, ``N(0, sigma^2 / lambda)``, in coefficients
of orthonormal Hermite polynomials. A step is then a small matrix, and thousands of steps are a power of this matrix, so
no grid has to resolve the noise of a step. Integrals over a step's noise are exact, and integrals over the start are
computed by Gaussian quadrature. Distributions are compared on a grid that extends, on both sides, by eight standard
deviations of the start's distribution.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from certified_unlearning.accounting.core.checks import require_count, require_positive
from certified_unlearning.accounting.deletion.rates import check_order
from certified_unlearning.errors import ParameterError

Array = npt.NDArray[np.float64]
Phases = tuple[float, ...]

_DEGREES = 72
_NODES = 200
# The quadrature is exact for polynomials of degree up to twice this number minus one, which covers every degree.
_NOISE_NODES = 40


@dataclass(frozen=True)
class Waves:
    """The losses and the constants of a step.

    Attributes:
        amplitude: The amplitude ``c`` of every record's loss.
        regularisation: The coefficient ``lambda``.
        sigma: The noise scale.
        step_size: The step size ``eta``.
    """

    amplitude: float
    regularisation: float
    sigma: float
    step_size: float

    def __post_init__(self) -> None:
        require_positive(
            amplitude=self.amplitude,
            regularisation=self.regularisation,
            sigma=self.sigma,
            step_size=self.step_size,
        )

    @property
    def nodes(self) -> Array:
        """The points at which distributions are evaluated, shape ``(nodes,)``."""
        points, _, _ = _grid()
        return points * math.sqrt(self.sigma**2 / self.regularisation)

    def start(self) -> Array:
        """Return the distribution of the start, ``N(0, sigma^2 / lambda)``, as coefficients, shape ``(degrees,)``."""
        law = np.zeros(_DEGREES)
        law[0] = 1.0
        return law

    def after(self, law: Array, records: Phases, *, steps: int) -> Array:
        """Return the distribution after some steps on these records.

        Args:
            law: The coefficients of the distribution before these steps, shape ``(degrees,)``.
            records: The phases of the records.
            steps: The number of steps, a whole number of at least 0.
        """
        require_count(least=0, steps=steps)
        power = _step(self, records)
        while steps:
            if steps % 2:
                law = power @ law
            power, steps = power @ power, steps // 2
        return law

    def density(self, law: Array) -> Array:
        """Return, at `nodes`, the density of a distribution divided by the density of the start's distribution.

        Raises:
            ParameterError: The density is not above 0 everywhere, because the polynomials do not resolve this
                distribution.
        """
        _, _, polynomials = _grid()
        ratio = law @ polynomials
        if not (ratio > 0).all():
            raise ParameterError(
                f"the density is not above 0 at {int((ratio <= 0).sum())} of {len(ratio)} points: {_DEGREES} "
                "polynomials do not resolve its waves; take a smaller sigma or a larger regularisation"
            )
        return np.asarray(ratio)

    def gibbs(self, records: Phases) -> Array:
        """Return, at `nodes`, the density of the Gibbs distribution divided by the density of the start's distribution.

        The quotient is ``exp(-mean loss / sigma^2)``, normalised.
        """
        _, weights, _ = _grid()
        ratio = np.exp(-self.mean_loss(self.nodes, records) / self.sigma**2)
        return np.asarray(ratio / (weights @ ratio))

    def mean_loss(self, theta: Array, records: Phases) -> Array:
        """Return the mean loss without its regulariser."""
        losses: Array = self.amplitude * np.mean([np.sin(theta + phase) for phase in records], axis=0)
        return losses

    def risk(self, density: Array, records: Phases) -> float:
        """Return the excess risk of a distribution; the argument ``density`` is a result of `density` or `gibbs`."""
        _, weights, _ = _grid()
        objective = self.mean_loss(self.nodes, records) + self.regularisation / 2 * self.nodes**2
        # Beyond this point, the regulariser alone exceeds every value of the loss.
        reach = 2 * math.sqrt(self.amplitude / self.regularisation) + 1
        fine = np.linspace(-reach, reach, 20_001)
        least = (self.mean_loss(fine, records) + self.regularisation / 2 * fine**2).min()
        return float(weights @ (density * objective) - least)


def divergence(density: Array, reference: Array, *, alpha: float) -> float:
    """Return the Rényi divergence of two distributions.

    Both arguments are results of `Waves.density` or `Waves.gibbs`.
    """
    check_order(alpha)
    _, weights, _ = _grid()
    return math.log(float(weights @ (density**alpha * reference ** (1 - alpha)))) / (alpha - 1)


@cache
def _grid() -> tuple[Array, Array, Array]:
    """Return points, their weights under the standard normal distribution, and the polynomials at these points."""
    points = np.linspace(-8, 8, 801)
    weights = np.exp(-(points**2) / 2)
    return points, weights / weights.sum(), _polynomials(points)


@cache
def _quadrature() -> tuple[Array, Array, Array]:
    """Return nodes and weights of a quadrature for the standard normal distribution, and the polynomials at the nodes.

    The values of the polynomials have the shape ``(degrees, nodes)``.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes, weights / weights.sum(), _polynomials(nodes)


def _polynomials(points: Array) -> Array:
    """Return the orthonormal Hermite polynomials at some points, shape ``(degrees, *points.shape)``."""
    values = np.empty((_DEGREES, *points.shape))
    values[0], values[1] = 1.0, points
    for degree in range(1, _DEGREES - 1):
        values[degree + 1] = points * values[degree] - math.sqrt(degree) * values[degree - 1]
        values[degree + 1] /= math.sqrt(degree + 1)
    return values


def _step(waves: Waves, records: Phases) -> Array:
    """Return the matrix by which a step multiplies coefficients.

    Its entries are ``E h_i(theta after) h_j(theta before)``, where ``theta before`` has the start's distribution.
    """
    points, weights, polynomials = _quadrature()
    scale = math.sqrt(waves.sigma**2 / waves.regularisation)
    theta = points * scale
    slope = waves.amplitude * np.mean([np.cos(theta + phase) for phase in records], axis=0)
    moved = (theta - waves.step_size * (slope + waves.regularisation * theta)) / scale
    noise, noise_weights = np.polynomial.hermite_e.hermegauss(_NOISE_NODES)
    spread = math.sqrt(2 * waves.step_size * waves.regularisation)
    after = _polynomials(moved[:, np.newaxis] + spread * noise) @ (noise_weights / noise_weights.sum())
    matrix: Array = (after * weights) @ polynomials.T
    # A step keeps the total mass, even after millions of steps.
    matrix[0] = np.eye(_DEGREES)[0]
    return matrix
