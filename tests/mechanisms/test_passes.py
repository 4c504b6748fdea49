"""A pass corrects the weights without learning anew: its bound holds, and only readings wash removed records out."""

from collections import Counter

import numpy as np
import pytest

from certified_unlearning.accounting.residual import rounding
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms import newton_removal
from certified_unlearning.mechanisms.newton.state import left_of
from certified_unlearning.mechanisms.newton_removal import NewtonRemoval
from tests.mechanisms.residual_streams import EXTENDED, Stream, plan_of, problem
from tests.mechanisms.test_readings import numbers_of

pytestmark = pytest.mark.skipif(not EXTENDED, reason="this machine has no extended precision to compare with")


def stream_of(seed: int, **options: object) -> tuple[np.random.Generator, Stream]:
    """A random problem with passes, whose records leave until few are left."""
    draw = np.random.default_rng(seed)
    n, d = int(draw.integers(60, 301)), int(draw.integers(1, 6))
    rows, labels = problem(draw, n, d)
    given = {"sigma": float(10 ** draw.uniform(-4, 1)), "records_between_reads": n, "by_passes": True}
    return draw, Stream(plan_of(n, d, float(10 ** draw.uniform(-3, 0)), **given | options), rows, labels)


def test_the_bound_holds_after_passes():
    """60 streams of 40 requests, in which nearly all records leave."""
    counts: Counter[str] = Counter()
    for seed in range(60):
        draw, stream = stream_of(seed, downdate=bool(seed % 2))
        order = draw.permutation(stream.plan.n)[: stream.plan.n - 5]
        for each in np.array_split(order, 40):
            stream.remove(each)
        assert max(stream.excess) <= 1
        counts.update(stream.readings)
    assert counts.keys() == {"none", "pass", "unscheduled"}
    assert min(counts.values()) > 20


def test_the_bound_holds_over_float32_rows():
    """They are numbers as they are: the truth is that of the rows that are kept."""
    for seed in range(10):
        draw = np.random.default_rng(seed)
        rows, labels = problem(draw, 300, 5)
        plan = plan_of(300, 5, 0.02, sigma=1e-4, records_between_reads=300, by_passes=True)
        stream = Stream(plan, rows.astype(np.float32), labels)
        assert stream.rows.dtype == np.float32
        for each in np.array_split(draw.permutation(300)[:100], 10):
            stream.remove(each)
        assert "pass" in stream.readings
        assert max(stream.excess) <= 1


def test_what_a_pass_left_must_be_bounded(monkeypatch: pytest.MonkeyPatch):
    """Without the rest of its step, the bound would be below the true gradient."""
    right = newton_removal.residual_after

    def without_rest(before: float, step: object, **counted: object) -> float:
        return right(before, step, **counted | ({} if before > 1e-12 else {"quadratic": True, "not_downdated": 0}))

    monkeypatch.setattr(newton_removal, "residual_after", without_rest)
    excess = []
    for seed in range(20):
        draw, stream = stream_of(seed, downdate=True)
        for each in np.array_split(draw.permutation(stream.plan.n)[:50], 10):
            stream.remove(each)
        excess.append(max(stream.excess))
    assert max(excess) > 1


def narrow_stream() -> Stream:
    """A plan whose Hessian is made of float32 products, after some requests."""
    draw = np.random.default_rng(6)
    rows, labels = problem(draw, 1200, 256)
    stream = Stream(plan_of(1200, 256, 0.1, sigma=0.01, records_between_reads=300, by_passes=True), rows, labels)
    for each in np.array_split(draw.permutation(1200)[:120], 6):
        stream.remove(each)
    return stream


def matrix_off(stream: Stream) -> float:
    """How far the matrix is from the Hessian over the remaining rows, over what it may be off."""
    curvature, a = stream.model.curvature, stream.a.astype(float)
    scores = a @ curvature.at
    true = (a / ((1 + np.exp(scores)) * (1 + np.exp(-scores)))[:, None]).T @ a / stream.plan.n
    true[np.diag_indices(len(true))] += stream.plan.strong_convexity
    lower = np.tril(curvature.matrix)
    return float(np.linalg.norm(lower + np.tril(lower, -1).T - true)) / curvature.error


def test_a_matrix_of_float32_products_is_within_its_error(monkeypatch: pytest.MonkeyPatch):
    """The error must be counted: without it, the matrix would be off by more than is said."""
    stream = narrow_stream()
    assert 1e-4 < matrix_off(stream) <= 1
    assert max(stream.excess) <= 1
    right = rounding.hessian_error
    monkeypatch.setattr(rounding, "hessian_error", lambda *, narrow=False, **given: right(**given))
    assert matrix_off(narrow_stream()) > 1000


def test_float32_products_serve_where_their_error_costs_little():
    def narrow(n: int, d: int, strong_convexity: float, **options: object) -> tuple[bool, bool]:
        mechanism = NewtonRemoval(plan_of(n, d, strong_convexity, **options))
        return mechanism._narrow_guides, mechanism._narrow

    assert narrow(20_000, 768, 1e-2) == (True, True)
    assert narrow(20_000, 768, 5e-5) == (True, False), "steps are long, and the budget is small"
    assert narrow(20_000, 768, 1e-6, sigma=1e3) == (False, False), "it may not be positive definite"
    assert narrow(20_000, 768, 1e-2, strict=True) == (False, False), "counts alone tell when data are read"
    assert narrow(1_000_000, 20, 1e-2) == (False, False), "nothing is gained"


