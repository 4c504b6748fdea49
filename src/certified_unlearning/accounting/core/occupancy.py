"""How long shards last: the number of uniform requests until the first shard, or every shard, has enough hits.

Source: Wicker et al., *Certificates of Differential Privacy and Unlearning for Gradient-Based Training*, section 4.4.
The paper states an asymptotic rate for the time until every shard has enough hits. The numbers here are expected
times of a Poisson stream, in which the shards' hits are independent. These times equal the expected numbers of requests
if requests come one by one. A shard that can lose k records is used up after k + 1 hits.
"""

import math
from collections.abc import Callable

from scipy.integrate import quad
from scipy.special import gammaincc

from certified_unlearning.accounting.core.checks import require_count

_PRECISION = 1e-11


def requests_until_all(shards: int, hits: int) -> float:
    """Return the expected number of uniform requests until every shard has been hit ``hits`` times.

    Args:
        shards: Number of shards, ``d``.
        hits: Number of hits, ``m``.
    """
    return _expected(shards, hits, lambda few: -math.expm1(shards * math.log1p(-few)) if few < 1 else 1.0)


def requests_until_first(shards: int, hits: int) -> float:
    """Return the expected number of uniform requests until some shard has been hit ``hits`` times.

    Args:
        shards: Number of shards, ``d``.
        hits: Number of hits, ``m``.
    """
    return _expected(shards, hits, lambda few: few**shards)


def _expected(shards: int, hits: int, waiting: Callable[[float], float]) -> float:
    """Return the integral of the probability that the wait goes on, which is the expected number of requests.

    The argument of the function ``waiting`` is the probability that a single shard still has too few hits. Its result
    is the probability that the wait goes on.
    """
    require_count(least=1, shards=shards, hits=hits)
    # Beyond this mean number of hits, the probability of still waiting is 0 in double precision.
    end = hits + 12 * math.sqrt(hits * (1 + math.log(shards))) + 50 + 2 * math.log(shards)
    value, _ = quad(lambda mean: waiting(float(gammaincc(hits, mean))), 0, end, epsabs=0, epsrel=_PRECISION, limit=400)
    return shards * float(value)
