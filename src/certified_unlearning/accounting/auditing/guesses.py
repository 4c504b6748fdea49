"""Natural logarithms of the probability that at least a given number of guesses are right by chance.

A fixed number of canaries, drawn at random, are members: they were learned and removed. A guesser names canaries. If
the model's distribution does not depend on which canaries were drawn, the number of right guesses is hypergeometric,
whatever the guesser does.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from certified_unlearning.errors import ParameterError

MOST_SPLITS = 20_000
"""The largest number of ways to name canaries of several classes. All ways are tried, so more ways are refused."""


def log_tail(*, canaries: int, members: int, named: int, right: int) -> float:
    """Return ``ln P(V >= right)``, where ``V`` is the number of members among ``named`` canaries.

    Args:
        canaries: Number of canaries, ``m``.
        members: Number of canaries drawn as members, ``s``.
        named: Number of canaries that the guesser names as members, ``k``.
        right: Number of named canaries that are members, ``v``.

    Raises:
        ParameterError: ``members`` or ``named`` is not between 0 and ``canaries``.
    """
    _require_numbers(canaries, members, named)
    from scipy.stats import hypergeom

    return min(0.0, float(hypergeom.logsf(right - 1, canaries, members, named)))


def log_tail_of_both(*, canaries: int, members: int, named: int, named_others: int, right: int) -> float:
    """Return the value of `log_tail` for a guesser that also names canaries as non-members.

    The probability is ``P(A + k' - B >= right)``: ``A`` is the number of members among the ``k`` canaries that are
    named as members, and ``B`` is the number of members among the ``k'`` that are named as non-members. A
    hypergeometric distribution of ``k + k'`` guesses would be wrong, because its tail is too small.

    Args:
        canaries: Number of canaries, ``m``.
        members: Number of canaries drawn as members, ``s``.
        named: Number of canaries named as members, ``k``.
        named_others: Number of canaries named as non-members, ``k'``.
        right: Number of right guesses of both kinds.

    Raises:
        ParameterError: ``members`` or ``named + named_others`` is not between 0 and ``canaries``.
    """
    _require_numbers(canaries, members, named + named_others)
    from scipy.special import logsumexp
    from scipy.stats import hypergeom

    marked = np.arange(max(0, named - (canaries - members)), min(named, members) + 1)
    first = hypergeom.logpmf(marked, canaries, members, named)
    # The largest number of members among the named non-members that leaves this many right guesses.
    most = marked + named_others - right
    rest = hypergeom.logcdf(np.maximum(most, 0), canaries - named, members - marked, named_others)
    return min(0.0, float(logsumexp(np.where(most < 0, -np.inf, first + rest))))


def log_tail_by_class(*, canaries: Sequence[int], members: Sequence[int], named: int, right: int) -> float:
    """Return the value of `log_tail` if a fixed number of members is drawn from each class of canaries.

    The result is the largest probability over all ways to name this many canaries, because a guesser may know which way
    is likeliest to succeed.

    Args:
        canaries: Number of canaries of each class.
        members: Number of members drawn from each class.
        named: Number of canaries that the guesser names, in all classes together.
        right: Number of named canaries that are members.

    Raises:
        ParameterError: The numbers are inconsistent, or there are too many ways to name canaries.
    """
    _require_numbers(sum(canaries), sum(members), named)
    for one, drawn in zip(canaries, members, strict=True):
        _require_numbers(one, drawn, 0)
    ways = math.prod(min(one, named) + 1 for one in canaries[1:])
    if ways > MOST_SPLITS:
        raise ParameterError(
            f"there are about {ways:,} ways to name {named} canaries of these classes, but at most {MOST_SPLITS:,} can "
            "be tried: use canaries of fewer classes"
        )
    from scipy.stats import hypergeom

    laws = [
        [hypergeom.pmf(np.arange(some + 1), one, drawn, some) for some in range(min(one, named) + 1)]
        for one, drawn in zip(canaries, members, strict=True)
    ]

    def tail(split: Sequence[int]) -> float:
        law = np.ones(1)
        for number, some in enumerate(split):
            law = np.convolve(law, laws[number][some])
        return float(law[right:].sum()) if right > 0 else 1.0

    most = max(tail(split) for split in _splits(named, canaries))
    return min(0.0, math.log(most)) if most > 0 else -math.inf


def _splits(named: int, canaries: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield all ways to divide a number of named canaries among the classes."""
    if len(canaries) == 1:
        if named <= canaries[0]:
            yield (named,)
        return
    for some in range(min(named, canaries[0]) + 1):
        for others in _splits(named - some, canaries[1:]):
            yield (some, *others)


def _require_numbers(canaries: int, members: int, named: int) -> None:
    if not (0 <= members <= canaries and 0 <= named <= canaries):
        raise ParameterError(
            "the numbers of members and of named canaries must lie between 0 and the number of canaries, "
            f"{canaries}, got {members} members and {named} named canaries"
        )
