"""Least eigenvalues that are certified, and models with public rows: within the certified distance, faults found."""

import numpy as np
import pytest

from certified_unlearning.accounting.residual import public
from certified_unlearning.accounting.residual.public import least_curvature, most_curvature
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.mechanisms.newton import public as rows_of_the_public
from certified_unlearning.mechanisms.newton.public import least_eigenvalue, public_curvature
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from tests.mechanisms.residual_streams import EXTENDED, LONG, norm, problem, true_minimiser

extended = pytest.mark.skipif(not EXTENDED, reason="this machine has no extended precision to compare with")


def matrix_of(eigenvalues: list[float], seed: int = 0) -> np.ndarray:
    """Half of a symmetric matrix, NaN above the diagonal, where nobody should look."""
    draw = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(draw.standard_normal((len(eigenvalues), len(eigenvalues))))
    matrix = (basis * eigenvalues) @ basis.T
    return np.asfortranarray(np.tril((matrix + matrix.T) / 2))


@pytest.mark.parametrize("least", [1e-12, 1e-8, 1e-3, 0.5, 1.0])
@pytest.mark.parametrize("d", [1, 2, 30])
def test_a_certified_eigenvalue_is_below_the_true_one_and_near_it(least, d):
    matrix = matrix_of([least, *np.linspace(1, 2, d - 1)])
    paid = 4 * 2 * (d + 4) * 2.0**-53 * np.trace(matrix)  # What a factor in float64 cannot tell.
    assert least * (1 - 2e-6) - paid <= least_eigenvalue(matrix) <= least + 1e-15


def test_no_eigenvalue_is_certified_of_a_singular_matrix():
    assert least_eigenvalue(matrix_of([0.0, 1.0, 1.0])) == 0
    assert least_eigenvalue(matrix_of([-1e-3, 1.0, 1.0])) == 0


def test_a_wrong_guess_of_the_eigenvalue_is_found_by_the_factor(monkeypatch):
    monkeypatch.setattr(rows_of_the_public, "_guess", lambda matrix: 0.019)
    assert least_eigenvalue(matrix_of([0.01, 1.0, 1.0])) == pytest.approx(0.0095)
    monkeypatch.setattr(rows_of_the_public, "_guess", lambda matrix: 0.03)
    assert least_eigenvalue(matrix_of([0.01, 1.0, 1.0])) == 0


