"""The true law of the floating-point process is never above what is certified.

Where it can be computed: Descent-to-Delete of secret state, whose law is Gaussian around what the engine computed, and
one-dimensional runs in an arithmetic of so few digits that all its numbers can be listed.
"""

import dataclasses
import math
from typing import NamedTuple, get_args

import numpy as np
import pytest
import torch
from scipy.special import expit, ndtr
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from certified_unlearning import certificate
from certified_unlearning.accounting import Schedule, delta_from_mu, epsilon_from_mu
from certified_unlearning.accounting.core import rounding as rounding_module
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.core.rounding import EXACT, Rounding
from certified_unlearning.accounting.deletion.planning import DeletionForm, deletion_curve, start_variance
from certified_unlearning.accounting.descent.published import descent_problem
from certified_unlearning.accounting.descent.shifted import published_state_curve, secret_state_history_mu
from certified_unlearning.accounting.guarantees import as_computed, descent_guarantee
from certified_unlearning.accounting.shifted.interpolation import curve
from certified_unlearning.engine import randomness
from certified_unlearning.errors import AssumptionError
from certified_unlearning.estimators import SecretStateDescentToDelete
from certified_unlearning.mechanisms.learners.descent import DescentLearner
from certified_unlearning.mechanisms.learners.history import Removal

TORCH = {"float32": torch.float32, "float64": torch.float64}
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64"])
VARIANTS = ("secret-state", "published-state")


# Descent-to-Delete as the engine computes it.


class Audited(NamedTuple):
    """A case that was certified below its true epsilon before rounding was counted."""

    rows: np.ndarray
    labels: np.ndarray
    regularisation: float
    epsilon: float
    delta: float
    steps: int
    records: int
    classes: int = 2
    along: bool = False


def with_intercept(images):
    return np.column_stack([normalize(images), np.ones(len(images))]) / math.sqrt(2)


def digits_case(*, epsilon, steps, count=None, C=None, total=None, records=1, classes=2):
    images, labels = (each[:count] for each in load_digits(return_X_y=True))
    n = len(images)
    C = total / n if C is None else C
    labels = np.where(labels % 2, -1, 1) if classes == 2 else labels
    return Audited(with_intercept(images), labels, 1 / (C * n * n * 2), epsilon, 1 / n, steps, records, classes)


def one_feature_case():
    """All of one class: without the last record the optimum is reached from above, by the retrained run from below."""
    rows = np.linspace(0.2, 1, 200)[:, None]
    return Audited(rows, np.ones(200, dtype=int), 1e-2 / 200, 0.05, 1 / 200, 450, 1, along=True)


AUDITED = {
    "400 digits, C = 2.5": (lambda: digits_case(count=400, C=2.5, epsilon=0.05, steps=4000), "float32"),
    "all digits, C = 1": (lambda: digits_case(C=1.0, epsilon=0.1, steps=6000), "float32"),
    "all digits, C n = 100": (lambda: digits_case(total=100, epsilon=0.02, steps=400, records=50), "float32"),
    "ten digits, C n = 100": (
        lambda: digits_case(total=100, epsilon=0.02, steps=800, records=50, classes=10),
        "float32",
    ),
    "one feature": (one_feature_case, "float64"),
}


FOUND = {
    ("400 digits, C = 2.5", "secret-state"): 100.0,
    ("400 digits, C = 2.5", "published-state"): 100.0,
    ("all digits, C = 1", "secret-state"): 10.0,
    ("all digits, C n = 100", "secret-state"): 5.0,
    ("ten digits, C n = 100", "secret-state"): 5.0,
    ("one feature", "secret-state"): 3.0,
}
"""By what factor the truth was at least above what was certified, with the noise of exact arithmetic."""


def tensors(rows, labels, dtype, classes=2):
    kind = TORCH[dtype]
    return torch.from_numpy(rows).to(kind), torch.from_numpy(labels).to(kind if classes == 2 else torch.int64)


def most_influential(rows, labels, records, regularisation, *, along=False):
    """Return the records with the largest gradients, far along, or those that pull most to where the optimum is.

    Without the latter both runs reach the optimum from different sides, and may stay on them.
    """
    if len(np.unique(labels)) > 2:
        return np.arange(records)
    weights = np.zeros(rows.shape[1])
    strength = regularisation * len(rows)
    for _ in range(300):
        pull = expit(-labels * (rows @ weights)) * labels
        weights += 1 / (0.25 + strength) * (pull @ rows / len(rows) - strength * weights)
    pull = expit(-labels * (rows @ weights))
    order = pull * labels * (rows @ weights) if along else pull * np.linalg.norm(rows, axis=1)
    return np.argsort(-order)[:records]


