"""Confidence bounds on a probability from independent trials (Clopper and Pearson 1934)."""

from certified_unlearning.errors import ParameterError


def least_rate(successes: int, trials: int, *, miss: float) -> float:
    """Return a lower bound on the probability of a success.

    Args:
        successes: Number of successful trials.
        trials: Number of independent trials, at least 1.
        miss: Upper bound on the probability that the returned bound is above the true probability.

    Raises:
        ParameterError: There are more successes than trials, or no trials.
    """
    _require_counts(successes, trials)
    if not successes:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(successes, trials - successes + 1, miss))


def most_rate(successes: int, trials: int, *, miss: float) -> float:
    """Return an upper bound on the probability of a success. The arguments and errors are those of `least_rate`."""
    _require_counts(successes, trials)
    if successes == trials:
        return 1.0
    from scipy.special import betainccinv

    return float(betainccinv(successes + 1, trials - successes, miss))


def _require_counts(successes: int, trials: int) -> None:
    if not 0 <= successes <= trials or trials == 0:
        raise ParameterError(
            "trials must be at least 1, and successes must lie between 0 and trials, "
            f"got successes = {successes} and trials = {trials}"
        )
