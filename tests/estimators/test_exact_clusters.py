"""`ExactKMeans`: equal in law to a fit without the record, requests of all sorts, files, certificates, usefulness."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from certified_unlearning import ExactKMeans, certificate
from certified_unlearning.audit import audit
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries

FITS = 150
ROWS = np.array([[0.9, 0.1], [0.5, -0.8], [-0.7, 0.2], [-0.1, 0.9], [0.6, 0.6], [-0.9, -0.4], [1.0, 0.0], [0.0, -1.0]])
RARELY = pytest.mark.filterwarnings("ignore:little can be learned")


def small(**changes: Any) -> ExactKMeans:
    return ExactKMeans(2, **{"steps": 3, "recompute_probability": 0.9} | changes)


def noiseless(**changes: Any) -> ExactKMeans:
    return small(recompute_probability=None, **changes)


@pytest.fixture(scope="module")
def people() -> np.ndarray:
    """Twenty thousand points of three groups in the unit disc."""
    return make_blobs(20_000, centers=[[0.5, 0.1], [-0.4, -0.4], [-0.1, 0.6]], cluster_std=0.08, random_state=0)[0]


def functionals(model: ExactKMeans) -> list[float]:
    """Of the published centres, and of the secret state."""
    noise = (model._run.noisy - model._run.sums)[0]
    spread = float(model._run.models[0].diff(dim=0).square().sum())
    return [*model.cluster_centers_.ravel(), spread, float(noise[0, 0]), float(noise.square().sum())]


def least_p(models: list[list[float]], others: list[list[float]]) -> float:
    """Return the least p-value of two-sample tests of all functionals, times their number."""
    columns = list(zip(np.transpose(models), np.transpose(others), strict=True))
    return len(columns) * min(stats.ks_2samp(a, b).pvalue for a, b in columns)


def edited() -> list[float]:
    model = small().fit(ROWS[:6])
    model.unlearn([0, 5])
    model.insert(ROWS[6:7])
    model.unlearn([3])
    return functionals(model)


@pytest.fixture(scope="module")
def fresh() -> list[list[float]]:
    return [functionals(small().fit(ROWS[[1, 2, 4, 6]])) for _ in range(FITS)]


@RARELY
def test_after_requests_centres_and_state_have_the_law_of_a_fit(fresh: list[list[float]]) -> None:
    """Two-sample tests of 150 fits, wrong once in 1e7 runs. The mechanism is tested by itself, with more runs."""
    assert least_p([edited() for _ in range(FITS)], fresh) > 1e-7


@RARELY
def test_a_request_that_only_looks_done_is_seen(fresh: list[list[float]], monkeypatch: pytest.MonkeyPatch) -> None:
    right = LinearQueries._edit

    def noise_kept(self: LinearQueries, run: Any, *arguments: Any) -> Any:
        before = {name: getattr(run, name).clone() for name in ("noisy", "models")}
        work = right(self, run, *arguments)
        run.noisy, run.models = before["noisy"], before["models"]
        return work

    monkeypatch.setattr(LinearQueries, "_edit", noise_kept)
    assert least_p([edited() for _ in range(FITS)], fresh) < 1e-7


def test_it_finds_clusters_as_well_as_scikit_learn_with_many_records(people: np.ndarray) -> None:
    theirs = KMeans(3, n_init=1, random_state=0).fit(people)
    ours = ExactKMeans(3, random_state=0).fit(people)
    assert adjusted_rand_score(ours.labels_, theirs.labels_) > 0.98
    assert theirs.inertia_ <= ours.inertia_ < 1.05 * theirs.inertia_
    ours.unlearn(np.arange(100))
    assert ours.labels_.shape == (19_900,)
    assert ours.inertia_ == pytest.approx(-ours.score(people[100:]))
    np.testing.assert_array_equal(ours.labels_, ours.predict(people[100:]))
    np.testing.assert_array_equal(ours.transform(people[:5]).argmin(axis=1), ours.predict(people[:5]))
    assert ours.get_feature_names_out().tolist() == ["exactkmeans0", "exactkmeans1", "exactkmeans2"]


def test_a_stream_of_requests_leaves_the_bits_of_a_state_that_follows_from_its_records(people: np.ndarray) -> None:
    """Sums of rows on the grid are exact, so that the last bits do not tell which steps were edited."""
    model = ExactKMeans(3, random_state=1).fit(people[:3000])
    for each in range(40):
        model.unlearn([each, 100 + each])
        (position,) = model.insert(people[3000 + each : 3001 + each])
        assert position == 3000 + each
    model.check()
    assert model.remaining_.tolist() == [*range(40, 100), *range(140, 3040)]
    run = model._run
    again = LinearQueries(model._method, model._settings).replayed(run.records, run.noisy)
    assert torch.equal(again.sums, run.sums)
    assert torch.equal(again.models, run.models)
    said = model.certificate_
    certificate.verify(said)
    assert (said.n, said.deleted, said.inserted, said.requests) == (2960, 80, 40, 80)


def test_single_requests_take_steps_again_as_rarely_as_stated(people: np.ndarray) -> None:
    """Of 200 requests a fifth at most changes the centres; 6 standard errors are 0.17."""
    model = ExactKMeans(3, recompute_probability=0.2, random_state=2).fit(people)
    changed = 0
    for each in range(200):
        before = model._run.models
        changed += not torch.equal(model.unlearn([each])._run.models, before)
    assert 0.05 < changed / 200 < 0.2 + 6 * (0.16 / 200) ** 0.5
    assert model.certificate_.recompute_probability == pytest.approx(0.2)


def test_without_noise_a_request_is_a_refit_from_the_same_places(people: np.ndarray) -> None:
    places = [[0.3, 0.0], [-0.3, -0.3], [0.0, 0.3]]
    model = ExactKMeans(3, recompute_probability=None, init=places, random_state=0).fit(people[:300])
    model.unlearn([5, 7])
    other = ExactKMeans(3, recompute_probability=None, init=places, random_state=1)
    other.fit(np.delete(people[:300], [5, 7], axis=0))
    np.testing.assert_array_equal(model.cluster_centers_, other.cluster_centers_)
    said = model.certificate_
    assert (said.start, said.sigma, said.recompute_probability, said.steps_again) == ("given", 0, 1, 9)
    assert [each.status for each in said.assumptions if each.statement.startswith("no constant")] == ["assumed"]


def test_little_noise_is_not_promised_of_few_records(people: np.ndarray) -> None:
    with pytest.warns(UserWarning, match=r"little can be learned from 100 records: .* about 0\.36, .* 358 records"):
        ExactKMeans(3).fit(people[:100])
    with pytest.warns(UserWarning, match="no noise") as caught:
        ExactKMeans(3).fit(people[:100])
    assert caught[0].filename == __file__


def test_what_leaves_leaves_no_bytes(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).uniform(-0.4, 0.4, size=(60, 5))
    frame = pd.DataFrame(rows, index=[f"customer-{each}" for each in range(60)])
    model = noiseless(random_state=0).fit(frame)
    kept = model._method.rows[7].numpy().tobytes()
    model.save(tmp_path / "model")
    assert kept in (tmp_path / "model").read_bytes()
    model.unlearn(index=["customer-7"])
    model.save(tmp_path / "model")
    assert kept not in (tmp_path / "model").read_bytes()
    assert b"customer-7," not in (tmp_path / "model").read_bytes()
    model.insert(pd.DataFrame(rows[:2], index=["new", "newer"]))
    model.unlearn(index="newer")
    assert model.remaining_.tolist() == [*range(7), *range(8, 61)]


@pytest.mark.parametrize("options", [{}, {"init": [[0.2, 0.1], [-0.2, 0.0], [0.0, 0.2]]}, {"feature_ranges": (-1, 1)}])
def test_a_file_goes_on_where_the_estimator_stood(options: dict[str, Any], tmp_path: Path, people: np.ndarray) -> None:
    model = ExactKMeans(3, random_state=3, **options).fit(people[:5000])
    model.unlearn([5])
    model.save(tmp_path / "model")
    again = ExactKMeans.load(tmp_path / "model")
    for each in (model, again):
        each.unlearn([17, 18])
        each.insert(people[5000:5003])
    np.testing.assert_array_equal(model.cluster_centers_, again.cluster_centers_)
    assert torch.equal(model._run.noisy, again._run.noisy)
    assert model.certificate_ == again.certificate_
    again.check()
    model.save(tmp_path / "handed-out", training_data=False)
    public = ExactKMeans.load(tmp_path / "handed-out")
    assert np.array_equal(public.predict(people), model.predict(people))
    assert public.certificate_ == model.certificate_
    assert set(safetensors.numpy.load_file(tmp_path / "handed-out")) == {"centres"}
    for refused in (
        lambda: public.unlearn([0]),
        lambda: public.insert(people[:1]),
        lambda: public.labels_,
        lambda: public.inertia_,
        public.check,
    ):
        with pytest.raises(DataError, match="without its training data"):
            refused()


def test_a_damaged_file_is_refused(tmp_path: Path, people: np.ndarray) -> None:
    ExactKMeans(3, random_state=0).fit(people[:5000]).save(tmp_path / "model")
    with safetensors.safe_open(tmp_path / "model", framework="numpy") as file:
        header = file.metadata()
    arrays = safetensors.numpy.load_file(tmp_path / "model")
    for name, wrong in (
        ("records", np.array([0, 0])),
        ("records", np.array([5000])),
        ("noisy", arrays["noisy"][:, 1:]),
        ("directions", arrays["directions"][:, :, :1]),
        ("rows", 2 * arrays["rows"]),
    ):
        safetensors.numpy.save_file(arrays | {name: np.ascontiguousarray(wrong)}, tmp_path / "damaged", header)
        with pytest.raises(DataError, match="holds no estimator"):
            ExactKMeans.load(tmp_path / "damaged")


@RARELY
@pytest.mark.parametrize("seed", [None, 4])
def test_what_is_interrupted_leaves_everything_and_ends_alike_when_made_again(
    seed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = noiseless(random_state=seed).fit(ROWS)
    before, run = model.cluster_centers_, LinearQueries._run_from

    def interrupted(*arguments: Any) -> None:
        run(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LinearQueries, "_run_from", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.unlearn([3])
        with pytest.raises(KeyboardInterrupt):
            model.insert(ROWS[:1])
    assert np.array_equal(model.cluster_centers_, before)
    assert len(model._method.rows) == 8
    assert model.remaining_.tolist() == list(range(8))
    model.check()
    seed_of_the_request = model._seed
    undisturbed = copy.deepcopy(model).unlearn([3])
    assert np.array_equal(model.unlearn([3]).cluster_centers_, undisturbed.cluster_centers_)
    assert model._seed != seed_of_the_request


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"n_clusters": 0}, "n_clusters"),
        ({"n_clusters": True}, "n_clusters"),
        ({"n_clusters": 9}, "X has 8 samples, but k-means needs at least 9"),
        ({"steps": 0}, "steps"),
        ({"steps": 10**8}, "steps must be at most 10,000,000"),
        ({"recompute_probability": 0.0}, "recompute_probability"),
        ({"recompute_probability": 1.0}, "recompute_probability"),
        ({"recompute_probability": 1e-8}, r"needs noise of standard deviation .* lost in rounding"),
        ({"init": "k-means++"}, r"init must be 'mean', or finite numbers of shape \(2, 2\), got 'k-means\+\+'"),
        ({"init": [[0, 1]]}, r"of shape \(2, 2\), got shape \(1, 2\)"),
        ({"init": [[0, 1], [0, np.nan]]}, "got one that is not finite"),
        ({"init": [["a", "b"]]}, r"init must be 'mean', or finite numbers of shape \(2, 2\)"),
        ({"init": None}, r"init must be 'mean', or finite numbers of shape \(2, 2\)"),
        ({"random_state": -1}, "random_state must be None"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises((ParameterError, DataError, AssumptionError), match=said):
        ExactKMeans(**{"n_clusters": 2, "recompute_probability": None} | parameters).fit(ROWS)


def test_weights_of_records_and_audits_are_refused_with_the_reason() -> None:
    with pytest.raises(ParameterError, match="sample_weight must be None"):
        noiseless().fit(ROWS, sample_weight=np.ones(8))
    with pytest.raises(AssumptionError, match="ExactKMeans predicts no labels"):
        audit(noiseless(), ROWS, np.arange(8) % 2)


def test_long_rows_are_refused_unless_something_shortens_them() -> None:
    with pytest.raises(DataError, match=r"row 3 of X has norm 1\.8.*recomputations needs norms of at most 1"):
        noiseless().fit(ROWS * np.where(np.arange(8) == 3, 2, 1)[:, None])
    for options in ({"normalize": True}, {"data_norm": 2.0}, {"feature_ranges": (-2, 2)}):
        model = noiseless(**options).fit(2 * ROWS)
        assert float(model._method.rows.norm(dim=1).max()) <= 1
    model = noiseless().fit(ROWS)
    with pytest.raises(DataError, match="row 0 of X has norm 2"):
        model.insert([[0.0, 2.0]])
    assert float(model._method.rows.norm(dim=1).max()) <= 1


def test_requests_that_make_no_sense_are_refused() -> None:
    model = noiseless().fit(ROWS)
    before = model.cluster_centers_
    assert model.unlearn([]) is model
    for request, said in ([[8], "0 to 7"], [[1, 1], "twice"], [[*range(8)], "every record"]):
        with pytest.raises(ParameterError, match=said):
            model.unlearn(request)
    assert np.array_equal(model.cluster_centers_, before)
    assert model.certificate_.requests == 0
    model.unlearn([0, 4])
    with pytest.raises(ParameterError, match="record 4 was removed before"):
        model.unlearn([4])
    assert model.unlearn([1, 2, 3, 5, 6]).remaining_.tolist() == [7]


def test_what_rows_are_made_by_stays_that_of_the_fit() -> None:
    model = noiseless(feature_ranges=(-1, 1)).fit(ROWS)
    model.insert(ROWS[:1])
    model.set_params(feature_ranges=(-2, 2))
    with pytest.raises(ParameterError, match="must be those of the fit"):
        model.insert(ROWS[:1])


def test_constants_that_are_set_after_the_fit_change_nothing() -> None:
    model, other = (noiseless(random_state=0).fit(ROWS) for _ in range(2))
    other.set_params(n_clusters=5, steps=7, recompute_probability=0.5, init=[[0, 0]])
    assert np.array_equal(model.unlearn([2]).cluster_centers_, other.unlearn([2]).cluster_centers_)
    assert model.certificate_ == other.certificate_


def test_a_seed_that_is_set_later_is_stated() -> None:
    model = noiseless().fit(ROWS)
    assert model.certificate_.noise_source == "system entropy"
    model.set_params(random_state=3)
    model.unlearn([1])
    assert model.certificate_.noise_source == "seed"


def test_the_report_says_what_it_is_and_what_a_request_costs() -> None:
    said = noiseless().fit(ROWS).unlearn([2]).privacy_report()
    assert "epsilon = 0" in said
    assert "1 deleted and 0 inserted since, in 1 request." in said
    assert "takes steps again with probability at most 1.\nOn average that is at most 2 of 3 steps" in said
    assert "oblivious" in said
