"""Streams of requests to mini-batches: what they carry along is what is found anew, and no request costs more."""

import copy
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from certified_unlearning.accounting.core.curves import Cycle, Schedule
from certified_unlearning.accounting.cyclic import planning, stream
from certified_unlearning.accounting.guarantees import as_computed, cyclic_guarantee, epsilon_all_published
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.errors import InfeasibleError, ParameterError
from tests.accounting.cyclic_streams import batch_problem

EXACT = batch_problem(40)
COMPUTED = as_computed(EXACT, dimension=20, classes=2, dtype="float64", variant="least-steps")
TARGET = {"epsilon": 1.0, "delta": 1e-6}


def begun(problem=COMPUTED):
    return Stream(problem, Schedule(0.1, (), (), 20, Cycle(7, 40)), **TARGET)


def told(of: Stream) -> list:
    """Return all numbers of a stream."""
    return [of.largest, of.all_published(), of.before_answer(records=2).mu(), of.before_answer(records=1).mu()]


@pytest.fixture
def asked(monkeypatch):
    """Every request that is pooled, and in which arithmetic."""
    pooled, of_one = [], stream.Steps.before_answer
    monkeypatch.setattr(
        stream.Steps, "before_answer", lambda steps, requests: pooled.append(steps.problem) or of_one(steps, requests)
    )
    return pooled


@pytest.mark.parametrize("problem", [EXACT, COMPUTED], ids=["exact", "computed"])
def test_what_is_carried_along_is_what_is_found_anew(problem):
    """Branches of one stream, in any order; some are asked about the next request before it comes, or about another."""
    generator = np.random.default_rng(7)
    streams = [begun(problem)]
    for _ in range(60):
        before = streams[int(generator.integers(len(streams)))]
        request = {"records": int(generator.integers(1, 4)), "places": None}
        if generator.random() < 0.8:
            request["places"] = ((int(generator.integers(7)), request["records"]),)
        if generator.random() < 0.5:
            planning.least_steps_after(before, **request)
        if generator.random() < 0.5:
            before.largest  # noqa: B018
        streams.append(before.after(steps=int(generator.integers(30)), **request))
    for number in generator.permutation(len(streams)):
        found, schedule = streams[number], streams[number].schedule
        assert told(found) == told(Stream(problem, schedule, **TARGET))
        if schedule.steps:
            stated = cyclic_guarantee(problem, schedule, delta=1e-6)
            assert cyclic_guarantee(problem, schedule, delta=1e-6, stream=found) == stated
            assert epsilon_all_published(problem, schedule, delta=1e-6, stream=found) == epsilon_all_published(
                problem, schedule, delta=1e-6
            )


def test_one_more_request_of_many_asks_for_itself_alone(asked):
    """However many there were: once as computed, for plan and certificate, and once in exact arithmetic."""
    many = Stream(COMPUTED, Schedule(0.1, (1,) * 300, (1,) * 300, 20, Cycle(30, 40)), **TARGET)
    many.largest  # noqa: B018
    assert len(asked) == 2 * 300
    for _ in range(5):
        asked.clear()
        steps = planning.least_steps_after(many, records=1)
        many = many.after(records=1, steps=steps)
        cyclic_guarantee(COMPUTED, many.schedule, delta=1e-6, stream=many)
        many.all_published()
        assert asked == [COMPUTED, EXACT]


def test_copies_of_a_model_ask_for_their_own_requests_alone(asked):
    """Streams that begin alike and then part; one is looked at as it was before."""
    first = Stream(COMPUTED, Schedule(0.1, (1,) * 100, (1,) * 100, 20, Cycle(30, 40)), **TARGET)
    first.largest  # noqa: B018
    copies = [first, copy.copy(first), copy.deepcopy(first)]
    asked.clear()
    for steps in range(2, 7):
        copies = [each.after(records=1 + number, steps=steps) for number, each in enumerate(copies)]
        for each in copies:
            each.largest  # noqa: B018
    assert len(asked) == 2 * 3 * 5
    first.largest  # noqa: B018
    assert len(asked) == 2 * 3 * 5


def test_where_one_request_is_not_told_none_is(asked):
    known = begun().after(records=2, steps=5, places=((0, 2),)).after(records=1, steps=3, places=((3, 1),))
    known.largest  # noqa: B018
    found = known.after(records=1, steps=4)
    assert found.schedule.places is None
    untold = Stream(COMPUTED, replace(known.schedule, places=None), **TARGET)
    assert told(found) == told(untold.after(records=1, steps=4))
    asked.clear()
    found.after(records=1, steps=4, places=((2, 1),)).largest  # noqa: B018
    assert len(asked) == 2


def test_what_a_stream_knows_does_not_change_with_what_was_given():
    places = [[3, 1]]
    listed = begun().after(records=1, steps=50, places=places)
    places[0][0] = 0
    assert listed.schedule.places == (((3, 1),),)
    assert told(listed) == told(begun().after(records=1, steps=50, places=((3, 1),)))
    before = begun()
    places = [[3, 1]]
    planning.least_steps_after(before, records=1, places=places)
    places[0][0] = 0
    assert before.after(records=1, steps=5, places=places).schedule.places == (((0, 1),),)


@pytest.mark.parametrize(
    ("request_", "error", "said"),
    [
        ({"records": 1, "places": ((8, 1),)}, ParameterError, "places must name batches from 0 to 6"),
        (
            {"records": 2, "places": ((0, 1),)},
            ParameterError,
            "places must have counts that add up to 2, the request's number of records",
        ),
        ({"records": 280}, ParameterError, "records must be at most n = 280, got 281"),
        ({"records": 0}, ParameterError, r"records_per_request\[1\] must be a whole number, at least 1, got 0"),
        ({"records": 1, "steps": -1}, ParameterError, r"steps\[1\] must be a whole number, at least 0, got -1"),
        ({"records": 1, "steps": 10**18}, InfeasibleError, r"must add up to at most 1e\+18"),
    ],
)
def test_requests_that_cannot_be_are_refused(request_, error, said):
    first = begun().after(records=1, steps=1, places=((0, 1),))
    with pytest.raises(error, match=said):
        first.after(**{"steps": 1} | request_)


def test_threads_may_ask_at_once():
    """One stream, and those that go on from it; without a lock."""
    streams = [begun().after(records=number, steps=2) for number in range(1, 5)]
    streams += [each.after(records=1, steps=steps) for each in streams for steps in range(3)]
    due = [told(Stream(COMPUTED, each.schedule, **TARGET)) for each in streams]

    def ask(seed):
        generator = np.random.default_rng(seed)
        for number in generator.integers(len(streams), size=200).tolist():
            assert told(streams[number]) == due[number]
            steps = int(generator.integers(3))
            assert streams[0].after(records=1, steps=steps).largest == due[4 + steps][0]

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(4)))
    finally:
        sys.setswitchinterval(interval)
