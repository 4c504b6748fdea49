"""Certified refits by passes: what is certified is evaluated, whatever guides them; only readings wash records out."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from certified_unlearning.engine.objectives.float64 import SoftmaxRegression64
from certified_unlearning.mechanisms.certified_refit import objective_of, refit
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from certified_unlearning.mechanisms.refits import guide, requests, softmax

LONG = np.longdouble
pytestmark = pytest.mark.skipif(np.finfo(LONG).eps > 1e-18, reason="no extended precision to compare with")


def plan_of(n: int, d: int, classes: int, **options: object) -> RefitPlan:
    given = {"strong_convexity": 1 / 80, "epsilon": 1, "delta": 1e-6, "sigma": 1e-3, "by_passes": True}
    return RefitPlan.make(n=n, features=d, classes=classes, **given | options)


def problem(draw: np.random.Generator, n: int, d: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm at most 1, some of them short, about as many centres as there are classes."""
    labels = draw.integers(classes, size=n)
    rows = 2 * draw.random() * draw.standard_normal((classes, d))[labels] + draw.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= np.where(draw.random(n) < 0.3, draw.random(n), 1.0)[:, None]
    return rows, labels


class Stream:
    """One model whose records leave request by request; `excess` holds true over certified gradients."""

    def __init__(self, plan: RefitPlan, rows: np.ndarray, labels: np.ndarray) -> None:
        self.plan, self.rows, self.labels = plan, rows.copy(), labels.copy()
        self.model = requests.learned(plan, self.rows, self.labels)
        self.since, self.readings, self.excess = 0, [], [self._excess()]

    def remove(self, gone: np.ndarray, *, lost: bool = False) -> None:
        taken = None if lost else (self.rows[gone], self.labels[gone])
        self.rows[gone], self.labels[gone] = 0, 0
        self.since += len(gone)
        self.model, reading = requests.without(
            self.plan, self.model, taken, self.rows, self.labels, since_read=self.since
        )
        self.since = self.since if reading == "pass" else 0
        self.readings.append(reading)
        self.excess.append(self._excess())
        assert self.model.residual <= self.plan.budget

    def _excess(self) -> float:
        """The true gradient's norm, in extended precision, over its certified bound: above 1 is a fault."""
        plan, x = self.plan, self.rows.astype(LONG)
        w = self.model.weights.reshape(plan.classes, -1).astype(LONG)
        p = np.exp(x @ w.T)
        p /= p.sum(1, keepdims=True)
        p[np.arange(len(x)), self.labels] -= 1
        if plan.class_weights is not None:
            p *= np.array(plan.class_weights)[self.labels][:, None]
        gradient = p.T @ x / plan.n + LONG(plan.strong_convexity) * w
        return float(np.sqrt((gradient * gradient).sum()) / LONG(self.model.residual))


def stream_of(seed: int, *, sigma: float | None = None) -> tuple[np.random.Generator, Stream]:
    draw = np.random.default_rng(seed)
    n, d, classes = int(draw.integers(60, 301)), int(draw.integers(1, 9)), int(draw.integers(3, 9))
    rows, labels = problem(draw, n, d, classes)
    shares = tuple(draw.uniform(0.2, 1, classes)) if seed % 5 == 0 else None
    plan = plan_of(
        n,
        d,
        classes,
        strong_convexity=float(10 ** draw.uniform(-3, 0)),
        sigma=float(10 ** draw.uniform(-5, 1)) if sigma is None else sigma,
        records_between_reads=int(draw.integers(20, n)),
        class_weights=shares,
    )
    return draw, Stream(plan, rows.astype(np.float32) if seed % 2 else rows, labels)


def streams(seeds: range, requests: int = 12, *, sigma: float | None = None) -> Iterator[Stream]:
    """Yield streams at their end, in which nearly all records leave; now and then what left is lost."""
    for seed in seeds:
        draw, stream = stream_of(seed, sigma=sigma)
        for each in np.array_split(draw.permutation(stream.plan.n)[: stream.plan.n - 5], requests):
            stream.remove(each, lost=bool(draw.random() < 0.1))
        yield stream


