"""`ExactLogisticRegression`: equal in law to a fit without the record, requests of all sorts, files, certificates."""

import copy
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from scipy import stats
from sklearn.linear_model import LogisticRegression

from certified_unlearning import (
    CertifiedLogisticRegression,
    ExactKMeans,
    ExactLogisticRegression,
    LangevinLogisticRegression,
    certificate,
)
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import LinearRecords
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.mechanisms.exact.descent import ExactDescent

MECHANISMS = ("noisy-sgd", "accelerated-noisy-sgd", "quantized-sgd", "subsample-gd")
FITS = 400
ROWS = np.array([[0.9, 0.1], [0.5, -0.8], [-0.7, 0.2], [-0.1, 0.9], [0.6, 0.6], [-0.9, -0.4], [1.0, 0.0], [0.0, -1.0]])
LABELS = np.array([1, 1, 0, 0, 1, 0, 0, 1])


def small(mechanism: str, **changes: Any) -> ExactLogisticRegression:
    given = {"steps": 4, "batch_size": 2, "step_size": 4.0, "sigma": 0.3, "quantum": 0.4, "C": 10.0}
    return ExactLogisticRegression(mechanism, **given | changes)


def functionals(model: ExactLogisticRegression) -> list[float]:
    """Of the published model, and of the secret state."""
    state = model._state
    spread = float(((state.weights[0, 1:] - state.weights[0, :-1]) ** 2).sum())
    return [*model.coef_[0], model.intercept_[0], spread, float(state.gradients[0, 0, 0]), float(state.batches.sum())]


def least_p(models: list[list[float]], others: list[list[float]]) -> float:
    """Return the least p-value of two-sample tests of all functionals, times their number."""
    columns = list(zip(np.transpose(models), np.transpose(others), strict=True))
    return len(columns) * min(stats.ks_2samp(a, b).pvalue for a, b in columns)


def edited() -> list[float]:
    model = small("noisy-sgd").fit(ROWS[:6], LABELS[:6])
    model.unlearn([0, 5])
    model.insert(ROWS[6:7], LABELS[6:7])
    model.unlearn([3])
    return functionals(model)


@pytest.fixture(scope="module")
def fresh() -> list[list[float]]:
    """Of fits to the records that `edited` leaves, whose positions are other numbers there."""
    here, found = [1, 2, 4, 6], []
    for _ in range(FITS):
        model = small("noisy-sgd").fit(ROWS[here], LABELS[here])
        model._state.batches = model._state.batches.new_tensor(here)[model._state.batches]
        found.append(functionals(model))
    return found


def test_after_requests_model_and_state_have_the_law_of_a_fit(fresh: list[list[float]]) -> None:
    """Two-sample tests of 400 fits, wrong once in 1e7 runs. Mechanisms are tested by themselves, with more runs."""
    assert least_p([edited() for _ in range(FITS)], fresh) > 1e-7


