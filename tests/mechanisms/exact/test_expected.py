"""Average costs of a deletion, computed along trajectories, against deletions that were made and counted."""

import pytest
import torch

from certified_unlearning.accounting.tv.subsampling import subsampling_tv
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import GivenRecords
from certified_unlearning.mechanisms.exact import expected
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.expected import expected_deletion
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.mechanisms.exact.quantized_sgd import QuantizedSgd
from certified_unlearning.mechanisms.exact.subsample_gd import SubsampleDescent, SubsampleGd

VALUES = torch.tensor([0.0, 0.3, -0.5, 1.2, 3.0, -2.0, 0.7, -0.1], dtype=torch.float64)
RECORDS = GivenRecords(lambda w, z: w[:, None, :] - z[..., None], VALUES, dimension=1)
CONSTANTS = {"steps": 5, "batch_size": 3, "step_size": 0.4}
TRIALS = 20_000
FIELDS = ("gradients", "rejection_tests", "recompute_probability", "iterations_run_again")


def descents() -> list[ExactDescent]:
    noisy = [
        NoisySgd(**CONSTANTS, sigma=0.6, radius=1.0),
        NoisySgd(**CONSTANTS, sigma=0.6, accelerated=True),
        NoisySgd(**CONSTANTS, sigma=0.0),
        QuantizedSgd(**CONSTANTS, quantum=2.0),
    ]
    return [*(ExactDescent(each, RECORDS) for each in noisy), SubsampleDescent(SubsampleGd(**CONSTANTS), RECORDS)]


def standard_errors_apart(descent: ExactDescent) -> list[float]:
    """Return how far averages are from counts of deletions of every record, in standard errors."""
    computed = expected_deletion(descent, descent.learn(torch.arange(len(VALUES)), Draws(1), trials=TRIALS), Draws(2))
    counted = {name: [] for name in FIELDS}
    for record in range(len(VALUES)):
        draws = Draws(3 + record)
        state = descent.learn(torch.arange(len(VALUES)), draws, trials=TRIALS)
        work = descent.delete(state, record, draws)
        for name in FIELDS:
            counted[name].append(getattr(work, name.replace("recompute_probability", "recomputations")).double())
    apart = []
    for name in FIELDS:
        average, counts = getattr(computed, name), torch.stack(counted[name])
        variance = average.var() / TRIALS + (counts.var(dim=1) / TRIALS).mean() / len(counts)
        difference = float(average.mean() - counts.mean())
        apart.append(abs(difference) / float(variance) ** 0.5 if difference else 0.0)
    return apart


@pytest.mark.parametrize("descent", descents(), ids=lambda descent: str(descent.settings)[:60])
def test_averages_are_those_of_deletions_that_were_made(descent: ExactDescent) -> None:
    """Within 6 standard errors, 20 comparisons in all: a false alarm once in 2e7 seeds."""
    assert max(standard_errors_apart(descent)) < 6


def test_a_use_that_is_forgotten_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    rejections = expected._rejections

    def of_other_steps(descent, state, step, draws):
        return rejections(descent, state, step, draws) * (step != 2)

    monkeypatch.setattr(expected, "_rejections", of_other_steps)
    assert max(standard_errors_apart(descents()[0])) > 20


def test_plain_descent_computes_again_where_a_record_was_used() -> None:
    descent = descents()[-1]
    found = expected_deletion(descent, descent.learn(torch.arange(8), Draws(5), trials=TRIALS), Draws(6))
    due = subsampling_tv(n=8, batch_size=3, steps=5)
    error = float(found.recompute_probability.std()) / TRIALS**0.5
    assert abs(float(found.recompute_probability.mean()) - due) < 6 * error
    assert torch.equal(found.rejection_tests, torch.zeros(TRIALS, dtype=torch.float64))
