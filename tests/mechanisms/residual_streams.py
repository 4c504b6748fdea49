"""Streams of removals with the true gradient beside them, in extended precision."""

import numpy as np

from certified_unlearning.mechanisms.newton_removal import Model, NewtonRemoval
from certified_unlearning.mechanisms.refit_plan import RefitPlan

LONG = np.longdouble
EXTENDED = np.finfo(LONG).eps < 1e-18


def problem(draw: np.random.Generator, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of norm at most 1, some of them short, and labels that the first column tells with some noise."""
    rows = draw.standard_normal((n, d))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= np.where(draw.random(n) < 0.3, draw.random(n), 1.0)[:, None]
    labels = np.where(rows[:, 0] + draw.choice([0.05, 0.5]) * draw.standard_normal(n) > 0, 1.0, -1.0)
    return rows, labels


def plan_of(n: int, d: int, strong_convexity: float, **options: object) -> RefitPlan:
    return RefitPlan.make(
        **{"n": n, "features": d, "classes": 2, "epsilon": 1.0, "delta": 1e-6, "sigma": 1e-3}
        | {"strong_convexity": strong_convexity}
        | options
    )


def true_gradient(plan: RefitPlan, a: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The exact gradient, up to extended precision; ``a`` holds label times row, in it, zero where removed."""
    w = weights.astype(LONG)
    return -(a / (1 + np.exp(a @ w))[:, None]).sum(0) / plan.n + LONG(plan.strong_convexity) * w


def norm(vector: np.ndarray) -> float:
    return float(np.sqrt((vector * vector).sum()))


def true_minimiser(plan: RefitPlan, a: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The minimiser in extended precision: Newton's method with a gradient in it, the Hessian in float64."""
    w = start.astype(LONG)
    for _ in range(60):
        p = 1 / (1 + np.exp((a @ w).astype(float)))
        rows = a.astype(float)
        hessian = (rows * (p * (1 - p))[:, None]).T @ rows / plan.n + plan.strong_convexity * np.eye(len(w))
        gradient = -(a / (1 + np.exp(a @ w))[:, None]).sum(0) / plan.n + LONG(plan.strong_convexity) * w
        w = w - np.linalg.solve(hessian, gradient.astype(float))
        if norm(gradient) < 1e-19:
            break
    return w


class Stream:
    """One model whose records leave request by request; `excess` holds true over certified gradients."""

    def __init__(self, plan: RefitPlan, rows: np.ndarray, labels: np.ndarray, **options: object) -> None:
        self.mechanism = NewtonRemoval(plan, **options)
        self.plan, self.rows, self.labels = plan, rows.copy(), labels
        self.a = (rows * labels[:, None]).astype(LONG)
        self.model: Model = self.mechanism.fit(self.rows, labels)
        self.since, self.readings = 0, []
        self.excess = [self._excess()]

    def remove(self, gone: np.ndarray) -> None:
        gone_rows = self.rows[gone]
        self.rows[gone], self.a[gone] = 0, 0
        self.model, reading = self.mechanism.remove(
            self.model, gone_rows, self.labels[gone], self.rows, self.labels, since_read=self.since
        )
        self.since = 0 if reading in ("scheduled", "unscheduled") else self.since + len(gone)
        self.readings.append(reading)
        self.excess.append(self._excess())

    def _excess(self) -> float:
        """The true gradient's norm over its certified bound: above 1 is a fault."""
        return norm(true_gradient(self.plan, self.a, self.model.weights)) / self.model.residual