def sphere(draw: np.random.Generator, n: int, d: int) -> np.ndarray:
    rows = draw.standard_normal((n, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_of_ridge_regression_it_is_the_least_eigenvalue_of_the_gram_matrix():
    draw = np.random.default_rng(0)
    rows, targets = sphere(draw, 500, 6), draw.uniform(-1, 1, 500)
    found = public_curvature(rows, targets, n=700, strong_convexity=1e-3, classes=1)
    true = np.linalg.eigvalsh(rows.T @ rows / 700)[0]
    assert true * (1 - 1e-5) < found <= true * (1 + 1e-12)
    assert found <= most_curvature(500, n=700, features=6, classes=1)


def test_nothing_is_gained_where_public_rows_miss_a_direction():
    draw = np.random.default_rng(0)
    rows = np.column_stack([sphere(draw, 5000, 4), np.zeros(5000)])
    labels = np.sign(draw.standard_normal(5000))
    for classes in (1, 2):
        given = {"n": 5010, "strong_convexity": 1e-4, "classes": classes}
        assert public_curvature(rows, labels, **given) == 0
        assert public_curvature(rows[:, :4], labels, **given) > 0.001
        assert public_curvature(rows[:3, :4], labels[:3], **given) == 0, "fewer rows than columns"
    assert public_curvature(rows[:, :4], labels, n=5010, strong_convexity=1e-4, classes=3) == 0


def test_a_class_of_weight_zero_curves_nothing():
    draw = np.random.default_rng(0)
    rows, labels = sphere(draw, 4000, 3), np.sign(draw.standard_normal(4000))
    given = {"n": 4004, "strong_convexity": 1e-3, "classes": 2}
    plain, half, none = (
        public_curvature(rows, labels, class_weights=weights, **given) for weights in (None, (0.5, 1.0), (0.0, 0.0))
    )
    assert plain > half > 0.3 * plain
    assert none == 0


def test_wide_rows_are_read_once_and_no_more(monkeypatch):
    """768 columns of embeddings: nothing is to be gained, and looking for it is to cost little."""
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((2000, 768)) / np.sqrt(np.arange(1, 769))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    times = []
    plain = rows_of_the_public.LogisticRegression64.gradient_and_hessian
    monkeypatch.setattr(
        rows_of_the_public.LogisticRegression64,
        "gradient_and_hessian",
        lambda self, weights: times.append(1) or plain(self, weights),
    )
    labels = np.sign(rows[:, 0])
    assert public_curvature(rows, labels, n=2001, strong_convexity=1 / 100, classes=2) == 0
    assert not times, "the trace tells"
    assert public_curvature(rows, labels, n=2001, strong_convexity=1 / 2001, classes=2) == 0
    assert len(times) == 1, "the Hessian at the origin tells"


def plan_of(classes: int, n: int, d: int, m: float, **options: object) -> RefitPlan:
    given = {"n": n, "features": d, "classes": classes, "epsilon": 1.0, "delta": 1e-6, "sigma": 1e-3}
    return RefitPlan.make(**given | {"strong_convexity": m} | options)


def distances(seed: int, classes: int, **options: object) -> tuple[float, float, RefitPlan]:
    """True over certified distances of a stream of requests, the largest, and over that which ``m`` alone certifies."""
    draw = np.random.default_rng(seed)
    d, private = int(draw.integers(1, 5)), int(draw.integers(6, 20))
    rows, labels = problem(draw, int(draw.integers(800, 1500)), d)
    if classes == 1:
        labels = np.clip(rows @ draw.standard_normal(d) + 0.3 * draw.standard_normal(len(rows)), -1, 1)
    n, m = len(rows), 10.0 ** draw.uniform(-3, -1)
    labels[:private] = -labels[:private]
    found = public_curvature(rows[private:], labels[private:], n=n, strong_convexity=m, classes=classes)
    plan = plan_of(classes, n, d, m, public_records=n - private, public_curvature=found, **options)
    how, since = NewtonRemoval(plan), 0
    model = how.fit(rows, labels)
    largest = by_regulariser = 0.0
    for some in np.array_split(draw.permutation(private)[: private - 1], 4):
        gone = rows[some].copy()
        rows[some] = 0
        model, reading = how.remove(model, gone, labels[some], rows, labels, since_read=since)
        since = 0 if reading in ("scheduled", "unscheduled") else since + len(some)
        if classes == 1:
            x, y = rows.astype(LONG), labels.astype(LONG)
            true = model.weights.astype(LONG)
            hessian = rows.T @ rows / n + m * np.eye(d)
            for _ in range(6):
                gradient = (x @ true - y) @ x / n + LONG(m) * true
                true = true - np.linalg.solve(hessian, gradient.astype(float))
        else:
            true = true_minimiser(plan, (rows * labels[:, None]).astype(LONG), model.weights)
        away = norm(model.weights.astype(LONG) - true)
        certified = how.certified(model)
        assert certified <= plan.budget
        # Beside what the oracle itself is off by.
        largest = max(largest, away / (certified / plan.least_curvature + 1e-17))
        by_regulariser = max(by_regulariser, away / (plan.budget / plan.strong_convexity))
    return largest, by_regulariser, plan


@extended
@pytest.mark.parametrize(("classes", "options"), [(1, {}), (2, {}), (2, {"strict": True}), (2, {"by_passes": True})])
def test_true_minimisers_are_within_the_certified_distance(classes, options):
    every = [distances(seed, classes, **options) for seed in range(12)]
    assert max(largest for largest, _, _ in every) <= 1
    assert max(plan.least_curvature / plan.strong_convexity for *_, plan in every) > 3, "something was gained"


@extended
def test_too_much_curvature_is_found(monkeypatch):
    """Where ten thousand times what public rows have is believed, a model is farther than certified."""
    plain = public_curvature

    def forged(*rows, **sizes):
        return 1e4 * plain(*rows, **sizes)

    monkeypatch.setitem(globals(), "public_curvature", forged)
    assert max(distances(seed, 1)[0] for seed in range(12)) > 1


def test_a_budget_grows_with_what_public_rows_guarantee_and_mu_stays():
    plain = plan_of(2, 5000, 5, 1e-3)
    more = plan_of(2, 5000, 5, 1e-3, public_records=4990, public_curvature=0.004)
    assert more.public_curvature == pytest.approx(0.004, rel=2e-4)
    assert more.public_curvature < 0.004, "it falls on the way from the minimiser to the weights"
    assert more.budget == pytest.approx(plain.budget * more.least_curvature / 1e-3, rel=1e-12)
    assert least_curvature(1e-3, more.public_curvature) == more.least_curvature
    assert more.records_between_reads <= 10, "no more records can leave than there are private ones"
    assert RefitPlan.model_validate(more.model_dump()) == more
    assert "public" not in str(plain.model_dump())


def test_a_ridge_regression_needs_less_noise_for_its_rounding():
    plain = {"classes": 1, "n": 5000, "d": 20, "m": 1e-7}
    with pytest.raises(AssumptionError, match=r"sigma = 0.001 allows only a gradient"):
        plan_of(**plain)
    assert plan_of(**plain, public_records=4000, public_curvature=0.03).budget > 1e-7


def test_public_rows_and_additions_exclude_each_other():
    with pytest.raises(ParameterError, match="records cannot be added to a model with public rows"):
        plan_of(2, 5000, 5, 1e-3, public_records=10).with_more(3)


def test_the_bound_on_the_way_is_the_integral():
    k = public.curvature_on_the_way(0.01, distance=0.3, row_norm=1.0)
    t = (np.arange(100_000) + 0.5) / 100_000 * 0.3
    assert k == pytest.approx(0.01 * np.exp(-t).mean(), rel=1e-9)


@extended
def test_a_strict_plan_reads_when_it_says_and_takes_more_records_for_public_rows():
    """The worst there is for a bound by counts: private records that are all alike, and leave."""
    draw = np.random.default_rng(3)
    private, d = 40, 2
    rows = sphere(draw, 4000, d)
    rows[:private] = rows[0]
    labels = np.where(rows[:, 0] + draw.logistic(size=4000) > 0, 1.0, -1.0)
    labels[:private] = labels[0]
    m = 1e-3
    found = public_curvature(rows[private:], labels[private:], n=4000, strong_convexity=m, classes=2)
    plain = plan_of(2, 4000, d, m, strict=True)
    plan = plan_of(2, 4000, d, m, strict=True, public_records=4000 - private, public_curvature=found)
    assert plan.records_between_reads > 5 * max(1, plain.records_between_reads)
    how, since, readings = NewtonRemoval(plan), 0, []
    model = how.fit(rows, labels)
    for one in range(private - 1):
        gone = rows[[one]].copy()
        rows[one] = 0
        model, reading = how.remove(model, gone, labels[[one]], rows, labels, since_read=since)
        since = 0 if reading != "none" else since + 1
        readings.append(reading)
        assert norm(true_minimiser(plan, (rows * labels[:, None]).astype(LONG), model.weights) - model.weights) <= (
            plan.budget / plan.least_curvature
        )
    assert "unscheduled" not in readings
    assert readings.count("scheduled") == (private - 1) // (plan.records_between_reads + 1)
