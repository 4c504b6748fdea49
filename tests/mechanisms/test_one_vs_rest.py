"""Each class against the rest: certified distances, class by class and together, are never below the true ones."""

import functools
import math
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from scipy.stats import norm as standard_normal

from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.residual import release
from certified_unlearning.accounting.residual.release import together
from certified_unlearning.engine.objectives.float64 import removed_gradients, root_curvatures
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms import refit_plan
from certified_unlearning.mechanisms.newton import one_vs_rest
from certified_unlearning.mechanisms.newton.one_vs_rest import OneVsRest
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from tests.mechanisms.residual_streams import EXTENDED, LONG, norm, plan_of, true_gradient, true_minimiser

pytestmark = pytest.mark.skipif(not EXTENDED, reason="this machine has no extended precision to compare with")
REQUESTS = 10
BOUNDS = ("together", "gradient", "of a class", "gradient of a class")


def problem(draw: np.random.Generator, n: int, d: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm at most 1 and the numbers of their classes, some of them rare, told by the rows with some noise."""
    rows = draw.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= np.where(draw.random(n) < 0.3, draw.random(n), 1.0)[:, None]
    scores = rows @ draw.standard_normal((d, classes)) + draw.choice([0.05, 0.5]) * draw.standard_normal((n, classes))
    return rows, (scores - draw.exponential(1, classes)).argmax(axis=1)


class Stream:
    """Models of all classes whose records leave; `ratios` holds true over certified values by `BOUNDS`."""

    def __init__(self, plan: RefitPlan, rows: np.ndarray, numbers: np.ndarray) -> None:
        self.plan, self.rows, self.numbers, self.mechanism = plan, rows.copy(), numbers.copy(), OneVsRest(plan)
        self.a = [(rows * np.where(numbers == each, 1.0, -1.0)[:, None]).astype(LONG) for each in range(plan.classes)]
        shares = np.ones(plan.classes) if plan.class_weights is None else np.array(plan.class_weights)
        self.of_record = shares[numbers].astype(LONG)
        self.models = self.mechanism.fit(self.rows, self.numbers)
        self.since, self.readings, self.overspent = 0, Counter[str](), False
        self.ratios = [self._measured()]

    def remove(self, gone: np.ndarray) -> None:
        rows, numbers = self.rows[gone], self.numbers[gone]
        self.rows[gone], self.numbers[gone] = 0, 0
        for each in self.a:
            each[gone] = 0
        self.models, reading = self.mechanism.remove(
            self.models, rows, numbers, self.rows, self.numbers, since_read=self.since
        )
        self.since = 0 if reading in ("scheduled", "unscheduled") else self.since + len(gone)
        self.readings[reading] += 1
        self.ratios.append(self._measured())

    def shifts(self) -> list[np.ndarray]:
        """How far each class' weights are from the minimiser, in extended precision."""
        return [
            model.weights - self._minimiser(a, model.weights)
            for a, model in zip(self.a, self.models.of_class, strict=True)
        ]

    def _minimiser(self, a: np.ndarray, start: np.ndarray) -> np.ndarray:
        if self.plan.class_weights is None:
            return true_minimiser(self.plan, a, start)
        w, m = start.astype(LONG), LONG(self.plan.strong_convexity)
        for _ in range(60):
            p = 1 / (1 + np.exp(a @ w))
            hessian = ((a * (self.of_record * p * (1 - p))[:, None]).T @ a / self.plan.n).astype(float)
            gradient = -(self.of_record * p) @ a / self.plan.n + m * w
            w = w - np.linalg.solve(hessian + float(m) * np.eye(len(w)), gradient.astype(float))
            if norm(gradient) < 1e-19:
                break
        return w

    def _gradient(self, a: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if self.plan.class_weights is None:
            return true_gradient(self.plan, a, weights)
        w = weights.astype(LONG)
        return -(self.of_record / (1 + np.exp(a @ w))) @ a / self.plan.n + LONG(self.plan.strong_convexity) * w

    def _measured(self) -> list[float]:
        m, models = self.plan.strong_convexity, self.models.of_class
        away = [norm(each) for each in self.shifts()]
        left = [norm(self._gradient(a, model.weights)) for a, model in zip(self.a, models, strict=True)]
        by_class = (
            [NewtonRemoval(self.plan.of_one_class()).certified(each) for each in models]
            if (self.plan.removes_by_newton)
            else [each.residual for each in models]
        )
        certified = self.mechanism.certified(self.models) if self.plan.removes_by_newton else self.models.residual
        self.overspent |= certified > self.plan.budget
        return [
            math.sqrt(sum(each**2 for each in away)) * m / certified,
            math.sqrt(sum(each**2 for each in left)) / self.models.residual,
            max(each * m / bound for each, bound in zip(away, by_class, strict=True)),
            max(each / model.residual for each, model in zip(left, models, strict=True)),
        ]


def planned(draw: np.random.Generator, n: int, d: int, classes: int, **options: object) -> RefitPlan:
    """Weak and strong regularisers, budgets that are met at once and budgets that never are."""
    shares = (1.0, *draw.random(classes - 1)) if draw.random() < 0.3 else None
    given = {
        "classes": classes,
        "one_vs_rest": True,
        "sigma": float(10 ** draw.uniform(-3, 1)),
        "records_between_reads": n,
        "by_passes": bool(draw.random() < 0.8),
        "downdate": bool(draw.random() < 0.8),
        "class_weights": shares,
    }
    return plan_of(n, d, float(1 / n / 10 ** draw.uniform(-2, 1)), **given | options)


def streams(count: int, seed: int, **options: object) -> Iterator[tuple[np.random.Generator, Stream]]:
    draw = np.random.default_rng(seed)
    for _ in range(count):
        n, d, classes = int(10 ** draw.uniform(2, 2.8)), int(draw.integers(1, 7)), int(draw.integers(3, 7))
        rows, numbers = problem(draw, n, d, classes)
        yield draw, Stream(planned(draw, n, d, classes, **options), rows, numbers)


def run(draw: np.random.Generator, stream: Stream) -> np.ndarray:
    """Remove records at random, or class by class; return the ratios."""
    size = int(draw.choice([1, 3]))
    order = draw.permutation(stream.plan.n)
    if draw.random() < 0.3:
        order = np.argsort(stream.numbers, kind="stable")
    for each in order[: REQUESTS * size].reshape(REQUESTS, size):
        stream.remove(each)
    return np.array(stream.ratios)


def checked(count: int, seed: int, **options: object) -> tuple[np.ndarray, Counter[str]]:
    """The largest ratios of some streams, and what their requests read."""
    largest, readings = [], Counter[str]()
    for draw, stream in streams(count, seed, **options):
        ratios = run(draw, stream)
        assert (ratios <= 1).all(), dict(zip(BOUNDS, ratios.max(axis=0), strict=True))
        assert not stream.overspent
        largest.append(ratios.max(axis=0))
        readings.update(stream.readings)
    return np.max(largest, axis=0), readings


def test_bounds_are_never_below_the_true_values():
    """30 streams of 10 requests."""
    largest, readings = checked(30, 0)
    assert (largest > 0.1).all(), dict(zip(BOUNDS, largest, strict=True))
    assert min(readings["none"], readings["pass"]) > 50
    assert readings["unscheduled"] > 0


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(1, 21))
def test_bounds_of_2000_streams_are_never_below_the_true_values(seed: int):
    """Nothing is drawn from a law that has a rate of false alarms: a single ratio above 1 is a fault."""
    checked(100, seed)


def test_bounds_hold_where_no_matrix_is_made_and_every_request_refits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(refit_plan, "LARGEST_FACTORS", 0)
    largest, readings = checked(10, 1, by_passes=False)
    assert (largest > 0.1).all(), dict(zip(BOUNDS, largest, strict=True))
    assert readings.keys() == {"scheduled"}


def test_strict_plans_read_by_counts_alone():
    """Records leave class by class, which moves one class' model most, and nothing is read before its time."""
    draw, read = np.random.default_rng(2), 0
    for _ in range(5):
        rows, numbers = problem(draw, 800, 4, 4)
        plan = planned(draw, 800, 4, 4, strict=True, by_passes=False, records_between_reads=None, sigma=0.3)
        stream = Stream(plan, rows, numbers)
        for each in np.argsort(numbers, kind="stable")[:60].reshape(20, 3):
            stream.remove(each)
        assert (np.array(stream.ratios) <= 1).all()
        assert not stream.overspent
        assert stream.readings.keys() <= {"none", "scheduled"}
        read += stream.readings["none"]
    assert read > 15


def keeps_it(rows: np.ndarray, numbers: np.ndarray, weights: np.ndarray, *given: object) -> np.ndarray:
    ghat = removed_gradients(rows, numbers, weights, *given)
    ghat[0] = 0
    return ghat


def keeps_its_curvature(*given: object) -> np.ndarray:
    roots = root_curvatures(*given)
    roots[0] = 0
    return roots


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (release, "together", lambda bounds: together(list(bounds)[1:])),  # The first class' shift is left out.
        (release, "together", lambda bounds: max(bounds)),  # The root of the number of classes is dropped.
        (one_vs_rest, "removed_gradients", keeps_it),  # One class' model keeps the record.
        (one_vs_rest, "removed_gradients", lambda *given: removed_gradients(*given[:-1], None)),  # Weights of classes.
        (one_vs_rest, "root_curvatures", keeps_its_curvature),
    ],
    ids=["one class left out", "largest class only", "one class keeps the record", "class weights", "curvature"],
)
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, module: object, name: str, fault: object):
    monkeypatch.setattr(module, name, fault)
    assert any(run(draw, stream)[:, :2].max() > 1 for draw, stream in streams(40, 3))


