"""The common part of estimators that unlearn exactly: counts, seeds of requests, constants of the fit, and reports."""

import secrets
from collections.abc import Sequence
from typing import Any, ClassVar

from certified_unlearning.certificate.exact import EqualInLaw
from certified_unlearning.engine.addresses import address
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators.estimator import UnlearningEstimator
from certified_unlearning.text import counted, noun_of, rounded_up


class ExactModel(UnlearningEstimator):
    """An estimator that stores its whole run; after requests, the stored run has the distribution of a fresh run."""

    _counts: dict[str, int]
    _scaled_by: dict[str, Any]

    _MADE_BY: ClassVar[tuple[str, ...]] = ("normalize", "feature_ranges", "data_norm")
    """Parameters that determine how features become rows."""

    def _scaling_parameters(self) -> dict[str, Any]:
        """Return the parameters that determine how features become rows, as JSON values."""
        known = self._parameters(secrets_too=False) if self.feature_ranges is not None else self.get_params(deep=False)
        return {name: known[name] for name in self._MADE_BY}

    def _require_same_scaling(self) -> None:
        """Raise `ParameterError` if scaling parameters differ from those of the fit."""
        if self._scaling_parameters() != self._scaled_by:
            *most, last = self._MADE_BY
            raise ParameterError(
                f"{', '.join(most)} and {last} must be those of the fit, {self._scaled_by}, got "
                f"{self._scaling_parameters()}"
            )

    def _counts_after(self, deleted: Sequence[int], inserted: Sequence[int]) -> dict[str, int]:
        """Return the numbers of records and requests after one more request."""
        return {
            "n_learned": self._counts["n_learned"],
            "deleted": self._counts["deleted"] + len(deleted),
            "inserted": self._counts["inserted"] + len(inserted),
            "requests": self._counts["requests"] + 1,
        }

    def _next_seed(self, request: int = 0) -> int:
        """Return the seed of request number ``request``, where 0 stands for learning and requests count from 1."""
        if self.random_state is None:
            return secrets.randbits(128)
        # A number as ``random_state`` gives the same key every time.
        return address(str(self._noise_key()), "request", request)

    def _guaranteed_in_words(self, stated: EqualInLaw) -> list[str]:
        """Return the report's lines on what a certificate states, except its assumptions."""
        return [
            f"Learned from {stated.n_learned} {noun_of(stated.n_learned, 'record')}; {stated.deleted} deleted and "
            f"{stated.inserted} inserted since, in {counted(stated.requests, 'request')}.",
            f"Guaranteed ({stated.guarantee}, by {stated.mechanism}): epsilon = 0 at delta = 0.",
            f"Equal in distribution to: {stated.comparator}.",
            "Deleting one more record takes steps again with probability at most "
            f"{rounded_up(stated.recompute_probability)}.",
            *self._cost_in_words(stated),
            "Limits of the guarantee:",
            *(f"- {each}" for each in stated.not_promised),
        ]

    def _cost_in_words(self, stated: Any) -> list[str]:
        """Return the report's lines on the cost of recomputing steps, if the certificate states it."""
        return []
