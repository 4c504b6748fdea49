import math
from decimal import Decimal
from itertools import pairwise, product

import pytest
from dp_accounting.gaussian_mechanism import get_epsilon_gaussian
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.core.pooling import NoisyPhase, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from tests.accounting.paper_settings import MNIST
from tests.accounting.single_request import cyclic_curve


def assert_printed(value, printed):
    """Compare with a decimal number up to one unit of its last digit."""
    unit = Decimal(1).scaleb(Decimal(printed).as_tuple().exponent)
    assert abs(Decimal(value) - Decimal(printed)) <= unit


def mu(gap, batches, epochs, position, steps, *, records=1, batch_size=1, adjacency="replace"):
    """The mu of one record in batches of one where s / tau = 1 (zero-out: 1/2)."""
    problem = Problem(batches * batch_size, gap, 1.0, 1.0, 1.0, adjacency)
    asked = {"batches": batches, "batch_size": batch_size, "epochs": epochs, "steps": steps}
    return cyclic_curve(problem, sigma=math.sqrt(2) / batch_size, **asked, records=records, position=position).mu


def last_term(c, silent):
    return c ** (2 * silent) * (1 - c**2) / (1 - c ** (2 * silent + 2))


def earlier_terms(c, batches, epochs):
    learned = c ** (batches * (epochs - 1))
    return c ** (2 * batches - 2) * (1 - c**2) / (1 - c**batches) ** 2 * (1 - learned) / (1 + learned)


def published(c, batches, epochs):
    """NoisyCGD's bound (Bok, Su, Altschuler 2024), for a record of the last batch."""
    return math.sqrt(1 + earlier_terms(c, batches, epochs))


def closed_form(c, batches, epochs, position, steps):
    """All steps in one block."""
    silent = steps + batches - position
    signal = c**silent * (1 - c ** (batches * epochs)) / (1 - c**batches)
    return signal * math.sqrt((1 - c**2) / (1 - c ** (2 * (batches * epochs + steps))))


# --- Test vectors (shifted-interpolation, section 6). --------------------------------------------------------

TABLE = [
    (0.1, 4, 10, 4, 0, "1.24889205046244", "1.34764825067183"),
    (0.0001, 40, 50, 40, 0, "1.11835432567799", "1.48873709534735"),
    (0.0002, 40, 100, 40, 0, "1.54701044645778", "1.82618087544157"),
    (0.1, 4, 10, 4, 1, "1.12397951228", "1.12413060615461"),
    (0.1, 4, 10, 4, 4, "0.819347089735", "0.819381064451170"),
    (0.1, 4, 10, 1, 0, "0.910442304787", "0.910442304787120"),
]


@pytest.mark.parametrize(("gap", "batches", "epochs", "position", "steps", "too_small", "right"), TABLE)
def test_one_record_has_the_published_mu(gap, batches, epochs, position, steps, too_small, right):
    assert_printed(mu(gap, batches, epochs, position, steps), right)
    # Plain doubles lose 3 to 4 digits where c is next to 1.
    assert closed_form(1 - gap, batches, epochs, position, steps) == pytest.approx(float(too_small), rel=1e-10)


@pytest.mark.parametrize(("gap", "batches", "epochs", "right"), [row[:3] + row[-1:] for row in TABLE[:3]])
def test_without_unlearning_the_last_batch_has_the_bound_of_noisy_cgd(gap, batches, epochs, right):
    assert published(1 - gap, batches, epochs) == pytest.approx(float(right), rel=1e-11)
    assert mu(gap, batches, epochs, batches, 0) == pytest.approx(published(1 - gap, batches, epochs), rel=1e-11)


@pytest.mark.parametrize(
    ("gap", "batches", "epochs", "printed"),
    [(0.0001, 40, 50, "0.992491396898230"), (0.0002, 40, 100, "1.21745391696105")],
)
def test_the_paper_s_own_settings_are_met(gap, batches, epochs, printed):
    assert_printed(2 / 3 * mu(gap, batches, epochs, batches, 0), printed)


@pytest.mark.parametrize(
    ("steps", "printed_mu", "printed_epsilon"),
    [
        (0, "0.0641242603845594", "0.17076694697"),
        (6, "0.0425151982224673", "0.107302636593"),
        (12, "0.0321037334346213", "0.0779434002448"),
    ],
)
def test_mnist_has_the_published_mu_and_epsilon(steps, printed_mu, printed_epsilon):
    asked = {"sigma": 0.03, "batches": 6, "batch_size": 1997, "epochs": 200, "steps": steps, "position": 6}
    value = cyclic_curve(MNIST, **asked).mu
    assert_printed(value, printed_mu)
    assert_printed(get_epsilon_gaussian(1 / value, 1 / 11982, tol=1e-14), printed_epsilon)


