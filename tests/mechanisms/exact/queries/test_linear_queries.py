"""Linear queries: probabilities of computing again, counts, invariants; federated averaging and k-means."""

import math

import pytest
import torch

from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.planning import plan_queries
from certified_unlearning.accounting.tv.recomputation import iterations_run_again, query_recompute_probability
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.mechanisms.exact.queries.federated_averaging import (
    FederatedAveraging,
    FederatedAveragingSettings,
)
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, LinearQuerySettings
from certified_unlearning.mechanisms.exact.queries.lloyd import Lloyd

RUNS = 30_000
CENTRES = torch.tensor([[0.5, 0.0], [-0.5, 0.0], [0.0, 0.9]], dtype=torch.float64)


def far_away(steps: int = 6, sigma: float = 3.0) -> LinearQueries:
    """Every client wants to move by 100 in one direction and is clipped to 2: the gap of an edit is always 2."""
    settings = FederatedAveragingSettings(clip=2.0, nominal_clients=4)
    method = FederatedAveraging(
        lambda models, clients: models[:, None] + 100 * torch.ones(len(clients), 1), zero(), settings
    )
    return LinearQueries(method, LinearQuerySettings(steps, sigma))


def zero() -> torch.Tensor:
    return torch.zeros(1, dtype=torch.float64)


def clusters(sigma: float, steps: int = 8) -> tuple[LinearQueries, torch.Tensor]:
    draws = Draws.at("clusters")
    truth = torch.tensor([[0.6, 0.2], [-0.5, -0.3], [0.1, 0.7]]).double()
    rows = (truth[torch.arange(400) % 3] + 0.05 * draws.normal(400, 2)).clamp(-0.9, 0.9)
    return LinearQueries(Lloyd(rows, CENTRES, row_norm=1.3), LinearQuerySettings(steps, sigma)), truth


def test_edits_compute_again_with_the_probability_of_theory() -> None:
    """30 000 runs, 6 standard errors (2e-9 each)."""
    mechanism = far_away()
    run, learned = mechanism.learn(torch.arange(4), RUNS, Draws.at("queries"))
    assert learned.gradients.unique().tolist() == [24]
    assert int(learned.iterations_run_again.sum() + learned.recomputations.sum()) == 0
    expected = query_recompute_probability(queries=6, sigma=3.0, bound=2.0)
    again = iterations_run_again(steps=6, rejection=gaussian_tv(2 / 3), reflected_counts=False)
    for edit, record, size in (("delete", 2, 3), ("insert", 7, 4)):
        work = getattr(mechanism, edit)(run, record, Draws.at("queries", edit))
        assert abs(float(work.recomputations.double().mean()) - expected) < 6 * math.sqrt(0.25 / RUNS)
        rerun = work.iterations_run_again.double()
        assert abs(float(rerun.mean()) - again) < 6 * float(rerun.std()) / math.sqrt(RUNS)
        assert torch.equal(work.gradients, work.rejection_tests + size * work.iterations_run_again)
        assert bool((work.rejection_tests + work.iterations_run_again == 6).all())


def test_planned_noise_keeps_to_the_wanted_probability() -> None:
    plan = plan_queries(queries=6, bound=2.0, recompute_probability=0.2)
    mechanism = far_away(sigma=plan.noise)
    run, _ = mechanism.learn(torch.arange(4), RUNS, Draws.at("planned"))
    work = mechanism.delete(run, 0, Draws.at("planned", 1))
    assert abs(float(work.recomputations.double().mean()) - 0.2) < 6 * math.sqrt(0.16 / RUNS)


def test_federated_averaging_by_hand() -> None:
    """Moves 0.5, -1 and 4 (clipped to 2) of three clients, four nominal: (0.5 - 1 + 2) / 4 in the first step."""
    targets = torch.tensor([0.5, -1.0, 4.0]).double()

    def train(models: torch.Tensor, clients: torch.Tensor) -> torch.Tensor:
        return targets[clients].expand(len(models), -1)[..., None]

    method = FederatedAveraging(train, zero(), FederatedAveragingSettings(clip=2.0, nominal_clients=4))
    run, _ = LinearQueries(method, LinearQuerySettings(2, 0.0)).learn(torch.arange(3), 2, Draws(1))
    assert run.models[0, :, 0].tolist() == pytest.approx([0, 0.375, 0.375 + (0.125 - 1.375 + 2) / 4])


def test_centres_find_their_clusters() -> None:
    mechanism, truth = clusters(sigma=0.5)
    run, _ = mechanism.learn(torch.arange(300), 5, Draws.at("lloyd"))
    found = mechanism.model(run).view(5, 3, 2)
    assert float((found - truth).abs().max()) < 0.05


def test_without_noise_centres_are_means_of_who_is_nearest() -> None:
    mechanism, _ = clusters(sigma=0.0, steps=1)
    run, _ = mechanism.learn(torch.arange(300), 1, Draws(1))
    rows = mechanism.method.rows[:300]
    nearest = torch.cdist(CENTRES, rows).argmin(dim=0)
    for number, centre in enumerate(mechanism.model(run).view(3, 2)):
        torch.testing.assert_close(centre, rows[nearest == number].mean(dim=0))


def test_noisy_numbers_of_members_count_as_one_at_least() -> None:
    mechanism, _ = clusters(sigma=0.0)
    answers = torch.tensor([[3.0, 6.0, 0.4, 0.8, -0.4, 0.2, 2.0, 0.5, -7.0]], dtype=torch.float64)
    centres = mechanism.method.updates(1, mechanism.method.start()[None], answers)
    assert centres.tolist() == [[1.5, 3.0, 0.4, 0.8, -0.4, 0.2]]