def test_a_request_that_only_looks_done_is_seen(fresh: list[list[float]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExactDescent, "_examine", lambda self, state, *rest: state.batches.new_full((1,), 4))
    assert least_p([edited() for _ in range(FITS)], fresh) < 1e-7


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_stream_of_requests_leaves_a_state_that_follows_from_its_records(mechanism: str, parity: Any) -> None:
    rows, labels = parity
    model = ExactLogisticRegression(mechanism, random_state=1).fit(rows[:300], labels[:300])
    for each in range(40):
        model.unlearn([each, 100 + each])
        (position,) = model.insert(rows[300 + each : 301 + each], labels[300 + each : 301 + each])
        assert position == 300 + each
    model.check()
    assert model.remaining_.tolist() == [*range(40, 100), *range(140, 340)]
    said = model.certificate_
    certificate.verify(said)
    assert (said.mechanism, said.n, said.deleted, said.inserted, said.requests) == (mechanism, 260, 80, 40, 80)
    assert model.score(rows[340:], labels[340:]) > 0.7


def test_ten_classes(digits: Any) -> None:
    rows, labels = digits
    model = ExactLogisticRegression(random_state=0, steps=500).fit(rows[:400], labels[:400])
    model.unlearn(np.arange(30))
    model.insert(rows[400:420], labels[400:420])
    model.check()
    assert model.coef_.shape == (10, 64)
    assert model.score(rows[420:], labels[420:]) > 0.8
    assert model.certificate_.loss == "softmax"
    with pytest.raises(DataError, match="y holds 11, which is not one of the learned classes"):
        model.insert(rows[:1], [11])


def test_what_leaves_leaves_no_bytes(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows, labels = draw.uniform(-0.4, 0.4, size=(60, 5)), np.arange(60) % 2
    frame = pd.DataFrame(rows, index=[f"customer-{each}" for each in range(60)])
    model = ExactLogisticRegression(random_state=0).fit(frame, labels)
    kept = model._records.rows[7].numpy().tobytes()
    model.save(tmp_path / "model")
    assert kept in (tmp_path / "model").read_bytes()
    model.unlearn(index=["customer-7"])
    model.save(tmp_path / "model")
    assert kept not in (tmp_path / "model").read_bytes()
    assert b"customer-7," not in (tmp_path / "model").read_bytes()
    assert 7 not in model._state.batches
    model.insert(pd.DataFrame(rows[:2], index=["new", "newer"]), labels[:2])
    model.unlearn(index="newer")
    assert model.remaining_.tolist() == [*range(7), *range(8, 61)]


def test_a_file_goes_on_where_the_estimator_stood(tmp_path: Path, parity: Any) -> None:
    rows, labels = parity
    model = ExactLogisticRegression(random_state=3).fit(rows[:200], labels[:200])
    model.unlearn([5])
    model.save(tmp_path / "model")
    again = ExactLogisticRegression.load(tmp_path / "model")
    for each in (model, again):
        each.unlearn([17, 18])
        each.insert(rows[200:203], labels[200:203])
    # The same draws, of gradients that were computed anew.
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-9)
    assert model.certificate_ == again.certificate_
    again.check()
    model.save(tmp_path / "handed-out", training_data=False)
    public = ExactLogisticRegression.load(tmp_path / "handed-out")
    assert np.array_equal(public.predict(rows), model.predict(rows))
    assert public.certificate_ == model.certificate_
    assert set(safetensors.numpy.load_file(tmp_path / "handed-out")) == {"_weights"}
    with pytest.raises(DataError, match="without its training data"):
        public.unlearn([0])
    with pytest.raises(DataError, match="without its training data"):
        public.insert(rows[:1], labels[:1])


@pytest.mark.parametrize("seed", [None, 4])
def test_what_is_interrupted_leaves_everything_and_ends_alike_when_made_again(
    seed: int | None, monkeypatch: pytest.MonkeyPatch, parity: Any
) -> None:
    rows, labels = parity
    model = ExactLogisticRegression(random_state=seed, batch_size=30).fit(rows[:200], labels[:200])
    before, run = model.coef_, ExactDescent._run

    def interrupted(*arguments: Any) -> None:
        run(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ExactDescent, "_run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.unlearn([3])
        with pytest.raises(KeyboardInterrupt):
            model.insert(rows[200:201], labels[200:201])
    assert np.array_equal(model.coef_, before)
    assert model._records.rows[3].abs().sum() > 0
    assert len(model._records) == 200
    assert not model._records._rows[200:].any()
    assert model.remaining_.tolist() == list(range(200))
    model.check()
    drawn = []

    def seen(draws: Draws, seed: int, **options: Any) -> None:
        drawn.append(seed)
        begin(draws, seed, **options)

    begin = Draws.__init__
    monkeypatch.setattr(Draws, "__init__", seen)
    kept = model._seed
    model.unlearn([3])
    assert drawn == [kept]
    assert model._seed != kept


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"mechanism": "sgd"}, "mechanism must be one of"),
        ({"batch_size": 8}, "batch_size must be below the number of records"),
        ({"step_size": 0.0}, "step_size"),
        ({"sigma": -1.0}, "sigma"),
        ({"radius": 0.0}, "radius"),
        ({"C": 0.0}, "C"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters: dict[str, Any], said: str) -> None:
    with pytest.raises((ParameterError, AssumptionError), match=said):
        ExactLogisticRegression(**parameters).fit(ROWS, LABELS)


