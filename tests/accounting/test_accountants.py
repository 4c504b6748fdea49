"""The accountants by name: what each certifies, and that none is below the next sharper one."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting import (
    ACCOUNTANTS,
    GaussianCurve,
    Problem,
    RenyiCurve,
    Schedule,
    epsilon_from_mu,
    epsilon_from_renyi,
    initial_epsilon,
    largest_guarantee,
    stream_guarantees,
    unlearning_curve,
    unlearning_epsilon,
)
from certified_unlearning.accounting.langevin import hoelder, lsi
from certified_unlearning.accounting.langevin.accountants import accountant_called
from certified_unlearning.accounting.shifted import interpolation as shifted
from certified_unlearning.errors import AssumptionError, ParameterError
from tests.accounting.paper_settings import CIFAR, MNIST, TEN_CLASSES
from tests.accounting.quadratic_streams import RECORDS, SIGMAS, STEPS, exact_stream_renyi, problems

NAMES = ("lsi", "lsi-tight", "shifted")
# shifted-interpolation, section 7.
PROBLEM = Problem(1000, 0.05, 0.8, 1, 1 / 0.8)
ORDERS = np.array([1.001, 1.5, 3.0, 40.0, 1e6])


def removal(records, *steps, sigma=0.03, learning_steps=math.inf):
    return Schedule(sigma=sigma, records_per_request=records, steps=steps, learning_steps=learning_steps)


def test_the_names_are_the_keys():
    assert tuple(ACCOUNTANTS) == NAMES
    assert [accountant_called(name).name for name in NAMES] == list(NAMES)


def test_an_accountant_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ACCOUNTANTS["lsi"].conversion = "tight"


def test_every_name_has_its_analysis():
    stream = removal(20, 30, 40, 50)
    for name, module in (("lsi", lsi), ("lsi-tight", hoelder)):
        curve = unlearning_curve(MNIST, stream, accountant=name)
        assert isinstance(curve, RenyiCurve)
        np.testing.assert_array_equal(curve.log_divergence(ORDERS), module.curve(MNIST, stream).log_divergence(ORDERS))
    assert unlearning_curve(MNIST, stream, accountant="shifted") == shifted.curve(MNIST, stream)
    assert unlearning_curve(MNIST, stream)(ORDERS).tolist() == lsi.curve(MNIST, stream)(ORDERS).tolist()


def test_every_name_has_its_conversion():
    stream = removal(20, 30, 40, 50)

    def converted(curve, conversion):
        return epsilon_from_renyi(curve, 1e-5, conversion=conversion).epsilon

    expected = {
        "lsi": converted(lsi.curve(MNIST, stream), "paper"),
        "lsi-tight": converted(hoelder.curve(MNIST, stream), "tight"),
        "shifted": epsilon_from_mu(shifted.curve(MNIST, stream).mu, 1e-5),
    }
    found = {name: unlearning_epsilon(MNIST, stream, delta=1e-5, accountant=name) for name in NAMES}
    assert found == expected
    assert unlearning_epsilon(MNIST, stream, delta=1e-5) == expected["lsi"]


def test_what_a_step_contracts_by_is_the_step_size_times_the_strong_convexity():
    gaps = [ACCOUNTANTS[name].contraction_gap(MNIST) for name in NAMES]
    assert gaps == [0.011982 / 0.261982] * 3
    beyond = dataclasses.replace(MNIST, step_size=1.99 / MNIST.smoothness)
    assert ACCOUNTANTS["shifted"].contraction_gap(beyond) == pytest.approx(0.01, rel=1e-12)


# --- Published numbers. -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "steps", "mu"),
    [
        (1, 0, 0.0502448310076481),
        (1, 1, 0.0479468350952051),
        (100, 1, 4.79468350952051),
        (100, 60, 0.302834056508942),
    ],
)
def test_mu_for_mnist_is_the_published_one(records, steps, mu):
    curve = unlearning_curve(MNIST, removal(records, steps), accountant="shifted")
    assert isinstance(curve, GaussianCurve)
    assert curve.mu == pytest.approx(mu, rel=2e-14)


def test_epsilon_for_mnist_after_one_step_is_the_published_one():
    epsilon = unlearning_epsilon(MNIST, removal(100, 1), delta=1 / 11_982, accountant="shifted")
    assert epsilon == pytest.approx(28.8086207658, abs=6e-11)


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (MNIST, [27.9930, 11.6713, 5.25431, 1.96221, 0.957852]),
        (CIFAR, [40.2788, 16.1394, 7.06971, 2.58788, 1.25394]),
        (TEN_CLASSES, [5.21932, 2.48166, 1.20883, 0.475852, 0.236646]),
    ],
)
def test_initial_epsilons_are_the_published_ones(problem, expected):
    values = [
        initial_epsilon(problem, sigma=sigma, delta=1 / problem.n, records=100) for sigma in (0.05, 0.1, 0.2, 0.5, 1)
    ]
    assert values == pytest.approx(expected, rel=6e-6)
    explicit = initial_epsilon(problem, sigma=0.05, delta=1 / problem.n, records=100, accountant="lsi")
    assert values[0] == explicit


STREAM = Schedule(sigma=0.1, records_per_request=2, steps=(5, 4, 6), learning_steps=50)
STREAM_MUS = [0.122499102488213, 0.226744617869280, 0.270822717563907]
STREAM_EPSILONS = [0.424954148918, 0.832333692447, 1.01136132794]


def test_a_stream_has_the_published_guarantee_after_every_request():
    after = stream_guarantees(PROBLEM, STREAM, delta=1e-5, accountant="shifted")
    assert [each.mu for each in after] == pytest.approx(STREAM_MUS, rel=1e-14)
    assert [each.epsilon for each in after] == pytest.approx(STREAM_EPSILONS, rel=5e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_guarantees_of_a_stream_are_those_of_its_first_requests(name):
    after = stream_guarantees(PROBLEM, STREAM, delta=1e-5, accountant=name)
    assert len(after) == 3
    for number, each in enumerate(after, start=1):
        first = dataclasses.replace(STREAM, steps=STREAM.steps[:number])
        assert each.epsilon == unlearning_epsilon(PROBLEM, first, delta=1e-5, accountant=name)
        curve = unlearning_curve(PROBLEM, first, accountant=name)
        assert each.mu == (curve.mu if name == "shifted" else None)
    assert stream_guarantees(PROBLEM, STREAM, delta=1e-5) == stream_guarantees(
        PROBLEM, STREAM, delta=1e-5, accountant="lsi"
    )


@pytest.mark.parametrize(
    ("adjacency", "learning_steps", "epsilon"),
    [
        ("replace", 50, 0.574346392502),
        ("replace", math.inf, 0.600086373514),
        ("zero-out", 50, 0.269860737159),
        ("remove", 50, 0.574346392502),
    ],
)
def test_one_request_has_the_published_epsilon(adjacency, learning_steps, epsilon):
    problem = dataclasses.replace(PROBLEM, adjacency=adjacency)
    schedule = removal(3, 7, sigma=0.1, learning_steps=learning_steps)
    assert unlearning_epsilon(problem, schedule, delta=1e-5, accountant="shifted") == pytest.approx(epsilon, rel=3e-12)


# --- Learning alone. ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_learning_alone_is_a_removal_without_steps(name):
    removed = unlearning_epsilon(MNIST, removal(100, 0), delta=1e-5, accountant=name)
    learned = initial_epsilon(MNIST, sigma=0.03, delta=1e-5, records=100, accountant=name)
    assert learned == pytest.approx(removed, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_learning_for_less_long_tells_less(name):
    values = [
        initial_epsilon(MNIST, sigma=0.03, delta=1e-5, records=100, accountant=name, learning_steps=steps)
        for steps in (1, 3, 30, 300, math.inf)
    ]
    assert all(np.diff(values) > 0)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_learned_is_nothing_told(name):
    epsilon = initial_epsilon(MNIST, sigma=0.03, delta=1e-5, records=100, accountant=name, learning_steps=0)
    assert epsilon == pytest.approx(0, abs=1e-30)


# --- The order of the accountants. --------------------------------------------------------------------------


@given(problem=problems(), sigma=SIGMAS, records=RECORDS, steps=STEPS, delta=st.floats(1e-12, 0.1))
def test_no_accountant_is_below_a_sharper_one_or_the_truth_on_quadratics(problem, sigma, records, steps, delta):
    schedule = removal(records, *steps, sigma=sigma)
    lsi_epsilon, tight_epsilon, shifted_epsilon = (
        unlearning_epsilon(problem, schedule, delta=delta, accountant=name) for name in NAMES
    )
    # The lines of the sharper Renyi bound touch it at fixed points: 1e-5 is what that costs.
    assert lsi_epsilon >= tight_epsilon * (1 - 1e-4)
    assert tight_epsilon >= shifted_epsilon * (1 - 1e-12)
    if problem.adjacency != "remove":  # There the requests' worst cases exclude each other.
        mu = math.sqrt(2 * exact_stream_renyi(1.0, problem, sigma=sigma, records_per_request=records, steps=steps))
        exact = epsilon_from_mu(mu, delta)
        assert shifted_epsilon == pytest.approx(exact, rel=1e-9, abs=1e-9 * mu)


# --- Bad input. ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["LSI", "", "rdp"])
def test_an_unknown_accountant_is_refused(name):
    message = rf"^accountant must be one of lsi, lsi-tight, shifted, got '{name}'$"
    for ask in (
        lambda: accountant_called(name),
        lambda: unlearning_curve(MNIST, STREAM, accountant=name),
        lambda: unlearning_epsilon(MNIST, STREAM, delta=1e-5, accountant=name),
        lambda: stream_guarantees(MNIST, STREAM, delta=1e-5, accountant=name),
        lambda: initial_epsilon(MNIST, sigma=1, delta=1e-5, records=1, accountant=name),
    ):
        with pytest.raises(ParameterError, match=message):
            ask()


@pytest.mark.parametrize("name", NAMES)
def test_a_delta_that_makes_no_sense_is_refused(name):
    with pytest.raises(ParameterError, match="delta must lie strictly between 0 and 1, got 0"):
        unlearning_epsilon(MNIST, STREAM, delta=0, accountant=name)
    with pytest.raises(ParameterError, match="delta must lie strictly between 0 and 1, got 1"):
        initial_epsilon(MNIST, sigma=1, delta=1, records=1, accountant=name)


def test_a_step_size_is_refused_by_those_whose_theorems_do_not_cover_it():
    longer = dataclasses.replace(MNIST, step_size=1.5 / MNIST.smoothness)
    for name in ("lsi", "lsi-tight"):
        with pytest.raises(AssumptionError, match="need step_size <= 1 / smoothness"):
            unlearning_curve(longer, STREAM, accountant=name)
    assert unlearning_curve(longer, STREAM, accountant="shifted").mu > 0


def test_the_largest_guarantee_of_a_stream_has_the_largest_mu_even_where_epsilons_are_equal():
    # At this noise every epsilon is 0, while each request adds to mu.
    schedule = Schedule(sigma=1000.0, records_per_request=20, steps=(1, 1, 1))
    guarantees = stream_guarantees(MNIST, schedule, delta=1 / MNIST.n, accountant="shifted")
    assert {each.epsilon for each in guarantees} == {0.0}
    assert guarantees[0].mu < guarantees[1].mu < guarantees[2].mu
    assert largest_guarantee(guarantees) == (0.0, guarantees[2].mu)
    lsi_guarantees = stream_guarantees(MNIST, schedule, delta=1 / MNIST.n, accountant="lsi")
    assert largest_guarantee(lsi_guarantees).mu is None
