"""Noisy descent: the published trace and laws, states of the law of retraining, and faults that are caught.

The published example: records 0, 0.3, -0.5, 1.2, 3, -2, and 0.7 to come; losses (w - z)^2 / 2, four iterations with
step 0.4, batches of 2, sigma 0.6.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import fmean
from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

from certified_unlearning.engine.exact import couplings
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import GivenRecords, LinearRecords
from certified_unlearning.errors import DataError
from certified_unlearning.mechanisms.exact import noisy_sgd
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.trajectory import Trajectory
from certified_unlearning.mechanisms.exact.work import Work
from tests.engine.exact import wrong_steps
from tests.mechanisms.exact import wrong_descents
from tests.mechanisms.exact.scripted import Scripted
from tests.mechanisms.exact.two_samples import RUNS, Request, critical, distances, edited, retrained

Z = [0, 0.3, -0.5, 1.2, 3.0, -2.0, 0.7]
SIX = torch.arange(6)
DELETE_3, DELETE_MINUS_2, INSERT_07 = ([4], []), ([5], []), ([], [6])
STREAM: list[Request] = [DELETE_3, DELETE_MINUS_2, INSERT_07]
PLAIN = NoisySgd(steps=4, batch_size=2, step_size=0.4, sigma=0.6)
ACCELERATED = replace(PLAIN, accelerated=True)


def squares(*points: float) -> GivenRecords:
    rows = torch.tensor(points, dtype=torch.float64)
    return GivenRecords(lambda w, z: w[:, None, :] - z[..., None], rows, dimension=1)


def learner(settings: NoisySgd) -> ExactDescent[NoisySgd]:
    return ExactDescent(settings, squares(*Z))


class TestTheTrace:
    """Every number of the published trace of three iterations."""

    learner = ExactDescent(
        NoisySgd(steps=3, batch_size=2, step_size=0.5, sigma=1, radius=1.5, accelerated=True), squares(1, -2, 4, 0, 2)
    )

    def learned(self) -> Trajectory[NoisySgd]:
        script = Scripted(subsets=[[[[0, 2], [1, 2], [0, 3]]]], normal=[[[0.1]], [[-0.2]], [[0.3]]])
        state = self.learner.learn(torch.arange(4), script)
        assert script.is_used_up()
        return state

    def test_learning(self) -> None:
        state = self.learned()
        steps = torch.arange(3)
        assert state.points(torch.zeros(3, dtype=torch.int64), steps).flatten().tolist() == pytest.approx(
            [0, 1.5, 1.41]
        )
        assert state.gradients.flatten().tolist() == pytest.approx([-2.5, 0.5, 0.91])
        assert state.randomness.flatten().tolist() == pytest.approx([-2.4, 0.3, 1.21])
        assert state.weights.flatten().tolist() == pytest.approx([0, 1.2, 1.35, 0.805])
        assert state.model().tolist() == [[pytest.approx(0.805)]]

    def deleted(self, **script: Any) -> tuple[Trajectory[NoisySgd], Work]:
        """The record 4 is in batches 1 and 2; -2 replaces it there, and 0."""
        state, draws = self.learned(), Scripted(integers=[[0, 1]], **script)
        work = self.learner.delete(state, 2, draws)
        assert draws.is_used_up()
        assert state.batches[0, :2].tolist()[0] == [0, 1]
        return state, work

    def test_a_deletion_that_keeps_everything(self) -> None:
        state, work = self.deleted(uniform=[[0.0149955], [0.0907179]])
        assert state.gradients.flatten().tolist() == pytest.approx([0.5, 2.5, 0.91])
        noise = (state.randomness - state.gradients).flatten().tolist()
        assert noise == pytest.approx([-2.9, -2.2, 0.3])
        assert torch.equal(state.weights, self.learned().weights)
        assert state.batches.tolist() == [[[0, 1], [1, 3], [0, 3]]]
        assert (work.gradients.tolist(), work.rejection_tests.tolist(), work.recomputations.tolist()) == ([4], [2], [0])

    def test_a_deletion_that_reflects_the_first_value(self) -> None:
        again = {"subsets": [[[[0, 3], [0, 1]]]], "normal": [[[0.0]], [[0.0]]]}
        state, work = self.deleted(uniform=[[0.0149957]], **again)
        assert state.randomness.flatten()[0].item() == pytest.approx(0.4)
        assert (state.randomness - state.gradients).flatten()[0].item() == pytest.approx(-0.1)
        assert state.weights.flatten()[1].item() == pytest.approx(-0.2)
        assert state.batches.tolist() == [[[0, 1], [0, 3], [0, 1]]]
        assert (work.gradients.tolist(), work.rejection_tests.tolist()) == ([2 + 2 * 2], [1])
        assert (work.recomputations.tolist(), work.iterations_run_again.tolist()) == ([1], [2])

    def test_a_deletion_that_reflects_the_second_value(self) -> None:
        again = {"subsets": [[[[0, 1]]]], "normal": [[[0.0]]]}
        state, work = self.deleted(uniform=[[0.0149955], [0.0907181]], **again)
        assert state.randomness.flatten()[:2].tolist() == pytest.approx([-2.4, 2.7])
        assert (state.randomness - state.gradients).flatten()[1].item() == pytest.approx(0.2)
        assert state.weights.flatten()[:3].tolist() == pytest.approx([0, 1.2, 0.15])
        assert work.iterations_run_again.tolist() == [1]

    @pytest.mark.parametrize(("uniform", "kept"), [(0.201896, 0.3), (0.201898, -1.3)])
    def test_an_insertion(self, uniform: float, kept: float) -> None:
        again = {} if kept == 0.3 else {"subsets": [[[[0, 4]]]], "normal": [[[0.0]]]}
        state, draws = self.learned(), Scripted(uniform=[[[0.41, 0.39, 0.41]], [uniform]], integers=[[0]], **again)
        self.learner.insert(state, 4, draws)
        assert draws.is_used_up()
        assert state.batches[0, :2].tolist() == [[0, 2], [2, 4]]
        assert state.gradients.flatten()[1].item() == pytest.approx(-1.5)
        assert state.randomness.flatten()[1].item() == pytest.approx(kept)


def law_of_the_last(settings: NoisySgd, points: list[float]) -> tuple[float, float]:
    """Mean and variance of the last iterate without projection, by the recursion of (w_t, w_{t-1})."""
    n, m, eta = len(points), settings.batch_size, settings.step_size
    center = fmean(points)
    spread = sum((z - center) ** 2 for z in points) / (n - 1)
    mean, covariance = torch.zeros(2, dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64)
    for t in range(1, settings.steps + 1):
        alpha = (1 - t) / (t + 2) if settings.accelerated else 0.0
        matrix = torch.tensor([[(1 - eta) * (1 - alpha), (1 - eta) * alpha], [1, 0]], dtype=torch.float64)
        mean, covariance = matrix @ mean, matrix @ covariance @ matrix.T
        mean[0] += eta * center
        covariance[0, 0] += eta**2 * (settings.sigma**2 + spread / m * (1 - m / n))
    return float(mean[0]), float(covariance[0, 0])


def recompute_probability(settings: NoisySgd, points: list[float], record: float, *, insertion: bool = False) -> float:
    """The exact probability that an edit rejects: gaps of means do not depend on weights here."""
    others = [z for z in points if z is not record]
    gaps = [abs(z - record) / settings.batch_size for z in others]
    moved = fmean(math.erf(gap / (2 * math.sqrt(2) * settings.sigma)) for gap in gaps)
    used = settings.batch_size / (len(points) + insertion)
    return 1 - (1 - used * moved) ** settings.steps


@pytest.mark.parametrize(
    ("settings", "published"),
    [
        (ACCELERATED, {"": (0.330933, 0.423322), "-": (-0.198560, 0.253332), "+": (0.382937, 0.392750)}),
        (PLAIN, {"": (0.290133, 0.319760), "-": (-0.174080, 0.191356), "+": (0.335726, 0.296667)}),
    ],
)
def test_mean_and_variance_of_the_last_iterate_are_the_published_ones(
    settings: NoisySgd, published: dict[str, tuple[float, float]]
) -> None:
    """False-alarm rate 2e-10 a number: 6.4 standard errors; the variance's uses the sample's fourth moment."""
    requests: dict[str, tuple[list[Request], list[float]]] = {
        "": ([], Z[:6]),
        "-": ([DELETE_3], [z for z in Z[:6] if z != 3]),
        "+": ([INSERT_07], Z),
    }
    for kind, (mean, variance) in published.items():
        edits, points = requests[kind]
        assert law_of_the_last(settings, points) == pytest.approx((mean, variance), abs=6e-7)
        last = edited(learner(settings), SIX, edits).weights[:, -1, 0]
        centered = last - last.mean()
        assert abs(float(last.mean()) - mean) < 6.4 * math.sqrt(variance / RUNS)
        error = math.sqrt(float(centered.pow(4).mean() - variance**2) / RUNS)
        assert abs(float(centered.square().mean()) - variance) < 6.4 * error


@pytest.mark.parametrize("settings", [PLAIN, ACCELERATED])
def test_as_many_edits_reject_as_the_formula_says(settings: NoisySgd) -> None:
    """Binomial tests, false-alarm rate 1e-10 each; the formula gives the published 0.699365 and 0.372752."""
    own, points = learner(settings), Z[:6]
    assert recompute_probability(settings, points, Z[4]) == pytest.approx(0.699365, abs=6e-7)
    assert recompute_probability(settings, points, Z[6], insertion=True) == pytest.approx(0.372752, abs=6e-7)
    state = own.learn(SIX, Draws(1), trials=RUNS)
    for number, (removed, inserted) in enumerate(STREAM):
        work = own.edit(state, removed, inserted, Draws.at("stream", number))
        record = Z[(removed + inserted)[0]]
        expected = recompute_probability(settings, points, record, insertion=bool(inserted))
        points = [z for z in points if z is not record] + [Z[i] for i in inserted]
        assert stats.binomtest(int(work.recomputations.sum()), RUNS, expected).pvalue > 1e-10
        # Iterations run again: the first rejection is geometric.
        q, steps = 1 - (1 - expected) ** (1 / settings.steps), settings.steps
        mean = sum(q * (1 - q) ** (t - 1) * (steps - t) for t in range(1, steps + 1))
        again = work.iterations_run_again.double()
        assert abs(float(again.mean()) - mean) < 6.4 * float(again.std()) / math.sqrt(RUNS)


SCENARIOS: dict[str, list[Request]] = {
    "deletion": [DELETE_3],
    "insertion": [INSERT_07],
    "three requests": STREAM,
    "one for another": [([4], [6])],
    "two of them": [([4, 5], [])],
    "two for one": [([4], [6, 7])],
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("settings", [replace(PLAIN, radius=1.0), replace(ACCELERATED, radius=1.0)])
def test_the_whole_state_has_the_law_of_retraining(settings: NoisySgd, name: str) -> None:
    own = ExactDescent(settings, squares(*Z, -1.4))
    state = edited(own, SIX, SCENARIOS[name])
    assert max(distances(state, retrained(own, state)).values()) < critical()


def test_noise_keeps_its_size_over_edits() -> None:
    """The mean of |xi - g|^2 is d sigma^2: 6.4 standard errors, false-alarm rate 2e-10."""
    squared = edited(learner(ACCELERATED), SIX, STREAM)
    lengths = (squared.randomness - squared.gradients).square().mean(dim=(1, 2))
    assert abs(float(lengths.mean()) - 0.36) < 6.4 * float(lengths.std()) / math.sqrt(RUNS)


def test_softmax_in_many_dimensions_has_the_law_of_retraining() -> None:
    draws = Draws(8)
    rows, labels = draws.normal(9, 3), draws.integers(3, 9)
    records = LinearRecords(rows, labels, loss="softmax", classes=3, strong_convexity=0.1)
    own = ExactDescent(NoisySgd(steps=5, batch_size=3, step_size=0.7, sigma=0.15, radius=1.5), records)
    runs = 20_000
    state = edited(own, torch.arange(8), [([2], []), ([], [8]), ([0], [])], runs)
    assert max(distances(state, retrained(own, state, runs)).values()) < critical(runs)


def largest(own: ExactDescent[NoisySgd], requests: list[Request]) -> float:
    """The largest distance between states that a wrong learner edited and those that it learned."""
    state = edited(own, SIX, requests, check=False)
    return max(distances(state, retrained(own, state)).values())


@pytest.mark.parametrize(
    ("step", "requests"),
    [
        (wrong_steps.inverted_ratio, [DELETE_3]),
        (wrong_steps.moved_away, [DELETE_3]),
        (wrong_steps.moved_along, [DELETE_3]),
        (wrong_steps.redrawn, [DELETE_3]),
        (wrong_steps.never_rejecting, [DELETE_3]),
        (wrong_steps.stale_noise, STREAM),
    ],
)
def test_a_wrong_reflection_step_is_caught(
    step: Callable[..., tuple[Tensor, Tensor]], requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noisy_sgd, "reflection_step", step)
    own = learner(replace(ACCELERATED, radius=1.0))
    assert largest(own, requests) > 1.5 * critical()


@pytest.mark.parametrize("requests", [[INSERT_07], STREAM], ids=["insertion", "three requests"])
def test_a_bias_of_the_size_before_is_caught(requests: list[Request], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(couplings, "join_probability", lambda free, n: free / (n - 1))
    own = learner(ACCELERATED)
    assert largest(own, requests) > 1.5 * critical()


def test_relearning_on_the_old_data_is_caught() -> None:
    wrong = wrong_descents.RelearningOnOldData(ACCELERATED, squares(*Z))
    with pytest.raises(DataError, match="a record that is not present"):
        edited(wrong, SIX, [DELETE_3])
    assert largest(wrong, [INSERT_07]) > 1.5 * critical()


@pytest.mark.parametrize("wrong", [wrong_descents.WithoutProjection, wrong_descents.WithoutExtrapolation])
def test_a_wrong_step_after_a_rejection_breaks_the_invariant(wrong: type[wrong_descents.Redirecting]) -> None:
    with pytest.raises(DataError, match="weights after iteration"):
        edited(wrong(replace(ACCELERATED, radius=1.0), squares(*Z)), SIX, [DELETE_3])


def test_what_precedes_the_first_rejection_stays_bit_for_bit() -> None:
    own = learner(replace(ACCELERATED, steps=8))
    state = own.learn(SIX, Draws(1), trials=2000)
    for number, (removed, inserted) in enumerate(STREAM):
        before = {name: tensor.clone() for name, tensor in state.tensors().items()}
        work = own.edit(state, removed, inserted, Draws(10 + number))
        own.check(state)
        steps = state.settings.steps
        # The first iteration whose direction changed; all of them count where nothing was rejected.
        first = torch.where(work.recomputations > 0, steps - work.iterations_run_again - 1, steps)
        earlier = torch.arange(steps) < first[:, None]
        assert torch.equal(state.randomness[earlier], before["randomness"][earlier])
        assert torch.equal(state.weights[:, 1:][earlier], before["weights"][:, 1:][earlier])
        assert bool(
            (state.weights[:, 1:] != before["weights"][:, 1:]).any(dim=-1)[work.recomputations > 0].any(1).all()
        )
        # Deleting somebody who was in no batch changes nothing.
        unused = work.rejection_tests == 0
        assert bool(unused.any())
        for name in ("batches", "gradients", "randomness", "weights"):
            assert torch.equal(state.tensors()[name][unused], before[name][unused])


def test_an_examined_iteration_costs_two_gradients() -> None:
    """What is examined where nothing is rejected is binomial: tests with false-alarm rate 1e-10."""
    own = learner(replace(PLAIN, sigma=1e9, steps=10))
    state = own.learn(SIX, Draws(1), trials=20_000)
    for (removed, inserted), share in [(DELETE_3, 2 / 6), (INSERT_07, 2 / 6)]:
        work = own.edit(state, removed, inserted, Draws(2 + len(inserted)))
        assert not bool(work.recomputations.any())
        assert torch.equal(work.gradients, 2 * work.rejection_tests)
        assert stats.binomtest(int(work.rejection_tests.sum()), 200_000, share).pvalue > 1e-10
    noisy = learner(PLAIN)
    work = noisy.delete(noisy.learn(SIX, Draws(1), trials=1000), 4, Draws(2))
    assert torch.equal(work.gradients, 2 * work.rejection_tests + 2 * work.iterations_run_again)


def test_without_noise_as_many_edits_recompute_as_used_the_record() -> None:
    """The limit sigma = 0: a deletion recomputes with probability 1 - (1 - m/n)^T; binomial, false-alarm rate 1e-10."""
    own = learner(replace(PLAIN, sigma=0.0))
    work = own.delete(own.learn(SIX, Draws(1), trials=RUNS), 4, Draws(2))
    assert stats.binomtest(int(work.recomputations.sum()), RUNS, 1 - (1 - 2 / 6) ** 4).pvalue > 1e-10


def test_fewer_edits_recompute_than_the_bound_for_lipschitz_losses_allows() -> None:
    """Lemma 30: at most G T / (sigma n) with gradients of norm at most G; here it is several times too large."""
    rows = torch.nn.functional.normalize(Draws(1).normal(40, 3))
    records = LinearRecords(rows, Draws(2).integers(2, 40) * 2 - 1, loss="logistic")
    own = ExactDescent(NoisySgd(steps=10, batch_size=5, step_size=1.0, sigma=0.5), records)
    work = own.delete(own.learn(torch.arange(40), Draws(3), trials=5000), 7, Draws(4))
    assert 0 < float(work.recomputations.double().mean()) < 10 / (0.5 * 40) / 2
