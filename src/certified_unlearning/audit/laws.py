"""Audits that compare two laws (probability distributions) by means of many models that are drawn from each law.

Many models unlearn chosen records. They are compared with equally many models of the certificate's comparator.

Some of the models choose an event, and the others count how often the event happens. Each rate has a confidence
interval (Clopper and Pearson), and the ratio of the rates gives a lower bound. This bound is nearer to the truth than
the bound of an audit in one run, but needs thousands of models.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_X_y

from certified_unlearning.accounting.auditing.rates import least_rate, most_rate
from certified_unlearning.accounting.auditing.shown import SHOWN, Verdict, ceiling, floor
from certified_unlearning.accounting.core.checks import require_count, require_probability
from certified_unlearning.audit.canaries import Array
from certified_unlearning.audit.claims import Claim, LowerBound
from certified_unlearning.audit.methods import OwnEstimator
from certified_unlearning.audit.one_run import VERDICT
from certified_unlearning.audit.result import explained
from certified_unlearning.errors import DataError, ParameterError

THRESHOLDS = 200
"""Number of thresholds that are tried if the claim has no ``mu``."""
LEAST_TRIALS = 20
"""Smallest number of trials of each distribution."""


@dataclass(frozen=True, kw_only=True)
class EventCounts:
    """How often one event happened among independent models.

    Attributes:
        likely: Number of models with the event, among the models of the first distribution. The event was chosen to be
            likely under this distribution.
        likely_of: Total number of models of the first distribution.
        rare: Number of models with the event, among the models of the second distribution.
        rare_of: Total number of models of the second distribution.
    """

    likely: int
    likely_of: int
    rare: int
    rare_of: int

    def shown(self, claim: Claim, alpha: float) -> LowerBound:
        """Return the lower bounds that follow from the counts.

        The bounds hold with probability at least ``1 - alpha``.
        """
        rate = least_rate(self.likely, self.likely_of, miss=alpha / 2)
        other = most_rate(self.rare, self.rare_of, miss=alpha / 2)
        return claim.shown(rate, float(np.log(other)))


@dataclass(frozen=True, kw_only=True)
class TwoLawResult:
    """The result of an audit of two distributions.

    Attributes:
        method: Name of the audited method.
        claim: The claim that the audit tries to refute.
        certified: Whether a certificate states the claim.
        after: Counts of the event for unlearned models and for the comparator's models.
        before: Counts of the event for models before the removal and for the comparator's models. This is the control.
        alpha: Largest probability that an honest method is called ``violated``.
    """

    method: str
    claim: Claim
    certified: bool
    after: EventCounts
    before: EventCounts
    alpha: float

    def bound(self, alpha: float | None = None) -> LowerBound:
        """Return a lower bound from the unlearned models.

        Args:
            alpha: Largest probability that the bound is above the truth. None: the ``alpha`` of the verdict.
        """
        return self.after.shown(self.claim, self.alpha if alpha is None else alpha)

    def control(self, alpha: float | None = None) -> LowerBound:
        """Return the lower bound from the models before the removal.

        See `bound` for the argument ``alpha``.
        """
        return self.before.shown(self.claim, self.alpha if alpha is None else alpha)

    @property
    def verdict(self) -> Verdict:
        """``violated`` if the bound exceeds the claim; ``no power`` if models that forgot nothing pass, too."""
        if self.claim.is_below(self.bound()):
            return "violated"
        return "nothing found" if self.claim.is_below(self.control()) else "no power"

    def __str__(self) -> str:
        """Return a readable report, as text."""
        found, control, by_mu = self.bound(SHOWN), self.control(SHOWN), self.claim.mu is not None
        claimed = self.claim.epsilon if self.claim.mu is None else self.claim.mu
        word, unit = "certified" if self.certified else "claimed", "mu" if by_mu else "epsilon"
        headline = (
            f"{word} {unit} at most {ceiling(claimed)}; "
            f"measured at least {floor(found.mu if by_mu else found.epsilon)} ({1 - SHOWN:.0%}); before unlearning at "
            f"least {floor(control.mu if by_mu else control.epsilon)}"
        )
        lines = [
            headline,
            explained(self.verdict, self.alpha),
            f"{self.method}: an event was chosen on separate models; it happened for {self.after.likely} of "
            f"{self.after.likely_of} models of one law, and for {self.after.rare} of {self.after.rare_of} models of "
            "the other law",
            "Taken as given:",
            "- models are independent of each other, and the comparator is the one that the claim names",
            "- no other audit, event or level was tried before this one without being reported",
        ]
        return "\n".join(lines)


def two_laws(
    estimator: Any,
    X: Any,
    y: Any,
    gone: ArrayLike,
    *,
    trials: int = 20_000,
    alpha: float = VERDICT,
    choosing: float = 0.5,
    random_state: int | None = None,
) -> TwoLawResult:
    """Audit an estimator's certificate with many models from the estimator and many from the certificate's comparator.

    Records with long gradients, such as outliers or mislabelled records, reveal the most. The bound is nearest to the
    certified value if this value is about ``mu = 1``, which is an epsilon of 4.9 at delta 1e-6.

    Args:
        estimator: A Langevin estimator, a Descent-to-Delete estimator, or an estimator whose removals are certified
            against an exact refit.
        X: Records, shape ``(n, features)``.
        y: Classes or targets of the records, shape ``(n,)``.
        gone: Positions of the records that one request removes.
        trials: Number of models of each distribution.
        alpha: Largest probability that an honest method is called ``violated``.
        choosing: Share of the models that are used to choose the event. With the remaining models, the occurrences of
            the event are counted.
        random_state: Seed of all noise, so that the result can be repeated. Repeating an audit with the same seed gives
            no new evidence. None: the seed comes from the operating system.

    Raises:
        ParameterError: A number is invalid.
        AssumptionError: Models of the certificate's comparator cannot be drawn.
    """
    require_count(least=LEAST_TRIALS, trials=trials)
    if not hasattr(estimator, "_require_law"):
        raise ParameterError(
            f"two_laws takes an estimator of certified_unlearning, got {type(estimator).__name__}; for other methods, "
            "pass the weights of many models to compare_laws"
        )
    method = OwnEstimator(estimator)
    X, y = check_X_y(X, y, dtype=np.float64)
    removed = np.atleast_1d(np.asarray(gone, dtype=np.int64))
    model = clone(estimator).set_params(random_state=random_state).fit(X, y)
    laws = model._laws(removed, trials)
    claim = method.claim(method.unlearn(model, X, y, removed))
    return compare_laws(
        laws.unlearned, laws.comparator, laws.before, claim=claim, alpha=alpha, choosing=choosing,
        method=method.name, certified=True,
    )  # fmt: skip


def compare_laws(
    unlearned: ArrayLike,
    comparator: ArrayLike,
    before: ArrayLike,
    *,
    claim: Claim | None = None,
    alpha: float = VERDICT,
    choosing: float = 0.5,
    method: str = "the given method",
    certified: bool = False,
) -> TwoLawResult:
    """Audit a claim with the published outputs of many models.

    Args:
        unlearned: Outputs of models that unlearned the same records, each with its own noise, shape
            ``(trials, numbers)``.
        comparator: Outputs of models of the claim's comparator, such as retrained ones, shape ``(trials, numbers)``.
        before: Outputs of models before the removal, shape ``(trials, numbers)``. They show what the audit could have
            found.
        claim: The claim to refute. None: the claim that the distributions are equal.
        alpha: Largest probability that an honest method is called ``violated``.
        choosing: Share of the models that are used to choose the event. With the remaining models, the occurrences of
            the event are counted.
        method: Name of the method in reports.
        certified: Whether a certificate states the claim.

    Raises:
        DataError: The models have different numbers of outputs, or there are too few models.
        ParameterError: A number is invalid.
    """
    require_probability(alpha=alpha, choosing=choosing)
    claim = claim or Claim()
    found, retrained, control = (
        _models(each, name) for each, name in ((unlearned, "unlearned"), (comparator, "comparator"), (before, "before"))
    )
    for each in (found, control):
        if each.shape[1] != retrained.shape[1]:
            raise DataError(
                f"each model publishes {each.shape[1]} numbers, but each model of the comparator publishes "
                f"{retrained.shape[1]}"
            )
    return TwoLawResult(
        method=method,
        claim=claim,
        certified=certified,
        after=_counted(found, retrained, claim, alpha, choosing),
        before=_counted(control, retrained, claim, alpha, choosing),
        alpha=alpha,
    )


def _models(given: ArrayLike, name: str) -> Array:
    models = np.asarray(given, dtype=np.float64)
    if models.ndim == 1:
        models = models[:, None]
    if models.ndim != 2 or len(models) < LEAST_TRIALS or not np.isfinite(models).all():
        raise DataError(
            f"`{name}` must hold finite numbers for at least {LEAST_TRIALS} models, in an array of shape (trials, "
            f"numbers); got shape {models.shape}"
        )
    return models


def _counted(models: Array, others: Array, claim: Claim, alpha: float, choosing: float) -> EventCounts:
    """Return counts of an event that is likely for one distribution and rare for the other.

    Models that are used to choose the event are not counted.
    """
    (choose, count), (choose_others, count_others) = (
        np.split(each, [max(2, min(len(each) - 2, int(len(each) * choosing)))]) for each in (models, others)
    )
    direction = _direction(choose, choose_others)
    scores, other_scores = choose @ direction, choose_others @ direction
    threshold, swapped = (scores.mean() + other_scores.mean()) / 2, False
    if claim.mu is None:
        threshold, swapped = _best_event(scores, other_scores, claim, alpha)
    scores, other_scores = count @ direction, count_others @ direction
    if swapped:
        scores, other_scores, threshold = -other_scores, -scores, -threshold
    return EventCounts(
        likely=int((scores > threshold).sum()),
        likely_of=len(scores),
        rare=int((other_scores > threshold).sum()),
        rare_of=len(other_scores),
    )


def _direction(models: Array, others: Array) -> Array:
    """Return the best direction for two Gaussians: the inverse of the pooled covariance times the means' difference."""
    pooled = (np.cov(models.T) + np.cov(others.T)).reshape(models.shape[1], -1) / 2
    difference = models.mean(axis=0) - others.mean(axis=0)
    # The covariance has no inverse if numbers do not vary or depend linearly on each other.
    direction: Array = np.linalg.pinv(pooled, rcond=1e-10, hermitian=True) @ difference
    return direction if direction.any() else difference


def _best_event(scores: Array, others: Array, claim: Claim, alpha: float) -> tuple[float, bool]:
    """Return the event with the largest bound on epsilon: its threshold, and whether the distributions are swapped."""
    thresholds = np.quantile(np.concatenate([scores, others]), np.linspace(0, 1, THRESHOLDS + 2)[1:-1])

    def shown(likely: NDArray[Any], rare: NDArray[Any], threshold: float) -> float:
        counts = EventCounts(
            likely=int((likely > threshold).sum()), likely_of=len(likely), rare=int((rare > threshold).sum()),
            rare_of=len(rare),
        )  # fmt: skip
        return counts.shown(claim, alpha).epsilon

    found = [
        (shown(*laws, sign * threshold), threshold, swapped)
        for swapped, sign, laws in ((False, 1, (scores, others)), (True, -1, (-others, -scores)))
        for threshold in thresholds
    ]
    _, threshold, swapped = max(found)
    return float(threshold), swapped
