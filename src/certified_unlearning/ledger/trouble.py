"""Why a version hardly tells the classes apart, and what helps: for the operator's eyes only.

Each advice is tried before it is given, on some of the training records that are left (`data.advice.trial`). What is
computed here comes from the records without noise, so it is written nowhere. It takes seconds, and scikit-learn and
PyTorch are loaded for it: it is for where a warning is due.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.advice.ranges import shares_of, warning_about
from certified_unlearning.data.advice.trial import GAIN, Noise, Trial, Worth, most_records
from certified_unlearning.data.quality import Quality
from certified_unlearning.errors import UnlearningError
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import REFIT_SIGMA
from certified_unlearning.ledger.model import StoredModel, read_stored
from certified_unlearning.ledger.quality import RecordsLeft, require_same, require_whole
from certified_unlearning.ledger.state import read_state
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.weights import read_weights
from certified_unlearning.mechanisms.certified_sgd.ensemble_plan import EnsemblePlan
from certified_unlearning.mechanisms.exact.plan import ExactPlan
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner, plan_learner
from certified_unlearning.mechanisms.refit_plan import RefitPlan

Noisy = LangevinLearner | MiniBatchLearner
WITHOUT = " without --sigma and --steps"
RANKS = 0.6
"""From which AUC on a model says something."""
MORE = 10
"""How many times as large a ``C``, an epsilon and a number of records are tried."""
STRONGER = (10, 100)
"""How many times as small a ``C`` is tried, where noise is the trouble."""


class Option(NamedTuple):
    """Another model that could be made.

    Attributes:
        words: How.
        expected: What it is expected to be worth.
        noise: The noise scale.
    """

    words: str
    expected: Worth
    noise: float


def trouble_left(path: Path, quality: Quality, *, names_columns: bool = True) -> list[str]:
    """Return what is wrong with the current version, judged by the training records that are left, and what helps.

    Args:
        path: The model directory.
        quality: What was found, on these records or on others.
        names_columns: Whether to say which column drowns the others.

    Raises:
        DataError: A file cannot be read.
        LedgerError: A file is not what the ledger recorded.
        BusyError: An `apply` is at work, or was interrupted.
    """
    directory = ModelDirectory(path)
    with Ledger.opened(directory.ledger, read_only=True) as ledger:
        state = read_state(ledger)
        require_whole(path, state)
        model, weights = read_stored(directory, state), read_weights(directory, state.current)
        learner = model.learner
        if isinstance(learner, EnsemblePlan):
            return []  # Its parameters are secret, and nobody says how good they are.
        records = RecordsLeft(directory, ledger, learner.n, learner.features, learner.classes)
        rows, positions = records.sample(most_records(learner.features, learner.classes))
        require_same(path, state, read_state(ledger))
    if not len(rows):
        return []
    left = int(records.left.sum())
    tried = f"tried on {len(rows):,} of {left:,} training records" if len(rows) < left else "tried on all that are left"
    shares = shares_of(model.table)
    shares.add(rows[:, :-1] if model.intercept else rows)
    largest = shares.largest()
    if largest is not None:
        # First things first: what noise and regulariser do to the others' small numbers says nothing of them.
        return [f"{warning_about(model.table, largest)}, in a new `unlearn init`"] if names_columns else []
    trial = Trial(rows, positions, learner.classes, left / learner.n)
    if not trial.is_possible:
        return []
    look = _Look(model, trial, weights, trial.published(weights))
    return [f"{sentence} ({tried}; not for publication)" for sentence in look.sentences(quality)]


@dataclass(frozen=True)
class _Look:
    """What is tried, of a model of known worth."""

    model: StoredModel
    trial: Trial
    weights: NDArray[np.floating]
    worth: Worth

    def sentences(self, quality: Quality) -> Iterator[str]:
        """Yield what the trouble is, and what helps, where so much was found on these records or on others."""
        same = self.trial.expected(self._strength())
        found = [*self._noise(same), *self._regulariser(same), *self._threshold(same)]
        if self.worth.balanced >= quality.balanced_accuracy + 2 * GAIN:
            yield f"the model is better on the records that it was made from, with {self.worth.in_words()}"
        elif not found and same.auc < RANKS:
            yield f"these columns hardly tell the classes apart: without noise a linear model has {same.in_words()}"
        yield from found

    def _noise(self, same: Worth) -> Iterator[str]:
        """Yield what helps if the same model without noise is better."""
        if not same.is_better_than(self.worth):
            return
        learner = self.model.learner
        if isinstance(learner, ExactPlan):
            less = " together with a smaller --sigma" if learner.sigma is not None else ""
            less = " together with a smaller --quantum" if learner.quantum is not None else less
            helps = f"more --steps{less}"
        elif isinstance(learner, RefitPlan):
            sigmas = [learner.sigma / times for times in (10, 100, 1000, 10_000)]
            options = [self._with(f"--sigma {sigma:.2g}", self._strength(), Noise(sigma)) for sigma in sigmas]
            first = next((each for each in options if not same.is_better_than(each.expected)), options[-1])
            helps = f"{first.words} ({first.expected.in_words()}), with which data are read again more often"
        else:
            assert isinstance(learner, Noisy)
            helps = self._against_noise(learner)
        yield (
            f"noise is the trouble: without it the same model has {same.in_words()} in place of "
            f"{self.worth.in_words()}; what helps in a new `unlearn init`: {helps}"
        )

    def _against_noise(self, learner: Noisy) -> str:
        """Return what is better than the version of a learner with too much noise."""
        usual = self._option(f"the usual noise{WITHOUT}")
        without = self._without(learner, usual)
        same_weights = [
            usual,
            self._option(f"--epsilon {MORE * learner.epsilon:g}{without}", epsilon=MORE),
            self._option(f"{MORE} times as many records{without}", C=1 / MORE, records=MORE),
        ]
        options = [each for each in same_weights if each is not None and each.noise < learner.sigma / 2]
        weaker = [self._option(f"--C {self._C(1 / times):.2g}{without}", C=1 / times) for times in STRONGER]
        options += [each for each in weaker if each is not None]
        options.append(self._refit(f"--mechanism newton-removal --C {self._C(1):.2g}"))
        # A version may have had bad luck: what helps is also better than others with its noise.
        own = self._with("", self._strength(), Noise(learner.sigma, learner.exact_problem.step_size)).expected
        helpful = [
            each for each in options if each.expected.is_better_than(self.worth) and each.expected.is_better_than(own)
        ]
        return (
            ", ".join(f"{each.words} ({each.expected.in_words()})" for each in helpful)
            or "nothing that was tried, so far more records"
        )

    def _without(self, learner: Noisy, usual: Option | None) -> str:
        """Return which flags must be left out for what is planned here, which has the usual noise."""
        return WITHOUT if usual is None or not math.isclose(usual.noise, learner.sigma, rel_tol=0.01) else ""

    def _regulariser(self, same: Worth) -> Iterator[str]:
        """Yield a larger ``C`` if a model with it is better, both without noise and with the noise that it needs."""
        if not self.trial.expected(self._strength() / MORE).is_better_than(same):
            return
        learner, usual = self.model.learner, self._option("")
        without = self._without(learner, usual) if isinstance(learner, Noisy) else ""
        flag = f"--C {self._C(MORE):.2g}{without}, {MORE} times as large,"
        options = [self._option(flag, C=MORE)]
        if isinstance(learner, Noisy):
            options.append(self._refit(f"{flag} and --mechanism newton-removal", C=MORE))
        # Not better because of less noise alone.
        least = [self.worth] if usual is None else [self.worth, usual.expected]
        for option in options:
            if option is not None and all(option.expected.is_better_than(each) for each in least):
                yield (
                    f"the regulariser is the trouble: a new `unlearn init` with {option.words} has "
                    f"{option.expected.in_words()} in place of {self.worth.in_words()}"
                )
                return

    def _threshold(self, same: Worth) -> Iterator[str]:
        """Yield how probabilities become classes where one of them is rare, if that is better."""
        if same.auc < RANKS or self.worth.by_mean < self.worth.balanced + GAIN:
            return
        how = "divide each class' probability by its mean over these records before you compare them"
        if self.model.learner.classes == 2:
            second = (self.model.table.classes or ())[1]
            mean = self.trial.mean_probabilities(self.weights)[1]
            how = f"predict {second} where its probability is above {mean:.4g}, its mean here, in place of one half"
        yield (
            f"a class is rarer than others: {how}; then balanced accuracy is {self.worth.by_mean:.3f} in place of "
            f"{self.worth.balanced:.3f}"
        )

    def _strength(self) -> float:
        learner = self.model.learner
        assert not isinstance(learner, EnsemblePlan)
        return learner.exact_problem.strong_convexity if isinstance(learner, Noisy) else learner.strong_convexity

    def _C(self, times: float) -> float:
        """Return scikit-learn's ``C``, so many times as large."""
        return times / (self._strength() * self.model.learner.n * (2 if self.model.intercept else 1))

    def _option(self, words: str, *, C: float = 1, epsilon: float = 1, records: int = 1) -> Option | None:
        """Return the same mechanism with these so many times as large; None if it cannot be planned."""
        learner, strength = self.model.learner, self._strength() / C / records
        if isinstance(learner, ExactPlan):
            # What its steps are off by is none of the regulariser's doing, and small where this is asked.
            return Option(f"{words} without the noise of its steps,", self.trial.expected(strength), 0.0)
        if isinstance(learner, RefitPlan):
            return self._with(words, strength, Noise(learner.sigma))
        assert isinstance(learner, Noisy)
        try:
            plan = plan_learner(
                "auto" if isinstance(learner, MiniBatchLearner) else None,
                C=self._C(C),
                intercept=self.model.intercept,
                n=records * learner.n,
                features=learner.features,
                classes=learner.classes,
                epsilon=epsilon * learner.epsilon,
                delta=learner.delta,
                accountant=learner.accountant if isinstance(learner, LangevinLearner) else "shifted",
                adjacency=learner.adjacency,
            )
        except UnlearningError:
            return None
        return self._with(words, strength, Noise(plan.sigma, plan.exact_problem.step_size))

    def _refit(self, words: str, *, C: float = 1) -> Option:
        """Return Newton removal with a ``C`` so many times as large."""
        return self._with(words, self._strength() / C, Noise(REFIT_SIGMA))

    def _with(self, words: str, strength: float, noise: Noise) -> Option:
        return Option(words, self.trial.expected(strength, noise), noise.sigma)