def test_requests_that_make_no_sense_are_refused() -> None:
    model = small("noisy-sgd", batch_size=5).fit(ROWS, LABELS)
    before = model.coef_
    assert model.unlearn([]) is model
    for request, said in ([[8], "0 to 7"], [[1, 1], "twice"], [[*range(8)], "every record"]):
        with pytest.raises(ParameterError, match=said):
            model.unlearn(request)
    with pytest.raises(AssumptionError, match="batch_size must be below"):
        model.unlearn([0, 1, 2])
    assert np.array_equal(model.coef_, before)
    assert model.certificate_.requests == 0
    model.unlearn([0, 4])
    with pytest.raises(ParameterError, match="record 4 was removed before"):
        model.unlearn([4])
    with pytest.warns(UserWarning, match="no record left"):
        small("noisy-sgd").fit(ROWS[[0, 1, 2, 3]], [1, 0, 0, 0]).unlearn([0])


def test_the_report_says_what_it_is() -> None:
    model = small("noisy-sgd").fit(ROWS, LABELS)
    said = model.unlearn([2]).privacy_report(ROWS, LABELS)
    assert "epsilon = 0" in said
    assert "1 deleted and 0 inserted since, in 1 request." in said
    assert "oblivious" in said
    assert "accuracy" in said


def test_an_interrupted_insertion_leaves_labels_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    names = list("abcdefgh")
    frame = pd.DataFrame(ROWS, index=names)
    model = small("noisy-sgd").fit(frame, LABELS)
    newcomers = pd.DataFrame(ROWS[:3], index=["x", "y", "z"])
    with monkeypatch.context() as patch:
        patch.setattr(ExactDescent, "_run_again", lambda *arguments: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            model.insert(newcomers[:1], LABELS[:1])
    assert model.insert(newcomers, LABELS[:3]).tolist() == [8, 9, 10]
    model.unlearn(index=["y"])
    assert model.remaining_.tolist() == [*range(9), 10]


def test_what_would_diverge_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"step_size must be at most 2 / lambda"):
        ExactLogisticRegression(batch_size=2, C=1e-4).fit(ROWS, LABELS)
    with pytest.raises(DataError, match="learning diverged with step_size = 1e"), np.errstate(all="ignore"):
        small("noisy-sgd", step_size=1e290, sigma=1e200, C=1e300).fit(ROWS, LABELS)


def test_what_rows_are_made_by_stays_that_of_the_fit() -> None:
    model = small("noisy-sgd", feature_ranges=(-1, 1)).fit(ROWS, LABELS)
    model.insert(ROWS[:1], LABELS[:1])
    model.set_params(feature_ranges=(-2, 2))
    with pytest.raises(ParameterError, match="must be those of the fit"):
        model.insert(ROWS[:1], LABELS[:1])


def test_a_seed_that_is_set_later_is_stated() -> None:
    model = small("noisy-sgd").fit(ROWS, LABELS)
    assert model.certificate_.noise_source == "system entropy"
    model.set_params(random_state=3)
    model.unlearn([1])
    assert model.certificate_.noise_source == "seed"


def test_positions_may_be_of_any_whole_type() -> None:
    model = small("noisy-sgd").fit(ROWS, LABELS)
    for place, kind in enumerate((np.uint8, np.int8, np.uint32, np.uint64)):
        model.unlearn(np.array([place], dtype=kind))
    assert model.remaining_.tolist() == [4, 5, 6, 7]


