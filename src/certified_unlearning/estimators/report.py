"""A certificate in words, for people who decide on it."""

from collections.abc import Sequence

from certified_unlearning.certificate import StepsCertificate
from certified_unlearning.errors import InfeasibleError, ParameterError
from certified_unlearning.mechanisms.learners.descent import DescentLearner
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.mechanisms.learners.langevin import LangevinLearner
from certified_unlearning.mechanisms.learners.minibatch import MiniBatchLearner
from certified_unlearning.text import noun_of, rounded_up

Learner = LangevinLearner | MiniBatchLearner | DescentLearner


def in_words(certificate: StepsCertificate, learner: Learner, history: Sequence[Removal]) -> str:
    """Return what is guaranteed of a model now, and what the next removal takes."""
    removed = sum(removal.records for removal in history)
    lines = [
        f"Learned from {_of(learner.n, 'record')} in {_of(learner.learning_steps, 'step')}; {removed} removed since, "
        "in "
        f"{_of(len(history), 'request')} ({_of(sum(removal.steps for removal in history), 'step')})."
    ]
    lines += guarantee(certificate)
    if certificate.epsilon_all_published:
        lines.append(
            "For somebody who kept every published model, the first one included, epsilon is "
            f"{rounded_up(certificate.epsilon_all_published)} (by shifted, at delta = "
            f"{rounded_up(certificate.delta)}): what was shown cannot be recalled."
        )
    lines.append(_next(learner, history))
    return "\n".join([*lines, *rests_on(certificate)])


def guarantee(certificate: StepsCertificate) -> list[str]:
    """Return the statement itself."""
    if not certificate.unlearning_steps:
        return ["Nothing was removed yet, so there is nothing to guarantee yet."]
    delta = certificate.delta + certificate.extra_delta
    said = [
        f"Guaranteed ({certificate.guarantee}, by {certificate.accountant}): epsilon = "
        f"{rounded_up(certificate.epsilon)} at delta = {rounded_up(delta)}, adjacency {certificate.adjacency}.",
    ]
    exact = certificate.epsilon_without_rounding
    if exact is not None:
        said.append(
            f"In exact arithmetic it would be {rounded_up(exact)}: the rest is rounding in {certificate.dtype}."
        )
    said.append(f"Compared with: {certificate.comparator}.")
    if (certificate.accountant, certificate.variant) == ("descent-to-delete shifted", "published-state"):
        said.append(
            "That is no statement about a model that is retrained and noised once, from which this one may be told "
            "apart far better: accountant='conditional' speaks of that."
        )
    return said


def rests_on(certificate: StepsCertificate) -> list[str]:
    """Return the assumptions that nobody checked."""
    assumed = [f"- {each.statement}: {each.by}" for each in certificate.unchecked]
    return ["Assumed, not checked:", *assumed]


def _of(number: int, noun: str) -> str:
    return f"{number} {noun_of(number, noun)}"


def _next(learner: Learner, history: Sequence[Removal]) -> str:
    try:
        takes = f"takes {_of(learner.plan_removal(history, 1).steps, 'step')}"
    except (InfeasibleError, ParameterError) as error:
        takes = f"is not possible: {error}"
    return f"Removing one more record, with epsilon at most {learner.epsilon:g}, {takes}."