class Runs:
    """The engine's runs of a case with one removal, and of the data without that record from the start."""

    def __init__(self, case, gone):
        self._everything = case.rows, case.labels
        left = np.delete(np.arange(len(case.rows)), gone)
        self._remaining = case.rows[left], case.labels[left]
        self._classes = case.classes
        self._learned = {}

    def states(self, learner, removal, *, sigma, published=2):
        """Return the state after one request and the retrained one's; and of both, from what was published."""
        kind = learner.dtype
        remaining = tensors(*self._remaining, kind, self._classes)
        if kind not in self._learned:
            everything = tensors(*self._everything, kind, self._classes)
            self._learned[kind] = learner.learn(*everything), learner.learn(*remaining)
        noisy = learner.model_copy(update={"sigma": sigma})
        starts = []
        for number, state in enumerate(self._learned[kind]):
            keys = [randomness.address("truth", number, trial) for trial in range(published)]
            starts += [state, noisy.publish(state.repeat(published, 1), [], keys)]
        ends = learner.unlearn(torch.cat(starts), *remaining, [removal])
        return ends.double().numpy().reshape(2, 1 + published, -1)


def distances_of(states, learner, removal, sigma):
    """Return how far apart the two means are, for each variant at least.

    Published noise moves what goes on from it, by no more than the steps leave of it; so far from what the run would be
    without noise, on either side, half-spaces tell the laws apart as they do two Gaussians.
    """
    difference = states[0] - states[1]
    secret = float(np.linalg.norm(difference[0]))
    if secret == 0:
        return {"secret-state": 0.0, "published-state": 0.0}
    projected = states @ (difference[0] / secret)
    problem = learner.exact_problem
    left = (1 - problem.step_size * problem.strong_convexity) ** removal.steps
    moved_by = left * sigma * (math.sqrt(learner.dimension) + 8)
    apart = float(projected[0].min() - projected[1].max()) - 2 * moved_by
    return {"secret-state": secret, "published-state": max(apart, 0.0)}


def certified_mu(exact, variant, dtype, *, dimension, classes, sigma, removal):
    problem = exact
    if dtype is not None:
        problem = as_computed(exact, dimension=dimension, classes=classes, dtype=dtype, variant=variant)
    history = {"sigma": sigma, "records_per_request": (removal.records,), "steps_per_request": (removal.steps,)}
    if variant == "secret-state":
        return secret_state_history_mu(problem, **history)
    return published_state_curve(problem, **history).mu