def test_edits_of_clusters_keep_the_state_and_a_record_contributes_no_more_than_the_bound() -> None:
    mechanism, _ = clusters(sigma=2.0)
    run, _ = mechanism.learn(torch.arange(300), 50, Draws.at("lloyd", 1))
    for edit, record in [("delete", 3), ("insert", 333), ("delete", 333), ("delete", 0)]:
        getattr(mechanism, edit)(run, record, Draws.at("lloyd", edit, record))
        mechanism.check_invariants(run)
    assert sorted(run.records.tolist()) == [1, 2, *range(4, 300)]
    part = mechanism.method.sums(1, mechanism.method.start()[None], torch.tensor([5]))
    assert float(part.norm()) <= mechanism.method.bound == pytest.approx(math.hypot(1.3, 1))


def test_without_noise_an_edit_is_learning_afresh() -> None:
    mechanism, _ = clusters(sigma=0.0)
    run, _ = mechanism.learn(torch.arange(300), 2, Draws(1))
    work = mechanism.delete(run, 17, Draws(2))
    assert work.recomputations.tolist() == [1, 1]
    fresh, _ = mechanism.learn(run.records, 2, Draws(3))
    torch.testing.assert_close(run.models, fresh.models)


def test_nothing_before_the_first_rejection_moves_and_states_are_restored() -> None:
    mechanism = far_away()
    run, _ = mechanism.learn(torch.arange(4), 300, Draws.at("still"))
    before = mechanism.restore({name: tensor.clone() for name, tensor in run.tensors().items()})
    work = mechanism.delete(run, 1, Draws.at("still", 1))
    kept = torch.arange(6) < (work.rejection_tests - work.recomputations)[:, None]
    assert 0 < int(kept.all(dim=1).sum()) < 300
    assert torch.equal(run.noisy[kept], before.noisy[kept])
    assert torch.equal(run.models[:, 1:][kept], before.models[:, 1:][kept])
    mechanism.delete(before, 1, Draws.at("still", 1))
    assert all(torch.equal(tensor, before.tensors()[name]) for name, tensor in run.tensors().items())


def test_only_states_of_the_same_settings_are_restored() -> None:
    run, _ = far_away().learn(torch.arange(4), 5, Draws(1))
    stored = run.tensors()
    for other in (far_away(sigma=2.0), far_away(steps=5)):
        with pytest.raises(ParameterError, match="an edit must use the settings of learning"):
            other.restore(stored)
    with pytest.raises(ParameterError, match="must have the tensors noisy, too"):
        far_away().restore({name: stored[name] for name in stored if name != "noisy"})
    with pytest.raises(ParameterError, match=r"models must have shape \(5, 7, 1\), got \(5, 6, 1\)"):
        far_away().restore(stored | {"models": stored["models"][:, 1:]})


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lambda run: run.sums[3, 2].add_(1e-6), "sums of step 3"),
        (lambda run: run.noisy[3, 2].add_(1e-6), "models after step 3"),
        (lambda run: run.models[3, 6].add_(1e-6), "models after step 6"),
        (lambda run: run.models[3, 0].add_(1e-6), "models after step 1"),
        (lambda run: setattr(run, "records", run.records[1:]), "sums of step 1"),
    ],
)
def test_a_state_that_no_run_leaves_is_found(fault, said: str) -> None:
    mechanism = far_away()
    run, _ = mechanism.learn(torch.arange(4), 5, Draws(1))
    mechanism.check_invariants(run)
    fault(run)
    with pytest.raises(DataError, match=said):
        mechanism.check_invariants(run)


def test_what_makes_no_sense_is_refused() -> None:
    mechanism = far_away()
    run, _ = mechanism.learn(torch.arange(1), 5, Draws(1))
    with pytest.raises(ParameterError, match="record 4 is not among the 1 records"):
        mechanism.delete(run, 4, Draws(1))
    with pytest.raises(ParameterError, match="record 0 is the only one left"):
        mechanism.delete(run, 0, Draws(1))
    with pytest.raises(ParameterError, match="record 0 was learned already"):
        mechanism.insert(run, 0, Draws(1))
    with pytest.raises(ParameterError, match="distinct whole numbers of at least 0"):
        mechanism.learn(torch.tensor([2, 2]), 5, Draws(1))
    with pytest.raises(ParameterError, match="steps"):
        LinearQuerySettings(0, 1.0)
    with pytest.raises(ParameterError, match="sigma"):
        LinearQuerySettings(1, math.inf)
    with pytest.raises(ParameterError, match="clip"):
        FederatedAveragingSettings(0.0, 3)
    with pytest.raises(AssumptionError, match=r"no row may be longer than row_norm = 1\.0, got length 1\.41421"):
        Lloyd(torch.ones(3, 2).double(), CENTRES, row_norm=1.0)
    with pytest.raises(ParameterError, match="rows and centres must have the same number of features"):
        Lloyd(torch.ones(3, 4).double(), CENTRES, row_norm=9.0)
    wrong = FederatedAveraging(lambda models, clients: models, zero(), FederatedAveragingSettings(1.0, 1))
    with pytest.raises(ParameterError, match=r"trained models must have shape \(k, clients, d\) = \(5, 1, 1\)"):
        LinearQueries(wrong, LinearQuerySettings(1, 1.0)).learn(torch.arange(1), 5, Draws(1))
