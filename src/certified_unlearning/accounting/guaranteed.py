"""The numbers that a certificate states of a run."""

from typing import NamedTuple


class Guaranteed(NamedTuple):
    """Numbers of a certificate that its constants give.

    Attributes:
        epsilon: With what rounding adds.
        mu: The same as Gaussian differential privacy, where the accountant gives one.
        extra_delta: Added to delta: for learning that stopped before stationarity, for rounding, for noise.
        epsilon_in_exact_arithmetic: What the papers' analysis gives.
        rounding_error: How far a computed step may end from the exact one.
        noise_delta: The part of ``extra_delta`` that pays for random norms which are larger than supposed.
        noise_resolution: How far a step's noise, or the published noise, may be from exact Gaussian noise.
    """

    epsilon: float
    mu: float | None
    extra_delta: float
    epsilon_in_exact_arithmetic: float | None = None
    rounding_error: float | None = None
    noise_delta: float | None = None
    noise_resolution: float | None = None