@pytest.mark.parametrize("name", AUDITED)
def test_audited_cases_are_certified_no_lower_than_the_truth(name):
    build, dtype_of_audit = AUDITED[name]
    case = build()
    gone = most_influential(case.rows, case.labels, case.records, case.regularisation, along=case.along)
    plan = {
        "n": len(case.rows),
        "features": case.rows.shape[1],
        "classes": case.classes,
        "regularisation": case.regularisation,
        "epsilon": case.epsilon,
        "delta": case.delta,
        "steps": case.steps,
        "records": case.records,
    }
    # The longest runs are made once only.
    variants = VARIANTS if case.steps < 5000 else VARIANTS[:1]
    learners = {variant: DescentLearner.plan(**plan, variant=variant) for variant in variants}
    secret = learners["secret-state"]
    exact = secret.exact_problem
    both = {"exact": exact, "dimension": secret.dimension, "classes": case.classes}
    runs = Runs(case, gone)
    # As it was before: the least noise that exact arithmetic needs, computed in the type of the audit.
    removal = Removal(case.records, case.steps)
    audited = secret.model_copy(update={"dtype": dtype_of_audit})
    for variant, learner in learners.items():
        sigma = learner._least_sigma(exact, case.steps, case.records)
        states = runs.states(audited, removal, sigma=sigma)
        true_mu = distances_of(states, audited, removal, sigma)[variant] / sigma
        numbers = {"variant": variant, "sigma": sigma, "removal": removal}
        before = certified_mu(**both, dtype=None, **numbers)
        assert epsilon_from_mu(before, case.delta) == pytest.approx(case.epsilon, rel=1e-6)
        if (name, variant) in FOUND:
            assert epsilon_from_mu(true_mu, case.delta) > FOUND[name, variant] * case.epsilon
        assert certified_mu(**both, dtype=dtype_of_audit, **numbers) >= true_mu
        try:
            stated = descent_guarantee(
                as_computed(
                    exact, dimension=secret.dimension, classes=case.classes, dtype=dtype_of_audit, variant=variant
                ),
                Schedule(sigma, (case.records,), (case.steps,), audited.learning_steps),
                delta=case.delta,
                accountant="descent-to-delete shifted",
                variant=variant,
                dimension=secret.dimension,
            )
        except AssumptionError:
            continue
        assert stated.epsilon >= epsilon_from_mu(true_mu, case.delta)
    # As it is now, in the type that the plan takes and with its noise and steps.
    for variant, learner in learners.items():
        removal = learner.plan_removal([], case.records)
        states = runs.states(learner, removal, sigma=learner.sigma)
        true_mu = distances_of(states, learner, removal, learner.sigma)[variant] / learner.sigma
        run = learner.run([removal], dataset="own", features="given", data_digest="")
        stated = certificate.of(run, key=learner.run_key([removal], ""), noise_source="seed")
        assert stated.epsilon <= case.epsilon * (1 + 1e-9)
        assert epsilon_from_mu(true_mu, case.delta) <= stated.epsilon
        assert true_mu <= stated.mu


def test_the_estimator_s_certificate_is_no_lower_than_the_truth():
    """The first audited case through the estimator: its secret state against a retrained one's."""
    images, labels = (each[:400] for each in load_digits(return_X_y=True))
    labels = labels % 2
    model = SecretStateDescentToDelete(0.05, C=2.5, steps=4000, normalize=True, random_state=1).fit(images, labels)
    gone = most_influential(with_intercept(images), 2 * labels - 1, 1, model._learner.regularisation)
    model.unlearn(gone)
    learner = model._learner
    rows, signs = np.delete(with_intercept(images), gone, 0), np.delete(2 * labels - 1, gone)
    retrained = learner.learn(*tensors(rows, signs, learner.dtype))
    retrained = learner.unlearn(retrained, *tensors(rows, signs, learner.dtype), model.removals_).numpy()
    mu = float(np.linalg.norm(retrained.astype(float) - model._state.astype(float))) / learner.sigma
    assert epsilon_from_mu(mu, 1 / 400) <= model.certificate_.epsilon <= 0.05 * (1 + 1e-9)


def planted_case(number, rng):
    """Rows of a small data set that is random, or near-degenerate in one of several ways."""
    n, features = int(rng.integers(5, 61)), int(rng.integers(1, 9))
    planted = number % 2 == 1
    kind = number // 2 % 5 if planted else None
    rows = rng.standard_normal((n, features))
    labels = rng.choice([-1, 1], n)
    if kind == 0:
        rows[:] = rows[0]  # one record, many times
    elif kind == 1:
        rows, labels = np.outer(rng.choice([-1.0, 1.0], n), rows[0]), np.ones(n, dtype=int)
    elif kind == 2:
        rows = rows[:1] + 1e-6 * rows  # nearly equal
        labels[:] = 1
    elif kind == 3:
        labels = np.where(rows[:, 0] > 0, 1, -1)  # separable
        rows[:, 1:] *= 1e-3
    elif kind == 4:
        rows[1:] *= 10.0 ** rng.uniform(-8, 0, (n - 1, 1))
        labels[0], labels[1:] = -1, 1
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / (norms.max() if kind == 4 else norms) * (1 - 1e-7)
    strength = 10 ** rng.uniform(-4, -1)
    return Audited(rows, labels, strength / n, 0.1, 1 / n, 0, 1)