def check(seeds: range) -> None:
    counts: Counter[str] = Counter()
    for stream in streams(seeds):
        assert max(stream.excess) <= 1
        counts.update(stream.readings)
    assert counts["pass"] > 5 * len(seeds)
    assert counts["scheduled"] > len(seeds) / 2


def test_the_true_gradient_is_never_above_the_certified_one():
    check(range(40))


@pytest.mark.exhaustive
def test_the_true_gradient_is_never_above_the_certified_one_in_more_streams():
    """200; all of 1000 to 2999 were tried once."""
    check(range(1000, 1200))


@pytest.mark.parametrize("fault", ["no curvature", "curvature a hundred times too small", "wrong gradient", "noise"])
def test_a_wrong_guide_costs_passes_and_certifies_nothing_false(monkeypatch: pytest.MonkeyPatch, fault: str):
    """Nothing that is certified rests on it."""
    passes, right = [0], SoftmaxRegression64.gradient

    def counted(objective: SoftmaxRegression64, weights: np.ndarray) -> np.ndarray:
        passes[0] += objective.strong_convexity > 0
        return right(objective, weights)

    monkeypatch.setattr(SoftmaxRegression64, "gradient", counted)
    seeds = range(100, 106)
    assert max(max(stream.excess) for stream in streams(seeds)) <= 1
    before, passes[0] = passes[0], 0
    curvature, corrected = SoftmaxRegression64.mean_curvature, softmax.corrected

    def wrong_curvature(objective: SoftmaxRegression64, weights: np.ndarray) -> np.ndarray:
        d = objective.rows.shape[1]
        none = objective.strong_convexity * np.eye(d)
        return none if fault == "no curvature" else np.asfortranarray(curvature(objective, weights) / 100)

    def misled(plan: RefitPlan, fitted, *given):
        draw, known = np.random.default_rng(0), fitted.guide
        wrong = (
            replace(known, gradient=np.zeros_like(known.gradient))
            if fault == "wrong gradient"
            else replace(
                known,
                gradient=draw.standard_normal(known.gradient.shape),
                steps=draw.standard_normal((5, *known.gradient.shape)),
                changes=draw.standard_normal((5, *known.gradient.shape)),
            )
        )
        return corrected(plan, fitted._replace(guide=wrong), *given)

    if "curvature" in fault:
        monkeypatch.setattr(SoftmaxRegression64, "mean_curvature", wrong_curvature)
    else:
        monkeypatch.setattr(softmax, "corrected", misled)
    assert max(max(stream.excess) for stream in streams(seeds)) <= 1
    assert passes[0] > before


def test_a_certificate_of_what_is_known_but_not_evaluated_would_be_found(monkeypatch: pytest.MonkeyPatch):
    """The planted fault: a request ends with the gradient that it starts from, as a solver's own estimate would."""
    right = softmax.residual_of

    def shortened(plan: RefitPlan, objective: SoftmaxRegression64, point: softmax.Point) -> float:
        return right(plan, objective, point) / 2

    monkeypatch.setattr(softmax, "residual_of", shortened)
    assert max(max(stream.excess) for stream in streams(range(10))) > 1


def test_without_its_rounding_the_evaluated_norm_is_too_small(monkeypatch: pytest.MonkeyPatch):
    """The planted fault, where the budget is as small as float64 allows."""
    small = [stream_of(seed, sigma=1e-8) for seed in range(40)]
    assert max(max(stream.excess) for _, stream in small) <= 1
    monkeypatch.setattr(softmax, "gradient_error", lambda *_: 0.0)
    small = [stream_of(seed, sigma=1e-8) for seed in range(40)]
    assert max(max(stream.excess) for _, stream in small) > 1


