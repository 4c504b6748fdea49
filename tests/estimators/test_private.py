"""Private estimators: what they learn, keep and state, and that nothing but public numbers decides on bounds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
from scipy import stats
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from certified_unlearning import PrivateLinearRegression, PrivateLogisticRegression, certificate
from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.cli import app
from certified_unlearning.errors import AssumptionError, DataError, ParameterError

METHODS = ("output-perturbation", "noisy-gradient-descent", "embedding")


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(4000, 6))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ np.array([0.6, -0.4, 0.2, 0, 0, 0]) + generator.uniform(-0.1, 0.1, 4000)


@pytest.mark.parametrize("method", METHODS)
def test_a_regressor_learns_and_its_certificate_is_recomputed(method: str, table: Any) -> None:
    X, y = table
    model = PrivateLinearRegression(method, target_range=(-1, 1), dimension=4, random_state=0, fit_intercept=False)
    model.fit(X[:3000], y[:3000])
    assert model.score(X[3000:], y[3000:]) > (0.1 if method == "embedding" else 0.7)
    said = model.certificate_
    certificate.verify(said)
    assert (said.relation, said.n, said.d) == ("replace-one", 3000, 6)
    assert said.epsilon <= 1
    assert said.embedded == (method == "embedding")
    assert model.coef_.shape == (6,)
    assert model.radius_ == pytest.approx(1)


@pytest.mark.parametrize("loss", ["absolute", "huber"])
def test_other_losses(loss: str, table: Any) -> None:
    X, y = table
    model = PrivateLinearRegression(
        "noisy-gradient-descent", loss=loss, width=0.1, epsilon=2, target_range=(-1, 1), random_state=0
    )
    assert model.fit(X, y).score(X, y) > 0.6
    certificate.verify(model.certificate_)


@pytest.mark.parametrize("method", METHODS)
def test_a_classifier_nears_that_without_privacy_as_epsilon_grows(method: str, parity: Any) -> None:
    rows, labels = parity
    model = PrivateLogisticRegression(method, epsilon=100, random_state=0, steps=2000, dimension=60)
    plain = LogisticRegression().fit(rows, labels).score(rows, labels)
    assert model.fit(rows, labels).score(rows, labels) > plain - 0.06
    certificate.verify(model.certificate_)
    assert model.predict_proba(rows).shape == (600, 2)


def test_a_radius_is_selected_privately(table: Any) -> None:
    X, y = table
    model = PrivateLinearRegression(
        "noisy-gradient-descent", epsilon=30, radius=(0.05, 1.0), target_range=(-1, 1), random_state=0
    )
    model.fit(X, y)
    assert model.radius_ == pytest.approx(1)
    assert model.score(X, y) > 0.7
    said = model.certificate_
    certificate.verify(said)
    assert (said.selection, said.learned_n, len(said.runs), said.selection_epsilon) == ("grid search", 2000, 2, 30)
    narrow = PrivateLogisticRegression("embedding", dimension=3, radius=(0.5, 1, 2), random_state=0).fit(X, y > 0)
    certificate.verify(narrow.certificate_)
    assert narrow.radius_ in (0, pytest.approx(0.5), pytest.approx(1), pytest.approx(2))


def test_a_chunk_is_selected_privately(table: Any, tmp_path: Path) -> None:
    X, y = table
    model = PrivateLinearRegression(
        "noisy-gradient-descent", epsilon=8, boosting=0.05, target_range=(-1, 1), random_state=0, steps=100
    )
    model.fit(X, y)
    assert model.score(X, y) > 0.7
    assert model.radius_ == pytest.approx(1)
    said = model.certificate_
    assert (said.selection, said.chunks, said.learned_n, said.selection_epsilon) == ("boosting", 4, 800, 8)
    path = tmp_path / "certificate.json"
    certificate.write(said, path)
    assert CliRunner().invoke(app, ["verify", str(path)]).exit_code == 0
    model.save(tmp_path / "model")
    read = PrivateLinearRegression.load(tmp_path / "model")
    assert (read.boosting, read.radius_) == (0.05, model.radius_)
    narrow = PrivateLogisticRegression("embedding", dimension=3, boosting=0.2, random_state=0).fit(X, y > 0)
    certificate.verify(narrow.certificate_)


@pytest.mark.parametrize("method", METHODS)
def test_under_add_remove_there_is_half_of_the_noise_and_the_certificate_says_so(
    method: str, table: Any, tmp_path: Path
) -> None:
    X, y = table
    given = {"dimension": 4, "steps": 50, "strong_convexity": 0.5, "random_state": 0}
    replaced, left_out = (
        PrivateLogisticRegression(method, relation=relation, **given).fit(X, y > 0)
        for relation in ("replace-one", "add-remove")
    )
    said = left_out.certificate_
    assert said.relation == "add-remove"
    assert said.runs[0].sigma == pytest.approx(replaced.certificate_.runs[0].sigma / 2, rel=1e-2)
    assert epsilon_from_mu(2 * said.mu, said.delta) > 2 * said.epsilon > 1.9
    path = tmp_path / "certificate.json"
    certificate.write(said, path)
    done = CliRunner().invoke(app, ["verify", str(path)])
    assert done.exit_code == 0
    assert "under add-remove" in done.output
    path.write_text(path.read_text().replace('"relation": "add-remove"', '"relation": "replace-one"'))
    assert CliRunner().invoke(app, ["verify", str(path)]).exit_code == 1


@pytest.mark.parametrize("selection", [{}, {"radius": (0.5, 1.0)}, {"boosting": 0.1}])
def test_a_planner_that_forgets_a_factor_is_refused_before_it_learns(
    selection: dict[str, Any], table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise of add-remove for replace-one, planted: the recomputed epsilon is more than what was asked."""
    given = PrivateLogisticRegression._run

    def halved(self: Any, *problem: Any, **more: Any) -> Any:
        plan = given(self, *problem, **more)
        return replace(plan, sigma=plan.sigma / 2)

    monkeypatch.setattr(PrivateLogisticRegression, "_run", halved)
    with pytest.raises(AssumptionError, match="no model was learned"):
        PrivateLogisticRegression(random_state=0, **selection).fit(table[0], table[1] > 0)


