"""All noise scales side by side: each has the probability that noisy descent with this scale has."""

import torch

from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from certified_unlearning.mechanisms.exact.expected import expected_deletion
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.papers.tv_stability.measures.noise_scales import _EachItsNoise


def test_trials_with_one_scale_are_those_of_noisy_descent() -> None:
    rows = torch.nn.functional.normalize(Draws.at("rows").normal(40, 3))
    records = LinearRecords(rows, torch.where(rows[:, 0] > 0, 1, -1), loss="logistic")
    constants = {"steps": 12, "batch_size": 4, "step_size": 3.0}
    for sigma in (0.0, 0.02, 0.3):
        scales = torch.full((5,), sigma, dtype=torch.float64)
        found = []
        for settings in (NoisySgd(**constants, sigma=sigma), _EachItsNoise(**constants, sigma=0.0, scales=scales)):
            draws = Draws.at("noise scales", sigma)
            descent = ExactDescent(settings, records)
            state = descent.learn(torch.arange(40), draws, trials=5)
            found.append(expected_deletion(descent, state, draws).recompute_probability)
        torch.testing.assert_close(*found)
        assert 0 < float(found[0].min()) <= float(found[0].max()) < 1
