import dataclasses
import math
import warnings

import numpy as np
import pytest

from certified_unlearning.accounting import GaussianCurve, RenyiCurve, Schedule
from certified_unlearning.accounting.core.curves import Cycle
from certified_unlearning.errors import ParameterError

GOOD = Schedule(sigma=0.03, records_per_request=20, steps=(5, 0, 7))


def test_a_renyi_curve_is_kept_in_logarithms_and_asked_in_divergences():
    curve = RenyiCurve(lambda alpha: np.log(3 * alpha))
    assert curve.orders is None
    np.testing.assert_allclose(curve(np.array([2.0, 5.0])), [6, 15], rtol=1e-15)


def test_a_divergence_that_outgrows_a_double_is_infinite_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RenyiCurve(lambda alpha: alpha)(np.array([2.0, 1000.0])).tolist() == [math.exp(2), math.inf]


@pytest.mark.parametrize("mu", [0.0, 1e-300, 3.0, math.inf])
def test_a_gaussian_curve_takes_any_mu_from_zero_on(mu):
    assert GaussianCurve(mu).mu == mu


@pytest.mark.parametrize("mu", [-1e-300, -math.inf, math.nan])
def test_a_gaussian_curve_refuses_any_other_mu(mu):
    with pytest.raises(ParameterError, match=f"^mu must be at least 0, got {mu}$"):
        GaussianCurve(mu)


def test_a_schedule_learns_to_stationarity_unless_told_otherwise():
    assert GOOD.learning_steps == math.inf
    assert dataclasses.replace(GOOD, learning_steps=0).learning_steps == 0
    assert dataclasses.replace(GOOD, learning_steps=10**12).learning_steps == 10**12


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sigma": 0}, "sigma must be a finite number above 0, got 0"),
        ({"sigma": math.inf}, "sigma must be a finite number above 0, got inf"),
        ({"records_per_request": 0}, "records_per_request must be a whole number, at least 1, got 0"),
        ({"records_per_request": 1.5}, r"records_per_request must be a whole number, at least 1, got 1\.5"),
        ({"steps": ()}, "steps must hold at least one number, got none"),
        ({"steps": (3, -1)}, r"steps\[1\] must be a whole number, at least 0, got -1"),
        ({"steps": (2.5,)}, r"steps\[0\] must be a whole number, at least 0, got 2\.5"),
        ({"steps": (1, 2, math.nan)}, r"steps\[2\] must be a whole number, at least 0, got nan"),
        ({"learning_steps": -1}, "learning_steps must be a whole number, at least 0, got -1"),
        ({"learning_steps": 1.5}, r"learning_steps must be a whole number, at least 0, got 1\.5"),
        ({"learning_steps": -math.inf}, "learning_steps must be a whole number, at least 0, got -inf"),
    ],
)
def test_a_schedule_refuses_what_makes_no_sense(wrong, message):
    with pytest.raises(ParameterError, match=f"^{message}$"):
        dataclasses.replace(GOOD, **wrong)


def test_whole_numbers_of_numpy_are_whole_numbers():
    steps = tuple(np.array([3, 0, 5]))
    assert dataclasses.replace(GOOD, steps=steps).steps == (3, 0, 5)
    with pytest.raises(ParameterError, match=r"^steps\[1\] must be a whole number, at least 0, got"):
        dataclasses.replace(GOOD, steps=tuple(np.array([3, -1])))


@pytest.mark.parametrize("value", [GOOD, GaussianCurve(1.0), RenyiCurve(np.log)])
def test_curves_and_schedules_cannot_be_changed(value):
    name = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, 1.0)


@pytest.mark.parametrize(
    "changed",
    [
        {"places": (((0, 2),), ((9, 1),))},
        {"places": (((9, 2),), ((3, 1),))},
        {"places": (((0, 2),), ((3, 2),))},
        {"records_per_request": (1, 1)},
        {"cycle": Cycle(3, 10)},
        {"cycle": Cycle(5, 1)},
    ],
)
def test_places_are_checked_anew_where_a_schedule_differs_from_the_one_checked_before(changed):
    """What grew by a request is not checked from its start again; what differs anywhere is."""
    good = Schedule(0.1, (2,), (4,), learning_steps=8, cycle=Cycle(5, 10), places=(((0, 2),),))
    good = good.followed_by(records=1, steps=3, places=((3, 1),))
    assert good.places == (((0, 2),), ((3, 1),))
    with pytest.raises(ParameterError, match=r"^places must"):
        dataclasses.replace(good, **changed)
    with pytest.raises(ParameterError, match=r"^places must name batches from 0 to 4"):
        good.followed_by(records=1, steps=3, places=((5, 1),))
    assert dataclasses.replace(good, steps=(4, 2)).places == good.places
