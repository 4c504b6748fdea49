"""Alternatives to a model that hardly tells the classes apart. Each alternative is tried before it is named."""

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
"""The factor by which ``C``, epsilon and the number of records are increased in trials."""


Shares = tuple[float, ...] | None


class Option(NamedTuple):
    """A model that could be made instead.

    Attributes:
        words: The flags that make the model.
        expected: The expected quality of the model.
        noise: The noise scale of the model.
    """

    words: str
    expected: PredictionScores
    noise: float


class Regularised(Protocol):
    """The properties of a linear model's plan that `Advice` uses, such as the strength of the regulariser."""

    n: int
    classes: int

    @property
    def strong_convexity(self) -> float:
        """Strong convexity of the regulariser."""


PlanT = TypeVar("PlanT", bound=Regularised)


@dataclass(frozen=True)
class Advice(ABC, Generic[PlanT]):
    """Alternatives to a model whose quality is known.

    Attributes:
        plan: The model's plan.
        table: The model's declaration.
        intercept: Whether the model has an intercept.
        trial: The trial of other models on some training records.
        weights: Weights of the model's current version.
        worth: The quality of these weights on the records of the trial.
    """

    plan: PlanT
    table: Table
    intercept: bool
    trial: Trial
    weights: NDArray[np.floating]
    worth: PredictionScores

    def sentences(self, quality: Quality) -> Iterator[str]:
        """Yield sentences on what is wrong and what helps. ``quality`` may come from records other than the trial's."""
        same = self.trial.expected(self.plan.strong_convexity)
        found = [*self._noise(same), *self._regulariser(same), *self._threshold(same), *self._weights(same)]
        if self.worth.balanced >= quality.balanced_accuracy + 2 * GAIN:
            yield f"the model is better on the records that it was made from, with {self.worth.in_words()}"
        elif not found and same.auc < RANKS:
            yield f"these columns hardly tell the classes apart: without noise a linear model has {same.in_words()}"
        yield from found

    @abstractmethod
    def _against_noise(self, same: PredictionScores) -> str:
        """Return a phrase on what is better than the current version.

        This method is called if the same model without noise is better.
        """

    @abstractmethod
    def _option(
        self, words: str, *, C: float = 1, epsilon: float = 1, records: int = 1, shares: Shares = None
    ) -> Option | None:
        """Return a model of the same mechanism with other settings; None if such a model cannot be planned.

        ``C``, ``epsilon`` and ``records`` are factors on the present ``C``, the present epsilon and the present number
        of records. The ``C`` that is multiplied is that of the class with the largest weight. ``shares`` are the
        factors on the losses of each class's records; by default, the present factors.
        """

    def _expected_again(self) -> PredictionScores:
        """Return the expected quality of another version with the same plan."""
        return self.worth

    def _left_out(self, usual: Option | None) -> str:
        """Return the flags that must be left out so that the planned model has the usual noise."""
        return ""

    def _other_mechanisms(self, flag: str) -> Sequence[Option]:
        """Return models of other mechanisms, with ``C`` multiplied by `MORE`; ``flag`` sets this ``C``."""
        return ()

    def _noise(self, same: PredictionScores) -> Iterator[str]:
        """Yield advice against noise. It applies if the same model without noise is better."""
        if same.is_better_than(self.worth):
            yield (
                f"the problem is the noise: without it the same model has {same.in_words()} instead of "
                f"{self.worth.in_words()}; in a new `unlearn init`, this helps: {self._against_noise(same)}"
            )

    def _regulariser(self, same: PredictionScores) -> Iterator[str]:
        """Yield a larger ``C`` if it improves the model, both without noise and with the noise that it requires."""
        weaker = self.trial.expected(self.plan.strong_convexity / MORE)
        # A larger C alone may move probabilities across one half. Another threshold does this without a new model.
        if not (weaker.is_better_than(same) and weaker.fits_better_than(same)):
            return
        usual = self._option("")
        flag = f"--C {self._C(MORE):.2g}{self._left_out(usual)}, {MORE} times as large,"
        options = [self._option(flag, C=MORE), *self._other_mechanisms(flag)]
        # The model must not be better merely because of less noise.
        least = [self.worth] if usual is None else [self.worth, usual.expected]
        for option in options:
            if option is not None and all(option.expected.is_better_than(each) for each in least):
                yield (
                    f"the problem is the regulariser: a new `unlearn init` with {option.words} would give "
                    f"{option.expected.in_words()} instead of {self.worth.in_words()}"
                )
                return

    def _threshold(self, same: PredictionScores) -> Iterator[str]:
        """Yield a better threshold for a rare class, if it improves the predictions."""
        if same.auc < RANKS or self.worth.by_mean < self.worth.balanced + GAIN:
            return
        how = "divide each class's probability by its mean over these records before you compare them"
        other = ""
        if self.plan.classes == 2:
            other = (
                "; this threshold reveals something about the training records; `unlearn evaluate --choose-threshold "
                "balanced` chooses one on other records"
            )
            second = (self.table.classes or ())[1]
            mean = self.trial.mean_probabilities(self.weights)[1]
            how = (
                f"predict {second} where its probability is above {mean:.4g}, which is its mean over these records, "
                "rather than above one half"
            )
        yield (
            f"a class is rarer than others: {how}; then balanced accuracy is {self.worth.by_mean:.3f} instead of "
            f"{self.worth.balanced:.3f}{other}"
        )

    def _weights(self, same: PredictionScores) -> Iterator[str]:
        """Yield advice to weight classes.

        The advice applies if the model has no class weights, and if class weights improve the model in spite of the
        noise that they need.
        """
        if self.table.class_weight is not None or same.auc < RANKS:
            return
        named = suggested_weights(dict(zip(map(str, self.table.classes or ()), self.trial.counts, strict=True)))
        weights = ClassWeights.divided([*named.values()])
        # Try the present C, and the C with which no record counts for more than it does now.
        options = [
            self._option(
                f"--C {float(f'{self._C(times / weights.largest):.2g}'):g} {flag_of_weights(named)}",
                C=times,
                shares=weights.shares,
            )
            for times in dict.fromkeys((weights.largest, 1.0))
        ]
        # The weights must not be better merely because of less noise, or because this version had bad luck.
        least = [self.worth, same, self._expected_again()]
        better = [each for each in options if each and all(each.expected.is_better_than(worth) for worth in least)]
        if weights.largest > 1 and better:
            yield (
                f"a class is rarer than others: a new `unlearn init` with {better[0].words} would give "
                f"{better[0].expected.in_words()} instead of {self.worth.in_words()}"
            )

    def _C(self, times: float) -> float:
        """Return the value of the flag ``--C`` of `unlearn init` that multiplies the present ``C`` by ``times``."""
        return self._largest_C(times) / weights_of(self.table).largest

    def _largest_C(self, times: float) -> float:
        """Return ``C``, multiplied by ``times`` and by the largest weight of a class."""
        return times / (self.plan.strong_convexity * self.plan.n * (2 if self.intercept else 1))

    def _with(self, words: str, strength: float, noise: Noise, shares: Shares = None) -> Option:
        return Option(words, self.trial.expected(strength, noise, shares), noise.sigma)
