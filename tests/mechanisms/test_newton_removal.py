"""Newton removal's bound is above the true gradient, always; faults are found; when data are read follows the plan."""

import numpy as np
import pytest

from certified_unlearning.accounting.residual import newton, rounding, schedule
from certified_unlearning.accounting.residual.distance import Left
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.mechanisms import newton_removal
from certified_unlearning.mechanisms.newton.state import Curvature, Model
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval
from tests.mechanisms.residual_streams import (
    EXTENDED,
    LONG,
    Stream,
    norm,
    plan_of,
    problem,
    true_gradient,
    true_minimiser,
)

pytestmark = pytest.mark.skipif(not EXTENDED, reason="this machine has no extended precision to compare with")
REQUESTS = 50


def streams(count: int, seed: int, **options: object):
    """Random problems: weak and strong regularisers, budgets that are met at once and budgets that never are."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        n, d = int(draw.integers(60, 301)), int(draw.integers(1, 6))
        rows, labels = problem(draw, n, d)
        plan = plan_of(
            n,
            d,
            float(10 ** draw.uniform(-3, 0)),
            sigma=float(10 ** draw.uniform(-4, 2)),
            records_between_reads=n,
            **{"downdate": bool(draw.integers(2))} | options,
        )
        yield draw, Stream(plan, rows, labels)


def removed(draw: np.random.Generator, stream: Stream, requests: int = REQUESTS) -> Stream:
    order = draw.permutation(stream.plan.n)
    for each in np.array_split(order[: stream.plan.n - 5], requests):
        stream.remove(each)
    return stream


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_never_below_the_true_gradient(seed: int):
    """2000 streams of 50 requests in all, in which nearly all records leave."""
    worst, kept = [], 0
    for draw, stream in streams(250, seed):
        removed(draw, stream)
        assert max(stream.excess) <= 1
        assert stream.model.residual <= stream.plan.budget
        worst.append(max(stream.excess))
        kept += stream.readings.count("none")
    assert max(worst) > 0.3, "the bound is not vacuous"
    assert kept > 1000, "many requests read nothing"


def faulty(monkeypatch: pytest.MonkeyPatch, **changed: object) -> None:
    """Make the mechanism count something as it should not."""

    def wrong(before: float, step: newton.Step, **counted: object) -> float:
        return newton.residual_after(before * changed.get("before", 1), step, **counted | given)

    given = {name: value for name, value in changed.items() if name != "before"}
    monkeypatch.setattr(newton_removal, "residual_after", wrong)


def test_records_that_are_still_in_the_matrix_must_be_counted(monkeypatch: pytest.MonkeyPatch):
    faulty(monkeypatch, not_downdated=0)
    excess = [max(removed(draw, stream).excess) for draw, stream in streams(40, 1, downdate=False)]
    assert max(excess) > 1


def test_what_was_left_before_must_be_counted(monkeypatch: pytest.MonkeyPatch):
    faulty(monkeypatch, before=0)
    excess = [max(removed(draw, stream).excess) for draw, stream in streams(40, 2)]
    assert max(excess) > 1


@pytest.mark.parametrize(
    ("name", "at", "sigma"), [("by_third_derivative", 1.317, 2e-3), ("by_self_concordance", 5.0, 0.03)]
)
def test_half_of_the_curvature_is_not_enough(monkeypatch: pytest.MonkeyPatch, name: str, at: float, sigma: float):
    """One weight, all rows 1: at 1.317 the third derivative is largest, at 5 it is nearly the second."""
    n = 400
    strong_convexity = 1 / (1 + np.exp(at)) / at  # Then the minimum is there.
    rows, labels = np.ones((n, 1)), np.ones(n)
    plan = plan_of(n, 1, strong_convexity, sigma=sigma, records_between_reads=n)

    def excess() -> float:
        stream = Stream(plan, rows, labels)
        stream.remove(np.arange(20))
        assert stream.readings == ["none"]
        return stream.excess[-1]

    assert 0.5 < excess() <= 1
    right = getattr(newton, name)
    monkeypatch.setattr(newton, name, lambda *step, **options: right(*step, **options) / 2)
    assert excess() > 1


def balanced(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Every record with both labels: the minimum is exactly 0, and all sigmoids are exactly a half."""
    draw = np.random.default_rng(5)
    rows = np.repeat(draw.uniform(0.1, 0.3, (n // 2, 3)), 2, axis=0)
    return rows, np.tile([1.0, -1.0], n // 2)


def test_the_rounding_of_what_left_must_be_counted(monkeypatch: pytest.MonkeyPatch):
    """From the exact minimum records leave whose gradients cancel but for the last bits: all there is is rounding."""
    rows, labels = balanced(2000)
    plan = plan_of(2000, 3, 0.1, records_between_reads=2000)
    mechanism = NewtonRemoval(plan)
    read = mechanism.fit(rows, labels).curvature
    gone = np.arange(1000)  # In order of size, so that sums do not cancel pair by pair.
    order = np.argsort(rows[gone, 0] * labels[gone])

    def excess() -> float:
        curvature = Curvature(np.zeros(3), read.matrix.copy(order="F"), read.factor, read.error)
        left, left_labels = rows[gone][order], labels[gone][order]
        after = mechanism._step_without(Model(np.zeros(3), Left(0.0, 0.0, 0.0), curvature), left, left_labels)
        a = (rows * labels[:, None]).astype(LONG)
        a[gone] = 0
        return norm(true_gradient(plan, a, after.weights)) / after.residual

    assert excess() <= 1
    monkeypatch.setattr(rounding, "gradient_error", lambda **_: 0.0)
    assert excess() > 1


@pytest.mark.parametrize("n", [50_000, 200_000])
def test_many_records_and_very_little_noise(n: int):
    """Where the budget is a few roundings, they are all that is left when data were read."""
    draw = np.random.default_rng(n)
    rows, labels = problem(draw, n, 4)
    stream = Stream(plan_of(n, 4, 0.05, sigma=5e-9), rows, labels)
    order = draw.permutation(n)
    for first in range(0, 60, 10):
        stream.remove(order[first : first + 10])
    assert max(stream.excess) <= 1
    assert stream.plan.budget < 1e-10


def test_means_are_never_further_apart_than_the_noise_was_made_for():
    """The law of a release against that of its reference: exact minimisers, in extended precision."""
    nearest = 0.0
    for draw, stream in streams(30, 11):
        order = draw.permutation(stream.plan.n)
        for first in range(0, 50, 10):
            stream.remove(order[first : first + 10])
            shift = norm(stream.model.weights - true_minimiser(stream.plan, stream.a, stream.model.weights))
            allowed = stream.model.residual / stream.plan.strong_convexity
            assert shift <= allowed <= stream.plan.budget / stream.plan.strong_convexity
            nearest = max(nearest, shift / allowed)
    assert nearest > 0.1


def test_a_certified_eigenvalue_helps_and_holds():
    draw = np.random.default_rng(4)
    rows, labels = problem(draw, 200, 5)
    rho = float(np.linalg.eigvalsh(rows.T @ rows / 200).max()) * (1 + 1e-9)
    plan = plan_of(200, 5, 0.5, sigma=100.0, records_between_reads=200)
    with_it, without = Stream(plan, rows, labels, largest_eigenvalue=rho), Stream(plan, rows, labels)
    for stream in (with_it, without):
        stream.remove(np.arange(20))
    assert with_it.excess[-1] <= 1
    assert with_it.model.residual < without.model.residual


def test_a_plan_that_may_not_tell_reads_by_counts_alone():
    """Two data sets, and for each the records that move the weights most: the readings are the same, and as planned."""
    n, d = 30_000, 3
    readings = []
    for seed, coherent in ((0, False), (1, True)):
        rows, labels = problem(np.random.default_rng(seed), n, d)
        plan = plan_of(n, d, 1 / 160, strict=True)
        stream = Stream(plan, rows, labels)
        scores = labels * (rows @ stream.model.weights)
        order = np.argsort(scores) if coherent else np.random.default_rng(2).permutation(n)
        first = 0
        for size in (1, 2, 2, 1, 1, 5, 1, 3, 1, 1):
            stream.remove(order[first : first + size])
            first += size
        readings.append(stream.readings)
        assert max(stream.excess) <= 1
    assert readings[0] == readings[1]
    assert set(readings[0]) == {"none", "scheduled"}


def test_the_bound_by_counts_is_above_what_any_records_do():
    """Streams in which records of one direction leave, the worst that there are, up to the last one that may."""
    for n, strong_convexity, sigma in ((5000, 0.05, 1e-3), (2000, 0.3, 1e-2), (20_000, 0.01, 1e-3)):
        draw = np.random.default_rng(n)
        rows, labels = problem(draw, n, 2)
        rows[:200], labels[:200] = [-1.0, 0.0], 1.0
        for downdate in (True, False):
            plan = plan_of(n, 2, strong_convexity, sigma=sigma, strict=True, downdate=downdate)
            stream = Stream(plan, rows, labels)
            for each in range(min(200, plan.records_between_reads)):
                stream.remove(np.array([each]))
                worst = schedule.worst_residual(
                    each + 1, n=n, strong_convexity=strong_convexity, budget=plan.budget, downdate=downdate
                )
                assert stream.model.residual <= worst
            assert set(stream.readings) == {"none"}
            assert len(stream.readings) >= 4


def test_a_budget_that_records_exceed_is_never_exceeded():
    """Reading was planned for later: it happens at once, and is called what it is."""
    draw = np.random.default_rng(3)
    rows, labels = problem(draw, 300, 3)
    stream = Stream(plan_of(300, 3, 0.1, records_between_reads=300), rows, labels)
    for each in range(20):
        stream.remove(np.array([each]))
        assert stream.model.residual <= stream.plan.budget
    assert stream.readings.count("unscheduled") >= 3
    assert "scheduled" not in stream.readings


def test_a_request_beyond_the_public_number_reads_whatever_it_leaves():
    draw = np.random.default_rng(3)
    rows, labels = problem(draw, 300, 3)
    rows[:9] = 0  # Nothing changes when they leave.
    stream = Stream(plan_of(300, 3, 0.1, records_between_reads=4), rows, labels)
    for each in ([0], [1, 2], [3], [4], [5, 6, 7, 8]):
        stream.remove(np.array(each))
    assert stream.readings == ["none", "none", "none", "scheduled", "none"]


def test_after_an_interruption_the_data_are_read(monkeypatch: pytest.MonkeyPatch):
    draw = np.random.default_rng(3)
    rows, labels = problem(draw, 300, 3)
    stream = Stream(plan_of(300, 3, 0.1, sigma=10.0, records_between_reads=300), rows, labels)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(newton_removal, "solved", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stream.mechanism.remove(stream.model, rows[:5], labels[:5], rows, labels, since_read=0)
    assert not stream.model.curvature.usable
    stream.remove(np.arange(5, 9))
    stream.remove(np.arange(9, 12))
    assert stream.readings == ["unscheduled", "none"]
    assert max(stream.excess) <= 1


def test_separable_records_and_a_tiny_regulariser_are_refused():
    with pytest.raises(AssumptionError, match="a smaller C"):
        plan_of(1000, 3, 1e-9)


def test_a_strict_plan_takes_no_more_than_its_bound():
    most = plan_of(30_000, 3, 1 / 160, strict=True).records_between_reads
    assert plan_of(30_000, 3, 1 / 160, strict=True, records_between_reads=most).records_between_reads == most
    with pytest.raises(ParameterError, match=f"records_between_reads must be at most {most} if strict"):
        plan_of(30_000, 3, 1 / 160, strict=True, records_between_reads=most + 1)


@pytest.mark.parametrize("change", [{"epsilon": 0}, {"sigma": 0.0}, {"delta": 1.0}, {"n": 0}])
def test_impossible_values_are_refused(change: dict[str, float]):
    with pytest.raises(ParameterError, match=next(iter(change))):
        plan_of(**{"n": 100, "d": 2, "strong_convexity": 0.1} | change)


def test_learning_starts_from_a_sample_and_ends_at_the_same_minimum(monkeypatch: pytest.MonkeyPatch):
    draw = np.random.default_rng(8)
    rows, labels = problem(draw, 40_000, 4)
    mechanism = NewtonRemoval(plan_of(40_000, 4, 0.02))
    assert newton_removal.sampled(*rows.shape) == 16
    one = mechanism.fit(rows, labels)
    monkeypatch.setattr(newton_removal, "sampled", lambda *_: 1)
    other = mechanism.fit(rows, labels)
    assert (one.weights != other.weights).any()
    apart = np.linalg.norm(one.weights - other.weights)
    assert apart <= (one.residual + other.residual) / 0.02