@pytest.mark.sampled
@DTYPES
def test_small_cases_are_certified_no_lower_than_the_truth(dtype):
    rng = np.random.default_rng(11 if dtype == "float32" else 12)
    unit = rounding_module.UNIT_ROUNDOFF[dtype]
    worst, above_before, seen = dict.fromkeys(VARIANTS, 0.0), dict.fromkeys(VARIANTS, 0), 0
    for number in range(300):
        case = planted_case(number, rng)
        n, features = case.rows.shape
        learner = DescentLearner.plan(
            n=n,
            features=features,
            classes=2,
            regularisation=case.regularisation,
            epsilon=1e6,
            delta=case.delta,
            sigma=1.0,
            variant="secret-state",
            dtype=dtype,
        ).model_copy(update={"dtype": dtype})
        exact = learner.exact_problem
        rate = exact.step_size * exact.strong_convexity
        # About as many as leave nothing but rounding, where that is not too many.
        steps = min(160, math.ceil(-math.log(unit) / -math.log1p(-rate) * rng.uniform(0.5, 1.1)))
        learner = learner.model_copy(update={"learning_steps": min(learner.learning_steps, 80)})
        removal = Removal(1, steps)
        gone = most_influential(case.rows, case.labels, 1, case.regularisation, along=number % 3 > 0)
        sigma = 10 ** rng.uniform(0, 3) * certified_mu(
            exact, "secret-state", None, dimension=features, classes=2, sigma=1.0, removal=removal
        )
        states = Runs(case, gone).states(learner, removal, sigma=sigma)
        for variant, distance in distances_of(states, learner, removal, sigma).items():
            numbers = {"dimension": features, "classes": 2, "sigma": sigma, "removal": removal}
            stated = certified_mu(exact, variant, dtype, **numbers)
            assert distance / sigma <= stated, (number, variant)
            worst[variant] = max(worst[variant], distance / sigma / stated)
            above_before[variant] += distance / sigma > certified_mu(exact, variant, None, **numbers)
        seen += 1
    assert seen == 300
    assert all(worst[variant] > 0.01 for variant in VARIANTS), worst
    assert all(above_before[variant] >= 3 for variant in VARIANTS), above_before


# An arithmetic of so few digits that the law of a whole run can be computed.


class Toy:
    """Floating-point numbers of ``digits`` binary digits, subnormal ones below ``2**least``, up to ``2**most``."""

    def __init__(self, digits, least, most):
        self.digits, self.least, self.most = digits, least, most
        quantum = 2.0 ** (least - digits + 1)
        positive = [np.arange(0, 2 ** (digits - 1)) * quantum]
        for exponent in range(least, most):
            positive.append((2 ** (digits - 1) + np.arange(2 ** (digits - 1))) * 2.0 ** (exponent - digits + 1))
        positive = np.concatenate(positive)
        self.grid = np.concatenate([-positive[:0:-1], positive])
        # A cell ends in the middle between neighbours; ties have no mass.
        self.edges = np.concatenate([[-np.inf], (self.grid[1:] + self.grid[:-1]) / 2, [np.inf]])

    def __call__(self, values):
        """Round to the nearest, ties to even."""
        _, exponents = np.frexp(values)
        quantum = np.ldexp(1.0, np.maximum(exponents - 1, self.least) - self.digits + 1)
        return np.clip(np.rint(values / quantum) * quantum, self.grid[0], self.grid[-1])

    def places(self, values):
        return np.searchsorted(self.grid, values)

    def masses(self, std):
        """Return the law of ``round(a + std Z)`` for every number ``a``, row by row."""
        edges = (self.edges[None, :] - self.grid[:, None]) / std
        # What is beyond an edge, on its own side: differences far out keep their digits.
        beyond = ndtr(-np.abs(edges))
        low, high = beyond[:, :-1], beyond[:, 1:]
        across = (edges[:, :-1] < 0) & (edges[:, 1:] > 0)
        return np.where(across, 1 - low - high, np.abs(high - low))


class ToyLoss(NamedTuple):
    """A data set in one dimension: linear losses ``b x``, or logistic ones ``log(1 + exp(b x))``; b is at most 1."""

    records: np.ndarray
    logistic: bool
    n: int
    problem: Problem

    def computed(self, toy, weights):
        """Return what a step computes before its noise, every operation rounded, the sum one by one."""
        problem = self.problem
        total = np.zeros_like(weights)
        for record in self.records:
            pull = toy(record * np.ones_like(weights))
            if self.logistic:
                pull = toy(toy(expit(toy(weights * record))) * record)
            total = toy(total + pull)
        scale = toy(np.array(-problem.step_size / self.n))
        shrunk = toy(weights * toy(np.array(1 - problem.step_size * problem.strong_convexity)))
        return toy(shrunk + toy(total * scale))

    def exact(self, weights):
        problem = self.problem
        if self.logistic:
            total = (expit(weights[:, None] * self.records) * self.records).sum(axis=1)
        else:
            total = self.records.sum()
        return weights - problem.step_size * (problem.strong_convexity * weights + total / self.n)


