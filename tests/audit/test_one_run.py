"""Audits in one run: planted faults are found, honest mechanisms are not called violated, and what is refused.

Honest mechanisms are called violated with probability ``alpha`` at most, each audit. Tests of honest ones take `RARE`,
at which 22 right guesses of 25 are needed to see anything; faults are found at the usual 1e-3.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from certified_unlearning import (
    CertifiedLogisticRegression,
    CertifiedMLPClassifier,
    CertifiedRidge,
    ExactLogisticRegression,
    LangevinLogisticRegression,
    PrivateLogisticRegression,
    PublishedStateDescentToDelete,
    SecretStateDescentToDelete,
)
from certified_unlearning.audit import Claim, Known, audit
from certified_unlearning.audit.guessers import _Linearised
from certified_unlearning.errors import AssumptionError, DataError, InfeasibleError, ParameterError
from certified_unlearning.estimators.objective import PublicObjective
from tests.audit.conftest import Records

C = 100 / 1797
RARE = 1e-6
"""False alarm of a test of an honest mechanism."""
WEIGHTS = ("coef_", "intercept_")
HONEST = {
    "certified": CertifiedLogisticRegression(C=C),
    "without intercept": CertifiedLogisticRegression(C=C, fit_intercept=False),
    "of ranges": CertifiedLogisticRegression(C=C, feature_ranges=(0, 1)),
    "of weighted classes": CertifiedLogisticRegression(C=C, class_weight={0: 1, 1: 2}),
    "Langevin": LangevinLogisticRegression(C=C, records=25, steps=400, batch_size=None),
    "secret state": SecretStateDescentToDelete(C=C, records=25, steps=200),
    "published state": PublishedStateDescentToDelete(C=C, delta=1e-9, records=25, steps=200),
}


def warm_start(model: Any, X: NDArray[Any], y: NDArray[Any], gone: NDArray[Any]) -> Any:
    """What people do: fit again where the last fit ended."""
    return model.fit(np.delete(X, gone, axis=0), np.delete(y, gone))


def nothing(model: Any, X: NDArray[Any], y: NDArray[Any], gone: NDArray[Any]) -> Any:
    """Planted: a removal that does nothing."""
    return model


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_mechanism_is_not_called_violated_where_doing_nothing_would_have_been(name: str, digits: Records):
    """The control named at least 24 of 25 in hundreds of runs."""
    found = audit(HONEST[name], *digits, alpha=RARE)
    assert found.certified
    assert found.claim.epsilon <= 1
    assert found.verdict == "nothing found"
    assert found.control().mu > 0.25
    assert str(found).startswith(found.headline)


def test_honest_certificates_are_rarely_called_violated(digits: Records) -> None:
    """At most two of twenty: more have probability 1.1e-6."""
    verdicts = [audit(HONEST["certified"], *digits).verdict for _ in range(20)]
    assert verdicts.count("violated") <= 2


@pytest.mark.parametrize("name", ["certified", "Langevin", "secret state"])
def test_unlearning_that_was_left_out_is_found_in_one_run(name: str, digits: Records) -> None:
    """Of the certificate's epsilon, with its learning; the control's power is at least .999."""
    estimator = HONEST[name]
    claim = Claim(epsilon=1, delta=1e-6, mu=0.2367)
    found = audit(None, *digits, learn=lambda X, y: estimator.fit(X, y), unlearn=nothing, claim=claim)
    assert found.verdict == "violated"
    assert found.bound() == found.control()


class Forgetful(CertifiedLogisticRegression):
    """Planted: `unlearn` counts a removal and publishes the old weights with new noise."""

    def _without(self, gone_rows, gone_labels):
        return self._model, "none"


class SecretWeights(CertifiedLogisticRegression):
    """Planted: after the removal, an old secret state is published without noise."""

    def _without(self, gone_rows, gone_labels):
        return self._model, "none"

    def _released(self, weights, release):
        return {**super()._released(weights, release), "_weights": weights}


@pytest.mark.parametrize("planted", [Forgetful, SecretWeights])
def test_an_estimator_of_ours_that_forgets_to_forget_is_called_violated(planted: type, digits: Records) -> None:
    found = audit(planted(C=C), *digits)
    assert found.verdict == "violated"
    assert found.bound().mu > 3


class Longer(LangevinLogisticRegression):
    """Planted: zero steps instead of K, with the certificate of K."""

    def _unlearn(self, rows, labels, records):
        self._history = self._history.after(self._learner.plan_removal(self._history, records))


def test_zero_steps_instead_of_those_that_were_certified_are_found(digits: Records) -> None:
    assert audit(Longer(C=C, records=25, steps=400, batch_size=None), *digits).verdict == "violated"


def test_a_scaler_that_saw_the_canaries_is_found_if_it_is_handed_out_and_only_then(digits: Records) -> None:
    """Weights alone show nothing. Learning again is exact but for the scaler, which stays."""

    def learn(X: NDArray[Any], y: NDArray[Any]) -> dict[str, Any]:
        scaler = StandardScaler(with_std=False).fit(X)
        return {"scaler": scaler, "model": LogisticRegression(C=C).fit(scaler.transform(X), y)}

    def unlearn(models: dict[str, Any], X: NDArray[Any], y: NDArray[Any], gone: NDArray[Any]) -> dict[str, Any]:
        kept = np.delete(X, gone, axis=0)
        model = LogisticRegression(C=C).fit(models["scaler"].transform(kept), np.delete(y, gone))
        return {**models, "model": model}

    def by_mean(published: Any, known: Known) -> NDArray[np.float64]:
        learned = len(known.X) + known.members
        return known.rows @ (learned * published["mean"] - known.X.sum(axis=0))

    rows = np.linalg.qr(np.random.default_rng(0).standard_normal((64, 64)))[0][:50]
    labels = np.random.default_rng(1).integers(2, size=50)
    given: dict[str, Any] = {"learn": learn, "unlearn": unlearn, "canaries": (rows, labels)}
    handed_out = audit(None, *digits, **given, publish=lambda all_: {"mean": all_["scaler"].mean_}, guess=by_mean)
    assert handed_out.verdict == "violated"
    assert handed_out.runs[0].right == 25

    def by_weights(published: Any, known: Known) -> NDArray[np.float64]:
        reference = LogisticRegression(C=C).fit(known.X - known.X.mean(axis=0), known.y).coef_[0]
        return (2 * known.labels - 1) * (known.rows @ (published["coef_"][0] - reference))

    weights = audit(
        None, *digits, **given, publish=lambda all_: {"coef_": all_["model"].coef_}, guess=by_weights, alpha=RARE
    )
    assert weights.verdict != "violated"
    assert any("scaler" in each for each in weights.assumed)


class OneKept(CertifiedLogisticRegression):
    """Planted: the first record of every request stays."""

    def _remove(self, named):
        kept = super()._remove(named[1:])
        self._counts = self._counts.after(1, "none")
        return kept


def test_one_record_that_is_kept_of_a_request_is_found_by_few_members_and_several_runs_only(digits: Records) -> None:
    """With half of the canaries drawn, V rises by a half, which changes next to nothing."""
    few = audit(OneKept(C=C), *digits, removed=2, named=1, runs=40)
    assert few.verdict == "violated"
    assert few.least_right == 1
    assert few.bound().epsilon > 1
    assert audit(OneKept(C=C), *digits, alpha=RARE).verdict == "nothing found"


def test_learning_that_hides_its_records_from_the_start_leaves_no_power(digits: Records) -> None:
    for estimator in (LangevinLogisticRegression(C=C, records=25, batch_size=None), PrivateLogisticRegression()):
        found = audit(estimator, *digits, alpha=RARE)
        assert found.verdict == "no power"
        assert "would not have noticed" in str(found)


def test_the_epsilon_beside_private_learning_is_that_of_all_removed_records(digits: Records) -> None:
    model = PrivateLogisticRegression().fit(*digits)
    found = audit(PrivateLogisticRegression(), *digits, canaries=20)
    assert found.claim.epsilon == pytest.approx(model.epsilon_after(10), rel=0.05)
    assert found.claim.epsilon > 5 * model.certificate_.epsilon
    assert found.claim.mu is None


def test_exact_unlearning_is_compared_with_epsilon_0(digits: Records) -> None:
    found = audit(ExactLogisticRegression(C=C, steps=20), *digits, canaries=20, alpha=RARE)
    assert (found.claim, found.certified) == (Claim(), True)
    assert found.verdict != "violated"


def test_several_classes_and_targets_are_audited(digits: Records) -> None:
    from sklearn.datasets import load_digits

    several = audit(CertifiedLogisticRegression(C=C), digits.X, load_digits().target, copies=4, alpha=RARE)
    assert several.verdict == "nothing found"
    targets = digits.X @ np.random.default_rng(0).standard_normal(64)
    ridge = CertifiedRidge(alpha=1, target_range=(-3, 3), sigma=1e-4)
    for estimator, unlearn in ((ridge, None), (Ridge(alpha=1), lambda *given: Ridge(alpha=1).fit(*left(*given)))):
        found = audit(estimator, digits.X, targets, unlearn=unlearn, canaries=60, alpha=RARE)
        assert found.verdict == "nothing found"


def left(model: Any, X: NDArray[Any], y: NDArray[Any], gone: NDArray[Any]) -> tuple[Any, Any]:
    return np.delete(X, gone, axis=0), np.delete(y, gone)


def test_a_warm_start_that_takes_no_step_is_found_and_a_fit_from_zero_is_not() -> None:
    """20 000 records, for time; the page on audits has 100 000. Seeded: neither method has randomness."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 50))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = rng.random(20_000) < 1 / (1 + np.exp(-X @ rng.standard_normal(50)))
    given = {"random_state": 0, "canaries": 50}
    warm = audit(LogisticRegression(C=0.1, warm_start=True), X, y, unlearn=warm_start, **given)
    assert (warm.verdict, warm.certified, warm.claim) == ("violated", False, Claim())
    assert warm.runs[0].right >= 23
    assert "learning again without the records would have epsilon 0" in str(warm)
    anew = audit(LogisticRegression(C=0.1), X, y, unlearn=warm_start, **given)
    assert anew.verdict == "nothing found"


