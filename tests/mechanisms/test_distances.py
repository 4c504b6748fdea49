"""Certified distances of Newton removal with passes are never below the true ones; faults are found."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from certified_unlearning.accounting.residual.distance import Left, by_displacement, by_local_norm
from certified_unlearning.accounting.residual.newton import Step
from certified_unlearning.accounting.residual.rounding import ROW_NORM
from certified_unlearning.engine.objectives.float64 import LogisticRegression64
from certified_unlearning.mechanisms import newton_removal
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
REQUESTS = 20
BOUNDS = ("certified", "gradient", "dual", "displacement", "Euclidean", "local", "displaced", "change", "moved")


class Measured(Stream):
    """A stream that keeps true over certified values of all bounds, by `BOUNDS`, at every release."""

    def __init__(self, plan: object, rows: np.ndarray, labels: np.ndarray) -> None:
        self.ratios: list[list[float]] = []
        super().__init__(plan, rows, labels)
        self.ratios.clear()

    def remove(self, gone: np.ndarray) -> None:
        super().remove(gone)
        if self.readings[-1] != "none":
            # All of the gradient was evaluated: the metric is the Hessian over the records that are left.
            self.metric = self._hessian()
            self.ratios[-1] = self._measured()

    def _excess(self) -> float:
        if not hasattr(self, "metric"):
            self.metric = self._hessian()
        self.ratios.append(self._measured())
        return super()._excess()

    def _hessian(self) -> np.ndarray:
        scores = self.a @ self.model.curvature.at.astype(LONG)
        slopes = 1 / (1 + np.exp(scores)) / (1 + np.exp(-scores))
        data_part = (self.a * slopes[:, None]).T @ self.a / self.plan.n
        return data_part.astype(float) + self.plan.strong_convexity * np.eye(self.plan.features)

    def _measured(self) -> list[float]:
        plan, model, left = self.plan, self.model, self.model.left
        gradient = true_gradient(plan, self.a, model.weights)
        inverse = np.linalg.solve(self.metric, gradient.astype(float))
        away = norm(model.weights - true_minimiser(plan, self.a, model.weights))
        given = {"strong_convexity": plan.strong_convexity}
        way = model.weights - model.curvature.at
        given["moved"] = min(float(np.linalg.norm(way)) * (1 + 1e-12), left.moved)
        leaves = np.linalg.eigvals(np.linalg.solve(self.metric, self.metric - self._hessian())).real.max()
        return [
            away / (self.mechanism.certified(model) / plan.strong_convexity),
            norm(gradient) / left.residual,
            float(np.sqrt(gradient.astype(float) @ inverse)) / left.dual,
            float(np.linalg.norm(inverse)) / left.displacement,
            away / (left.residual / plan.strong_convexity),
            away / by_local_norm(left, **given),
            away / by_displacement(left, **given),
            leaves / left.change if left.records else 0.0,
            float(np.abs(self.a @ way.astype(LONG)).max()) / (ROW_NORM * left.moved),
        ]


def streams(count: int, seed: int) -> Iterator[tuple[np.random.Generator, Measured]]:
    """Weak and strong regularisers, short and long rows, budgets that are met at once and budgets that never are."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        n, d = int(10 ** draw.uniform(2, 3.3)), int(draw.integers(1, 9))
        rows, labels = problem(draw, n, d)
        plan = plan_of(
            n,
            d,
            float(1 / n / 10 ** draw.uniform(-2, 1)),
            sigma=float(10 ** draw.uniform(-3, 1)),
            records_between_reads=n,
            by_passes=True,
            downdate=bool(draw.random() < 0.8),
        )
        yield draw, Measured(plan, rows, labels)


def run(draw: np.random.Generator, stream: Measured) -> np.ndarray:
    """Remove records at random, or those that move the weights most; return the ratios."""
    size = int(draw.choice([1, 3]))
    order = draw.permutation(stream.plan.n)
    if draw.random() < 0.3:
        order = np.argsort(stream.labels * (stream.rows @ stream.model.weights))
    for each in order[: REQUESTS * size].reshape(REQUESTS, size):
        stream.remove(each)
    return np.array(stream.ratios)


def checked(count: int, seed: int) -> tuple[np.ndarray, Counter[str]]:
    """The largest ratios of some streams, and what their requests read."""
    largest, readings = [], Counter[str]()
    for draw, stream in streams(count, seed):
        ratios = run(draw, stream)
        assert (ratios <= 1).all(), dict(zip(BOUNDS, ratios.max(axis=0), strict=True))
        assert stream.mechanism.certified(stream.model) <= stream.plan.budget
        largest.append(ratios.max(axis=0))
        readings.update(stream.readings)
    return np.max(largest, axis=0), readings


def test_distances_are_never_below_the_true_ones():
    """60 streams of 20 requests."""
    largest, readings = checked(60, 0)
    assert (largest > 0.1).all(), dict(zip(BOUNDS, largest, strict=True))
    assert min(readings["none"], readings["pass"]) > 100


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(1, 21))
def test_distances_of_2000_streams_are_never_below_the_true_ones(seed: int):
    """Nothing is drawn from a law that has a rate of false alarms: a single ratio above 1 is a fault."""
    checked(100, seed)


def faulty(monkeypatch: pytest.MonkeyPatch, fault: str) -> dict[str, float]:
    """The largest ratios of streams whose mechanism leaves something out."""
    right, change = newton_removal.left_after, newton_removal.change_of

    def without(before: Left, residual: float, step: Step, *, remainder: float, strong_convexity: float) -> Left:
        if fault == "what was left before":
            before = Left(before.residual, 0.0, 0.0, before.change, before.records)
        if fault == "the step's rest":
            step = replace(step, length=0.0, seminorm=0.0)
        if fault == "the solution's remainder":
            remainder = 0.0
        return right(before, residual, step, remainder=remainder, strong_convexity=strong_convexity)

    monkeypatch.setattr(newton_removal, "left_after", without)
    if fault == "half of how far scores moved":
        reading = LogisticRegression64.gradient_and_farthest

        def halved(*given: object) -> tuple[np.ndarray, float]:
            gradient, farthest = reading(*given)
            return gradient, farthest / 2

        monkeypatch.setattr(LogisticRegression64, "gradient_and_farthest", halved)
    if fault == "the step's way for scores":
        monkeypatch.setattr(
            newton_removal, "Step", lambda length, moved, after, *more: Step(length, moved, min(moved, after), *more)
        )
    if fault == "half of what leaves the Hessian":
        monkeypatch.setattr(newton_removal, "change_of", lambda *given, **options: change(*given, **options) / 2)
    ratios = [run(draw, stream).max(axis=0) for draw, stream in streams(30, 3)]
    return dict(zip(BOUNDS, np.max(ratios, axis=0), strict=True))


@pytest.mark.parametrize(
    ("fault", "bounds"),
    [
        ("what was left before", ("dual", "displacement")),
        ("the step's rest", ("dual", "displacement")),
        ("the solution's remainder", ("dual", "displacement")),
        ("half of what leaves the Hessian", ("change",)),
        ("half of how far scores moved", ("moved",)),
        ("the step's way for scores", ("moved",)),
    ],
)
def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch, fault: str, bounds: tuple[str, ...]):
    found = faulty(monkeypatch, fault)
    assert all(found[bound] > 1 for bound in bounds), found
    if "dual" in bounds:
        assert found["gradient"] <= 1, "that bound is another's"
