"""Audits of a law that has seen no canary, and of one of known epsilon: bounds are as rarely wrong as they say."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from certified_unlearning import (
    CertifiedLogisticRegression,
    CertifiedRidge,
    LangevinLogisticRegression,
    SecretStateDescentToDelete,
)
from certified_unlearning.audit import AuditResult, AuditRun, Claim, Known, audit
from certified_unlearning.audit.canaries import Array, Guessing, orthogonal_directions
from certified_unlearning.audit.guessers import Guess, from_scores, from_weights
from certified_unlearning.estimators.objective import PublicObjective
from tests.audit.conftest import Records

C, SIGMA = 100 / 1797, 1e-3
AUDITS = 20_000
ATTAINED = {
    20: ((8, 0.0115071), (9, 5.46667e-4)),
    50: ((16, 0.0443711), (19, 2.71754e-4)),
    100: ((30, 0.0356712), (34, 3.00627e-4)),
}
"""By the number of canaries: right guesses that .05 and 1e-3 are attained by, and the levels that these attain."""


def guesser(name: str, known: Known, reference: Array) -> Guess:
    """Return a guesser of weights, of weights without knowledge of noise, or of scores."""
    if name == "scores":
        rng = np.random.default_rng(4)
        is_in = np.stack([rng.permutation(len(known.rows)) < known.members for _ in range(4)])
        scores = rng.standard_normal((8, len(known.rows)))
        of_scores = from_scores(scores, np.concatenate([is_in, ~is_in]))
        signs = np.where(known.labels == 1, 1, -1)
        return lambda published, known: of_scores({"scores": signs * (known.rows @ published["coef_"][0])}, known)
    objective = PublicObjective(
        loss="logistic",
        strength=1 / C,
        targets=lambda y: np.where(y == 1, 1.0, -1.0),
        seen=lambda X: X,
        intercept=False,
        noise=SIGMA if name == "weights" else 0.0,
    )
    return from_weights(objective, known)


def rights(name: str, m: int, digits: Records, audits: int) -> np.ndarray:
    """Return right guesses about members that were drawn after the model: fitted again, with noise anew."""
    rng = np.random.default_rng(m)
    known = Known(*digits, orthogonal_directions(m, 64, rng), rng.integers(2, size=m), 1, m // 2)
    reference = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=1000).fit(*digits).coef_
    guess, guessing = guesser(name, known, reference), Guessing((m,), (m // 2,), m // 2)
    found = np.empty(audits, dtype=int)
    for number in range(audits):
        is_member = rng.permutation(m) < m // 2
        published = {"coef_": reference + SIGMA * rng.standard_normal(reference.shape)}
        found[number] = guessing.right(guess(published, known), is_member, rng.random(m))
    return found


@pytest.mark.parametrize(
    ("name", "m", "audits"),
    [
        ("weights", 50, 2000),
        *(
            pytest.param(name, m, AUDITS, marks=pytest.mark.statistical)
            for name in ("weights", "least squares", "scores")
            for m in ATTAINED
        ),
    ],
)
def test_right_guesses_about_a_model_that_saw_no_canary_are_as_frequent_as_computed(
    name: str, m: int, audits: int, digits: Records
) -> None:
    """Two-sided exact tests at 1e-7 each: 20 of them."""
    found = rights(name, m, digits, audits)
    for right, level in ATTAINED[m]:
        assert stats.binomtest(int((found >= right).sum()), audits, level).pvalue > 1e-7


def tilted(epsilon: float, *, m: int, v: int, runs: int, audits: int, rng: np.random.Generator) -> list[float]:
    """Return bounds at .05 of audits of the tilted subset, whose epsilon is exact: ``P(V >= v) = e^epsilon p_v``."""
    guessing = Guessing((m,), (m // 2,), m // 2)
    probability = math.exp(epsilon + guessing.log_p_value(v))
    found = []
    for successes in rng.binomial(runs, probability, audits).tolist():
        counted = (AuditRun(right_before=0, right=v),) * successes + (AuditRun(right_before=0, right=0),) * (
            runs - successes
        )
        found.append(
            AuditResult(
                method="tilted subset", claim=Claim(epsilon=epsilon), certified=False, guessing=guessing, copies=1,
                runs=counted, least_right=v, alpha=1e-3, assumed=(),
            ).bound(0.05).epsilon
        )  # fmt: skip
    return found


def test_the_bound_of_several_runs_comes_near_to_an_epsilon_that_is_known() -> None:
    """Above it in at most as many of 50 audits as a binomial law of .05 allows at 1e-6; the mean is seeded."""
    bounds = tilted(3.0, m=20, v=8, runs=1000, audits=50, rng=np.random.default_rng(0))
    assert 2.8 < np.mean(bounds) < 3.0
    assert sum(each > 3.0 for each in bounds) <= stats.binom.isf(1e-6, 50, 0.05)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("epsilon", "m", "v", "means"),
    [
        (1.0, 20, 8, (0.174, 0.665, 0.904)),
        (1.0, 20, 7, (0.645, 0.903, 0.970)),
        (3.0, 20, 8, (2.629, 2.898, 2.969)),
        (3.0, 20, 9, (0.655, 2.333, 2.834)),
        (3.0, 8, 4, (2.687, 2.914, 2.973)),
    ],
)
def test_bounds_of_known_epsilon_have_the_means_of_their_specification(
    epsilon: float, m: int, v: int, means: tuple[float, ...]
) -> None:
    """200 audits each, against means of 4000: within 5 of their standard errors, below 1e-5 in all. Seeded."""
    for runs, mean in zip((100, 1000, 10_000), means, strict=True):
        found = np.array(tilted(epsilon, m=m, v=v, runs=runs, audits=200, rng=np.random.default_rng(runs)))
        assert abs(found.mean() - mean) < 5 * found.std() / np.sqrt(200) + 1e-3
        assert (found > epsilon).sum() <= stats.binom.isf(1e-6, 200, 0.053)


def test_a_bound_is_never_above_what_all_right_guesses_show() -> None:
    guessing = Guessing((20,), (10,), 10)
    everything = AuditResult(
        method="", claim=Claim(), certified=False, guessing=guessing, copies=1, assumed=(), alpha=1e-3,
        runs=(AuditRun(right_before=10, right=10),) * 50, least_right=9,
    )  # fmt: skip
    assert everything.bound(0.05).epsilon < -guessing.log_p_value(9)


@pytest.mark.statistical
def test_honest_certificates_are_called_violated_in_no_more_than_five_of_two_hundred_audits(digits: Records) -> None:
    """Six or more have probability 6.98e-8 at a rate of 1e-3. The control names every member, or nearly."""
    found = [audit(CertifiedLogisticRegression(C=C), *digits) for _ in range(200)]
    assert sum(each.verdict == "violated" for each in found) <= 5
    assert all(each.runs[0].right_before >= 24 for each in found)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["ridge", "Descent-to-Delete"])
def test_other_honest_certificates_are_called_violated_as_rarely(name: str, digits: Records) -> None:
    """200 audits each: six or more have probability 6.98e-8 at a rate of 1e-3. The control names all, or nearly."""
    if name == "ridge":
        targets = digits.X @ np.linspace(-1, 1, 64)
        estimator, records = CertifiedRidge(alpha=20, target_range=(-3, 3)), (digits.X, targets)
    else:
        estimator, records = SecretStateDescentToDelete(C=0.25, records=25, steps=200), (digits.X[:400], digits.y[:400])
    found = [audit(estimator, *records) for _ in range(200)]
    assert sum(each.verdict == "violated" for each in found) <= 5
    assert np.mean([each.runs[0].right_before for each in found]) > 24
    # Chance names 12.5 of 25 with a standard deviation of 1.79; epsilon 1 allows half a guess more.
    assert abs(np.mean([each.runs[0].right for each in found]) - 12.5) < 0.5 + 5.4 * 1.79 / 200**0.5


@pytest.mark.statistical
@pytest.mark.parametrize("m", [20, 50])
def test_langevin_unlearning_hides_canaries_from_the_start_unless_it_forgets_much(m: int, digits: Records) -> None:
    """Planned to forget by ``e^f``: at f = 1 learning is nearly private, at f = 8 every canary is named before.

    Ten audits: at f = 1 all have no power but for a control of 1e-3 each, two with probability 4.5e-5; at f = 8 the
    control names all but one in a hundred.
    """
    planned = {"C": C, "records": m // 2, "batch_size": None, "fit_intercept": False}
    problem = LangevinLogisticRegression(**planned).fit(*digits)._learner.exact_problem
    for f, powers in ((1, (0, 1)), (8, (10, 10))):
        steps = math.ceil(f / (problem.step_size * problem.strong_convexity))
        estimator = LangevinLogisticRegression(steps=steps, **planned)
        found = [audit(estimator, *digits, canaries=m) for _ in range(10)]
        assert powers[0] <= sum(each.verdict != "no power" for each in found) <= powers[1]


@pytest.mark.parametrize(
    ("right", "before", "epsilon", "mu", "verdict"),
    [
        (25, 25, 1.0, 0.2367, "violated"),
        (19, 25, 1.0, 0.2367, "violated"),
        (18, 25, 1.0, 0.2367, "nothing found"),
        (18, 18, 1.0, 0.2367, "no power"),
        (19, 19, 8.0, 1.531545, "no power"),
        (21, 25, 8.0, 1.531545, "violated"),
        (21, 25, 8.0, None, "nothing found"),
        (22, 25, 8.0, None, "violated"),
        (12, 25, 30.0, None, "no power"),
        (25, 25, 0.0, None, "violated"),
        (19, 19, 0.0, None, "violated"),
        (18, 18, 0.0, None, "no power"),
    ],
)
def test_the_verdict_is_that_of_the_level_of_verdicts_in_this_order(
    right: int, before: int, epsilon: float, mu: float | None, verdict: str
) -> None:
    """m = 50, alpha 1e-3; delta is 1e-6 where a mu or an epsilon above 0 is certified."""
    found = AuditResult(
        method="", claim=Claim(epsilon=epsilon, delta=1e-6 if epsilon else 0.0, mu=mu), certified=True, copies=1,
        guessing=Guessing((50,), (25,), 25), runs=(AuditRun(right_before=before, right=right),), least_right=None,
        alpha=1e-3, assumed=("something",),
    )  # fmt: skip
    assert found.verdict == verdict
    said = str(found)
    assert f"{verdict}: " in said
    assert "passed" not in said
    assert found.to_dict()["verdict"] == verdict
    assert found.p_values == (pytest.approx(math.exp(found.guessing.log_p_value(right))),)
    assert found.to_dict()["bounds"]["after"]["shown"]["level"] == 0.05


@pytest.mark.parametrize(
    ("epsilon", "mu", "least", "by_epsilon"),
    [(1.0, 0.2367044, 14, 14), (4.0, 0.8367, 18, 20), (8.0, 1.531545, 22, 26), (16.0, 2.69, 32, 36)],
)
def test_fewer_canaries_than_these_have_no_power(epsilon: float, mu: float, least: int, by_epsilon: int) -> None:
    """All right, before as after; delta 1e-6."""
    from certified_unlearning.accounting import mu_from_epsilon

    assert mu_from_epsilon(epsilon, 1e-6) == pytest.approx(mu, rel=0.02)
    for claimed, expected in ((mu_from_epsilon(epsilon, 1e-6), least), (None, by_epsilon)):

        def verdict(m: int, claimed: float | None = claimed) -> str:
            return AuditResult(
                method="", claim=Claim(epsilon=epsilon, delta=1e-6, mu=claimed), certified=True, copies=1,
                guessing=Guessing((m,), (m // 2,), m // 2), least_right=None, alpha=1e-3, assumed=(),
                runs=(AuditRun(right_before=m // 2, right=0),),
            ).verdict  # fmt: skip

        assert min(m for m in range(2, 60, 2) if verdict(m) != "no power") == expected


def test_a_result_is_drawn_with_what_was_found() -> None:
    found = AuditResult(
        method="a method", claim=Claim(epsilon=1.0, delta=1e-6, mu=0.2367), certified=True, copies=1,
        guessing=Guessing((50,), (25,), 25), runs=(AuditRun(right_before=25, right=12),), least_right=None,
        alpha=1e-3, assumed=(),
    )  # fmt: skip
    axes = found.plot()
    assert axes.get_title() == "a method: nothing found"
    drawn = {line.get_label(): line.get_xdata() for line in axes.get_lines()}
    assert list(drawn["before unlearning"]) == [25, 25]
    assert list(drawn["after"]) == [12, 12]
    assert found.plot(axes) is axes