class ToyCase(NamedTuple):
    toy: Toy
    losses: list[ToyLoss]
    """Before the first request, after it, and so on."""
    problem: Problem
    sigma: float
    steps: tuple[int, ...]


def toy_case(rng, *, descent, requests, replaces=False, digits=None):
    """Draw constants, records and the noise, from what drowns in rounding to what drowns it."""
    digits = digits or int(rng.choice([5, 6, 7], p=[0.72, 0.27, 0.01]))
    logistic = bool(rng.random() < 0.4)
    # Else the bound is infinite: weights might grow by rounding alone.
    least_rate = 26 * 2.0**-digits
    n = int(rng.integers(3, 31))
    rate = rng.uniform(min(least_rate, 0.9), 1.0)
    if logistic:
        # The largest step is 1 / L or 2 / (L + m), L = 1/4 + m.
        ratio = rate / (2 - rate) if descent else rate
        strength = 0.25 * ratio / max(1 - ratio, 0.02)
        smoothness = 0.25 + strength
    else:
        strength = 10 ** rng.uniform(-1.5, 0.3)
        smoothness = strength * (2 / rate - 1 if descent else 1 / rate)
    step_size = 2 / (smoothness + strength) if descent else rng.uniform(0.9, 0.999) / smoothness
    adjacency = "replace" if replaces else "zero-out"
    problem = Problem(n, strength, smoothness, 1.0, step_size, adjacency=adjacency)
    if descent:
        problem = descent_problem(problem)
    rate = problem.step_size * strength
    longest = 1 / strength
    # In units of the numbers' spacing there.
    spacing = longest * 2.0**-digits
    exponents = (-1.0, 0.5) if rng.random() < 0.5 else (-1.0, math.log10(2.0**digits))
    noise_std = spacing * 10 ** rng.uniform(*exponents)
    sigma = noise_std if descent else noise_std / math.sqrt(2 * problem.step_size)
    reach = 2 * longest + 14 * noise_std * (1 + 1 / math.sqrt(rate * (2 - rate)) + 1 / math.sqrt(rate))
    least = math.floor(math.log2(min(noise_std, longest / n / 4))) - 2
    toy = Toy(digits, least, max(math.ceil(math.log2(reach)), least + 1))
    fine = Toy(digits, -30, 1)
    records = fine(
        rng.uniform(-1, 1, n) if rng.random() < 0.5 else np.sign(rng.uniform(-0.3, 1, n)) * rng.uniform(0.6, 1)
    )
    if rng.random() < 0.3:
        records[:] = records[0]
    data = [records]
    for _ in range(requests):
        last = data[-1].copy()
        if replaces:
            last[int(rng.integers(n))] = float(fine(np.array(-np.sign(last[0] or 1.0))))
        elif len(last) > 1:
            last = np.delete(last, np.argmax(np.abs(last)) if rng.random() < 0.5 else rng.integers(len(last)))
        data.append(last)
    losses = [ToyLoss(each, logistic, n, problem) for each in data]
    steps = (int(rng.integers(1, 16)), *[int(each) for each in rng.integers(1, 25, requests)])
    return ToyCase(toy, losses, problem, sigma, steps)


def hockey_sticks(one, other, epsilons):
    factors = np.exp(epsilons)[:, None]
    forth = np.maximum(one - factors * other, 0).sum(axis=1)
    back = np.maximum(other - factors * one, 0).sum(axis=1)
    return np.maximum(forth, back)


EPSILONS = np.array([0.0, 0.03, 0.1, 0.3, 1.0, 2.0, 4.0])


def excess(one, other, mu):
    """Return the largest quotient of the laws' delta and that of ``mu``, where it can be told from 0."""
    bounds = np.array([delta_from_mu(mu, float(epsilon)) for epsilon in EPSILONS])
    true = hockey_sticks(one, other, EPSILONS)
    # What sums of doubles leave.
    noise = 1e-13 * (1 + np.exp(EPSILONS))
    return float(((true - noise) / np.maximum(bounds, 1e-300))[true > 10 * noise].max(initial=0.0))


