"""What public rows guarantee: no minimiser is farther than bounded, no curvature below; planted faults are found."""

import math

import numpy as np
import pytest

from certified_unlearning.accounting.residual import public
from certified_unlearning.accounting.residual.public import (
    curvature_at_minimisers,
    curvature_on_the_way,
    farthest_minimiser,
    least_curvature,
    most_curvature,
    most_pull,
)
from tests.mechanisms.residual_streams import EXTENDED, LONG, norm

PROBLEMS = 60


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


class Problem:
    """Public rows, and private ones that pull against them as hard as they can; ``a`` holds label times row."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = np.random.default_rng(seed)
        self.d = d = int(draw.integers(1, 5))
        if seed == 0:  # No direction is better, and a private record pulls most where the minimiser comes to lie.
            self.d, self.m, self.public, private = 1, 1e-6, np.tile([[1.0], [-1.0]], (50, 1)), 129
            pull = np.ones(1)
        else:
            records, private = int(draw.integers(3 * d, 120)), int(draw.integers(1, 12))
            self.m = 10.0 ** draw.uniform(-4, 0)
            rows = draw.standard_normal((records, d))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            scores = rows @ draw.standard_normal(d) * draw.uniform(0, 6)
            self.public = rows * np.where(scores + draw.logistic(size=records) > 0, 1, -1)[:, None]
        self.n = len(self.public) + private
        self.w_0 = self.minimiser(self.public).astype(float)
        if seed:
            # Of one direction, against the public rows above all; and `w_0` need not be the minimiser.
            pull = draw.standard_normal(d) if draw.random() < 0.3 else -self.w_0 - 1e-9
            self.w_0 += (draw.random() < 0.3) * 0.3 * draw.standard_normal(d)
        self.k_0 = float(np.linalg.eigvalsh(self.hessian(self.public, self.w_0) - self.m * np.eye(self.d))[0])
        self.private = np.tile(pull / np.linalg.norm(pull), (private, 1))
        self.given = {
            "gradient": norm(self.gradient(self.public, self.w_0)),
            "weight_norm": norm(self.w_0),
            "private_share": private / self.n,
            "strong_convexity": self.m,
            "row_norm": 1.0,
        }

    def gradient(self, a: np.ndarray, w: np.ndarray) -> np.ndarray:
        return -(a.astype(LONG) * sigmoid(-(a.astype(LONG) @ w))[:, None]).sum(0) / self.n + LONG(self.m) * w

    def hessian(self, a: np.ndarray, w: np.ndarray) -> np.ndarray:
        p = sigmoid(a @ w.astype(float))
        return (a * (p * (1 - p))[:, None]).T @ a / self.n + self.m * np.eye(len(w))

    def minimiser(self, a: np.ndarray) -> np.ndarray:
        """In extended precision; Newton's steps, halved until the gradient falls."""
        w = np.zeros(a.shape[1], LONG)
        for _ in range(200):
            gradient = self.gradient(a, w)
            if norm(gradient) < 1e-17:
                break
            step = np.linalg.solve(self.hessian(a, w), gradient.astype(float))
            for _ in range(50):
                if norm(self.gradient(a, w - step)) < norm(gradient):
                    break
                step = step / 2
            w = w - step
        return w

    def with_private(self, left: int) -> np.ndarray:
        return np.concatenate([self.public, self.private[:left]])


def excess(seed: int) -> dict[str, float]:
    """True over bounded, of one problem with all, some and no private records: above 1 is a fault."""
    given = Problem(seed)
    rho = farthest_minimiser(given.k_0, **given.given)
    k_1 = curvature_at_minimisers(given.k_0, **given.given)
    found = {"distance": 0.0, "curvature": 0.0, "gradient": 0.0, "shift": 0.0}
    every = [0, 1, 2, 3, *range(4, len(given.private), 25)]
    every = [left for left in every if left < len(given.private)] + [len(given.private)]
    minimisers = [given.minimiser(given.with_private(left)) for left in every]
    least = given.m + k_1
    for left, w in zip(every, minimisers, strict=True):
        found["distance"] = max(found["distance"], norm(w - given.w_0) / rho)
        there = np.linalg.eigvalsh(given.hessian(given.public, w))[0]
        found["curvature"] = max(found["curvature"], least / there)
        # Weights near the minimiser, at whatever distance the budget allows.
        d = 10.0 ** given.draw.uniform(-4, 1)
        k = curvature_on_the_way(k_1, distance=d, row_norm=1.0)
        away = given.draw.standard_normal(given.d)
        near = w + away / np.linalg.norm(away) * d * given.draw.uniform(0.01, 1)
        gradient = norm(given.gradient(given.with_private(left), near))
        if gradient <= (given.m + k) * d:
            found["gradient"] = max(found["gradient"], norm(near - w) * (given.m + k) / gradient)
        # All minimisers lie in one ball, and so do the ways between them.
        gone = len(given.private) - left
        if gone:
            found["shift"] = max(found["shift"], norm(minimisers[-1] - w) * least * given.n / gone)
    return found


