"""Quantized descent: states of the law of retraining, rejections as often as cells are left, faults that are caught.

The published example: records 0, 0.3, -0.5, 1.2, 2, -1; losses (w - z)^2 / 2, three iterations with step 0.5, batches
of 2, quantum 0.8. With quantum 2 gradients leave their cells about every other time: most faults show there.
"""

from dataclasses import replace
from statistics import fmean

import pytest
import torch
from scipy import stats

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import GivenRecords, LinearRecords
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.quantized_sgd import QuantizedSgd
from tests.mechanisms.exact import wrong_descents
from tests.mechanisms.exact.scripted import Scripted
from tests.mechanisms.exact.two_samples import RUNS, Request, critical, distances, edited, retrained

Z = [0, 0.3, -0.5, 1.2, 2.0, -1.0, 0.7, -1.4]
SIX = torch.arange(6)
DELETE_2: list[Request] = [([4], [])]
FINE = QuantizedSgd(steps=3, batch_size=2, step_size=0.5, quantum=0.8)
COARSE = replace(FINE, quantum=2.0)
SCENARIOS: dict[str, list[Request]] = {
    "deletion": DELETE_2,
    "insertion": [([], [6])],
    "three requests": [([4], []), ([5], []), ([], [6])],
    "two for one": [([4], [6, 7])],
    "one for two": [([4, 5], [6])],
}
RECORDS = GivenRecords(lambda w, z: w[:, None, :] - z[..., None], torch.tensor(Z, dtype=torch.float64), dimension=1)


@pytest.mark.sampled
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("settings", [FINE, replace(COARSE, radius=1.0)])
def test_the_whole_state_has_the_law_of_retraining(settings: QuantizedSgd, name: str) -> None:
    own = ExactDescent(settings, RECORDS)
    state = edited(own, SIX, SCENARIOS[name])
    assert max(distances(state, retrained(own, state)).values()) < critical()


def test_softmax_in_many_dimensions_has_the_law_of_retraining() -> None:
    draws, runs = Draws(8), 20_000
    records = LinearRecords(draws.normal(9, 2), draws.integers(3, 9), loss="softmax", classes=3)
    own = ExactDescent(QuantizedSgd(steps=4, batch_size=3, step_size=0.7, quantum=1.5), records)
    state = edited(own, torch.arange(8), [([2], []), ([], [8])], runs)
    assert max(distances(state, retrained(own, state, runs)).values()) < critical(runs)


@pytest.mark.parametrize("settings", [FINE, COARSE])
def test_as_many_edits_reject_as_gradients_leave_their_cells(settings: QuantizedSgd) -> None:
    """Gaps are (z - 2)/m here: the exact probability (Lemma 31), by a binomial test of false-alarm rate 1e-10."""
    own = ExactDescent(settings, RECORDS)
    work = own.delete(own.learn(SIX, Draws(1), trials=RUNS), 4, Draws(2))
    moved = fmean(min(1.0, abs(Z[4] - z) / 2 / settings.quantum) for z in Z[:6] if z != Z[4])
    expected = 1 - (1 - 2 / 6 * moved) ** 3
    assert stats.binomtest(int(work.recomputations.sum()), RUNS, expected).pvalue > 1e-10
    assert torch.equal(work.gradients, 2 * work.rejection_tests + 2 * work.iterations_run_again)


@pytest.mark.parametrize(
    ("offset", "before", "after", "again"),
    [
        (-0.4, [0, 0.4, 0.3], [0, 0.4, 0.3], {}),
        (0.1, [0, 0.9, 0.8], [0, -0.1, -0.1], {"subsets": [[[[0, 1]]]], "uniform": [[[0.5]]]}),
    ],
    ids=["stays in its cell", "leaves it"],
)
def test_a_gradient_moves_and_its_offset_is_kept(
    offset: float, before: list[float], after: list[float], again: dict[str, list[object]]
) -> None:
    """Batches {1.2, 2} and {0, 0.3}, quantum 2; 0.3 replaces 2, and the first gradient goes from -1.6 to -0.75."""
    own = ExactDescent(replace(COARSE, steps=2), RECORDS)
    state = own.learn(SIX, Scripted(subsets=[[[[3, 4], [0, 1]]]], uniform=[[[offset + 0.5]], [[0.6]]]))
    assert state.weights.flatten().tolist() == pytest.approx(before)
    draws = Scripted(integers=[[1]], **again)
    work = own.delete(state, 4, draws)
    assert draws.is_used_up()
    assert state.batches.tolist() == [[[1, 3], [0, 1]]]
    assert state.gradients.flatten()[0].item() == pytest.approx(-0.75)
    assert state.randomness.flatten()[0].item() == pytest.approx(offset)
    assert state.weights.flatten().tolist() == pytest.approx(after, abs=1e-15)
    assert work.recomputations.tolist() == [bool(again)]


def largest(own: ExactDescent[QuantizedSgd]) -> float:
    state = edited(own, SIX, DELETE_2, check=False)
    return max(distances(state, retrained(own, state)).values())


@pytest.mark.parametrize("wrong", [wrong_descents.FromTheStart, wrong_descents.FreshIteration])
def test_starting_anew_after_a_failed_test_is_caught(wrong: type[ExactDescent[QuantizedSgd]]) -> None:
    assert largest(wrong(COARSE, RECORDS)) > 2 * critical()


@pytest.mark.parametrize("couple", [wrong_descents.with_fresh_offset, wrong_descents.never_leaving])
def test_a_wrong_coupling_is_caught(couple: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QuantizedSgd, "couple", couple)
    assert largest(ExactDescent(COARSE, RECORDS)) > 2 * critical()