def test_the_regulariser_is_scikit_learns() -> None:
    """All but one record in a batch, and many steps: the mean of iterates is near the minimiser, a false one is not."""
    plain = small("subsample-gd", steps=4000, batch_size=7, step_size=1.0, C=0.5, fit_intercept=False, random_state=0)
    theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10).fit(ROWS, LABELS).coef_
    ours = plain.fit(ROWS, LABELS).coef_
    assert np.abs(ours - theirs).max() < 0.02
    assert np.abs(theirs).max() > 0.4


@pytest.mark.parametrize("name", ["steps", "batch_size", "step_size", "sigma", "radius", "C"])
def test_a_truth_value_is_no_number(name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be"):
        ExactLogisticRegression(**{"batch_size": 2, name: True}).fit(ROWS, LABELS)


@pytest.mark.parametrize("wrong", ["seven", -1, 1.5, True, np.random.default_rng(0)])
def test_a_random_state_that_is_none_is_refused_in_one_sentence(wrong: Any) -> None:
    with pytest.raises(ParameterError, match=r"random_state must be None, a whole number from 0 to 2\*\*32 - 1, or a"):
        small("noisy-sgd", random_state=wrong).fit(ROWS, LABELS)


def test_an_interruption_after_a_removal_leaves_it_done_or_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between a new state and the overwriting of rows there is always a moment."""
    frame = pd.DataFrame(ROWS, index=list("abcdefgh"))
    model = small("noisy-sgd").fit(frame, LABELS)

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LinearRecords, "erase", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.unlearn(index=["c"])
    assert model.remaining_.tolist() == [0, 1, *range(3, 8)]
    with pytest.raises(ParameterError, match="no record that is left has this label"):
        model.unlearn(index=["c"])
    model.insert(pd.DataFrame(ROWS[:1], index=["z"]), LABELS[:1])
    assert not model._records.rows[2].any()
    assert model.certificate_.deleted == 1


class Interrupter:
    """Raises `KeyboardInterrupt` before the ``number``-th line that runs in a file of estimators."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if "/estimators/" not in frame.f_code.co_filename or "tests" in frame.f_code.co_filename:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self


def published(model: Any) -> Any:
    """Return the coefficients, or the centres."""
    return model.coef_ if hasattr(model, "coef_") else model.cluster_centers_


@pytest.mark.parametrize(
    "estimator",
    [
        small("subsample-gd", batch_size=20, steps=40),  # Record 7 is in some batch, but for 1e-7.
        ExactKMeans(2, recompute_probability=None, steps=2),  # Without noise every removal moves centres.
        CertifiedLogisticRegression(C=0.5, sigma=0.1),
        LangevinLogisticRegression(C=0.5, batch_size=20),
        LangevinLogisticRegression(C=0.5, batch_size=None),
    ],
)
def test_an_interruption_at_any_line_leaves_model_records_and_labels_agreeing(estimator: Any) -> None:
    draw = np.random.default_rng(0)
    rows = draw.uniform(-0.5, 0.5, (60, 2))
    frame, labels = pd.DataFrame(rows, index=[f"c{each}" for each in range(60)]), np.arange(60) % 2
    fitted = estimator.fit(frame, labels)
    number, undone, done = 0, 0, 0
    while True:
        number += 1
        model = copy.deepcopy(fitted)
        sys.settrace(Interrupter(number))
        try:
            model.unlearn(index=["c7"])
        except KeyboardInterrupt:
            pass
        else:
            break
        finally:
            sys.settrace(None)
        left = 7 in model.remaining_
        assert np.array_equal(published(model), published(fitted)) == left
        assert (model._store.index.labels[7] is not None) == left
        undone, done = undone + left, done + (not left)
        if left:
            model.unlearn(index=["c7"])
        else:
            with pytest.raises(ParameterError, match="no record that is left has this label"):
                model.unlearn(index=["c7"])
    assert undone > 10
    assert done > 0