def test_a_deletion_changes_nothing_and_says_what_that_is_worth(table: Any) -> None:
    X, y = table
    frame = pd.DataFrame(X, index=[f"p{row}" for row in range(len(X))])
    model = PrivateLinearRegression(target_range=(-1, 1), random_state=0).fit(frame, y)
    before = model.coef_.copy()
    model.unlearn([0, 1])
    model.unlearn(index=["p7"])
    assert (model.coef_ == before).all()
    assert model.remaining_[:6].tolist() == [2, 3, 4, 5, 6, 8]
    mu = model.certificate_.mu
    assert model.epsilon_after(3) == pytest.approx(epsilon_from_mu(3 * mu, 1e-6), rel=1e-9)
    assert model.epsilon_after(model.deletions_within(5.0)) <= 5 < model.epsilon_after(model.deletions_within(5.0) + 1)
    assert "For the 3 records deleted so far, epsilon is" in model.privacy_report()
    with pytest.raises(ParameterError, match="removed"):
        model.unlearn([1])


def test_no_record_is_kept(table: Any, tmp_path: Path) -> None:
    X, y = table
    model = PrivateLinearRegression(target_range=(-1, 1), random_state=0).fit(X, y)
    path = tmp_path / "model.safetensors"
    model.save(path)
    assert {name: each.shape for name, each in safetensors.numpy.load_file(path).items()} == {
        "weights": (7,),
        "removed": (4000,),
    }
    everything = [*vars(model).values(), *vars(model._store).values()]
    largest = max((np.size(each) for each in everything if isinstance(each, np.ndarray)), default=0)
    assert largest == 4000  # Which positions were deleted.


@pytest.mark.parametrize("training_data", [True, False])
def test_what_is_saved_is_read_again(training_data: bool, table: Any, tmp_path: Path) -> None:
    X, y = table
    model = PrivateLogisticRegression(radius=(1.0, 2.0), random_state=5).fit(X, np.where(y > 0, "up", "down"))
    model.unlearn([3])
    path = tmp_path / "model.safetensors"
    model.save(path, training_data=training_data)
    read = PrivateLogisticRegression.load(path)
    assert (read.predict(X) == model.predict(X)).all()
    assert read.certificate_ == model.certificate_
    assert read.radius_ == model.radius_
    assert read.get_params()["random_state"] == (5 if training_data else None)
    if training_data:
        assert read.unlearn([4]).remaining_[:4].tolist() == [0, 1, 2, 5]
    else:
        assert "0 deleted since" in read.privacy_report()
        with pytest.raises(DataError, match="without its training data"):
            read.unlearn([4])
    with pytest.raises(DataError, match="not a PrivateLinearRegression"):
        PrivateLinearRegression.load(path)


def test_the_law_of_fits_is_that_of_the_plan(table: Any) -> None:
    """1500 fits without a seed: the noise has the stated deviation; wrong once in 1e6."""
    X, y = table[0][:40], table[1][:40]
    model = PrivateLinearRegression(target_range=(-1, 1), fit_intercept=False, strong_convexity=0.5)
    fits = np.array([model.fit(X, y).coef_ for _ in range(1500)])
    sigma = model.certificate_.runs[0].sigma
    statistic = ((fits - fits.mean(axis=0)) ** 2).sum() / sigma**2
    degrees = (len(fits) - 1) * X.shape[1]
    assert abs(stats.norm.ppf(stats.chi2.cdf(statistic, degrees))) < 4.9
    assert model.certificate_.noise_source == "system entropy"


