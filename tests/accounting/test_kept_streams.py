"""What is kept of earlier requests to cyclic mini-batches: never another's, and not found twice."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from certified_unlearning.accounting.core.curves import Cycle, Schedule
from certified_unlearning.accounting.cyclic import stream
from tests.accounting.cyclic_streams import batch_problem, first_of, forget


def changed(generator, schedule: Schedule) -> Schedule:
    """Return the schedule, with one more request, or with something else."""
    number = len(schedule.steps)
    at = int(generator.integers(number))
    another = (*schedule.steps[:at], schedule.steps[at] + 1, *schedule.steps[at + 1 :])
    match int(generator.integers(7)):
        case 0:
            return replace(schedule, steps=another)
        case 1:
            return replace(schedule, learning_steps=schedule.learning_steps + 1)
        case 2:
            moved = tuple(((batch + 1) % schedule.cycle.batches, count) for batch, count in schedule.places[at])
            return replace(schedule, places=(*schedule.places[:at], moved, *schedule.places[at + 1 :]))
        case 3:
            more = (*schedule.records[:at], int(generator.integers(3, 6)), *schedule.records[at + 1 :])
            return replace(schedule, places=None, records_per_request=more)
        case 4:
            return first_of(schedule, at)
        case 5:
            return replace(schedule, sigma=schedule.sigma / 2)
        case _:
            return schedule.followed_by(records=2, steps=at, places=((at % schedule.cycle.batches, 2),))


def test_what_is_kept_of_earlier_streams_is_what_is_found_anew():
    generator = np.random.default_rng(7)
    for _ in range(30):
        first = Schedule(0.1, (1, 2), (3, 0), 20, Cycle(7, 40), (((3, 1),), ((0, 1), (5, 1))))
        asked, due, found = [first], [], []
        while len(asked) < 20:
            before = asked[int(generator.integers(len(asked)))]
            if len(before.steps) > 1 and before.places is not None:
                asked.append(changed(generator, before))
        for alone, values in ((False, found), (True, due)):
            forget()
            for each in asked:
                if alone:
                    forget()
                told = (stream.curve, stream.largest_curve, stream.joint_curve)
                values.append([of(batch_problem(40), each).mu for of in told])
        assert found == due


def test_one_more_request_of_many_asks_for_itself_alone(monkeypatch):
    """However many there were, and with as many other models in between as are kept."""
    asked = []
    counted = stream._mu
    monkeypatch.setattr(stream, "_mu", lambda *values: asked.append(values) or counted(*values))
    models = [Schedule(0.1 + number, (1,) * 300, (1,) * 300, 20, Cycle(30, 40)) for number in range(stream.STREAMS)]
    forget()
    for schedule in models:
        stream.largest_curve(batch_problem(40), schedule)
    assert len(asked) == 300 * len(models)
    asked.clear()
    for schedule in models:
        longer = schedule.followed_by(records=1, steps=1)
        stream.largest_curve(batch_problem(40), longer)
        stream.largest_curve(batch_problem(40), longer)
    assert len(asked) == len(models)


def test_copies_of_a_model_ask_for_their_own_requests_alone(monkeypatch):
    """Streams that begin alike and then part; one is looked at as it was before."""
    asked = []
    counted = stream._mu
    monkeypatch.setattr(stream, "_mu", lambda *values: asked.append(values) or counted(*values))
    forget()
    begun = Schedule(0.1, (1,) * 100, (1,) * 100, 20, Cycle(30, 40))
    stream.largest_curve(batch_problem(40), begun)
    copies = [begun] * 3
    asked.clear()
    for steps in range(2, 7):
        copies = [each.followed_by(records=1 + number, steps=steps) for number, each in enumerate(copies)]
        for each in copies:
            stream.largest_curve(batch_problem(40), each)
    assert len(asked) == 3 * 5
    stream.largest_curve(batch_problem(40), first_of(begun, 20))
    assert len(asked) == 3 * 5 + 20
    stream.largest_curve(batch_problem(40), copies[0].followed_by(records=1, steps=1))
    assert len(asked) == 3 * 5 + 20 + 1


def test_what_is_kept_of_a_schedule_does_not_change_with_it():
    forget()
    steps = [50]
    of = {"sigma": 0.1, "records_per_request": (1,), "learning_steps": 20, "cycle": Cycle(7, 40)}
    before = stream.largest_curve(batch_problem(40), Schedule(steps=steps, places=(((3, 1),),), **of)).mu
    steps[0] = 1
    asked = Schedule(steps=[1], places=(((3, 1),),), **of)
    assert stream.largest_curve(batch_problem(40), asked).mu == stream.curve(batch_problem(40), asked).mu > before


def test_threads_may_ask_at_once():
    """Of more streams than are kept; a mistake in what is kept shows as an exception in one of some hundred calls."""
    schedules = [Schedule(0.1, (1, 1), (number, 2), 20, Cycle(30, 40)) for number in range(3)]
    schedules += [Schedule(0.1 + number, (1,), (1,), 20, Cycle(30, 40)) for number in range(3 * stream.STREAMS)]
    due = [stream.largest_curve(batch_problem(40), each).mu for each in schedules]

    def ask(seed):
        for number in np.random.default_rng(seed).integers(len(schedules), size=3000).tolist():
            assert stream.largest_curve(batch_problem(40), schedules[number]).mu == due[number]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(4)))
    finally:
        sys.setswitchinterval(interval)
