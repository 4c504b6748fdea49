"""Compiled pooling of single steps gives what one phase after another gives, and what is used without it."""

import math
import sys
import warnings

import numpy as np
import pytest

from certified_unlearning.accounting.core import single_steps
from certified_unlearning.accounting.core.curves import Cycle, Schedule
from certified_unlearning.accounting.core.pooling import NoisyPhase, Pool, pooled_mu
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.cyclic import stream

if single_steps.library() is None:
    pytest.skip("no C++ compiler is here", allow_module_level=True)

GAPS = [0.0, 5e-324, 1e-310, 1e-6, 0.003, 0.09, 0.2, 0.999, 1 - 1e-9, 1 - 2**-53, 1.0]


def drawn(generator: np.random.Generator, count: int) -> np.ndarray:
    sizes = [0.0, 0.0, 1e-12, 1.0, 2.0, generator.random(), 10 ** generator.uniform(-14, 3)]
    return generator.choice(sizes, size=count)


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("distance", [0.0, 1e-9, 7.0, 1e6])
def test_steps_are_pooled_as_phases_are(gap: float, distance: float) -> None:
    generator = np.random.default_rng(1)
    for count in (1, 2, 3, 17, 300):
        for sensitivities in (drawn(generator, count), np.zeros(count), generator.random(count)):
            phases = [NoisyPhase(1, gap, size, 0.3) for size in sensitivities.tolist()]
            due = Pool.of(phases, starting_distance=distance)
            found = single_steps.pool(
                sensitivities, decays=single_steps.Decays(gap), noise_std=0.3, starting_distance=distance
            )
            for steps in (0, 1, 50):
                more = NoisyPhase(steps, gap, 0.0, 0.3)
                expected = due.followed_by(more).mu()
                assert found.followed_by(more).mu() == pytest.approx(expected, rel=1e-12, abs=0)


@pytest.mark.parametrize("seed", range(8))
def test_runs_that_are_counted_each_on_its_own_add_up(seed: int) -> None:
    """Some have no step; of long ones the last steps are counted, from a distance."""
    generator, cuts = np.random.default_rng(seed), 0
    for _ in range(150):
        gap = float(generator.choice([*GAPS, generator.random(), 10 ** generator.uniform(-5, -0.01)]))
        window, lengths = int(generator.integers(1, 50)), generator.integers(0, 40, size=generator.integers(1, 12))
        if not lengths.any():
            continue
        ends = np.cumsum([int(generator.integers(5)), *lengths])
        cut = lengths > 2 * window
        cuts += cut.sum()
        first = int(ends[1] - window if cut[0] else ends[0])
        sensitivities = drawn(generator, ends[-1] - first)
        distance = float(max(sensitivities.max(), generator.choice([1.0, 10 ** generator.uniform(-10, 5)])))
        whole = np.concatenate([np.full(first, np.nan), sensitivities])
        each = [
            pooled_mu(
                [NoisyPhase(1, gap, size, 0.7) for size in whole[end - window if is_cut else begin : end].tolist()],
                starting_distance=distance if is_cut else 0.0,
            )
            for begin, end, is_cut in zip(ends[:-1], ends[1:], cut, strict=True)
        ]
        found = single_steps.mu_of_all(
            sensitivities,
            ends,
            first=first,
            window=window,
            decays=single_steps.Decays(gap),
            noise_std=0.7,
            distance=distance if cut.any() else 0.0,
        )
        # What a distance leaves after one step with a gap of 1 is nothing, and counts as next to nothing.
        assert found == pytest.approx(math.hypot(*each), rel=1e-12, abs=sys.float_info.min)
    assert cuts > 50


def mu_of_all(sensitivities: np.ndarray, ends: list[int], *, contraction_gap: float, **constants: float) -> float:
    """Return what several runs tell that begin with step 0, none of which is cut."""
    given = {"first": 0, "window": len(sensitivities), "distance": 0.0, **constants}
    return single_steps.mu_of_all(sensitivities, np.array(ends), decays=single_steps.Decays(contraction_gap), **given)


@pytest.mark.parametrize("size", [1e-300, 1e-20, 1e150])
def test_units_change_no_digit(size: float) -> None:
    sensitivities, ends = np.random.default_rng(8).random(60), [0, 20, 40, 60]
    constants = {"contraction_gap": 0.05, "noise_std": 1.0}
    expected = mu_of_all(sensitivities, ends, **constants) * size
    assert mu_of_all(sensitivities * size, ends, **constants) == pytest.approx(expected, rel=1e-12)


def test_no_difference_shows_nothing_and_a_tiny_one_something() -> None:
    ends = [0, 20, 40]
    assert mu_of_all(np.zeros(40), ends, contraction_gap=0.05, noise_std=1.0) == 0
    assert mu_of_all(np.full(40, 5e-324), ends, contraction_gap=0.05, noise_std=1e300) > 0


def test_signals_far_below_the_largest_are_not_lost() -> None:
    for gap, sensitivities, distance in (
        (1.0, [2.0], 1.2e283),
        (0.9, [7e-205] * 600, 1e5),
        (1.0, [1.0, 1e-200, 1e-200], 0.0),
    ):
        due = pooled_mu([NoisyPhase(1, gap, size, 0.13) for size in sensitivities], starting_distance=distance)
        # Cut, as after many more steps: so that there is a distance.
        count, before = len(sensitivities), len(sensitivities) + 1
        ends, window = ([0, before + count], count) if distance else ([before, before + count], before)
        found = mu_of_all(
            np.array(sensitivities),
            ends,
            first=before,
            window=window,
            contraction_gap=gap,
            noise_std=0.13,
            distance=distance,
        )
        assert found == pytest.approx(due, rel=1e-12, abs=0)


