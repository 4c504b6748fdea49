import dataclasses
import math
import subprocess
import sys

import pytest
from paper_settings import MNIST

from certified_unlearning.accounting import Problem
from certified_unlearning.errors import AssumptionError, ParameterError

NAN, INF = math.nan, math.inf


def test_sensitivity_of_replacement_is_twice_that_of_zero_out():
    zero_out = dataclasses.replace(MNIST, adjacency="zero-out")
    assert MNIST.sensitivity(100) == pytest.approx(2 * 1 * 100 / 11_982, rel=1e-15)
    assert zero_out.sensitivity(100) == pytest.approx(1 * 100 / 11_982, rel=1e-15)


@pytest.mark.parametrize("value", [0.0, -1.0, NAN, INF])
@pytest.mark.parametrize("name", ["strong_convexity", "smoothness", "lipschitz", "step_size"])
def test_a_constant_that_is_not_a_positive_number_is_refused_by_name_and_value(name, value):
    with pytest.raises(ParameterError, match=f"{name} must be a finite number above 0, got {value}"):
        dataclasses.replace(MNIST, **{name: value})


@pytest.mark.parametrize("n", [0, -5, 10.5, NAN])
def test_a_number_of_records_that_is_not_a_positive_whole_number_is_refused(n):
    with pytest.raises(ParameterError, match="n must be a whole number, at least 1, got"):
        dataclasses.replace(MNIST, n=n)


@pytest.mark.parametrize("records", [0, -1, 1.5, 11_983, NAN])
def test_records_outside_one_to_n_are_refused(records):
    with pytest.raises(ParameterError, match="records must be"):
        MNIST.sensitivity(records)


def test_all_records_are_allowed():
    assert MNIST.sensitivity(11_982) == 2


def test_an_unknown_adjacency_is_refused():
    with pytest.raises(ParameterError, match="adjacency must be one of replace, zero-out, got 'remove'"):
        dataclasses.replace(MNIST, adjacency="remove")


def test_more_strong_convexity_than_smoothness_is_refused():
    with pytest.raises(AssumptionError, match="strong_convexity must be at most smoothness"):
        Problem(10, 2.0, 1.0, 1.0, 0.1)


def test_equal_strong_convexity_and_smoothness_are_allowed():
    assert Problem(10, 1.0, 1.0, 1.0, 1.0).smoothness == 1


def test_a_problem_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        MNIST.n = 5


def test_importing_the_package_needs_neither_torch_nor_scipy_nor_pandas():
    script = "import sys, certified_unlearning.accounting; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "certified_unlearning.accounting" in modules
    assert not {"torch", "scipy", "pandas", "sklearn", "pydantic"} & set(modules)