def test_a_reading_after_passes_depends_on_no_removed_record():
    """All numbers of the secret state are equal, bit for bit, whatever the removed records were."""
    states = []
    for size in (1, -0.5):
        rows, labels = problem(np.random.default_rng(4), 300, 3, 4)
        rows[:8] *= size
        stream = Stream(plan_of(300, 3, 4, sigma=3e-4, records_between_reads=7), rows, labels)
        for each in range(7):
            stream.remove(np.array([each]))
        before = stream.model
        stream.remove(np.array([7]))
        assert stream.readings == ["pass"] * 7 + ["scheduled"]
        states.append((before, stream.model))
    (before, after), (other_before, other_after) = states
    assert (after.weights == other_after.weights).all()
    for name, array in requests.packed(after).items():
        assert (array == requests.packed(other_after)[name]).all(), name
    assert not (before.weights == other_before.weights).all()
    for name, array in requests.packed(before).items():
        assert not np.array_equal(array, requests.packed(other_before)[name]), f"{name} never told anything"


def test_a_request_takes_few_passes():
    draw = np.random.default_rng(6)
    rows, labels = problem(draw, 3000, 20, 5)
    stream = Stream(plan_of(3000, 20, 5), rows.astype(np.float32), labels)
    passes, right = [], SoftmaxRegression64.gradient

    def counted(objective: SoftmaxRegression64, weights: np.ndarray) -> np.ndarray:
        passes.append(objective.strong_convexity > 0)
        return right(objective, weights)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SoftmaxRegression64, "gradient", counted)
        for each in np.array_split(draw.permutation(3000)[:200], 20):
            stream.remove(each)
    assert set(stream.readings) == {"pass"}
    assert sum(passes) <= 3 * 20
    assert len(stream.model.guide.steps) <= guide.KEPT


def test_where_passes_do_not_get_there_the_model_is_learned_anew(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(softmax, "MOST_PASSES", 1)
    stream = next(streams(range(1, 2), sigma=1e-7))
    assert "unscheduled" in stream.readings
    assert max(stream.excess) <= 1


def test_where_secants_get_nowhere_newtons_method_fits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(softmax, "_ROUNDS", 1)
    rows, labels = problem(np.random.default_rng(8), 300, 4, 4)
    stream = Stream(plan_of(300, 4, 4, sigma=1e-6), rows, labels)
    plain = refit(stream.plan, objective_of(stream.plan, stream.rows, stream.labels))
    assert stream.model.weights == pytest.approx(plain.weights, abs=1e-6)
    assert max(stream.excess) <= 1
    stream.remove(np.arange(3))
    assert stream.readings == ["pass"]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("shares", [None, (0.2, 1.0, 0.5)])
def test_the_shared_curvature_is_the_mean_over_differences_of_classes(kind: type, shares: tuple[float, ...] | None):
    """Its trace is that of the Hessian over the directions in which classes differ."""
    rows, labels = problem(np.random.default_rng(9), 50, 3, 3)
    objective = SoftmaxRegression64(rows.astype(kind), labels, 50, 0.0, 3, shares)
    weights = 3 * np.random.default_rng(10).standard_normal(9)
    product, found = objective.hessian_at(weights), objective.mean_curvature(weights)
    hessian = np.array([product(unit) for unit in np.eye(9)])
    blocks = hessian.reshape(3, 3, 3, 3)
    expected = sum(blocks[c, :, c, :] for c in range(3)) / 2
    lower = np.tril_indices(3)
    assert found[lower] == pytest.approx(expected[lower], rel=1e-4, abs=1e-6)


def test_plans_of_more_classes_have_passes_where_learning_anew_is_dear():
    options = {"by_passes": None}
    wide = plan_of(20_000, 768, 5, **options)
    assert (wide.by_passes, wide.records_between_reads, wide.removes_by_newton) == (True, 2000, False)
    assert not plan_of(600, 65, 3, **options).by_passes
    for other in ({"strict": True}, {"records_between_reads": 0}, {"sparse": True}):
        read = plan_of(20_000, 768, 5, **options | other)
        assert (read.by_passes, read.records_between_reads) == (False, 0)
    assert not plan_of(700, 768, 50, **options).by_passes, "there are fewer records than columns"
    assert not plan_of(20_000, 5001, 5, **options).by_passes
    assert wide.with_more(10_000).by_passes
    assert RefitPlan.model_validate_json(wide.model_dump_json()) == wide