@pytest.mark.parametrize(("epsilon", "steps"), [(0.5, 76), (1, 62), (2, 49), (5, 33)])
def test_mnist_needs_the_published_steps_for_a_hundred_records(epsilon, steps):
    asked = {"sigma": 0.03, "batches": 6, "batch_size": 1997, "epochs": 200, "records": 100}
    enough, too_few = (cyclic_curve(MNIST, **asked, steps=number).mu for number in (steps, steps - 1))
    assert get_epsilon_gaussian(1 / enough, 1 / 11982, tol=1e-14) <= epsilon
    assert get_epsilon_gaussian(1 / too_few, 1 / 11982, tol=1e-14) > epsilon


# --- Closed forms for one record. ----------------------------------------------------------------------------


@given(
    gap=st.floats(-3, -0.3).map(lambda exponent: 10**exponent),
    batches=st.integers(1, 12),
    epochs=st.integers(1, 12),
    position=st.integers(1, 12),
    steps=st.integers(0, 15),
)
def test_one_record_has_one_block_or_two(gap, batches, epochs, position, steps):
    position = min(position, batches)
    c, silent = 1 - gap, steps + batches - position
    two_blocks = c ** (2 * silent + 2) * ((c**-batches - 1) * (1 + c ** (batches * (epochs - 1))) + 1) > 1
    if two_blocks:
        exact = math.sqrt(last_term(c, silent) + earlier_terms(c, batches, epochs))
    else:
        # The block opens with the record's first use.
        signal = c**silent * (1 - c ** (batches * epochs)) / (1 - c**batches)
        exact = signal * math.sqrt((1 - c**2) / (1 - c ** (2 * (silent + 1 + batches * (epochs - 1)))))
    assert mu(gap, batches, epochs, position, steps) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("epochs", [1, 7, 1000])
def test_a_single_batch_is_full_gradient_descent_and_tighter_than_the_bound_of_noisy_cgd(epochs):
    value = mu(0.1, 1, epochs, 1, 0)
    assert value == pytest.approx(pooled_mu([NoisyPhase(epochs, 0.1, 1, 1)]), rel=1e-13)
    if epochs == 1000:
        assert published(0.9, 1, epochs) / value == pytest.approx(math.sqrt(2 / 1.9), rel=1e-12)


def test_after_long_learning_every_mini_batch_step_counts():
    values = [mu(0.01, 6, 5000, 6, steps) for steps in range(2, 9)]
    for value, following in pairwise(values):
        assert following == pytest.approx(0.99 * value, rel=1e-12)
    # Before 2 (K + 1) >= l the record's last use is a block of its own.
    assert mu(0.01, 6, 5000, 6, 1) > mu(0.01, 6, 5000, 6, 2) / 0.99 * (1 + 1e-6)


# --- Where the erased records are. ---------------------------------------------------------------------------


def by_counts(counts, epochs, steps, gap):
    """The mu where the batches of the cycle differ in so many records each, batches of three."""
    cycle = [NoisyPhase(1, gap, count, 1) for count in counts]
    return pooled_mu([*cycle * epochs, NoisyPhase(steps, gap, 0, 1)])


@pytest.mark.sampled
@pytest.mark.parametrize("gap", [0.0, 0.003, 0.1, 0.6])
@pytest.mark.parametrize(("epochs", "steps"), [(1, 0), (5, 0), (5, 1), (3, 7)])
@pytest.mark.parametrize("records", range(1, 13))
def test_filling_the_batches_from_the_last_backwards_is_the_worst(gap, epochs, steps, records):
    placements = [counts for counts in product(range(4), repeat=4) if sum(counts) == records]
    worst = max(by_counts(counts, epochs, steps, gap) for counts in placements)
    assert mu(gap, 4, epochs, None, steps, records=records, batch_size=3) == pytest.approx(worst, rel=1e-12)


def test_an_earlier_position_is_better_and_the_last_the_worst():
    values = [mu(0.1, 4, 10, position, 2) for position in (1, 2, 3, 4)]
    assert values == sorted(values)
    assert values[-1] == mu(0.1, 4, 10, None, 2)


def test_records_of_one_batch_add_up():
    together = mu(0.1, 4, 10, 2, 3, records=3, batch_size=3)
    assert together == pytest.approx(3 * mu(0.1, 4, 10, 2, 3), rel=1e-14)


def test_zeroing_out_differs_by_half_as_much_as_replacing():
    assert mu(0.1, 4, 10, 4, 0, adjacency="zero-out") == pytest.approx(mu(0.1, 4, 10, 4, 0) / 2, rel=1e-14)


def test_without_learning_there_is_nothing_to_unlearn():
    assert mu(0.1, 4, 0, 4, 0) == 0
    assert mu(0.1, 4, 0, 4, 9) == 0
