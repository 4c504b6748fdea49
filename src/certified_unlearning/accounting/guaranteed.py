"""The numbers that a certificate states about a run."""

from typing import NamedTuple


class Guaranteed(NamedTuple):
    """The numbers of a certificate that are computed from the certificate's constants.

    Attributes:
        epsilon: Epsilon, including rounding.
        mu: ``mu`` of the same guarantee in the form of Gaussian differential privacy; None if the accountant gives
            none.
        extra_delta: Addition to delta for stopping learning before stationarity, for rounding, and for noise.
        epsilon_in_exact_arithmetic: Epsilon by the papers' analysis.
        rounding_error: Largest distance between the end of a computed step and the end of the exact step.
        noise_delta: The part of ``extra_delta`` that covers random norms above their assumed bounds.
        noise_resolution: Largest distance of a step's noise, or of the published noise, from exact Gaussian noise.
    """

    epsilon: float
    mu: float | None
    extra_delta: float
    epsilon_in_exact_arithmetic: float | None = None
    rounding_error: float | None = None
    noise_delta: float | None = None
    noise_resolution: float | None = None