def true_mu_of(one, other):
    """Return the ``mu`` of two Gaussians as far apart in total variation."""
    return 2 * norm.isf((1 - min(hockey_sticks(one, other, np.zeros(1))[0], 1 - 1e-12)) / 2)


@pytest.fixture
def toy_rounding(monkeypatch):
    """Return `rounding` for a toy arithmetic, whose noise is exact."""
    monkeypatch.setattr(rounding_module, "resolution", lambda dimension, dtype: 0.0)

    def of(case, noise, start_norm=0.0):
        monkeypatch.setitem(rounding_module.UNIT_ROUNDOFF, "toy", 2.0**-case.toy.digits)
        monkeypatch.setitem(rounding_module.SMALLEST_NORMAL, "toy", 2.0**case.toy.least)
        problem = case.problem
        counted = rounding_module.rounding(
            n=problem.n,
            features=1,
            classes=2,
            strong_convexity=problem.strong_convexity,
            lipschitz=problem.lipschitz,
            step_size=problem.step_size,
            dtype="toy",
            start_norm=start_norm,
            noise=noise,
        )
        return dataclasses.replace(problem, rounding=counted)

    return of


def moved(law, places):
    return np.bincount(places, weights=law, minlength=len(law))


def step_errors(case):
    """Return how far a step's end may be from the exact one, data set by data set, for every cell of weights."""
    ends = case.toy.edges.copy()
    ends[0], ends[-1] = case.toy.grid[0], case.toy.grid[-1]
    sides = ends[:-1], case.toy.grid, ends[1:]
    return [
        np.max([np.abs(loss.computed(case.toy, case.toy.grid) - loss.exact(side)) for side in sides], axis=0)
        for loss in case.losses
    ]


def noisy_laws(case, start):
    """Return both runs' final laws, and the largest step error on the way; ``start`` is a law."""
    toy, masses = case.toy, case.toy.masses(math.sqrt(2 * case.problem.step_size) * case.sigma)
    updates = [loss.computed(toy, toy.grid) for loss in case.losses]
    errors = step_errors(case)
    places = [toy.places(update) for update in updates]
    laws, largest, last = np.stack([start, start]), 0.0, len(updates) - 1
    for data, steps in enumerate(case.steps):
        for _ in range(steps):
            for law, which in zip(laws, (data, last), strict=True):
                likely = law > 1e-25
                largest = max(largest, float(errors[which][likely].max()))
            laws = np.stack([moved(laws[0], places[data]), moved(laws[1], places[last])]) @ masses
    assert laws[:, [0, -1]].max() < 1e-18
    return laws, largest


def mu_of(case, problem):
    learning, *requests = case.steps
    return curve(problem, Schedule(case.sigma, 1, tuple(requests), learning)).mu


@pytest.mark.sampled
@pytest.mark.parametrize(("requests", "count"), [(1, 200), (2, 100)])
def test_the_law_of_a_noisy_run_in_few_digits(requests, count, toy_rounding):
    rng = np.random.default_rng(20 + requests)
    finite = above_exact = 0
    worst = worst_by_error = 0.0
    while finite < count:
        case = toy_case(rng, descent=False, requests=requests)
        problem = toy_rounding(case, "every step")
        if problem.rounding.fixed == math.inf:
            continue
        finite += 1
        (one, other), error = noisy_laws(case, (case.toy.grid == 0).astype(float))
        assert excess(one, other, mu_of(case, problem)) <= 1, (finite, case)
        # With the largest error of these very steps: a far smaller bound.
        by_error = mu_of(case, dataclasses.replace(case.problem, rounding=Rounding(fixed=error)))
        assert excess(one, other, by_error) <= 1, (finite, case)
        true = true_mu_of(one, other)
        worst, worst_by_error = max(worst, true / mu_of(case, problem)), max(worst_by_error, true / by_error)
        above_exact += excess(one, other, mu_of(case, dataclasses.replace(case.problem, rounding=EXACT))) > 1
    assert above_exact >= 8
    assert worst_by_error > 0.3


def renyi(one, other, alpha):
    """Return the larger of the two Rényi divergences."""
    both = (one > 0) & (other > 0)
    logs = np.log(one[both]), np.log(other[both])
    values = []
    for first, second in (logs, logs[::-1]):
        powers = alpha * first + (1 - alpha) * second
        values.append((powers.max() + math.log(np.exp(powers - powers.max()).sum())) / (alpha - 1))
    return max(values)


