"""What an accountant returns: a privacy curve, and the schedule of noisy steps that it speaks of."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from certified_unlearning.accounting.core.checks import require_count, require_counts, require_positive
from certified_unlearning.accounting.core.search import Array
from certified_unlearning.errors import ParameterError


@dataclass(frozen=True)
class RenyiCurve:
    """Upper bounds on a two-sided Rényi divergence, order by order.

    Attributes:
        log_divergence: Maps an array of orders above 1 to the logarithms of the bounds.
        orders: The only orders at which the curve is known, increasing; None where it is known at all orders.
    """

    log_divergence: Callable[[Array], Array]
    orders: Array | None = None

    def __call__(self, alpha: Array) -> Array:
        """Return the bounds at an array of orders."""
        with np.errstate(over="ignore"):
            bounds: Array = np.exp(self.log_divergence(alpha))
        return bounds


@dataclass(frozen=True)
class GaussianCurve:
    """``mu``-Gaussian differential privacy: no test tells the two laws apart better than ``N(0, 1)`` and ``N(mu, 1)``.

    Attributes:
        mu: At least 0.
    """

    mu: float

    def __post_init__(self) -> None:
        if not self.mu >= 0:
            raise ParameterError(f"mu must be at least 0, got {self.mu}")


PrivacyCurve = RenyiCurve | GaussianCurve


@dataclass(frozen=True)
class Schedule:
    """Noisy steps of learning, then of one removal request after another.

    Attributes:
        sigma: Noise scale; a step's noise has standard deviation ``sqrt(2 eta) sigma`` in every coordinate.
        records_per_request: Records that a request removes: one size for all, or one for each request; no two requests
            share a record.
        steps: ``K_1, K_2, ...``, the steps of each request; none, with sizes ``()``, before the first request.
        learning_steps: ``T``; infinite for learning to stationarity, which ``lsi`` and ``lsi-tight`` always assume.

    Raises:
        ParameterError: A value makes no sense.
    """

    sigma: float
    records_per_request: int | tuple[int, ...]
    steps: tuple[int, ...]
    learning_steps: float = math.inf

    def __post_init__(self) -> None:
        require_positive(sigma=self.sigma)
        sizes = self.records_per_request
        if not isinstance(sizes, tuple):
            require_count(least=1, records_per_request=sizes)
        elif len(sizes) != len(self.steps):
            raise ParameterError(
                "records_per_request must be one number for all requests or one for each, as many as steps has "
                f"({len(self.steps)}), got {len(sizes)}"
            )
        elif sizes:
            require_counts("records_per_request", sizes, least=1)
        if sizes != ():
            require_counts("steps", self.steps, least=0)
        if self.learning_steps != math.inf:
            require_count(least=0, learning_steps=self.learning_steps)

    @property
    def records(self) -> tuple[int, ...]:
        """How many records each request removes."""
        sizes = self.records_per_request
        return sizes if isinstance(sizes, tuple) else (sizes,) * len(self.steps)

    def followed_by(self, *, records: int, steps: int) -> "Schedule":
        """Return the schedule with one more request."""
        return replace(self, records_per_request=(*self.records, records), steps=(*self.steps, steps))
