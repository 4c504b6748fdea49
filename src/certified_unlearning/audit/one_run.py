"""Audits in one run, or in a few: a guesser names the canaries that were removed, and right guesses are counted.

The comparator has never seen a canary. If its distribution does not depend on which canaries were drawn, the number of
right guesses about it has a hypergeometric distribution, whatever the guesser does. So a model that is (epsilon,
delta)-close to the comparator has ``P(p <= beta) <= e^epsilon beta + delta`` for the p-value ``p`` of the guesses. One
run therefore gives a bound with confidence. The inequality is that of reconstruction robustness (Balle, Cherubin, Hayes
2022) with a secret whose baseline is hypergeometric. Audits of learning in one run are due to Steinke, Nasr, Jagielski
(2023).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri_exp
from sklearn.utils import check_X_y

from certified_unlearning.accounting.auditing.bounds import mu_at_least
from certified_unlearning.accounting.auditing.rates import least_rate
from certified_unlearning.accounting.core.checks import require_count, require_probability
from certified_unlearning.audit.canaries import Array, Guessing, Known, drawn_canaries, require_canaries
from certified_unlearning.audit.claims import Claim
from certified_unlearning.audit.guessers import Guess, Published
from certified_unlearning.audit.methods import AuditedMethod, Learn, Unlearn, method_of
from certified_unlearning.audit.result import AuditResult, AuditRun
from certified_unlearning.errors import InfeasibleError, ParameterError

VERDICT = 1e-3
"""Largest share of honest methods that are called ``violated``."""
AIM = 2.0
"""If there are several runs, `least_right` is optimised for a mechanism with this ``mu``."""


def audit(
    estimator: Any = None,
    X: Any = None,
    y: Any = None,
    *,
    learn: Learn | None = None,
    unlearn: Unlearn | None = None,
    publish: Callable[[Any], Published] | None = None,
    guess: Guess | None = None,
    canaries: int | tuple[ArrayLike, ArrayLike] = 50,
    removed: int | None = None,
    copies: int = 1,
    named: int | tuple[int, int] | None = None,
    by_class: bool = False,
    runs: int = 1,
    least_right: int | None = None,
    claim: Claim | None = None,
    request_size: int | None = None,
    alpha: float = VERDICT,
    random_state: int | np.random.Generator | None = None,
) -> AuditResult:
    """Search a model for traces of removed records, and return a lower bound to compare with the model's claim.

    Some of the canaries are drawn at random, learned together with ``X``, and removed. Then a guesser sees what the
    model publishes and names canaries. If the model forgot the canaries, the guesses are no better than chance.

    Args:
        estimator: An estimator of this package, whose certificate is then audited; a scikit-learn estimator, together
            with ``unlearn``; or an `AuditedMethod`. None: ``learn`` and ``unlearn`` are given.
        X: The records that stay, shape ``(n, features)``.
        y: Classes or targets of the records that stay, shape ``(n,)``.
        learn: ``learn(X, y)`` returns a model.
        unlearn: ``unlearn(model, X, y, gone)`` returns the model without the records at the positions ``gone`` of the
            ``X`` and ``y`` that the model learned from. It may change the model.
        publish: ``publish(model)`` returns what a model publishes, as a dict of arrays. None: weights of linear models,
            or scores of the canaries.
        guess: ``guess(published, known)`` returns a score for each canary; a larger score means a more likely member.
            It may use everything that is published and known (`Known`), but nothing that reveals which canaries were
            drawn. None: the package's own guess.
        canaries: Number of canaries, or their rows and labels. Canaries of your own must not be in ``X``.
        removed: Number of canaries that are drawn, learned and removed. None: half of them.
        copies: Number of equal records that make up one canary. The number of records that the certificate must cover
            is then multiplied by this number.
        named: Number of canaries that a guess names as members. In a pair, the second number is the number of canaries
            that the guess names as non-members. None: the number of drawn canaries. Use a smaller number if the guesser
            is certain of only a few.
        by_class: Whether a fixed number of canaries is drawn from each class, for methods whose constants depend on the
            number of records in a class.
        runs: Number of runs, each with newly drawn members. One run exposes a removal that failed completely. To detect
            that one record of a request was not removed, set ``removed`` far below ``canaries`` and use several runs.
        least_right: With several runs, the smallest number of right guesses with which a run counts as a success. None:
            the number is chosen before the first run. It depends only on the other numbers of the audit, and is
            optimised for violations of moderate size.
        claim: The claim of a method without a certificate. None: the claim that the method has the same distribution as
            learning again.
        request_size: Number of records that each request removes from an estimator of this package. None: one request
            removes all records.
        alpha: Largest probability that an honest method is called ``violated``.
        random_state: Seed that draws canaries and members. None: the seed comes from the operating system.

    Returns:
        The result. Printing it shows a report.

    Raises:
        ParameterError: A number is invalid, or a function to learn or to unlearn is missing.
        DataError: Canaries or records are invalid.
        AssumptionError: The theorem does not hold for this method: its comparator has no distribution, or the
            comparator depends on which canaries were drawn.
    """
    require_probability(alpha=alpha)
    require_count(least=1, runs=runs, copies=copies)
    if request_size is not None:
        require_count(least=1, request_size=request_size)
    if X is None or y is None:
        raise ParameterError("give X and y: an audit needs records that stay, and their labels")
    method = method_of(estimator, learn=learn, unlearn=unlearn, publish=publish, claim=claim, request_size=request_size)
    rng = np.random.default_rng(random_state)
    known = _known(method, X, y, canaries, removed, copies, rng)
    strata = np.unique(known.labels, return_inverse=True)[1] if by_class else np.zeros(len(known.rows), dtype=int)
    guessing = _guessing(strata, known.members, named)
    least_right = _least_right(guessing, runs, alpha, least_right)
    # The guess is made before members are drawn. Otherwise it could come from a model that knows more than is
    # published.
    guess = method.guess(known, rng) if guess is None else guess
    audited = _Audit(method, known, guessing, strata, guess, rng)
    found = [audited.run() for _ in range(runs)]
    claims = [stated for _, stated in found if stated is not None]
    if not claims and audited.failure is not None:
        raise audited.failure
    return AuditResult(
        method=method.name,
        claim=reduce(Claim.largest, claims),
        certified=method.certified,
        guessing=guessing,
        copies=copies,
        runs=tuple(run for run, _ in found),
        least_right=least_right,
        alpha=alpha,
        assumed=(*method.assumed, *_ASSUMED),
    )


_ASSUMED = (
    "the guesser knew what is published and the records that stay, but nothing that tells which canaries were drawn",
    "no other audit, guesser or level was tried before this one without being reported",
)


@dataclass
class _Audit:
    """The runs of one audit.

    All runs share the canaries and the guess.
    """

    method: AuditedMethod
    known: Known
    guessing: Guessing
    strata: NDArray[np.int64]
    guess: Guess
    rng: np.random.Generator
    failure: InfeasibleError | None = None

    def run(self) -> tuple[AuditRun, Claim | None]:
        """Draw canaries, learn and remove them, and guess which were drawn.

        Return the run and the claim of its model. The claim is None if the run failed.
        """
        drawn = self._drawn()
        is_member = np.zeros(len(self.known.rows), dtype=bool)
        is_member[drawn] = True
        X, y, gone = self.known.with_canaries(drawn)
        ties = self.rng.random(len(is_member))
        # A failed run is an outcome and must not be repeated. Its guess is a set of canaries that was fixed beforehand.
        fixed = self._right(np.zeros(len(is_member)), is_member, np.arange(len(is_member)))
        before = None
        try:
            model = self.method.learn(X, y)
            before = self._guessed(model, is_member, ties)
            model = self.method.unlearn(model, X, y, gone)
            after = self._guessed(model, is_member, ties)
        except InfeasibleError as error:
            self.failure = self.failure or error
            return AuditRun(right_before=fixed if before is None else before, right=fixed, failed=str(error)), None
        return AuditRun(right_before=before, right=after), self.method.claim(model)

    def _drawn(self) -> NDArray[np.int64]:
        """Return the members in a random order, so that their positions reveal nothing."""
        chosen = [
            self.rng.choice(np.flatnonzero(self.strata == stratum), size=size, replace=False)
            for stratum, size in enumerate(self.guessing.members)
        ]
        return self.rng.permutation(np.concatenate(chosen))

    def _guessed(self, model: Any, is_member: NDArray[np.bool_], ties: Array) -> int:
        """Return the number of right guesses, which are based on what a model publishes."""
        scores = np.asarray(self.guess(self.method.published(model, self.known), self.known), dtype=np.float64)
        if scores.shape != is_member.shape or np.isnan(scores).any():
            raise ParameterError(
                f"`guess` must return a number for each of the {len(is_member)} canaries, got shape {scores.shape}"
                + (", and some of the values are not a number" if np.isnan(scores).any() else "")
            )
        return self._right(scores, is_member, ties)

    def _right(self, scores: Array, is_member: NDArray[np.bool_], ties: NDArray[Any]) -> int:
        return self.guessing.right(scores, is_member, ties)


def _known(
    method: AuditedMethod,
    X: Any,
    y: Any,
    canaries: int | tuple[ArrayLike, ArrayLike],
    removed: int | None,
    copies: int,
    rng: np.random.Generator,
) -> Known:
    """Return what a guesser knows: the checked records and canaries."""
    X, y = check_X_y(X, y, dtype=np.float64)
    if isinstance(canaries, tuple):
        rows, labels = np.asarray(canaries[0], dtype=np.float64), np.asarray(canaries[1])
    else:
        require_count(least=2, canaries=canaries)
        rows, labels = drawn_canaries(canaries, X, y, method.long_rows, method.target_range, rng)
    known = Known(X, y, rows, labels, copies, len(rows) // 2 if removed is None else removed)
    require_canaries(known, method.target_range)
    return known


def _guessing(strata: NDArray[np.int64], members: int, named: int | tuple[int, int] | None) -> Guessing:
    """Return how members are drawn and named.

    A stratum is a class, or the set of all canaries. Its share of the members equals its share of the canaries.

    Raises:
        ParameterError: More canaries are named than exist, or non-members are named although members are drawn by
            class.
    """
    sizes = np.bincount(strata)
    shares = sizes * members // len(strata)
    shares[: members - shares.sum()] += 1  # The remainder is smaller than the number of strata.
    of_members, of_others = (members, 0) if named is None else (named, 0) if isinstance(named, int) else named
    if of_members < 1 or of_others < 0 or of_members + of_others > len(strata):
        raise ParameterError(f"a guess must name from 1 to {len(strata)} canaries, got named={named!r}")
    if of_others and len(sizes) > 1:
        raise ParameterError(
            "a guess cannot name non-members if members are drawn by class: give a single number as `named`, or set "
            "by_class=False"
        )
    return Guessing(tuple(sizes.tolist()), tuple(shares.tolist()), of_members, of_others)


def _least_right(guessing: Guessing, runs: int, alpha: float, least_right: int | None) -> int | None:
    """Return the smallest number of right guesses with which a run counts as a success; None for a single run.

    The number maximises the bound that is expected for a mechanism with ``mu = AIM``. It depends on counts alone, so it
    is chosen before the first run.
    """
    if runs == 1:
        if least_right is not None:
            raise ParameterError(
                "least_right needs several runs: the bound from a single run uses all right guesses of that run"
            )
        return None
    if least_right is not None:
        require_count(least=1, least_right=least_right)
        if least_right > guessing.most_right:
            raise ParameterError(f"least_right must be at most {guessing.most_right}, got {least_right}")
        return least_right

    def shown(right: int) -> float:
        log_p = guessing.log_p_value(right)
        expected = round(runs * float(ndtr(AIM + ndtri_exp(log_p))))
        return mu_at_least(least_rate(expected, runs, miss=alpha), log_p)

    return max(range(1, guessing.most_right + 1), key=shown)