@pytest.mark.exhaustive
def test_the_law_of_data_deletion_in_few_digits(toy_rounding):
    """From a Gaussian start, a replaced record, Rényi divergences; of every form.

    Three hundred cases, whose laws on all numbers of few digits are computed exactly.
    """
    rng = np.random.default_rng(31)
    finite = 0
    above_exact, worst = dict.fromkeys(get_args(DeletionForm), 0), dict.fromkeys(get_args(DeletionForm), 0.0)
    orders = np.array([1.5, 2.0, 4.0])
    while finite < 300:
        case = toy_case(rng, descent=False, requests=1, replaces=True)
        # The start is as long as random weights are.
        problem = toy_rounding(case, "every step")
        if problem.rounding.fixed == math.inf:
            continue
        finite += 1
        std = math.sqrt(start_variance(case.problem, case.sigma))
        start = case.toy.masses(std)[case.toy.places(np.zeros(1))[0]]
        (one, other), _ = noisy_laws(case, start)
        true = np.array([renyi(one, other, float(alpha)) for alpha in orders])
        for form in get_args(DeletionForm):

            def certified(problem, form=form, case=case):
                return deletion_curve(
                    problem, sigma=case.sigma, steps=case.steps[1], steps_before=case.steps[0], form=form
                )(orders)

            stated = certified(problem)
            assert (true <= stated * (1 + 1e-9) + 1e-10).all(), (finite, form, case)
            worst[form] = max(worst[form], float((true / stated)[true > 1e-9].max(initial=0.0)))
            above_exact[form] += bool((true > certified(dataclasses.replace(problem, rounding=EXACT)) + 1e-9).any())
    assert above_exact["shifted"] >= 3


def noiseless(case, law, data, steps):
    """Return a law after noiseless steps on a data set, and where it was on the way."""
    places = case.toy.places(case.losses[data].computed(case.toy, case.toy.grid))
    seen = np.zeros(len(law), dtype=bool)
    for _ in range(steps):
        seen |= law > 1e-25
        law = moved(law, places)
    return law, seen


@pytest.mark.sampled
@pytest.mark.parametrize(("requests", "count"), [(1, 200), (2, 100)])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_law_of_descent_to_delete_in_few_digits(variant, requests, count, toy_rounding):
    """Noise on publication: what goes on is the noiseless state, or what was published."""
    rng = np.random.default_rng(40 + requests)
    fed_back = variant == "published-state"
    finite = above_exact = 0
    worst = 0.0
    while finite < count:
        case = toy_case(rng, descent=True, requests=requests)
        problem = toy_rounding(case, "publication, fed back" if fed_back else "publication")
        if problem.rounding.fixed == math.inf:
            continue
        finite += 1
        masses, last, errors, error = case.toy.masses(case.sigma), len(case.losses) - 1, step_errors(case), 0.0
        laws = np.stack([case.toy.grid == 0] * 2).astype(float)
        for data, steps in enumerate(case.steps):
            both = [noiseless(case, law, which, steps) for law, which in zip(laws, (data, last), strict=True)]
            laws = np.stack([law for law, _ in both])
            for (_, seen), which in zip(both, (data, last), strict=True):
                error = max(error, float(errors[which][seen].max()))
            if fed_back or data == last:
                published = laws @ masses
            if fed_back:
                laws = published
        learning, *steps = case.steps

        def mu_of_one(problem, case=case, steps=tuple(steps), learning=learning):
            history = {"records_per_request": 1, "steps_per_request": steps, "learning_steps": learning}
            if fed_back:
                return published_state_curve(problem, sigma=case.sigma, **history).mu
            return secret_state_history_mu(problem, sigma=case.sigma, **history)

        assert excess(*published, mu_of_one(problem)) <= 1, (finite, case)
        by_error = mu_of_one(dataclasses.replace(case.problem, rounding=Rounding(fixed=error)))
        assert excess(*published, by_error) <= 1, (finite, case)
        worst = max(worst, true_mu_of(*published) / by_error)
        above_exact += excess(*published, mu_of_one(dataclasses.replace(problem, rounding=EXACT))) > 1
    assert above_exact >= 5
    assert worst > 0.15
