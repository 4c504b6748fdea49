import dataclasses
import math
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting import Problem
from certified_unlearning.errors import AssumptionError, ParameterError
from tests.accounting.paper_settings import MNIST

NAN, INF = math.nan, math.inf
SMALL = Problem(n=10, strong_convexity=0.1, smoothness=1.0, lipschitz=3.0, step_size=0.5)
ZERO_OUT = dataclasses.replace(SMALL, adjacency="zero-out")
REMOVE = dataclasses.replace(SMALL, adjacency="remove")


# --- Sensitivity. -------------------------------------------------------------------------------------------


def test_sensitivity_of_replacement_is_twice_that_of_zero_out():
    zero_out = dataclasses.replace(MNIST, adjacency="zero-out")
    assert MNIST.sensitivity(100) == pytest.approx(2 * 1 * 100 / 11_982, rel=1e-15)
    assert zero_out.sensitivity(100) == pytest.approx(1 * 100 / 11_982, rel=1e-15)
    assert MNIST.adjacency == "replace"


@pytest.mark.parametrize(
    ("problem", "records", "removed_before", "expected"),
    [
        (SMALL, 1, 0, 0.6),
        (SMALL, 3, 0, 1.8),
        (SMALL, 10, 0, 6.0),
        (SMALL, 3, 5, 1.8),
        (SMALL, 3, 7, 1.8),
        (ZERO_OUT, 3, 0, 0.9),
        (ZERO_OUT, 3, 7, 0.9),
        (REMOVE, 3, 0, 1.8),
        (REMOVE, 3, 5, 3.6),
        (REMOVE, 9, 0, 5.4),
        (REMOVE, 2, 7, 4.0),
    ],
)
def test_sensitivities_are_those_of_the_table(problem, records, removed_before, expected):
    assert problem.sensitivity(records, removed_before=removed_before) == pytest.approx(expected, rel=1e-15)


def test_records_already_removed_count_from_none():
    assert REMOVE.sensitivity(3) == REMOVE.sensitivity(3, removed_before=0)


def mean_gradient_distances(adjacency, gradients, records):
    """How far apart the mean gradients on D and D' are, D' without the first records, or with others of theirs."""
    others = -gradients[:records]
    if adjacency == "replace":
        changed = np.concatenate([others, gradients[records:]])
    elif adjacency == "zero-out":
        changed = np.concatenate([np.zeros_like(others), gradients[records:]])
    else:
        changed = gradients[records:]
    return abs(gradients.mean() - changed.mean())


@given(
    adjacency=st.sampled_from(["replace", "zero-out", "remove"]),
    signs=st.lists(st.sampled_from([-3.0, 3.0, 1.0]), min_size=10, max_size=10),
    records=st.integers(1, 9),
)
def test_no_gradients_differ_by_more_than_the_sensitivity(adjacency, signs, records):
    gradients = np.array(signs)
    if adjacency == "zero-out":
        # The normaliser stays n: a zero in each removed record's place.
        gradients[:records] = 3.0
    bound = dataclasses.replace(SMALL, adjacency=adjacency).sensitivity(records)
    assert mean_gradient_distances(adjacency, gradients, records) <= bound * (1 + 1e-12)


@pytest.mark.parametrize("adjacency", ["replace", "zero-out", "remove"])
@pytest.mark.parametrize("records", [1, 4, 9])
def test_the_sensitivity_is_attained(adjacency, records):
    # The removed gradients oppose all others.
    gradients = np.concatenate([np.full(records, 3.0), np.full(10 - records, -3.0)])
    bound = dataclasses.replace(SMALL, adjacency=adjacency).sensitivity(records)
    assert mean_gradient_distances(adjacency, gradients, records) == pytest.approx(bound, rel=1e-12)


def test_all_records_are_allowed():
    assert MNIST.sensitivity(11_982) == 2
    assert dataclasses.replace(MNIST, adjacency="zero-out").sensitivity(11_982) == 1
    assert dataclasses.replace(MNIST, adjacency="remove").sensitivity(11_981) == pytest.approx(2 * 11_981 / 11_982)