def test_shares_of_the_budget_without_the_root_are_found(monkeypatch: pytest.MonkeyPatch):
    """Each class stops at half of all of the budget, so that 40 classes together are above it."""
    draw = np.random.default_rng(5)
    rows, numbers = problem(draw, 400, 3, 40)
    monkeypatch.setattr(refit_plan, "LARGEST_FACTORS", 0)
    options = {"classes": 40, "one_vs_rest": True, "sigma": 1e-3}
    assert not Stream(plan_of(400, 3, 0.01, **options), rows, numbers).overspent
    monkeypatch.setattr(release, "share_of_each", lambda budget, models: budget)
    assert Stream(plan_of(400, 3, 0.01, **options), rows, numbers).overspent


def exact_delta(shift: float, epsilon: float) -> float:
    """Of two Gaussians of standard deviation 1."""
    first = standard_normal.cdf(shift / 2 - epsilon / shift)
    return first - math.exp(epsilon) * standard_normal.cdf(-shift / 2 - epsilon / shift)


def test_epsilon_covers_the_gaussian_of_all_weights_after_every_request():
    """The stacked weights' exact law: delta at the certified epsilon, of the true shifts, is at most that asked for."""
    worst = 0.0
    for draw, stream in streams(10, 6):
        run(draw, stream)
        plan = stream.plan
        epsilon = epsilon_from_mu(
            release.mu_of(plan.budget, strong_convexity=plan.strong_convexity, sigma=plan.sigma), plan.delta
        )
        assert epsilon <= plan.epsilon
        shift = norm(np.concatenate(stream.shifts())) / plan.sigma
        assert exact_delta(shift, epsilon) <= plan.delta
        worst = max(worst, shift * plan.sigma * plan.strong_convexity / plan.budget)
    assert worst > 0.01


