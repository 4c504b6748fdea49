"""Reports on models that learned by steps: the certificate in words, and the cost of the next removal."""

from collections.abc import Sequence
from typing import Any

from certified_unlearning.certificate import StepsCertificate
from certified_unlearning.errors import InfeasibleError, ParameterError
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.text import noun_of, rounded_up


def in_words(certificate: StepsCertificate, learner: Any, history: Sequence[Removal]) -> list[str]:
    """Return what is currently guaranteed for a model, and how many steps the next removal needs."""
    removed = sum(removal.records for removal in history)
    lines = [
        f"Learned from {_of(learner.n, 'record')} in {_of(learner.learning_steps, 'step')}; {removed} removed since, "
        "in "
        f"{_of(len(history), 'request')} ({_of(sum(removal.steps for removal in history), 'step')}).",
        *_guarantee(certificate),
    ]
    if certificate.epsilon_all_published:
        lines.append(
            "For somebody who kept every published model, the first one included, epsilon is "
            f"{rounded_up(certificate.epsilon_all_published)} at delta = {rounded_up(certificate.delta)} (computed by "
            "the accountant shifted): what was published cannot be recalled."
        )
    return [*lines, _next(learner, history)]


def _guarantee(certificate: StepsCertificate) -> list[str]:
    """Return the statement of the guarantee."""
    if not certificate.unlearning_steps:
        return ["Nothing has been removed yet, so there is nothing to guarantee."]
    delta = certificate.delta + certificate.extra_delta
    said = [
        f"Guaranteed ({certificate.guarantee}, by {certificate.accountant}): epsilon = "
        f"{rounded_up(certificate.epsilon)} at delta = {rounded_up(delta)}, adjacency {certificate.adjacency}.",
    ]
    exact = certificate.epsilon_without_rounding
    if exact is not None:
        said.append(
            f"In exact arithmetic, epsilon would be {rounded_up(exact)}; the rest is due to rounding in "
            f"{certificate.dtype}."
        )
    said.append(f"Compared with: {certificate.comparator}.")
    if certificate.caveat is not None:
        said.append(certificate.caveat)
    return said


def _of(number: int, noun: str) -> str:
    return f"{number} {noun_of(number, noun)}"


def _next(learner: Any, history: Sequence[Removal]) -> str:
    try:
        takes = f"takes {_of(learner.plan_removal(history, 1).steps, 'step')}"
    except (InfeasibleError, ParameterError) as error:
        takes = f"is not possible: {error}"
    return f"Removing one more record, with epsilon at most {learner.epsilon:g}, {takes}."
