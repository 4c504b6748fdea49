"""Publication of a `CertifiedMLPClassifier`'s labels, and of their certified share, with differential privacy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.private.stable_labels import LabelRule
from certified_unlearning.certificate.private_labels import PrivateLabelsCertificate
from certified_unlearning.estimators.network.classifier import CertifiedMLPClassifier
from certified_unlearning.mechanisms.certified_sgd.releases import LabelRelease, ShareRelease, share_release
from certified_unlearning.vocabulary import Relation


class PrivateLabels:
    """Publishes at most a given number of labels of a fitted network, each with (epsilon, delta)-differential privacy.

    If records were removed since the last training, the network is retrained first. Later removals have no effect on
    this object. After a removal, create a new object; the epsilons and deltas of both objects add up.

    Args:
        model: A model fitted with ``changes="additions and removals"`` and every budget of ``range(1, K + 1)``.
        rule: Rule of publication. ``cauchy`` and ``laplace``, for two classes only, return the label or the other
            class. ``stable`` returns the label or None.
        epsilon: Epsilon of one label.
        delta: Delta of one label; 0 for ``cauchy``.
        relation: Neighbouring relation: one record of one batch is replaced, or one record is added or removed.
        queries: Number of labels that may be published.

    Attributes:
        release: Object that draws the labels. It also states the epsilon and delta used so far, the guarantee's
            assumptions, and what is not guaranteed.
    """

    def __init__(
        self,
        model: CertifiedMLPClassifier,
        *,
        rule: LabelRule,
        epsilon: float,
        delta: float = 0.0,
        relation: Relation = "replace-one",
        queries: int = 1,
    ) -> None:
        network = model._current()
        settings, learned = network.settings, network.learned
        self._model, self._classes = model, model.classes_
        self._changes, self._largest = settings.neighbourhood.changes, learned.budgets[-1]
        self.release = LabelRelease(
            settings, learned, rule=rule, epsilon=epsilon, delta=delta, relation=relation, queries=queries
        )

    @property
    def spent_(self) -> tuple[float, float]:
        """Epsilon and delta of all labels published so far."""
        return self.release.spent

    def certificate(self) -> PrivateLabelsCertificate:
        """Return the certificate of all labels that this object may publish, whether or not they were requested.

        `certificate.write` writes it to a file, which ``unlearn verify`` checks. The file is not secret.
        """
        release = self.release
        return PrivateLabelsCertificate.made(
            rule=release.rule,
            relation=release.relation,
            changes=self._changes,
            largest=self._largest,
            classes=len(self._classes),
            queries=release.queries,
            epsilon_label=release.epsilon,
            delta_label=release.delta,
        )

    def predict(self, X: Any) -> NDArray[Any]:
        """Publish the label of each record, or None if it is withheld.

        Each record uses up one query, even if it was queried before.

        Raises:
            ParameterError: There are more records than remaining queries.
        """
        drawn = self.release.labels(self._model._asked(X))
        if self.release.rule == "stable":
            return np.array([None if each is None else self._classes[each] for each in drawn], dtype=object)
        return self._classes[np.asarray(drawn, dtype=np.int64)]


def publish_mean_share(
    model: CertifiedMLPClassifier,
    X: Any = None,
    *,
    epsilon: float,
    delta: float,
    relation: Relation = "replace-one",
) -> ShareRelease:
    """Publish the mean certified share of a fitted network's predictions, with Gaussian noise for differential privacy.

    This number is the mean over ``k = 1, ..., K`` of the share of inputs that are certified for ``k``. It equals the
    mean radius divided by ``K``. One record of one batch changes this number by at most ``1 / K``, for any inputs, and
    the noise is calibrated exactly to this change. Every call publishes a new number, and the epsilons and deltas add
    up. Parameters, boxes and radii also depend on the records, but have no noise, so they must stay secret.

    Args:
        model: Model fitted with ``changes="additions and removals"`` and every budget of ``range(1, K + 1)``.
        X: Inputs that do not depend on the records, shape ``(inputs, features)``. None: the training records that
            remain in batches. In this case, one record changes the share by slightly more, ``(n - 1 + K) / (n K)``.
        epsilon: Epsilon of the published number.
        delta: Delta of the published number.
        relation: Neighbouring relation: one record of one batch is replaced, or one record is added or removed. With
            ``X=None``, only ``replace-one`` is possible.

    Raises:
        AssumptionError: The radii are not valid for this relation.
    """
    network, store = model._current(), model._store
    own = X is None
    rows = store.rows[network.learned_records(store)] if own else model._asked(X)
    return share_release(
        network.settings, network.learned, rows, own=own, epsilon=epsilon, delta=delta, relation=relation
    )
