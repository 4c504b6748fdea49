"""Descent that is random in its batches only: exact, in fractions, by full enumeration.

The example is the published one: records 0, 1, 3, 7, losses (w - z)^2 / 2, two iterations with step 1/2, batches of 2.
All its numbers are whole multiples of 1/16, so floating point is exact.
"""

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import torch

from certified_unlearning.engine.exact import couplings
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import GivenRecords
from certified_unlearning.errors import DataError
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.lean_subsample_gd import LeanSubsampleDescent
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.subsample_gd import SubsampleDescent, SubsampleGd
from certified_unlearning.mechanisms.exact.work import Work
from tests.engine.exact.enumeration import ScriptedDraws, law
from tests.mechanisms.exact.two_samples import critical, distances, edited, retrained

CONSTANTS = {"steps": 2, "batch_size": 2, "step_size": 0.5}
RECORDS = GivenRecords(
    lambda w, z: w[:, None, :] - z[..., None], torch.tensor([0, 1, 3, 7, -2, 0.7], dtype=torch.float64), dimension=1
)
LEARNERS: dict[str, Callable[[], Any]] = {
    "plain": lambda: SubsampleDescent(SubsampleGd(**CONSTANTS), RECORDS),
    "lean": lambda: LeanSubsampleDescent(SubsampleGd(**CONSTANTS), RECORDS),
    "plain, by replacement": lambda: ExactDescent(SubsampleGd(**CONSTANTS), RECORDS),
    "noisy with sigma = 0": lambda: ExactDescent(NoisySgd(**CONSTANTS, sigma=0), RECORDS),
}
State = tuple[Any, ...]
"""All batches, and all weights that are kept."""


class Law:
    """The exact law of a learner's state."""

    def __init__(self, learner: Any, ids: list[int]) -> None:
        self.learner, self.states = learner, dict[State, Any]()
        self.probabilities = law(lambda draws: self._seen(learner.learn(torch.tensor(ids), draws)))
        self.recomputed = Fraction(0)

    def _seen(self, state: Any) -> State:
        key = (*state.batches.flatten().tolist(), *state.weights.flatten().tolist())
        if key not in self.states:
            self.learner.check(state, tolerance=0)
            self.states[key] = state
        return key

    def edit(self, request: Callable[[Any, Any], Work], *biases: Fraction) -> "Law":
        """The law after a request, and the probability that part of the run was computed again.

        Uniform numbers are told apart by the biases: the right one, and wrong ones that would be noticed.
        """
        after, recomputed = defaultdict[State, Fraction](Fraction), Fraction(0)
        before, self.states = self.states, {}
        for key, probability in self.probabilities.items():
            old = before[key]

            def run(draws: ScriptedDraws, old: Any = old) -> tuple[State, int]:
                state = type(old).from_tensors(old.tensors(), old.settings)
                work = request(state, draws)
                return self._seen(state), int(work.recomputations)

            for (new, again), given in law(run, *biases).items():
                after[new] += probability * given
                recomputed += probability * given * again
        self.probabilities, self.recomputed = dict(after), recomputed
        return self

    def last_iterates(self) -> dict[Fraction, Fraction]:
        found = defaultdict[Fraction, Fraction](Fraction)
        for key, probability in self.probabilities.items():
            found[Fraction(key[-1])] += probability
        return dict(found)


def after(learner: Any, ids: list[int], *requests: tuple[str, int]) -> Law:
    found, size = Law(learner, ids), len(ids)
    for kind, record in requests:
        biases = Fraction(2, size + 1), Fraction(2, size)
        found.edit(lambda state, draws, k=kind, r=record: getattr(learner, k)(state, r, draws), *biases)
        size += 1 if kind == "insert" else -1
    return found


@pytest.mark.parametrize("name", LEARNERS)
def test_a_deletion_leaves_the_law_of_retraining(name: str) -> None:
    found = after(LEARNERS[name](), [0, 1, 2, 3], ("delete", 3))
    assert found.probabilities == Law(LEARNERS[name](), [0, 1, 2]).probabilities
    assert found.recomputed == Fraction(3, 4)


INSERT, DELETE = ("insert", 3), ("delete", 1)


@pytest.mark.parametrize(
    ("name", "requests"),
    [*((name, (INSERT, DELETE)) for name in LEARNERS), ("plain", (INSERT,)), ("plain", (("insert", 4), ("delete", 4)))],
)
def test_requests_leave_the_law_of_retraining(name: str, requests: tuple[tuple[str, int], ...]) -> None:
    left = {0, 1, 2}
    for kind, record in requests:
        left = left | {record} if kind == "insert" else left - {record}
    found = after(LEARNERS[name](), [0, 1, 2], *requests)
    assert found.probabilities == Law(LEARNERS[name](), sorted(left)).probabilities


