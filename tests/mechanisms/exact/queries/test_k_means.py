"""k-means that begins around the mean: what its steps are, requests of several records, and the law of retraining."""

from collections.abc import Callable

import pytest
import torch
from sklearn.cluster import KMeans as ScikitKMeans
from torch import Tensor

from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.recomputation import iterations_run_again, query_recompute_probability
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.exact.queries import linear_queries
from certified_unlearning.mechanisms.exact.queries.k_means import BESIDE, KMeans
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, LinearQuerySettings, QueryRun
from certified_unlearning.mechanisms.exact.queries.lloyd import Lloyd
from tests.engine.exact import wrong_steps
from tests.statistical import battery

RUNS = 20_000
BLOBS = torch.tensor([[0.6, 0.2], [-0.5, -0.3], [0.1, 0.6]], dtype=torch.float64)


def directions(steps: int, clusters: int, features: int) -> Tensor:
    drawn = Draws.at("directions").normal(steps, clusters, features)
    return drawn / torch.linalg.vector_norm(drawn, dim=-1, keepdim=True)


def blobs(sigma: float = 0.0, steps: int = 8, clusters: int = 3) -> LinearQueries:
    rows = BLOBS[torch.arange(300) % 3] + 0.05 * Draws.at("blobs").normal(300, 2)
    method = KMeans(rows, None, directions(steps, clusters, 2), sigma=sigma, row_norm=1.0)
    return LinearQueries(method, LinearQuerySettings(steps, sigma))


def small(given: bool = False) -> LinearQueries:
    """Two centres of seven points, with noise that empties clusters now and then."""
    method = KMeans(battery.POINTS, battery.CENTRES if given else None, directions(3, 2, 2), sigma=1.2, row_norm=2.3)
    return LinearQueries(method, LinearQuerySettings(3, 1.2))


def functionals(own: LinearQueries, run: QueryRun) -> dict[str, Tensor]:
    return battery.of_parts(run.noisy, run.sums, run.models, own.model(run))


def test_the_first_step_finds_the_mean_and_places_all_centres_around_it() -> None:
    own = blobs(steps=1)
    run, _ = own.learn(torch.arange(300), 2, Draws(1))
    mean = own.method.rows.mean(dim=0)
    torch.testing.assert_close(run.models[0, 1].view(3, 2), mean + BESIDE * own.method.directions[0])
    assert run.sums[0, 0, 6:].tolist() == [300, 0, 0]


def test_without_noise_later_steps_are_scikit_learns() -> None:
    own = blobs()
    run, _ = own.learn(torch.arange(300), 1, Draws(1))
    theirs = ScikitKMeans(3, init=run.models[0, 1].view(3, 2).numpy(), n_init=1, max_iter=7, tol=0)
    theirs.fit(own.method.rows.numpy())
    torch.testing.assert_close(own.model(run).view(3, 2), torch.as_tensor(theirs.cluster_centers_))
    found = own.model(run).view(3, 2)
    assert float(torch.cdist(BLOBS, found).min(dim=1).values.max()) < 0.02


def test_a_centre_without_records_is_placed_beside_the_fullest_cluster() -> None:
    own = blobs(sigma=2.0)
    answers = torch.tensor([[9.0, 0.0, 20.0, 10.0, 1.0, 1.0, 30.0, 50.0, 5.9]], dtype=torch.float64)
    moved = own.method.updates(3, own.method.start()[None], answers).view(3, 2)
    torch.testing.assert_close(moved[:2], torch.tensor([[0.3, 0.0], [0.4, 0.2]], dtype=torch.float64))
    torch.testing.assert_close(moved[2], moved[1] + BESIDE * own.method.directions[2, 2])
    answers[0, -1] = 6.0  # Three standard deviations: no longer none.
    torch.testing.assert_close(
        own.method.updates(3, own.method.start()[None], answers).view(3, 2)[2],
        torch.tensor([1 / 6, 1 / 6], dtype=torch.float64),
    )


def test_noise_moves_no_centre_out_of_the_ball_of_the_rows() -> None:
    own = blobs(sigma=30.0)
    run, _ = own.learn(torch.arange(300), 200, Draws(1))
    norms = run.models.view(200, 9, 3, 2).norm(dim=-1)
    assert float(norms.max()) <= 1 + 2 * BESIDE
    assert float(norms[:, 1:].max()) > 0.99


def test_blocks_of_records_add_up_and_a_single_model_is_served_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    own = blobs()
    centres = own.method.directions[:2].flatten(1)
    whole = own.method.sums(2, centres, torch.arange(300))
    for trial in range(2):
        torch.testing.assert_close(own.method.sums(2, centres[trial : trial + 1], torch.arange(300))[0], whole[trial])
    monkeypatch.setattr("certified_unlearning.mechanisms.exact.queries.lloyd.MOST_NUMBERS", 100)
    torch.testing.assert_close(own.method.sums(2, centres, torch.arange(300)), whole)