def test_how_far_scores_moved_is_asked_for_only_where_the_weights_moved_far():
    draw, stream = stream_of(0, downdate=True)
    model, objective = stream.model, stream.mechanism._objective(stream.rows, stream.labels)
    way = draw.standard_normal(stream.plan.features)
    way /= np.linalg.norm(way)
    for share, asked in ((0.9, False), (1.1, True)):
        weights = model.curvature.at + share * newton_removal.NEAR * way
        gradient, farthest = stream.mechanism._read(objective, weights, model.curvature.at)
        corrected = stream.mechanism.corrected(weights, gradient, model.curvature, farthest=farthest)
        assert np.isfinite(farthest) == asked
        # Steps go on from what is known, whichever it is.
        assert corrected.left.moved <= float(np.linalg.norm(corrected.weights - model.curvature.at)) * (1 + 1e-9)


def test_how_far_scores_moved_is_stored_and_older_states_do_without():
    _, stream = stream_of(1, downdate=True)
    for each in range(5):
        assert np.isfinite(stream.model.left.moved), "JSON has no infinity"
        header = {"left": vars(stream.model.left)}
        assert left_of(header, strong_convexity=1.0) == stream.model.left
        stream.remove(np.array([each]))
    older = {name: value for name, value in header["left"].items() if name != "moved"}
    assert left_of({"left": older}, strong_convexity=1.0).moved == np.inf


def test_passes_keep_the_matrix_and_do_not_put_a_planned_reading_off():
    rows, labels = problem(np.random.default_rng(3), 300, 3)
    stream = Stream(plan_of(300, 3, 0.1, sigma=1e-4, records_between_reads=11, by_passes=True), rows, labels)
    at = stream.model.curvature.at
    for each in range(11):
        stream.remove(np.array([each]))
        assert stream.model.curvature.at is at
    assert set(stream.readings) == {"none", "pass"}
    assert stream.readings.count("pass") > 5
    stream.remove(np.array([11]))
    assert stream.readings[-1] == "scheduled"
    assert (stream.model.curvature.at != at).any()


def test_a_reading_after_passes_depends_on_no_removed_record():
    """All numbers of the secret state are equal, bit for bit, whatever the removed records were."""
    states = []
    for sign in (1, -1):
        rows, labels = problem(np.random.default_rng(4), 300, 3)
        rows[:8] *= sign
        stream = Stream(plan_of(300, 3, 0.1, sigma=3e-4, records_between_reads=7, by_passes=True), rows, labels)
        for each in range(7):
            stream.remove(np.array([each]))
        assert "pass" in stream.readings
        before = numbers_of(stream.model)
        stream.labels[:8] = 0
        stream.remove(np.array([7]))
        assert stream.readings[-1] == "scheduled"
        states.append((before, numbers_of(stream.model)))
    (before, after), (other_before, other_after) = states
    assert all((a == b).all() for a, b in zip(after, other_after, strict=True))
    assert not all((a == b).all() for a, b in zip(before, other_before, strict=True))


def test_where_passes_are_not_enough_the_model_is_learned_anew():
    draw = np.random.default_rng(5)
    rows, labels = problem(draw, 300, 3)
    stream = Stream(plan_of(300, 3, 1e-3, sigma=1e-4, records_between_reads=300, by_passes=True), rows, labels)
    for each in np.array_split(draw.permutation(300)[:280], 7):
        stream.remove(each)
    assert "unscheduled" in stream.readings
    assert max(stream.excess) <= 1


def test_only_plans_that_may_have_passes_have_them():
    for options in ({"classes": 1}, {"strict": True}, {"records_between_reads": 0}):
        with pytest.raises(ParameterError, match="by_passes"):
            plan_of(300, 3, 0.1, by_passes=True, **options)
        assert not plan_of(20_000, 768, 0.1, **options).by_passes
    wide = plan_of(20_000, 768, 0.01)
    assert (wide.by_passes, wide.downdate, wide.records_between_reads) == (True, True, 2000)
    assert not plan_of(20_000, 8, 0.01).by_passes
    assert wide.with_more(10_000).by_passes
    assert not plan_of(20_000, 768, 0.01, by_passes=False).with_more(10_000).by_passes, "it was never promised"


def test_where_the_next_request_reads_in_any_case_passes_end_within_the_budget(monkeypatch: pytest.MonkeyPatch):
    """Otherwise they go on, so that the requests that follow have room."""
    passes, right = [], NewtonRemoval._read

    def counted(self: NewtonRemoval, *given: object) -> tuple[np.ndarray, float]:
        passes.append(given)
        return right(self, *given)

    found = set()
    for seed in range(20):
        draw, stream = stream_of(seed, downdate=True)
        first, second = np.array_split(draw.permutation(stream.plan.n)[:30], 2)
        stream.remove(first)
        model = stream.mechanism._step_without(stream.model, stream.rows[second], stream.labels[second])
        stream.rows[second] = 0
        monkeypatch.setattr(NewtonRemoval, "_read", counted)
        ends = []
        for of_request in (2 * stream.plan.budget, 0.0):
            passes.clear()
            ended = stream.mechanism._corrected(model, stream.rows, stream.labels, of_request=of_request)
            ends.append((len(passes), None if ended is None else ended.residual <= 0.1 * stream.plan.budget))
        found.add(tuple(ends))
        monkeypatch.undo()
    assert ((1, False), (2, True)) in found
    assert all(few <= many for (few, _), (many, _) in found)