def test_any_classifier_is_audited_by_the_scores_of_its_canaries(digits: Records) -> None:
    """Forests that stay know their canaries by heart."""
    forest = ExtraTreesClassifier(20)
    assert audit(forest, *digits, unlearn=nothing).verdict == "violated"
    honest = audit(forest, *digits, unlearn=warm_start, alpha=RARE)
    assert honest.verdict == "nothing found"
    assert honest.runs[0].right_before >= 23


def test_a_guesser_gets_what_is_published_and_nothing_else(digits: Records) -> None:
    seen = []

    def guess(published: Any, known: Known) -> NDArray[np.float64]:
        seen.append((published, known))
        return np.zeros(len(known.rows))

    audit(CertifiedLogisticRegression(C=C), *digits, guess=guess, canaries=20)
    for published, known in seen:
        assert {name: type(values) for name, values in published.items()} == {
            "coef_": np.ndarray,
            "intercept_": np.ndarray,
        }
        assert len(known.X) == len(digits.X)
        assert len(known.rows) == 20
    assert len(seen) == 2


def test_what_is_removed_lies_in_the_same_places_whichever_canaries_were_drawn(digits: Records) -> None:
    places, orders = [], []

    def learn(X: NDArray[Any], y: NDArray[Any]) -> int:
        orders.append(X[len(digits.X) :])
        return 0

    def unlearn(model: Any, X: NDArray[Any], y: NDArray[Any], gone: NDArray[Any]) -> int:
        places.append(gone)
        assert len(X) == len(y) == len(digits.X) + 30
        return 0

    audit(
        None, *digits, learn=learn, unlearn=unlearn, publish=lambda model: {}, guess=lambda *_: np.arange(20),
        canaries=20, copies=3, runs=5,
    )  # fmt: skip
    assert all((each == np.arange(len(digits.X), len(digits.X) + 30)).all() for each in places)
    assert len({each.tobytes() for each in orders}) == 5
    assert all((each.reshape(10, 3, -1) == each.reshape(10, 3, -1)[:, :1]).all() for each in orders)