@pytest.mark.parametrize("name", ["plain", "noisy with sigma = 0"])
def test_one_request_with_both_leaves_the_law_of_retraining(name: str) -> None:
    learner = LEARNERS[name]()
    found = Law(learner, [0, 1, 2]).edit(lambda state, draws: learner.edit(state, [1], [3], draws))
    assert found.probabilities == Law(learner, [0, 2, 3]).probabilities


def test_the_published_laws_of_last_iterates() -> None:
    learner = LEARNERS["plain"]()
    eighths = {3: 1, 5: 1, 6: 1, 7: 1, 10: 1, 11: 1, 12: 1, 9: 2}
    published = {Fraction(value, 8): Fraction(ninths, 9) for value, ninths in eighths.items()}
    assert after(learner, [0, 1, 2, 3], ("delete", 3)).last_iterates() == published

    def mean(found: Law) -> Fraction:
        return sum((value * probability for value, probability in found.last_iterates().items()), Fraction(0))

    found = Law(learner, [0, 1, 2, 3])
    assert mean(found) == Fraction(33, 16)
    found.edit(lambda state, draws: learner.insert(state, 4, draws), Fraction(2, 5))
    assert mean(found) == Fraction(27, 20)
    assert found.recomputed == Fraction(16, 25)


def mean_rerun(steps: int, used: float) -> float:
    """Iterations that are run again after a deletion, on average: from the first of them that used the record."""
    return sum(used * (1 - used) ** (t - 1) * (steps - t + 1) for t in range(1, steps + 1))


def test_as_many_iterations_are_run_again_as_the_first_use_says() -> None:
    """Normal, false-alarm rate 2e-10; the formula gives the published numbers."""
    assert mean_rerun(200, 1 / 1200) == pytest.approx(15.8611, rel=4e-6)
    assert mean_rerun(200, 0.01) == pytest.approx(114.264, rel=4e-6)
    own, runs = SubsampleDescent(SubsampleGd(steps=9, batch_size=2, step_size=0.4), RECORDS), 20_000
    work = own.delete(own.learn(torch.arange(6), Draws(1), trials=runs), 4, Draws(2))
    again = work.iterations_run_again.double()
    assert abs(float(again.mean()) - mean_rerun(9, 2 / 6)) < 6.4 * float(again.std()) / math.sqrt(runs)
    assert torch.equal(work.gradients, 2 * work.iterations_run_again)
    assert not bool(work.rejection_tests.any())


def test_three_requests_leave_the_law_of_retraining() -> None:
    """At more records, by distances of many functionals; their false-alarm rate stands with them."""
    own = SubsampleDescent(SubsampleGd(steps=4, batch_size=2, step_size=0.4, radius=2.0), RECORDS)
    state = edited(own, torch.arange(4), [([1], []), ([], [4]), ([], [5])])
    assert max(distances(state, retrained(own, state)).values()) < critical()


def difference(one: dict[State, Fraction], other: dict[State, Fraction]) -> Fraction:
    """The total variation."""
    zero = Fraction(0)
    return sum((abs(one.get(key, zero) - other.get(key, zero)) for key in {*one, *other}), zero) / 2


def test_a_batch_that_is_drawn_anew_instead_of_joined_is_caught() -> None:
    class Redrawing(SubsampleDescent):
        def insert(self, state: Any, record: int, draws: Draws) -> Work:
            self._edit_alive(state, [], [record], draws.device)
            joins = (step for step in range(2) if float(draws.uniform(1, 1)) < 2 / len(state.alive))
            self._run(state, torch.tensor([next(joins, 2)]), draws)
            return Work.none(1)

    learner = Redrawing(SubsampleGd(**CONSTANTS), RECORDS)
    found = Law(learner, [0, 1, 2, 3]).edit(lambda state, draws: learner.insert(state, 4, draws), Fraction(2, 5))
    expected = Law(learner, [0, 1, 2, 3, 4]).probabilities
    assert difference(found.probabilities, expected) == Fraction(36, 125)


def test_a_bias_of_the_size_before_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = LEARNERS["plain"]()
    expected = Law(learner, [0, 1, 2, 3]).probabilities
    monkeypatch.setattr(couplings, "join_probability", lambda free, n: free / (n - 1))
    assert difference(after(learner, [0, 1, 2], ("insert", 3)).probabilities, expected) > Fraction(1, 10)


def test_a_run_that_goes_on_where_the_deleted_record_was_used_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were only what follows the first use run again, its batch would still hold the record."""
    monkeypatch.setattr(
        "certified_unlearning.mechanisms.exact.subsample_gd.first_uses",
        lambda batches, record: couplings.first_uses(batches, record).add(1).clamp(max=batches.shape[1]),
    )
    with pytest.raises(DataError, match="a record that is not present"):
        after(LEARNERS["plain"](), [0, 1, 2, 3], ("delete", 3))
