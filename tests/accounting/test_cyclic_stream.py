"""Streams of requests to cyclic mini-batches, against step-by-step pooling, all places, and exact laws."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from certified_unlearning.accounting import delta_from_mu, epsilon_from_mu, mu_from_epsilon
from certified_unlearning.accounting.core import single_steps
from certified_unlearning.accounting.core.curves import Cycle, Schedule
from certified_unlearning.accounting.core.pooling import NoisyPhase, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.cyclic import planning, stream
from certified_unlearning.accounting.guarantees import as_computed, cyclic_guarantee, epsilon_all_published
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.errors import AssumptionError, InfeasibleError, ParameterError
from tests.accounting.cyclic_streams import SMOOTHNESS, STRENGTH, batch_problem, first_of
from tests.accounting.single_request import cyclic_curve


@pytest.fixture(params=[True, False])
def with_and_without_a_compiler(request, monkeypatch):
    if not request.param:
        monkeypatch.setattr(single_steps, "takes", lambda steps: False)
    elif single_steps.library() is None:
        pytest.skip("no C++ compiler is here")


def phases_of(problem, schedule, places):
    """Return one phase for each step, the counts taken from the definition."""
    cycle, total = schedule.cycle, schedule.learning_steps + sum(schedule.steps)
    arrivals = [schedule.learning_steps + sum(schedule.steps[:number]) for number in range(len(schedule.steps))]
    noise_std = math.sqrt(2 * problem.step_size) * schedule.sigma
    per_record = (1.0 if problem.adjacency == "zero-out" else 2.0) / cycle.batch_size
    phases = []
    for step in range(total):
        batch = step % cycle.batches
        differing = sum(
            dict(held).get(batch, 0) for arrival, held in zip(arrivals, places, strict=True) if step < arrival
        )
        phases.append(
            NoisyPhase(
                1, problem.step_size * problem.strong_convexity, problem.step_size * per_record * differing, noise_std
            )
        )
    return phases


def step_by_step(problem, schedule, places):
    return pooled_mu(phases_of(problem, schedule, places))


def random_stream(generator, *, known):
    cycle = Cycle(int(generator.integers(1, 6)), int(generator.integers(1, 5)))
    left = dict.fromkeys(range(cycle.batches), cycle.batch_size)
    requests, places = int(generator.integers(1, 4)), []
    for _ in range(requests):
        free = [batch for batch, room in left.items() for _ in range(room)]
        if not free:
            break
        chosen = generator.choice(free, size=int(generator.integers(1, len(free) + 1)), replace=False)
        for batch in chosen:
            left[int(batch)] -= 1
        numbers, counts = np.unique(chosen, return_counts=True)
        places.append(tuple(zip(numbers.tolist(), counts.tolist(), strict=True)))
    schedule = Schedule(
        sigma=0.1,
        records_per_request=tuple(sum(count for _, count in held) for held in places),
        steps=tuple(int(steps) for steps in generator.integers(0, 12, size=len(places))),
        learning_steps=int(generator.integers(1, 5)) * cycle.batches,
        cycle=cycle,
        places=tuple(places) if known else None,
    )
    strength = float(generator.choice([1.0, 0.1, 0.01]))
    adjacency = str(generator.choice(["zero-out", "replace"]))
    return batch_problem(cycle.batch_size, strength=strength, adjacency=adjacency, step_size=0.8), schedule, places


@pytest.mark.parametrize(
    ("n", "batch_size", "epochs", "sigma", "steps"),
    [
        (12_000, 500, 4, 0.00434741302, (6, 51, 98)),
        (300_000, 1000, 1, 0.00362284419, (2, 33, 80)),
        (1_000_000, 1000, 1, 0.00362284419, (2, 33, 80)),
    ],
)
def test_the_computed_least_steps(n, batch_size, epochs, sigma, steps):
    cycle = Cycle(n // batch_size, batch_size)
    schedule = Schedule(sigma, (), (), epochs * cycle.batches, cycle)
    begun = Stream(batch_problem(batch_size), schedule, epsilon=1.0, delta=1e-6)
    assert tuple(planning.least_steps_after(begun, records=records) for records in (1, 10, 100)) == steps


def test_known_places_are_pooled_step_by_step():
    generator = np.random.default_rng(1)
    for _ in range(300):
        problem, schedule, places = random_stream(generator, known=True)
        expected = step_by_step(problem, schedule, places)
        assert stream.curve(problem, schedule).mu == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_one_request_is_the_published_analysis_with_a_place():
    cycle = Cycle(7, 3)
    whole = Problem(21, STRENGTH, SMOOTHNESS, 1.0, 1 / SMOOTHNESS, "zero-out")
    for position, steps in itertools.product(range(1, 8), (0, 1, 5, 30)):
        schedule = Schedule(0.1, 2, (steps,), 4 * 7, cycle, (((position - 1, 2),),))
        expected = cyclic_curve(
            whole, sigma=0.1, batches=7, batch_size=3, epochs=4, steps=steps, records=2, position=position
        )
        assert stream.curve(batch_problem(3), schedule).mu == pytest.approx(expected.mu, rel=1e-12)


def random_requests(generator):
    """Return requests with known places, and the steps before each."""
    batches, number = int(generator.integers(1, 30)), int(generator.integers(1, 8))
    places = []
    for _ in range(number):
        held = generator.choice(batches, size=int(generator.integers(1, min(batches, 6) + 1)), replace=False)
        places.append(tuple((int(batch), int(generator.integers(1, 4))) for batch in held))
    steps = tuple(int(each) for each in generator.integers(0, 12, size=number))
    records = tuple(sum(count for _, count in held) for held in places)
    asked = Schedule(0.1, records, steps, int(generator.integers(0, 90)), Cycle(batches, 50), tuple(places))
    return asked, np.cumsum([asked.learning_steps, *asked.steps[:-1]])


@pytest.mark.usefixtures("with_and_without_a_compiler")
def test_a_step_differs_in_the_records_of_its_batch_that_are_removed_later():
    generator, late_starts = np.random.default_rng(5), 0
    for _ in range(300):
        asked, ends = random_requests(generator)
        requests = stream.Requests.of(asked)
        start = int(generator.integers(0, requests.steps + 1))
        late_starts += start > asked.learning_steps
        expected = [
            sum(
                dict(held).get(step % requests.cycle.batches, 0)
                for held, end in zip(asked.places, ends, strict=True)
                if end > step
            )
            for step in range(start, requests.steps)
        ]
        end = int(generator.integers(start, requests.steps + 1))
        assert requests.differing(start, requests.steps).tolist() == expected
        assert requests.differing(start, requests.steps + 40)[: len(expected) + 1].tolist() == [*expected, 0]
        assert not requests.differing(start, requests.steps + 40)[len(expected) :].any()
        assert requests.differing(start, end).tolist() == expected[: end - start]
    assert late_starts > 30


@pytest.mark.usefixtures("with_and_without_a_compiler")
def test_what_is_cut_off_is_paid_for(monkeypatch):
    """As if little had faded where steps are no longer counted: then the distance put in their place shows."""
    told, found = (stream.curve, stream.largest_curve, stream.joint_curve), []
    schedules = [
        Schedule(0.1, (1, 2), (3, 500), 400, Cycle(7, 40)),
        Schedule(0.1, (2, 1), (450, 2), 10, Cycle(7, 40), (((3, 2),), ((0, 1),))),
        Schedule(0.1, (4,), (700,), 600, Cycle(150, 40)),
    ]
    for faded in (stream.FORGOTTEN, 1.0):
        monkeypatch.setattr(stream, "FORGOTTEN", faded)
        found.append(np.array([[each(batch_problem(40), schedule).mu for each in told] for schedule in schedules]))
    whole, cut = found
    assert (cut >= whole).all()
    assert (cut[:, 2] > whole[:, 2] * (1 + 1e-6)).all()


def test_runs_of_stretches_are_their_steps_one_by_one():
    """Some steps lie between two stretches; the last stretch may begin and end where nothing differs any more."""
    generator, gaps, late = np.random.default_rng(6), 0, 0
    for _ in range(500):
        differing = generator.integers(0, 3, size=int(generator.integers(0, 40))).astype(float)
        last = len(differing) + int(generator.integers(0, 20))
        cuts = np.unique([*generator.integers(0, last + 1, size=int(generator.integers(1, 9))), last])
        if len(cuts) < 2:
            continue
        starts, ends = cuts[:-1], cuts[1:]
        some = generator.random(len(starts)) < 0.7
        some[-1] = True
        # All that reach beyond the known steps lie in the last stretch.
        inside = (ends <= len(differing)) | (np.arange(len(ends)) == len(ends) - 1)
        starts, ends = starts[some & inside], ends[some & inside]
        gaps += (starts[1:] > ends[:-1]).any()
        late += starts[-1] > len(differing)
        steps, records, firsts = stream._runs(differing, starts, ends)
        assert len(firsts) == len(starts)
        each = np.repeat(records, steps.astype(int))
        begins = np.concatenate([[0], steps.cumsum().astype(int)])
        padded = np.append(differing, np.zeros(last))
        for stretch, (start, end) in enumerate(zip(starts, ends, strict=True)):
            begin = begins[firsts[stretch]]
            assert each[begin : begin + end - start].tolist() == padded[start:end].tolist()
        assert steps.sum() == (ends - starts).sum()
        assert (steps >= 1).all()
    assert gaps > 100
    assert late > 30


def test_more_steps_than_memory_holds_are_refused():
    weak = Problem(3, 1e-12, SMOOTHNESS, 1.0, 1 / SMOOTHNESS, "zero-out")
    schedule = Schedule(0.1, 1, (5,), stream.MOST_COUNTED + 1, Cycle(7, 3))
    for told in (stream.curve, stream.largest_curve, stream.joint_curve):
        with pytest.raises(
            InfeasibleError, match=r"^the guarantee would have to count 20000001 steps .* raise step_size \* strong"
        ):
            told(weak, schedule)
    # Steps that have faded are not counted.
    assert stream.curve(batch_problem(3), schedule).mu < math.inf


def test_what_all_models_tell_is_counted_in_pieces(monkeypatch):
    """A long history costs time, no memory, and steps that have faded are not counted."""
    generator = np.random.default_rng(8)
    streams = [random_stream(generator, known=True)[:2] for _ in range(100)]
    whole = [stream.joint_curve(*each).mu for each in streams]
    monkeypatch.setattr(stream, "STEPS_OF_PIECE", 7)
    assert [stream.joint_curve(*each).mu for each in streams] == pytest.approx(whole, rel=1e-13)
    weak = batch_problem(100, strength=1e-3)
    long = Schedule(1.0, (1,) * 60, (2_000_000,) * 60, 20_000, Cycle(1000, 100), (((3, 1),),) * 60)
    once = replace(long, records_per_request=(1,), steps=(2_000_000,), places=(((3, 1),),))
    assert stream.joint_curve(weak, once).mu < stream.joint_curve(weak, long).mu < math.inf


def test_whoever_sees_all_models_knows_no_less_than_of_the_last():
    """Steps that contract much leave ratios of many orders of magnitude, none of which may be rounded to another."""
    strong = Problem(1, 11 / 12, 7 / 6, 1.0, 0.96, "zero-out")
    schedule = Schedule(0.0764, (1,), (0,), 34, Cycle(3, 1))
    assert stream.joint_curve(strong, schedule).mu >= stream.curve(strong, schedule).mu > 9.06
    generator = np.random.default_rng(9)
    for _ in range(300):
        strength = float(generator.uniform(0.05, 0.9))
        batches, learning = int(generator.integers(1, 6)), int(generator.integers(1, 80))
        problem = batch_problem(10, strength=strength, step_size=float(generator.uniform(0.9, 1)) / (0.25 + strength))
        schedule = Schedule(0.1, (1, 2), (int(generator.integers(0, 60)), 0), learning, Cycle(batches, 10))
        for each in (schedule, first_of(schedule, 1)):
            last = replace(each, steps=(*each.steps[:-1], 0))
            assert stream.joint_curve(problem, last).mu >= stream.curve(problem, last).mu * (1 - 1e-13)


def test_unknown_places_are_never_better_than_any():
    generator = np.random.default_rng(2)
    tight = 0
    for _ in range(300):
        problem, schedule, places = random_stream(generator, known=False)
        worst = stream.curve(problem, schedule).mu
        assert worst >= step_by_step(problem, schedule, places) * (1 - 1e-12)
    for batches, batch_size, steps in itertools.product((2, 3), (1, 2), ((0, 2), (3, 1), (1, 4))):
        cycle = Cycle(batches, batch_size)
        schedule = Schedule(0.1, (1, 1), steps, 2 * batches, cycle)
        worst = stream.curve(batch_problem(batch_size), schedule).mu
        each = [
            step_by_step(batch_problem(batch_size), schedule, [((first, 1),), ((second, 1),)])
            for first, second in itertools.product(range(batches), repeat=2)
        ]
        assert worst >= max(each) * (1 - 1e-12)
        tight += worst <= max(each) * (1 + 1e-12)
    assert tight >= 9  # Most are attained: the bound is no guess.


def test_no_exact_law_of_quadratics_is_above():
    """``f_i(w) = (m/2) w^2 - g_i w``: the ends are Gaussian, with means that are known and one variance."""
    generator = np.random.default_rng(3)
    reached = 0.0
    for _ in range(200):
        problem, schedule, places = random_stream(generator, known=True)
        cycle, decay = schedule.cycle, 1 - problem.step_size * problem.strong_convexity
        records = generator.choice([-1.0, 1.0], size=(cycle.batches, cycle.batch_size))
        ends = []
        for retrained in (False, True):
            data, place = records.copy(), 0.0
            taken = np.zeros(cycle.batches, dtype=int)
            edits = []
            for held in places:
                edits.append(
                    [(batch, slot) for batch, count in held for slot in range(taken[batch], taken[batch] + count)]
                )
                for batch, count in held:
                    taken[batch] += count
            if retrained:
                for edit in itertools.chain(*edits):
                    data[edit] = 0.0 if problem.adjacency == "zero-out" else -records[edit]
            step = 0
            for number, steps in enumerate((schedule.learning_steps, *schedule.steps)):
                if number and not retrained:
                    for edit in edits[number - 1]:
                        data[edit] = 0.0 if problem.adjacency == "zero-out" else -records[edit]
                for _ in range(steps):
                    place = decay * place + problem.step_size * data[step % cycle.batches].mean()
                    step += 1
            ends.append(place)
        variance = 2 * problem.step_size * schedule.sigma**2 * sum(decay ** (2 * age) for age in range(step))
        exact = abs(ends[0] - ends[1]) / math.sqrt(variance)
        certified = stream.curve(problem, schedule).mu
        assert exact <= certified * (1 + 1e-9) + 1e-15
        reached = max(reached, exact / certified if certified else 0.0)
    assert reached > 0.99


@pytest.mark.parametrize("fault", ["places of another batch", "n for b", "later requests forgotten"])
def test_a_planted_fault_is_seen(fault):
    cycle = Cycle(6, 2)
    held = (((5, 1),), ((1, 1),))
    schedule = Schedule(0.1, (1, 1), (7, 2), 18, cycle, held)
    problem = batch_problem(2)
    truth = step_by_step(problem, schedule, held)
    if fault == "places of another batch":
        wrong = stream.curve(problem, replace(schedule, places=(((0, 1),), ((1, 1),)))).mu
    elif fault == "n for b":
        wrong = step_by_step(problem, replace(schedule, cycle=Cycle(6, 12)), held)
    else:
        wrong = stream.curve(problem, first_of(schedule, 1)).mu
    assert wrong < truth * 0.99


def test_what_is_long_past_is_summed_up_from_above():
    cycle, problem = Cycle(3, 2), batch_problem(2, strength=0.5, step_size=0.4)
    schedule = Schedule(0.1, (1, 2), (4, 3), 3000, cycle, (((2, 1),), ((0, 1), (1, 1))))
    expected = step_by_step(problem, schedule, schedule.places)
    found = stream.curve(problem, schedule).mu
    assert expected * (1 - 1e-13) <= found <= expected * (1 + 1e-9)


def test_all_published_models_tell_at_least_as_much_as_the_last():
    generator = np.random.default_rng(4)
    for _ in range(100):
        problem, schedule, _ = random_stream(generator, known=True)
        assert stream.joint_curve(problem, schedule).mu >= stream.curve(problem, schedule).mu * (1 - 1e-12)
        assert stream.largest_curve(problem, schedule).mu >= stream.curve(problem, schedule).mu


def test_all_published_models_tell_what_the_steps_between_two_of_them_do_one_after_the_other():
    generator = np.random.default_rng(6)
    for _ in range(200):
        problem, schedule, places = random_stream(generator, known=True)
        phases = phases_of(problem, schedule, places)
        ends = list(itertools.accumulate(schedule.steps, initial=schedule.learning_steps))
        blocks = itertools.pairwise([0, *ends])
        expected = math.hypot(*[pooled_mu(phases[start:end]) for start, end in blocks])
        assert stream.joint_curve(problem, schedule).mu == pytest.approx(expected, rel=1e-12)


def test_all_published_models_of_long_learning_are_counted_from_above():
    cycle, problem = Cycle(3, 2), batch_problem(2, strength=0.5, step_size=0.4)
    schedule = Schedule(0.1, (1, 2), (4, 400), 3000, cycle, (((2, 1),), ((0, 1), (1, 1))))
    phases = phases_of(problem, schedule, schedule.places)
    expected = math.hypot(*[pooled_mu(phases[start:end]) for start, end in ((0, 3000), (3000, 3004), (3004, 3404))])
    assert expected * (1 - 1e-13) <= stream.joint_curve(problem, schedule).mu <= expected * (1 + 1e-9)


def test_all_published_models_of_steps_that_do_not_contract_are_accounted_for():
    problem = Problem(2, 0.0, 0.25, 1.0, 0.4, "zero-out")
    schedule = Schedule(0.1, (1, 2), (4, 3), 30, Cycle(3, 2), (((2, 1),), ((0, 1), (1, 1))))
    phases = phases_of(problem, schedule, schedule.places)
    expected = math.hypot(*[pooled_mu(phases[start:end]) for start, end in ((0, 30), (30, 34), (34, 37))])
    assert stream.joint_curve(problem, schedule).mu == pytest.approx(expected, rel=1e-12)


def test_planned_noise_is_the_least():
    cycle, problem = Cycle(15, 2000), batch_problem(2000)
    schedule = Schedule(1.0, (10,), (20,), 60, cycle)
    sigma = planning.least_sigma(problem, schedule, epsilon=1.0, delta=1e-6)
    target = mu_from_epsilon(1.0, 1e-6)
    assert stream.curve(problem, replace(schedule, sigma=sigma)).mu == pytest.approx(target, rel=1e-9)
    rounded = as_computed(problem, dimension=20, classes=2, dtype="float64", variant="least-steps")
    counted = planning.least_sigma(rounded, schedule, epsilon=1.0, delta=1e-6)
    assert sigma < counted < sigma * 1.01
    assert stream.curve(rounded, replace(schedule, sigma=counted)).mu <= target


def test_a_guarantee_states_the_largest_of_all_requests_with_rounding():
    cycle = Cycle(5, 400)
    rounded = as_computed(batch_problem(400), dimension=20, classes=2, dtype="float64", variant="least-steps")
    schedule = Schedule(0.02, (3, 1), (9, 30), 50, cycle)
    guaranteed = cyclic_guarantee(rounded, schedule, delta=1e-5)
    assert guaranteed.mu == stream.largest_curve(rounded, schedule).mu
    assert guaranteed.mu > stream.largest_curve(batch_problem(400), schedule).mu
    assert guaranteed.epsilon == epsilon_from_mu(guaranteed.mu, 1e-5) > guaranteed.epsilon_in_exact_arithmetic
    assert 0 < guaranteed.extra_delta < 1e-50
    assert epsilon_all_published(rounded, schedule, delta=1e-5) > guaranteed.epsilon
    assert cyclic_guarantee(rounded, first_of(schedule, 0), delta=1e-5).epsilon == 0


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"cycle": None}, ParameterError, "needs a cycle"),
        ({"cycle": Cycle(5, 3)}, ParameterError, "batch size, 3"),
        ({"learning_steps": math.inf}, ParameterError, "no stationary distribution"),
        ({"records_per_request": (11,)}, ParameterError, "at most n = 10"),
        ({"places": (((5, 1),),)}, ParameterError, "from 0 to 4"),
        ({"places": (((0, 1), (1, 1)),)}, ParameterError, "must have counts that add up to 1, the request's number"),
    ],
)
def test_schedules_that_make_no_sense_are_refused(change, error, said):
    with pytest.raises(error, match=said):
        stream.curve(batch_problem(2), replace(Schedule(0.1, (1,), (3,), 10, Cycle(5, 2)), **change))


def test_remove_leaves_no_place_and_tiny_targets_are_refused():
    schedule = Schedule(0.1, (1,), (3,), 10, Cycle(5, 2))
    with pytest.raises(AssumptionError, match="keep its place"):
        stream.curve(batch_problem(2, adjacency="remove"), schedule)
    rounded = as_computed(batch_problem(2), dimension=3, classes=2, dtype="float32", variant="least-steps")
    begun = Stream(rounded, Schedule(1e-5, (), (), 10, Cycle(5, 2)), epsilon=0.1, delta=1e-6)
    with pytest.raises(InfeasibleError, match="rounding alone"):
        planning.least_steps_after(begun, records=1)


# --- Logistic loss in one dimension, followed on a grid: every batch and position of a short cycle. ----------

GRID = np.linspace(-9, 9, 1801)
WIDTH = GRID[1] - GRID[0]
FEATURES = np.array([[0.9, -0.5], [1.0, -1.0], [-0.7, 1.0]])  # of three batches; labels are folded in


def density_after(data_of_step, problem, sigma):
    """The law after steps from the origin, whose batches ``data_of_step`` gives."""
    noise_std = math.sqrt(2 * problem.step_size) * sigma
    density = None
    for batch in data_of_step:
        places = GRID if density is not None else np.zeros(1)
        slope = (batch[:, None] / (1 + np.exp(-batch[:, None] * places))).mean(axis=0)
        moved = places - problem.step_size * (slope + problem.strong_convexity * places)
        kernel = np.exp(-0.5 * ((GRID[:, None] - moved) / noise_std) ** 2) / (noise_std * math.sqrt(2 * math.pi))
        density = kernel[:, 0] if density is None else kernel @ density * WIDTH
    return density


def exact_delta(first, second, epsilon):
    """The largest of both directions' hockey-stick divergences."""
    both = (np.maximum(p - math.exp(epsilon) * q, 0).sum() * WIDTH for p, q in ((first, second), (second, first)))
    return max(both)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("steps", [0, 1, 4])