Edit = Callable[[LinearQueries, QueryRun], object]
EDITS: dict[str, tuple[list[int], Edit]] = {
    "one record": ([0, 1, 2, 3, 6, 5], lambda own, run: own.delete(run, 2, Draws.at("k-means", 1))),
    "three records at once": ([0, 1, 2, 3, 4, 5], lambda own, run: own.edit(run, [2, 4], [6], Draws.at("k-means", 2))),
}


def largest(own: LinearQueries, edit: str) -> float:
    """Return the largest distance of the functionals of edited and of fresh runs."""
    first, change = EDITS[edit]
    run, _ = own.learn(torch.tensor(first), RUNS, Draws.at("k-means", edit))
    change(own, run)
    fresh, _ = own.learn(torch.tensor(battery.LEFT), RUNS, Draws.at("k-means", edit, "fresh"))
    return max(battery.distances(functionals(own, run), functionals(own, fresh)).values())


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("edit", EDITS)
def test_centres_and_state_have_the_law_of_retraining(edit: str, given: bool) -> None:
    """44 distances, each compared as if it were one of 600 that fail together with probability 1e-6."""
    own = small(given)
    assert largest(own, edit) < battery.critical(RUNS)


def drop_the_second(self: LinearQueries, run: QueryRun, gone: Tensor, come: Tensor, draws: Draws) -> object:
    return EDIT(self, run, gone[:1], come, draws)


EDIT = LinearQueries._edit


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        ("one record", lambda patch: patch.setattr(linear_queries, "reflection_step", wrong_steps.inverted_ratio)),
        ("one record", lambda patch: patch.setattr(linear_queries, "reflection_step", wrong_steps.moved_along)),
        ("three records at once", lambda patch: patch.setattr(LinearQueries, "_edit", drop_the_second)),
        ("one record", lambda patch: patch.setattr(Lloyd, "sums", of_so_many)),
    ],
    ids=[
        "the ratio is inverted",
        "values are translated",
        "one of two records stays",
        "contributions depend on other records",
    ],
)
def test_a_fault_is_seen(
    edit: str, fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault(monkeypatch)
    assert largest(small(), edit) > 1.5 * battery.critical(RUNS)


SUMS = Lloyd.sums


def of_so_many(self: Lloyd, step: int, models: Tensor, records: Tensor) -> Tensor:
    """A contribution that depends on how many records are asked about: no linear query."""
    return SUMS(self, step, models, records) / len(records) ** 0.5


def test_requests_compute_again_no_more_often_and_no_more_steps_than_stated() -> None:
    """10 000 runs of a record of norm 1, the longest; 6 standard errors."""
    rows = torch.nn.functional.normalize(Draws.at("rows").normal(40, 3))
    method = KMeans(rows, None, directions(4, 2, 3), sigma=6.0, row_norm=1.0)
    own = LinearQueries(method, LinearQuerySettings(4, 6.0))
    run, _ = own.learn(torch.arange(40), 10_000, Draws.at("often"))
    work = own.delete(run, 7, Draws.at("often", 1))
    stated = query_recompute_probability(queries=4, sigma=6.0, bound=2**0.5)
    steps = iterations_run_again(steps=4, rejection=gaussian_tv(2**0.5 / 6), reflected_counts=False)
    for counted, expected in ((work.recomputations, stated), (work.iterations_run_again, steps)):
        values = counted.double()
        # Rows have norm 1, so that the bound is attained.
        assert abs(float(values.mean()) - expected) < 6 * float(values.std()) / 10_000**0.5


def test_a_state_follows_from_its_records_and_noisy_sums() -> None:
    own = small()
    run, _ = own.learn(torch.arange(6), 50, Draws(1))
    own.edit(run, [1, 3], [6], Draws(2))
    again = own.replayed(run.records, run.noisy)
    torch.testing.assert_close(again.models, run.models)
    torch.testing.assert_close(again.sums, run.sums)
    own.check_invariants(again)
    with pytest.raises(ParameterError, match=r"noisy must have shape \(trials, 3, 6\), got \(50, 2, 6\)"):
        own.replayed(run.records, run.noisy[:, :2])


@pytest.mark.parametrize(
    ("deleted", "inserted", "said"),
    [
        ([1, 9], [], "record 9 is not among the 3 records"),
        ([1, 1], [], "deleted must not name a record twice"),
        ([], [4, 4], "inserted must not name a record twice"),
        ([0], [2], "record 2 was learned already"),
        ([0, 1, 2], [], "record 2 is the only one left"),
    ],
)
def test_requests_that_make_no_sense_change_nothing(deleted: list[int], inserted: list[int], said: str) -> None:
    own = small()
    run, _ = own.learn(torch.arange(3), 5, Draws(1))
    before = {name: each.clone() for name, each in run.tensors().items()}
    with pytest.raises(ParameterError, match=said):
        own.edit(run, deleted, inserted, Draws(2))
    assert all(torch.equal(each, before[name]) for name, each in run.tensors().items())


def test_centres_and_directions_must_fit() -> None:
    with pytest.raises(ParameterError, match=r"got \(2, 2\) and \(3, 2\)"):
        KMeans(battery.POINTS, battery.CENTRES, directions(2, 3, 2), sigma=1.0, row_norm=2.3)