@pytest.fixture(scope="module")
def found() -> dict[str, float]:
    every = [excess(seed) for seed in range(PROBLEMS)]
    return {name: max(each[name] for each in every) for name in every[0]}


@pytest.mark.skipif(not EXTENDED, reason="this machine has no extended precision to compare with")
@pytest.mark.parametrize(
    ("what", "at_least"), [("distance", 0.5), ("curvature", 0.9), ("gradient", 0.5), ("shift", 0.5)]
)
def test_no_true_minimiser_is_beyond_what_public_rows_guarantee(found, what, at_least):
    """Private records of one direction, of which more and more leave; bounds far from the truth would prove little."""
    assert at_least < found[what] <= 1


@pytest.mark.skipif(not EXTENDED, reason="this machine has no extended precision to compare with")
@pytest.mark.parametrize(
    ("fault", "what"),
    [
        ("pull ignores where the public minimiser is", "distance"),
        ("curvature does not fall on the way", "distance"),
        ("curvature at the minimiser is that at the centre", "curvature"),
    ],
)
def test_faults_are_found(monkeypatch, fault, what):
    if fault.startswith("pull"):
        monkeypatch.setattr(public, "most_pull", lambda score: 0.2784645427610738)
    elif fault.endswith("way"):
        monkeypatch.setattr(math, "expm1", lambda x: x)
    else:
        monkeypatch.setitem(globals(), "curvature_at_minimisers", lambda curvature, **_: curvature)
    assert max(excess(seed)[what] for seed in range(PROBLEMS)) > 1


@pytest.mark.parametrize("score", [0.0, 0.3, 2.0, 11.8, 300.0])
def test_the_most_that_a_record_pulls_is_what_a_search_finds(score):
    z = np.linspace(-score - 5, 10, 4_000_001)
    found = ((z + score) / (1 + np.exp(z))).max()
    assert found <= most_pull(score) == pytest.approx(found, rel=1e-6)


@pytest.mark.parametrize(
    ("private_share", "rho", "k_1"),
    [(0.01, 0.217715424669351122, 0.0402177154246693511), (0.1, 1.4348256865412262, 0.0119078437172587575)],
)
def test_two_vectors(private_share, rho, k_1):
    """Of ``rho (m rho + k_0 (1 - exp(-rho))) = q min(L, rho)``, computed apart in fifty digits; ``L = omega(0)``."""
    given = {"gradient": 0.0, "weight_norm": 1.0, "private_share": private_share, "strong_convexity": 1e-3}
    assert most_pull(1.0) == pytest.approx(0.567143290409783873, rel=2e-9)
    assert farthest_minimiser(0.05, row_norm=1.0, **given) == pytest.approx(rho, rel=1e-8)
    assert curvature_at_minimisers(0.05, row_norm=1.0, **given) == pytest.approx(k_1, rel=1e-8)


def test_without_curvature_the_regulariser_alone_holds_and_nothing_is_gained():
    given = {"gradient": 0.0, "weight_norm": 0.0, "private_share": 1.0, "strong_convexity": 0.01, "row_norm": 1.0}
    assert farthest_minimiser(0.0, **given) == pytest.approx(math.sqrt(most_pull(0.0) / 0.01), rel=1e-9)
    assert curvature_at_minimisers(0.0, **given) == 0
    assert least_curvature(0.01, 0.0) == 0.01
    assert 0.03 * (1 - 1e-12) < least_curvature(0.01, 0.02) < 0.03


def test_more_private_records_leave_less():
    def left(private_share: float) -> float:
        return curvature_at_minimisers(
            0.01, gradient=0.0, weight_norm=1.0, private_share=private_share, strong_convexity=1e-3
        )

    shares = [1e-4, 1e-3, 1e-2, 0.1, 0.5]
    assert [*map(left, shares)] == sorted(map(left, shares), reverse=True)
    assert left(1e-4) > 0.0099 * 0.9
    assert left(0.5) < 1e-6


def test_public_rows_have_no_more_curvature_than_their_number_allows():
    assert most_curvature(10, n=20, features=5, classes=1) == pytest.approx(0.1, rel=1e-5)
    assert most_curvature(10, n=20, features=5, classes=2) == pytest.approx(0.025, rel=1e-5)
    assert most_curvature(10, n=20, features=5, classes=3) == 0
