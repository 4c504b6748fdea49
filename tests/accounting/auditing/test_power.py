"""What audits see of canaries of a given strength: the tables of their specification, by simulation."""

import math

import numpy as np
import pytest

from certified_unlearning.accounting.auditing.bounds import epsilon_at_least
from certified_unlearning.accounting.auditing.guesses import log_tail

STRENGTHS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0)
"""How far a canary moves what is published, in standard deviations of its noise."""
SHARES = {
    (20, 0.05): (8, (0.08, 0.17, 0.30, 0.45, 0.63, 0.88, 1, 1)),
    (50, 0.05): (17, (0.19, 0.43, 0.69, 0.88, 0.97, 1, 1, 1)),
    (100, 0.05): (31, (0.40, 0.78, 0.95, 1, 1, 1, 1, 1)),
    (200, 0.05): (58, (0.76, 0.98, 1, 1, 1, 1, 1, 1)),
    (20, 1e-3): (10, (0, 0, 0, 0.01, 0.02, 0.08, 0.48, 0.86)),
    (50, 1e-3): (19, (0.02, 0.08, 0.23, 0.47, 0.73, 0.97, 1, 1)),
    (100, 1e-3): (34, (0.07, 0.31, 0.68, 0.93, 0.99, 1, 1, 1)),
    (200, 1e-3): (63, (0.22, 0.74, 0.98, 1, 1, 1, 1, 1)),
}
"""By canaries and level: from how many right guesses on epsilon is above 1, and how often there are so many."""
DRAWS = 2000


@pytest.mark.parametrize(("m", "alpha"), SHARES)
def test_canaries_of_a_strength_are_seen_as_often_as_specified(m: int, alpha: float) -> None:
    """The specification drew 4000 times or more: a share is off by 5 standard errors with probability 1e-6. Seeded."""
    least, shares = SHARES[m, alpha]
    tails = [log_tail(canaries=m, members=m // 2, named=m // 2, right=right) for right in range(m // 2 + 1)]
    assert next(right for right, log_p in enumerate(tails) if epsilon_at_least(alpha, log_p) > 1) == least
    rng = np.random.default_rng(m)
    for strength, share in zip(STRENGTHS, shares, strict=True):
        scores = rng.standard_normal((DRAWS, m))
        scores[:, : m // 2] += strength
        named = np.argpartition(-scores, m // 2, axis=1)[:, : m // 2]
        found = float(((named < m // 2).sum(axis=1) >= least).mean())
        error = math.sqrt(max(share * (1 - share), 0.005) * (1 / DRAWS + 1 / 4000))
        assert abs(found - share) < 5 * error + 0.005, strength


def test_strength_times_the_root_of_the_number_decides() -> None:
    """At 14, and 50 canaries or more, .97 are seen at 1e-3. Seeded."""
    rng = np.random.default_rng(0)
    for m, least in ((50, 19), (100, 34), (200, 63)):
        scores = rng.standard_normal((DRAWS, m))
        scores[:, : m // 2] += 14 / math.sqrt(m)
        named = np.argpartition(-scores, m // 2, axis=1)[:, : m // 2]
        assert ((named < m // 2).sum(axis=1) >= least).mean() > 0.95