# --- Bad input. ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, -1.0, NAN, INF])
@pytest.mark.parametrize("name", ["smoothness", "lipschitz", "step_size"])
def test_a_constant_that_is_not_a_positive_number_is_refused_by_name_and_value(name, value):
    with pytest.raises(ParameterError, match=f"^{name} must be a finite number above 0, got {value}$"):
        dataclasses.replace(MNIST, **{name: value})


@pytest.mark.parametrize("value", [-1e-300, -1.0, NAN, INF])
def test_a_strong_convexity_that_is_no_number_from_zero_on_is_refused(value):
    message = f"^strong_convexity must be a finite number, at least 0, got {value}$"
    with pytest.raises(ParameterError, match=message):
        dataclasses.replace(MNIST, strong_convexity=value)


@pytest.mark.parametrize("n", [0, -5, 10.5, NAN])
def test_a_number_of_records_that_is_not_a_positive_whole_number_is_refused(n):
    with pytest.raises(ParameterError, match=f"^n must be a whole number, at least 1, got {re.escape(str(n))}$"):
        dataclasses.replace(MNIST, n=n)


@pytest.mark.parametrize("records", [0, -1, 1.5, NAN])
def test_records_that_are_no_count_are_refused(records):
    message = f"^records must be a whole number, at least 1, got {re.escape(str(records))}$"
    with pytest.raises(ParameterError, match=message):
        MNIST.sensitivity(records)


@pytest.mark.parametrize("removed_before", [-1, 1.5, NAN])
def test_records_removed_before_must_be_a_count(removed_before):
    message = f"^removed_before must be a whole number, at least 0, got {re.escape(str(removed_before))}$"
    with pytest.raises(ParameterError, match=message):
        MNIST.sensitivity(1, removed_before=removed_before)


@pytest.mark.parametrize("problem", [SMALL, ZERO_OUT, REMOVE])
def test_more_records_than_there_are_are_refused(problem):
    with pytest.raises(ParameterError, match=r"^records must be at most n = 10, got 11$"):
        problem.sensitivity(11)
    message = r"^records must be at most n = 10, got 4 \(after the earlier removal of 7\)$"
    with pytest.raises(ParameterError, match=message):
        problem.sensitivity(4, removed_before=7)


def test_removal_must_leave_a_record():
    with pytest.raises(ParameterError, match=r"^with adjacency remove, a record must remain, got records = n = 10$"):
        REMOVE.sensitivity(10)
    with pytest.raises(ParameterError, match=r"^with adjacency remove, a record must remain"):
        REMOVE.sensitivity(3, removed_before=7)


@pytest.mark.parametrize("adjacency", ["add", "Replace", ""])
def test_an_unknown_adjacency_is_refused(adjacency):
    message = f"^adjacency must be one of replace, zero-out, remove, got '{adjacency}'$"
    with pytest.raises(ParameterError, match=message):
        dataclasses.replace(MNIST, adjacency=adjacency)


def test_more_strong_convexity_than_smoothness_is_refused():
    message = (
        "^strong_convexity must be at most smoothness (no function is more convex than it is smooth), "
        "got strong_convexity = 2.0 > smoothness = 1.0$"
    )
    with pytest.raises(AssumptionError, match=message.replace("(", r"\(").replace(")", r"\)")):
        Problem(10, 2.0, 1.0, 1.0, 0.1)


def test_equal_strong_convexity_and_smoothness_are_allowed():
    assert Problem(10, 1.0, 1.0, 1.0, 1.0).smoothness == 1


def test_a_merely_convex_problem_is_allowed_and_refused_where_more_is_needed():
    convex = dataclasses.replace(MNIST, strong_convexity=0.0)
    message = r"^this bound needs a strongly convex objective: strong_convexity must be above 0, got 0 \(add an l2 reg"
    with pytest.raises(AssumptionError, match=message):
        convex.require_strong_convexity()
    MNIST.require_strong_convexity()


def test_a_problem_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        MNIST.n = 5


# --- The package. -------------------------------------------------------------------------------------------


def fresh_interpreter(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True)


def test_importing_the_package_needs_neither_torch_nor_scipy_nor_pandas():
    script = "import sys, certified_unlearning.accounting; print(*sys.modules)"
    modules = fresh_interpreter("-c", script).stdout.split()
    assert "certified_unlearning.accounting" in modules
    assert not {"torch", "scipy", "dp_accounting", "pandas", "sklearn", "pydantic"} & set(modules)