@pytest.mark.parametrize("parts", [(1.0, 1.0, 1.0), (3.0, 0.1, 2.0, 1.0), (1.0, 0.0, 0.0)])
def test_epsilon_is_that_of_all_classes_composed(parts: tuple[float, ...]):
    """Oracle: dp-accounting's composition of each class' Gaussian, shifted as far as the budget allows together."""
    plan = plan_of(1000, 5, 0.01, classes=len(parts), one_vs_rest=True)
    scale = plan.budget / plan.strong_convexity / math.sqrt(sum(part**2 for part in parts))
    each = [
        privacy_loss_distribution.from_gaussian_mechanism(
            plan.sigma / (scale * part), value_discretization_interval=1e-3, use_connect_dots=True
        )
        for part in parts
        if part
    ]
    composed = functools.reduce(privacy_loss_distribution.PrivacyLossDistribution.compose, each)
    assert composed.get_epsilon_for_delta(plan.delta) == pytest.approx(plan.epsilon, rel=2e-3)


def test_with_two_classes_it_is_the_usual_plan():
    assert plan_of(1000, 5, 0.01, one_vs_rest=True) == plan_of(1000, 5, 0.01)


def test_the_budget_is_that_of_all_classes_and_plans_speak_of_each():
    options = {"classes": 5, "one_vs_rest": True}
    plan, two = plan_of(20_000, 768, 0.01, **options), plan_of(20_000, 768, 0.01)
    assert (plan.budget, plan.dimension) == (two.budget, 5 * 768)
    assert plan.by_passes
    assert plan.removes_by_newton
    assert plan.of_one_class().budget == pytest.approx(two.budget / math.sqrt(5), rel=1e-12)
    assert math.sqrt(5) * plan.of_one_class().budget <= plan.budget
    assert RefitPlan.model_validate(plan.model_dump(mode="json")) == plan
    assert plan.with_more(10).one_vs_rest
    strict = plan_of(10**6, 20, 0.01, strict=True, **options)
    assert 0 < strict.records_between_reads < plan_of(10**6, 20, 0.01, strict=True).records_between_reads
    many = plan_of(20_000, 768, 0.01, classes=200, one_vs_rest=True)
    assert not many.removes_by_newton, "matrices of all classes would take gigabytes"
    assert many.records_between_reads == 0
    with pytest.raises(ParameterError, match="by_passes"):
        plan_of(20_000, 768, 0.01, classes=200, one_vs_rest=True, by_passes=True)


