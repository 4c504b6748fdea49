"""Labels of a `CertifiedMLPClassifier` with differential privacy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.private.stable_labels import LabelRule
from certified_unlearning.certificate.private_labels import PrivateLabelsCertificate
from certified_unlearning.estimators.network.classifier import CertifiedMLPClassifier
from certified_unlearning.mechanisms.certified_sgd.releases import LabelRelease
from certified_unlearning.vocabulary import Relation


class PrivateLabels:
    """Publishes labels of a fitted network, each with (epsilon, delta)-differential privacy, until none is left.

    The network is trained anew first if records were removed since the last training. What is removed later is not
    followed: make another one then, whose epsilon and delta add to those spent here.

    Args:
        model: Fitted with ``changes="additions and removals"`` and every budget of ``range(1, K + 1)``.
        rule: ``cauchy`` or ``laplace``, for two classes: the label or the other one; ``stable``: the label, or None.
        epsilon: Of one label.
        delta: Of one label; 0 for ``cauchy``.
        relation: When data sets are neighbours: one record of one batch replaced, or added or removed.
        queries: How many labels may be published.

    Attributes:
        release: What draws; it knows what was spent, what the guarantee rests on, and what it does not promise.
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
        settings, learned = model._current()
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
        """Return the certificate of all labels that may be published here, asked for or not.

        `certificate.write` makes a file of it, which ``unlearn verify`` recomputes. It is no secret.
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
        """Publish the label of each record, with None where it is withheld; the same record asked again costs again.

        Raises:
            ParameterError: They are more than the queries that are left.
        """
        drawn = self.release.labels(self._model._asked(X))
        if self.release.rule == "stable":
            return np.array([None if each is None else self._classes[each] for each in drawn], dtype=object)
        return self._classes[np.asarray(drawn, dtype=np.int64)]