def test_no_exact_law_of_logistic_regression_is_above(adjacency, steps):
    problem = Problem(2, 0.2, 0.45, 1.0, 2 / 0.65, adjacency)
    cycle, sigma, closest = Cycle(3, 2), 0.35, 0.0
    for batch, slot in itertools.product(range(3), range(2)):
        without = FEATURES.copy()
        without[batch, slot] = 0 if adjacency == "zero-out" else -FEATURES[batch, slot]
        total = 6 + steps
        learned = [(FEATURES if step < 6 else without)[step % 3] for step in range(total)]
        retrained = [without[step % 3] for step in range(total)]
        laws = density_after(learned, problem, sigma), density_after(retrained, problem, sigma)
        assert laws[0].sum() * WIDTH == pytest.approx(1, abs=1e-6)
        schedule = Schedule(sigma, 1, (steps,), 6, cycle, (((batch, 1),),))
        for schedule_known in (schedule, replace(schedule, places=None)):
            mu = stream.curve(problem, schedule_known).mu
            for epsilon in (0.0, 0.1, 0.5, 1.0):
                exact, certified = exact_delta(*laws, epsilon), delta_from_mu(mu, epsilon)
                assert exact <= certified + 1e-7
                closest = max(closest, exact / certified if certified > 1e-3 else 0)
        # A contraction that is forgotten, or the position, is seen where the record was used last.
        if batch == 2 and slot == 1 and steps == 0:
            elsewhere = stream.curve(problem, replace(schedule, places=(((0, 1),),))).mu
            assert exact_delta(*laws, 0.0) > delta_from_mu(elsewhere, 0.0)
    # Here losses curve more than the regulariser alone, so later steps forget more than any bound can count on.
    assert closest > {0: 0.3, 1: 0.04, 4: 0.002}[steps]
