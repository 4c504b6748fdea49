"""Alternatives to a model that hardly tells the classes apart; each is tried before it is named."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.core.losses import ClassWeights
from certified_unlearning.data.advice.trial import GAIN, Noise, PredictionScores, Trial
from certified_unlearning.data.quality import RANKS, Quality
from certified_unlearning.data.tables.classes import flag_of_weights, suggested_weights, weights_of
from certified_unlearning.data.tables.declaration import Table

MORE = 10
"""Factor by which a larger ``C``, epsilon and number of records are tried."""


Shares = tuple[float, ...] | None


class Option(NamedTuple):
    """Another model that could be made.

    Attributes:
        words: The flags that make it.
        expected: Its expected worth.
        noise: The noise scale.
    """

    words: str
    expected: PredictionScores
    noise: float


class Regularised(Protocol):
    """A plan of a linear model, with the regulariser that all are compared by."""

    n: int
    classes: int

    @property
    def strong_convexity(self) -> float:
        """Strong convexity of the regulariser."""


PlanT = TypeVar("PlanT", bound=Regularised)


@dataclass(frozen=True)
class Advice(ABC, Generic[PlanT]):
    """Alternatives to a model of known worth.

    Attributes:
        plan: The model's.
        table: Its declaration.
        intercept: Whether it has one.
        trial: What is tried with.
        weights: Weights of its current version.
        worth: What these are worth on the records of the trial.
    """

    plan: PlanT
    table: Table
    intercept: bool
    trial: Trial
    weights: NDArray[np.floating]
    worth: PredictionScores

    def sentences(self, quality: Quality) -> Iterator[str]:
        """Yield what the trouble is, and what helps, where so much was found on these records or on others."""
        same = self.trial.expected(self.plan.strong_convexity)
        found = [*self._noise(same), *self._regulariser(same), *self._threshold(same), *self._weights(same)]
        if self.worth.balanced >= quality.balanced_accuracy + 2 * GAIN:
            yield f"the model is better on the records that it was made from, with {self.worth.in_words()}"
        elif not found and same.auc < RANKS:
            yield f"these columns hardly tell the classes apart: without noise a linear model has {same.in_words()}"
        yield from found

    @abstractmethod
    def _against_noise(self, same: PredictionScores) -> str:
        """Return what is better than the current version, in words, where the same model without noise is."""

    @abstractmethod
    def _option(
        self, words: str, *, C: float = 1, epsilon: float = 1, records: int = 1, shares: Shares = None
    ) -> Option | None:
        """Return the same mechanism with these so many times as large; None if it cannot be planned.

        ``C`` is the one that the largest weight of a class has multiplied; ``shares`` are what the losses of records of
        each class are multiplied by, if not by what they are.
        """

    def _expected_again(self) -> PredictionScores:
        """Return what another version with the same plan is expected to be worth."""
        return self.worth

    def _left_out(self, usual: Option | None) -> str:
        """Return which flags must be left out for what is planned here, which has the usual noise."""
        return ""

    def _other_mechanisms(self, flag: str) -> Sequence[Option]:
        """Return other mechanisms with a `MORE` times as large ``C``, which a flag says."""
        return ()

    def _noise(self, same: PredictionScores) -> Iterator[str]:
        """Yield what helps if the same model without noise is better."""
        if same.is_better_than(self.worth):
            yield (
                f"noise is the trouble: without it the same model has {same.in_words()} in place of "
                f"{self.worth.in_words()}; what helps in a new `unlearn init`: {self._against_noise(same)}"
            )

    def _regulariser(self, same: PredictionScores) -> Iterator[str]:
        """Yield a larger ``C`` if a model with it is better, both without noise and with the noise that it needs."""
        weaker = self.trial.expected(self.plan.strong_convexity / MORE)
        # A larger C alone may move probabilities across one half, which another threshold does without a new model.
        if not (weaker.is_better_than(same) and weaker.fits_better_than(same)):
            return
        usual = self._option("")
        flag = f"--C {self._C(MORE):.2g}{self._left_out(usual)}, {MORE} times as large,"
        options = [self._option(flag, C=MORE), *self._other_mechanisms(flag)]
        # Not better because of less noise alone.
        least = [self.worth] if usual is None else [self.worth, usual.expected]
        for option in options:
            if option is not None and all(option.expected.is_better_than(each) for each in least):
                yield (
                    f"the regulariser is the trouble: a new `unlearn init` with {option.words} has "
                    f"{option.expected.in_words()} in place of {self.worth.in_words()}"
                )
                return

    def _threshold(self, same: PredictionScores) -> Iterator[str]:
        """Yield how probabilities become classes where one of them is rare, if that is better."""
        if same.auc < RANKS or self.worth.by_mean < self.worth.balanced + GAIN:
            return
        how = "divide each class' probability by its mean over these records before you compare them"
        other = ""
        if self.plan.classes == 2:
            other = (
                "; this one tells of the training records, and `unlearn evaluate --choose-threshold balanced` "
                "chooses one on others"
            )
            second = (self.table.classes or ())[1]
            mean = self.trial.mean_probabilities(self.weights)[1]
            how = f"predict {second} where its probability is above {mean:.4g}, its mean here, in place of one half"
        yield (
            f"a class is rarer than others: {how}; then balanced accuracy is {self.worth.by_mean:.3f} in place of "
            f"{self.worth.balanced:.3f}{other}"
        )

    def _weights(self, same: PredictionScores) -> Iterator[str]:
        """Yield weights of classes, where there are none, if they are better, with the noise that they need, too."""
        if self.table.class_weight is not None or same.auc < RANKS:
            return
        named = suggested_weights(dict(zip(map(str, self.table.classes or ()), self.trial.counts, strict=True)))
        weights = ClassWeights.divided([*named.values()])
        # The same C, and the one with which no record counts for more than now.
        options = [
            self._option(
                f"--C {float(f'{self._C(times / weights.largest):.2g}'):g} {flag_of_weights(named)}",
                C=times,
                shares=weights.shares,
            )
            for times in dict.fromkeys((weights.largest, 1.0))
        ]
        # Not better because of less noise alone, or because the version had bad luck.
        least = [self.worth, same, self._expected_again()]
        better = [each for each in options if each and all(each.expected.is_better_than(worth) for worth in least)]
        if weights.largest > 1 and better:
            yield (
                f"a class is rarer than others: a new `unlearn init` with {better[0].words} has "
                f"{better[0].expected.in_words()} in place of {self.worth.in_words()}"
            )

    def _C(self, times: float) -> float:
        """Return scikit-learn's ``C``, so many times as large, as a flag of `unlearn init` says it."""
        return self._largest_C(times) / weights_of(self.table).largest

    def _largest_C(self, times: float) -> float:
        """Return ``C``, so many times as large, times the largest weight of a class."""
        return times / (self.plan.strong_convexity * self.plan.n * (2 if self.intercept else 1))

    def _with(self, words: str, strength: float, noise: Noise, shares: Shares = None) -> Option:
        return Option(words, self.trial.expected(strength, noise, shares), noise.sigma)