def test_members_are_drawn_evenly_and_equal_scores_are_decided_by_chance(digits: Records) -> None:
    """Right guesses of a guesser that says nothing are hypergeometric: their mean is off by 5 deviations at most.

    False alarm: 6e-7.
    """
    found = audit(
        None, *digits, learn=lambda X, y: 0, unlearn=nothing, publish=lambda model: {},
        guess=lambda *_: np.zeros(20), canaries=20, runs=2000,
    )  # fmt: skip
    right = np.array([run.right for run in found.runs])
    deviation = np.sqrt(10 * 0.5 * 0.5 * 10 / 19 / 2000)
    assert abs(right.mean() - 5) < 5 * deviation
    assert found.verdict == "no power"


def test_a_run_that_fails_counts_and_is_guessed_as_a_fixed_set(digits: Records) -> None:
    calls = []

    def sometimes(model: Any, X: NDArray[Any], y: NDArray[Any], gone: NDArray[Any]) -> Any:
        calls.append(gone)
        if len(calls) % 2:
            raise InfeasibleError("the solver did not end")
        return warm_start(model, X, y, gone)

    found = audit(LogisticRegression(C=C), *digits, unlearn=sometimes, runs=6)
    assert len(found.runs) == 6
    assert found.failures == ("the solver did not end",) * 3
    assert [run.failed is None for run in found.runs] == [False, True] * 3
    assert all(run.right_before >= 20 for run in found.runs)
    assert "a run failed" in str(found)


def test_an_audit_whose_every_run_fails_is_an_error(digits: Records) -> None:
    def fails(*_: Any) -> Any:
        raise InfeasibleError("the solver did not end")

    with pytest.raises(InfeasibleError, match="did not end"):
        audit(LogisticRegression(C=C), *digits, unlearn=fails, runs=2)