def test_an_interrupted_removal_makes_the_next_one_read(monkeypatch: pytest.MonkeyPatch):
    """Some classes' matrices have lost the records by then, others have not."""
    draw = np.random.default_rng(7)
    rows, numbers = problem(draw, 500, 4, 4)
    stream = Stream(planned(draw, 500, 4, 4, sigma=3.0), rows, numbers)
    models, right, calls = stream.models, NewtonRemoval.after, []

    def interrupted(self: NewtonRemoval, *given: object) -> object:
        calls.append(self.positive)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return right(self, *given)

    monkeypatch.setattr(NewtonRemoval, "after", interrupted)
    wiped = rows.copy()
    wiped[:2] = 0
    arguments = (rows[:2], numbers[:2], wiped, numbers)
    with pytest.raises(KeyboardInterrupt):
        stream.mechanism.remove(models, *arguments, since_read=0)
    monkeypatch.undo()
    assert [each.curvature.usable for each in models.of_class] == [False, False, True, True]
    assert stream.mechanism.remove(models, *arguments, since_read=0)[1] == "unscheduled"


def test_a_pass_leaves_out_classes_whose_bounds_are_small(monkeypatch: pytest.MonkeyPatch):
    """In every pass some class is read, and rows are read once for all of them."""
    read, right = [], one_vs_rest.gradients

    def counted(objective: object, weights: np.ndarray, positives: list[int]) -> np.ndarray:
        read.append(len(positives))
        return right(objective, weights, positives)

    monkeypatch.setattr(one_vs_rest, "gradients", counted)
    passes = 0
    for draw, stream in streams(10, 8, by_passes=True):
        run(draw, stream)
        passes += stream.readings["pass"]
    assert len(read) >= passes > 20
    assert min(read) >= 1
    assert len(set(read)) > 2


def test_where_the_next_request_reads_in_any_case_passes_end_within_the_budget(monkeypatch: pytest.MonkeyPatch):
    """Otherwise they go on, so that the requests that follow have room."""
    passes, ends = [], []
    right = one_vs_rest.gradients
    monkeypatch.setattr(one_vs_rest, "gradients", lambda *given: passes.append(given) or right(*given))
    # Those streams only whose steps are above the budget: passes answer no others.
    for draw, stream in streams(20, 9, by_passes=True, downdate=True):
        gone = draw.permutation(stream.plan.n)[:20]
        models = stream.mechanism._step_without(stream.models, stream.rows[gone], stream.numbers[gone])
        certified = stream.mechanism._certified_by_class(models)
        stream.rows[gone] = 0
        if together(certified) <= stream.plan.budget:
            continue
        for of_request in (2 * stream.plan.budget, 0.0):
            passes.clear()
            found = stream.mechanism._corrected(models, certified, stream.rows, stream.numbers, of_request=of_request)
            ends.append((len(passes), found is None or stream.mechanism.certified(found) <= stream.plan.budget))
    assert all(within for _, within in ends)
    few, many = ends[::2], ends[1::2]
    assert all(first <= second for (first, _), (second, _) in zip(few, many, strict=True))
    assert few != many
