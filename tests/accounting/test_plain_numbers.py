"""NumPy's numbers are taken as Python's, and narrow ones refused: they wrap around, and made an epsilon too small."""

import dataclasses

import numpy as np
import pytest

from certified_unlearning.accounting.core.curves import Cycle, Schedule
from certified_unlearning.accounting.core.pooling import NoisyPhase, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.cyclic import planning, stream
from certified_unlearning.accounting.langevin.accountants import initial_epsilon
from certified_unlearning.accounting.shifted import interpolation
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.errors import InfeasibleError, ParameterError
from tests.accounting.cyclic_streams import batch_problem

NARROW = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.uint64]


def told(schedule, problem):
    whole = dataclasses.replace(schedule, cycle=None, places=None)
    return [
        *(of(problem, schedule).mu for of in (stream.curve, stream.largest_curve, stream.joint_curve)),
        interpolation.curve(problem, whole).mu,
        interpolation.joint_curve(problem, whole, learned_published=True).mu,
        planning.least_steps_after(Stream(problem, schedule, epsilon=0.5, delta=1e-6), records=1),
    ]


@pytest.mark.parametrize("kind", NARROW)
def test_narrow_whole_numbers_are_refused(kind):
    """One of them among others, at each door."""
    problem, cycle = batch_problem(40), Cycle(7, 40)
    one = kind(1)
    for make in (
        lambda: Cycle(kind(7), 40),
        lambda: Cycle(7, kind(40)),
        lambda: dataclasses.replace(problem, n=kind(40)),
        lambda: dataclasses.replace(problem, step_size=one),
        lambda: Schedule(one, (1,), (3,), 20, cycle),
        lambda: Schedule(0.1, (1, one), (3, 4), 20, cycle),
        lambda: Schedule(0.1, one, (3, 4), 20, cycle),
        lambda: Schedule(0.1, (1, 2), (3, kind(4)), 20, cycle),
        lambda: Schedule(0.1, (1,), (3,), kind(20), cycle),
        lambda: NoisyPhase(kind(9), 0.1, 1.0, 1.0),
        lambda: NoisyPhase(9, 0.1, one, 1.0),
        lambda: problem.sensitivity(one),
        lambda: planning.least_steps_after(
            Stream(problem, Schedule(0.1, (), (), 20, cycle), epsilon=1, delta=0.1), records=one
        ),
        lambda: initial_epsilon(problem, sigma=0.1, delta=0.1, records=one, accountant="shifted"),
    ):
        with pytest.raises(ParameterError, match=f"{kind.__name__} wraps around: use int"):
            make()


def test_numpys_usual_whole_numbers_tell_what_pythons_tell():
    generator = np.random.default_rng(3)
    for number in range(25):
        cycle, learned = generator.integers([2, 120], [9, 200]).tolist(), int(generator.integers(1, 120))
        records, steps = generator.integers(1, 30, size=4).tolist(), generator.integers(20, 127, size=4).tolist()
        places = [((each % cycle[0], each),) for each in records] if number % 2 else None
        answers = []
        for of in (int, np.int64, np.longlong):
            known = places and tuple(tuple((of(batch), of(count)) for batch, count in each) for each in places)
            sizes = tuple(map(of, records)), tuple(map(of, steps)), of(learned)
            schedule = Schedule(0.1, *sizes, Cycle(*map(of, cycle)), known)
            answers.append(told(schedule, dataclasses.replace(batch_problem(cycle[1]), n=of(cycle[1]))))
        assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble, np.float64])
def test_short_floats_are_the_numbers_that_they_are(kind):
    """What is computed with them is not rounded as they are."""
    given = [kind(each) for each in (0.0123, 0.27, 0.9, 1.7, 0.013)]
    plain = [float(each) for each in given]
    answers = []
    for convexity, smoothness, lipschitz, step_size, sigma in (given, plain):
        problem = Problem(40, convexity, smoothness, lipschitz, step_size, "zero-out")
        answers.append(told(Schedule(sigma, (3, 2), (7, 4), 50, Cycle(6, 40)), problem))
        gap = convexity * step_size
        answers[-1].append(
            pooled_mu([NoisyPhase(9, kind(gap), sigma, lipschitz), NoisyPhase(2, kind(gap), kind(0), lipschitz)])
        )
    assert answers[0] == answers[1]


def test_fields_are_pythons_own_and_do_not_change_with_what_was_given():
    steps, sizes = [np.int64(3), 4], (np.int64(1), 2)
    schedule = Schedule(np.float32(0.5), sizes, steps, np.int64(7), Cycle(np.int64(5), np.int64(9)))
    steps[0] = 0
    assert schedule == Schedule(0.5, (1, 2), (3, 4), 7, Cycle(5, 9))
    fields = [schedule.sigma, *schedule.steps, *schedule.records, schedule.learning_steps]
    fields += [schedule.cycle.batches, schedule.cycle.batch_size]
    assert {type(each) for each in fields} == {int, float}
    assert type(Schedule(0.1, np.int64(3), (100, 100)).records_per_request) is int
    for wrong in ({"steps": (1.5, 2)}, {"steps": (True, 2)}, {"records_per_request": (1, np.float64(2))}):
        with pytest.raises(ParameterError, match="must be a whole number"):
            dataclasses.replace(schedule, **wrong)


def test_more_steps_than_can_be_counted_are_refused():
    """Two times 2^62 wrap around in 64 bits."""
    for learned, steps in ((2**62, (2**62, 5)), (10, (2**63 - 1, 2**63 - 1)), (2**64, (1,)), (1, (10**18,))):
        schedule = Schedule(0.1, (1,) * len(steps), steps, learned, Cycle(7, 40))
        for of in (stream.curve, stream.largest_curve, stream.joint_curve):
            with pytest.raises(InfeasibleError, match=r"must add up to at most 1e\+18"):
                of(batch_problem(40), schedule)
    assert stream.joint_curve(batch_problem(40), Schedule(0.1, (1,), (1,), 10**18 - 1, Cycle(7, 40))).mu > 0
