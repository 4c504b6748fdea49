"""How long shards last: the number of uniform requests until all of them, or the first one, have so many.

Source: Wicker et al., *Certificates of Differential Privacy and Unlearning for Gradient-Based Training*, section 4.4,
has an order of growth for all shards; the numbers are the expected times of a Poisson stream, which are those of single
requests (each shard's hits are then independent). A shard that can lose k records is hit k + 1 times before it is out.
"""

import math
from collections.abc import Callable

from scipy.integrate import quad
from scipy.special import gammaincc

from certified_unlearning.accounting.core.checks import require_count

_PRECISION = 1e-11


def requests_until_all(shards: int, hits: int) -> float:
    """Return the expected number of uniform requests until every shard has so many.

    Args:
        shards: ``d``.
        hits: ``m``.
    """
    return _expected(shards, hits, lambda few: -math.expm1(shards * math.log1p(-few)) if few < 1 else 1.0)


def requests_until_first(shards: int, hits: int) -> float:
    """Return the expected number of uniform requests until some shard has so many; see `requests_until_all`."""
    return _expected(shards, hits, lambda few: few**shards)


def _expected(shards: int, hits: int, waiting: Callable[[float], float]) -> float:
    """Integrate the probability of still waiting, as a function of the probability that one shard has too few hits."""
    require_count(least=1, shards=shards, hits=hits)
    # Beyond this many mean hits of a shard nobody is waiting any more, to double precision.
    end = hits + 12 * math.sqrt(hits * (1 + math.log(shards))) + 50 + 2 * math.log(shards)
    value, _ = quad(lambda mean: waiting(float(gammaincc(hits, mean))), 0, end, epsabs=0, epsrel=_PRECISION, limit=400)
    return shards * float(value)