@pytest.mark.parametrize("batches", [1, 2, 7, 300])
def test_records_differ_in_the_visits_of_their_batch_before_they_leave(batches: int) -> None:
    generator = np.random.default_rng(batches)
    for _ in range(60):
        pairs = np.stack(
            [generator.integers(batches, size=9), generator.integers(1, 6, size=9), generator.integers(200, size=9)]
        )
        start, steps = int(generator.integers(150)), int(generator.integers(1, 90))
        due = [
            sum(records for batch, records, until in pairs.T.tolist() if step % batches == batch and step < until)
            for step in range(start, start + steps)
        ]
        for given in (pairs, np.asfortranarray(pairs), pairs.astype(np.int32)):
            found = single_steps.differing(given, batches=batches, start=start, steps=steps)
            assert found.tolist() == due
    nothing = np.empty((3, 0), dtype=np.int64)
    assert single_steps.differing(nothing, batches=batches, start=3, steps=4).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("kind", [np.float32, np.longdouble, np.float64, float])
def test_numbers_of_other_types_give_what_pythons_give(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their memory is another: read as doubles it would be anything, and end too soon."""
    found = []
    for convert in (kind, float):
        step_size, sigma, lipschitz = (convert(kind(each)) for each in (3, 0.3, 1))
        problem = Problem(4, 0.0125, 0.2625, lipschitz, step_size, adjacency="zero-out")
        schedule = Schedule(sigma, (2, 3, 1), (7, 0, 9), learning_steps=40, cycle=Cycle(5, 4))
        found.append([each(problem, schedule).mu for each in (stream.curve, stream.largest_curve, stream.joint_curve)])
    assert found[0] == pytest.approx(found[1], rel=1e-5)
    draw = np.random.default_rng(3)
    sensitivities, distances = draw.random(40).astype(kind), np.array([1, 2], dtype=kind)
    constants = {"contraction_gap": 0.1, "noise_std": 0.5}
    for given in (sensitivities, np.repeat(sensitivities, 2)[::2], sensitivities[::-1][::-1]):
        pooled, as_doubles = (
            single_steps.pool(each, decays=single_steps.Decays(0.1), noise_std=0.5, starting_distance=distance).mu()
            for each, distance in ((given, distances[0]), (given.astype(float), 1.0))
        )
        assert pooled == pytest.approx(as_doubles, rel=1e-12)
        all_runs = [
            mu_of_all(each, [0, 15, 40 + len(given)], window=12, first=0, **constants, distance=far)
            for each, far in ((np.append(given, given), distances[1]), (np.append(given, given).astype(float), 2.0))
        ]
        assert all_runs[0] == pytest.approx(all_runs[1], rel=1e-12)


def test_the_longest_that_is_taken_keeps_its_digits() -> None:
    count = single_steps.MOST_STEPS
    assert single_steps.takes(count)
    assert not single_steps.takes(count + 1)
    sensitivities = np.tile([1.0, 0.0, 3.0, 0.5], count // 4)
    for gap in (1e-6, 1e-4, 0.01):
        due = Pool.of_runs(np.ones(count), sensitivities, contraction_gap=gap, noise_std=1.0, starting_distance=2.0)
        decays = single_steps.Decays(gap)
        found = single_steps.pool(sensitivities, decays=decays, noise_std=1.0, starting_distance=2.0)
        assert found.mu() == pytest.approx(due.mu(), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_streams_tell_the_same_with_and_without_a_compiler(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(seed)
    for _ in range(40):
        batches, size = int(generator.integers(1, 40)), int(generator.integers(1, 60))
        convexity = 10 ** generator.uniform(-3, -0.5)
        step_size = float(generator.uniform(0.2, 1)) * 2 / (0.25 + 2 * convexity)
        problem = Problem(size, convexity, 0.25 + convexity, 1.0, step_size, adjacency="zero-out")
        requests = int(generator.integers(1, 9))
        records = [1] * requests if batches * size < 30 else generator.integers(1, 4, size=requests).tolist()
        if sum(records) > batches * size:
            continue
        steps = generator.choice([0, 1, 3, 30, 900], size=requests).tolist()
        learned = int(generator.choice([1, batches, 5 * batches, 4000]))
        schedule = Schedule(0.01, tuple(records), tuple(steps), learned, Cycle(batches, size))
        found, counts = [], []
        for takes in (lambda count, counts=counts: counts.append(count) is None, lambda _: False):
            monkeypatch.setattr(single_steps, "takes", takes)
            found.append(
                [each(problem, schedule).mu for each in (stream.curve, stream.largest_curve, stream.joint_curve)]
            )
        monkeypatch.undo()
        assert counts
        assert max(counts) <= single_steps.MOST_STEPS
        assert found[0] == pytest.approx(found[1], rel=1e-12, abs=0)


def test_gaps_of_all_sizes_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for gap in GAPS:
            assert len(single_steps.Decays(gap).table) == single_steps.MOST_STEPS + 1