def test_the_noise_of_a_number_is_the_same_and_said_to_be_known(table: Any) -> None:
    X, y = table
    fits = [PrivateLinearRegression(target_range=(-1, 1), random_state=3).fit(X, y) for _ in range(2)]
    assert (fits[0].coef_ == fits[1].coef_).all()
    assert any("drawn from a seed" in each.by for each in fits[0].certificate_.assumptions)


@pytest.mark.parametrize(
    ("changes", "error", "named"),
    [
        ({"data_norm": None}, ParameterError, "public bound on rows"),
        ({"method": "sgd"}, ParameterError, "method"),
        ({"radius": 0.0}, ParameterError, "radius"),
        ({"radius": ()}, ParameterError, "radius"),
        ({"radius": "auto"}, ParameterError, "radius"),
        ({"delta": "1/m"}, ParameterError, "delta"),
        ({"delta": 1.0}, ParameterError, "delta"),
        ({"epsilon": 0.0}, ParameterError, "epsilon"),
        ({"strong_convexity": -1.0}, ParameterError, "strong_convexity"),
        ({"method": "noisy-gradient-descent", "steps": 1}, ParameterError, "steps"),
        ({"method": "embedding", "dimension": 0}, ParameterError, "dimension"),
        ({"data_norm": 2.0, "normalize": True}, ParameterError, "not both"),
        ({"relation": "remove"}, ParameterError, "relation"),
        ({"boosting": 1.0}, ParameterError, "boosting"),
        ({"boosting": 0.1, "radius": (1.0, 2.0)}, ParameterError, "one radius"),
    ],
)
def test_what_makes_no_sense_is_named(changes: dict[str, Any], error: type, named: str, table: Any) -> None:
    X, y = table
    with pytest.raises(error, match=named):
        PrivateLogisticRegression(**changes).fit(X, y > 0)


def test_an_epsilon_beyond_all_meaning_has_no_certificate(table: Any) -> None:
    with pytest.raises(AssumptionError, match="nothing is guaranteed"):
        PrivateLogisticRegression(epsilon=1000).fit(table[0], table[1] > 0).certificate_  # noqa: B018


def test_more_than_two_classes_are_refused(table: Any) -> None:
    with pytest.raises(DataError, match="Only binary"):
        PrivateLogisticRegression().fit(table[0], np.arange(4000) % 3)


def test_a_record_out_of_bounds_changes_no_more_than_another(table: Any) -> None:
    """Long rows and far targets are taken as the bound says, and no error tells of them."""
    X, y = table[0].copy(), table[1].copy()
    X[0], y[0] = 1e300, -1e300
    far = PrivateLinearRegression(target_range=(-1, 1), random_state=1).fit(X, y)
    X[0], y[0] = 1 / np.sqrt(6), -1
    near = PrivateLinearRegression(target_range=(-1, 1), random_state=1).fit(X, y)
    assert far.coef_ == pytest.approx(near.coef_, abs=1e-4)
    assert far.certificate_ == near.certificate_


def test_deletions_whose_epsilon_means_nothing_are_not_covered(table: Any) -> None:
    # What the sampler leaves out costs its probability times exp(epsilon): of 100 deletions it is more than 1.
    X, y = table
    model = PrivateLogisticRegression(epsilon=1).fit(X[:300], y[:300] > 0)
    assert model.epsilon_after(40) == pytest.approx(89.02, abs=0.01)
    assert model.epsilon_after(100) == np.inf
    most = model.deletions_within(1e300)
    assert 40 < most < 100
    assert model.epsilon_after(most) < np.inf == model.epsilon_after(most + 1)
    assert model.deletions_within(5.0) == 4
    assert "nothing is guaranteed any more" in model.unlearn(range(most + 1)).privacy_report()


@pytest.mark.parametrize("epsilon", [True, np.array([1.0]), 1e-310])
def test_an_epsilon_that_is_no_number_is_refused_whatever_was_learned_before(epsilon: Any, table: Any) -> None:
    X, y = table
    PrivateLogisticRegression(epsilon=1.0).fit(X, y > 0)  # Its plan is remembered, by a number that equals True.
    with pytest.raises(ParameterError, match="epsilon must be"):
        PrivateLogisticRegression(epsilon=epsilon).fit(X, y > 0)


def test_a_radius_of_no_dimension_is_refused(table: Any) -> None:
    X, y = table
    with pytest.raises(ParameterError, match="radius must be a number above 0"):
        PrivateLogisticRegression(radius=np.array(3.0)).fit(X, y > 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("radius", [np.array([1.0, 2.0]), range(1, 3)])
def test_radii_of_any_sequence_are_saved(radius: Any, table: Any, tmp_path: Path) -> None:
    X, y = table
    model = PrivateLinearRegression(radius=radius, target_range=np.array([-1.0, 1.0]))  # type: ignore[arg-type]
    model.fit(X, y).save(tmp_path / "model")
    read = PrivateLinearRegression.load(tmp_path / "model")
    assert read.predict(X).tolist() == model.predict(X).tolist()
    assert read.radius == (1, 2)