def test_requests_of_given_size_become_a_stream_with_its_certificate(digits: Records) -> None:
    given = {"canaries": 20, "alpha": RARE}
    at_once = audit(CertifiedLogisticRegression(C=C), *digits, **given)
    one_by_one = audit(SecretStateDescentToDelete(C=C, steps=100), *digits, **given, request_size=1)
    assert at_once.claim.epsilon == pytest.approx(1.0)
    assert one_by_one.claim.epsilon <= 1
    assert one_by_one.verdict != "violated"


def test_members_by_class_and_named_others_are_counted_by_their_own_laws(digits: Records) -> None:
    given = {
        "learn": lambda X, y: 0,
        "unlearn": nothing,
        "publish": lambda model: {},
        "guess": lambda *_: np.arange(20),
    }
    rows, labels = np.eye(64)[:20], np.repeat([0, 1], 10)
    found = audit(None, *digits, **given, canaries=(rows, labels), by_class=True)
    assert (found.guessing.canaries, found.guessing.members) == ((10, 10), (5, 5))
    assert np.exp(found.guessing.log_p_value(9)) == pytest.approx(8.03099e-4, rel=1e-5)
    both = audit(None, *digits, **given, canaries=(rows, labels), named=(5, 5))
    assert np.exp(both.guessing.log_p_value(10)) == pytest.approx(1.363961e-3, rel=1e-5)


def test_a_seed_repeats_an_audit_of_a_method_without_randomness(digits: Records) -> None:
    found = [audit(LogisticRegression(C=C), *digits, unlearn=warm_start, random_state=5) for _ in range(2)]
    assert found[0].runs == found[1].runs


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"estimator": CertifiedMLPClassifier()}, AssumptionError, "certifies answers"),
        ({"estimator": make_pipeline(StandardScaler(), CertifiedRidge())}, AssumptionError, "earlier steps"),
        ({"estimator": CertifiedLogisticRegression(random_state=1)}, ParameterError, "random_state"),
        ({"estimator": LogisticRegression()}, ParameterError, "cannot unlearn: give a function `unlearn"),
        ({"estimator": CertifiedLogisticRegression(), "claim": Claim()}, ParameterError, "has its own unlearn"),
        ({"estimator": LogisticRegression(), "learn": nothing}, ParameterError, "not both"),
        ({}, ParameterError, "give an estimator, or both"),
        ({"canaries": 1}, ParameterError, "canaries"),
        ({"removed": 50}, ParameterError, "removed canaries must be from 1 to 49"),
        ({"named": 51}, ParameterError, "must name from 1 to 50 canaries, got named=51"),
        ({"named": (5, 5), "by_class": True}, ParameterError, "cannot name non-members if"),
        ({"least_right": 5}, ParameterError, "several runs"),
        ({"least_right": 26, "runs": 2}, ParameterError, "at most 25"),
        ({"alpha": 0.0}, ParameterError, "alpha"),
        ({"copies": 0}, ParameterError, "copies"),
        ({"canaries": (np.eye(64)[:4], [0, 1, 2, 1])}, DataError, "canaries have the class 2"),
        ({"canaries": (np.eye(9)[:4], [0, 1, 0, 1])}, DataError, "64 features"),
        ({"publish": lambda model: {}}, ParameterError, "`publish` was given without `guess`"),
        ({"guess": lambda *_: np.zeros(3)}, ParameterError, "each of the 50 canaries, got shape"),
        ({"guess": lambda *_: np.full(50, np.nan)}, ParameterError, "not a number"),
        ({"unlearn": lambda *_: None}, ParameterError, "got None"),
    ],
)  # fmt: skip
def test_what_no_audit_can_be_is_refused_in_a_sentence(
    given: dict[str, Any], error: type[Exception], words: str, digits: Records
) -> None:
    if "estimator" not in given and given:
        given = {"estimator": LogisticRegression(), "unlearn": warm_start} | given
    with pytest.raises(error, match=words):
        audit(X=digits.X, y=digits.y, **given)


def test_the_minimiser_that_is_a_reference_counts_canaries_in_part(digits: Records) -> None:
    """Weights of no, half and all canaries, of numbers too, against the normal equations."""
    rng = np.random.default_rng(0)
    targets = rng.standard_normal(len(digits.X))
    known = Known(digits.X, targets, np.eye(64)[:10], rng.choice([-1.0, 1.0], 10), copies=3, members=5)
    objective = PublicObjective(
        loss="squared", strength=2.0, targets=np.asarray, seen=np.asarray, intercept=False, noise=1e-3
    )
    rows, labels = np.concatenate([known.X, known.rows]), np.concatenate([targets, known.labels])
    for part in (0.0, 0.5, 1.0):
        weights = np.append(np.ones(len(targets)), np.full(10, 3 * part))
        left = (rows * weights[:, None]).T @ rows + 2 * np.eye(64)
        expected = np.linalg.solve(left, rows.T @ (weights * labels))
        found = _Linearised.of(objective, known, part).at
        np.testing.assert_allclose(found, expected, rtol=1e-9)
