"""Mini-batch Langevin unlearning of a model of one's own: plans, dynamics, guarantee."""

import copy
import math
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from sklearn.linear_model import LogisticRegression

from certified_unlearning import certificate
from certified_unlearning.accounting import mu_from_epsilon
from certified_unlearning.accounting.core.curves import Cycle, Schedule
from certified_unlearning.accounting.core.losses import regularisation_of
from certified_unlearning.accounting.cyclic import stream
from certified_unlearning.engine.compiled import minibatch as compiled
from certified_unlearning.errors import AssumptionError, InfeasibleError, ParameterError
from certified_unlearning.files import content_key
from certified_unlearning.mechanisms.learners.history import Removal
from certified_unlearning.mechanisms.learners.learner import NoisyLearner
from certified_unlearning.mechanisms.learners.minibatch import (
    NOISE_OF_LONGEST,
    SCORE_NOISE,
    MiniBatchLearner,
    mini_batches_for,
)

ASKED = {
    "n": 3000,
    "features": 5,
    "classes": 2,
    "regularisation": 1 / (0.02 * 3000**2),
    "epsilon": 1.0,
    "delta": 1e-5,
    "batch_size": 400,
}


def planned(**change):
    return MiniBatchLearner.plan(**ASKED | change)


def data(n=3000, classes=2):
    generator = np.random.default_rng(1)
    rows = generator.standard_normal((n, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scores = rows @ generator.standard_normal((5, classes)) * 6 + generator.gumbel(size=(n, classes))
    return rows, scores.argmax(axis=1)


def signed(rows, labels):
    return torch.tensor(-(2 * labels - 1)[:, None] * rows), torch.tensor(labels)


def test_the_constants_are_those_of_a_batch_of_the_padded_data():
    learner = planned()
    assert learner.cycle == Cycle(8, 400)
    problem = learner.exact_problem
    assert problem.n == 400
    assert problem.strong_convexity == pytest.approx(1 / (0.02 * 3200))
    assert problem.smoothness == pytest.approx(0.25 + problem.strong_convexity)
    assert problem.step_size == pytest.approx(2 / (problem.smoothness + problem.strong_convexity))
    assert learner.learning_steps % 8 == 0


@pytest.mark.parametrize("classes", [2, 3])
def test_without_noise_and_in_one_batch_it_ends_where_scikit_learn_ends(classes):
    rows, labels = data(600, classes)
    learner = MiniBatchLearner.plan(
        **ASKED | {"n": 600, "classes": classes, "batch_size": 600, "regularisation": 1 / (0.1 * 600**2)},
        sigma=1e-3,
        learning_steps=400,
    )
    learner = learner.model_copy(update={"sigma": 0.0})
    tensors = signed(rows, labels) if classes == 2 else (torch.tensor(rows), torch.tensor(labels))
    weights = learner.learn(*tensors, keys=[1])[0].numpy()
    best = LogisticRegression(C=0.1, fit_intercept=False, tol=1e-10, max_iter=1000).fit(rows, labels).coef_
    np.testing.assert_allclose(weights, best.ravel(), atol=1e-6)


@pytest.mark.parametrize("strength", [1.0, 20.0, 500.0])
def test_the_default_noise_is_that_of_a_score(strength):
    learner = planned(regularisation=1 / (strength * ASKED["n"]))
    largest = 1 / learner.exact_problem.strong_convexity
    rate = learner.exact_problem.step_size * learner.exact_problem.strong_convexity
    variance = 2 * learner.exact_problem.step_size * learner.sigma**2 / (1 - (1 - rate) ** 2)
    assert math.sqrt(variance) == pytest.approx(min(SCORE_NOISE, NOISE_OF_LONGEST * largest))


def test_planned_steps_are_the_least_that_meet_the_target():
    learner, history = planned(), []
    target = mu_from_epsilon(1.0, 1e-5)
    for places in (((7, 1),), ((0, 2), (7, 3)), ((3, 1),)):
        removal = learner.plan_removal(history, sum(count for _, count in places), places)
        history.append(removal)
        assert stream.curve(learner.problem, learner.schedule(history)).mu <= target
        fewer = [*history[:-1], removal._replace(steps=removal.steps - 1)]
        assert removal.steps == 1 or stream.curve(learner.problem, learner.schedule(fewer)).mu > target
    unknown = learner.plan_removal([], 1)
    assert unknown.steps >= learner.plan_removal([], 1, ((0, 1),)).steps
    assert unknown == Removal(1, learner.plan_removal([], 1, ((7, 1),)).steps)


def test_sigma_for_a_wanted_number_of_steps():
    learner = planned(steps=25, records=10)
    assert learner.plan_removal([], 10).steps == 25


def test_a_request_changes_weights_as_its_batches_say():
    rows, labels = data()
    tensors = signed(rows, labels)
    learner = planned(learning_steps=8).model_copy(update={"sigma": 0.0})
    start = torch.ones(1, 5, dtype=torch.float64)
    ended = learner.unlearn(start, *tensors, [Removal(1, 3)], [1])
    problem, expected = learner.exact_problem, start.clone()
    for batch in (0, 1, 2):  # Learning was one cycle.
        some = tensors[0][400 * batch : 400 * (batch + 1)]
        gradient = torch.sigmoid(some @ expected[0]) @ some / 400 + problem.strong_convexity * expected[0]
        expected = expected - problem.step_size * gradient
    torch.testing.assert_close(ended, expected, rtol=1e-12, atol=1e-12)


class Counting:
    """Progress that counts, and stops after so much of it."""

    def __init__(self, stop=math.inf):
        self.done, self._stop = 0, stop

    def skip(self, work):
        self.done += work

    def advance(self, work):
        self.done += work
        if self.done >= self._stop:
            raise KeyboardInterrupt


@pytest.mark.parametrize("class_weights", [None, (1.0, 0.3)])
@pytest.mark.parametrize("weighted_noise", [1.0, 0.0])
def test_one_model_by_itself_takes_the_steps_of_a_phase_of_trials(class_weights, weighted_noise, monkeypatch):
    """The same bits, whatever a call takes; nothing changes what was given; without a compiler it is the phase."""
    learner = planned(learning_steps=11, class_weights=class_weights)
    learner = learner.model_copy(update={"sigma": learner.sigma * weighted_noise})
    rows, labels = signed(*data())
    labels = 2 * labels - 1
    start = torch.linspace(-1, 1, 5, dtype=torch.float64)[None]
    given = start.clone()
    history = [Removal(4, 6, ((2, 1), (7, 3))), Removal(1, 27, ((0, 1),))]
    for removals in (history[:1], history, [*history, Removal(1, 0)]):
        due = NoisyLearner.unlearn(learner, start, rows, labels, removals, [7])
        for numbers in (1 << 27, 400 * 5 * 4):
            monkeypatch.setattr(compiled, "NUMBERS_OF_A_CALL", numbers)
            counted = Counting()
            found = learner.unlearn(start, rows, labels, removals, [7], progress=counted)
            assert torch.equal(found, due)
            assert counted.done == removals[-1].steps
            arrays = start.numpy(), rows.numpy(), labels.numpy()
            np.testing.assert_array_equal(learner.unlearn_one(*arrays, removals, 7), due.numpy())
        with monkeypatch.context() as without:
            without.setattr(compiled, "takes", lambda *_, **__: False)
            torch.testing.assert_close(learner.unlearn(start, rows, labels, removals, [7]), due, rtol=1e-12, atol=1e-12)
        assert torch.equal(start, given)
        assert found is not start
    with pytest.raises(KeyboardInterrupt):
        learner.unlearn(start, rows, labels, history, [7], progress=Counting(stop=8))
    assert torch.equal(start, given)
    pair = learner.unlearn(start.repeat(2, 1), rows, labels, history, [7, 8])
    torch.testing.assert_close(pair[:1], learner.unlearn(start, rows, labels, history, [7]), rtol=1e-12, atol=1e-12)
    assert weighted_noise == 0 or not torch.equal(pair[0], pair[1])
    for odd in (start[:, :4], torch.ones(1, 6, dtype=torch.float64)):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            learner.unlearn(odd, rows, labels, history, [7])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_model_in_arrays_is_the_one_in_tensors(classes, dtype):
    """Also where no kernel takes it: other types, more classes, rows that do not lie one after another."""
    learner = planned(classes=classes, learning_steps=11)
    rows, labels = data(classes=classes)
    rows, labels = signed(rows, labels) if classes == 2 else (torch.tensor(rows), torch.tensor(labels))
    start, history = torch.ones(1, learner.dimension, dtype=dtype), [Removal(4, 6, ((2, 1), (7, 3)))]
    for given in (rows.to(dtype), rows.to(dtype).t().contiguous().t()):
        due = NoisyLearner.unlearn(learner, start, given, labels, history, [7])
        found = learner.unlearn_one(start.numpy(), given.numpy(), labels.numpy(), history, 7)
        assert found.dtype == due.numpy().dtype
        np.testing.assert_array_equal(found, due.numpy())
        with_gradient = start.clone().requires_grad_(), given.clone().requires_grad_()
        assert torch.equal(learner.unlearn(*with_gradient, labels, history, [7]), due)
    assert (start == 1).all()


def test_the_guarantee_of_a_run_is_verified_and_states_its_cycle():
    learner = planned()
    history = [learner.plan_removal([], 4, ((2, 1), (7, 3)))]
    run = learner.run(history, dataset="own", features="given", data_digest=None)
    stated = certificate.of(run, key="k", noise_source="system entropy", all_published=True)
    certificate.verify(stated)
    assert (stated.mechanism, stated.accountant, stated.cycle) == ("minibatch-langevin", "cyclic", Cycle(8, 400))
    assert stated.places == (((2, 1), (7, 3)),)
    assert 0 < stated.epsilon <= 1.0 < stated.epsilon_all_published
    for change in (
        {"places": (((2, 4),),)},
        {"places": None},
        {"cycle": Cycle(8, 390)},
        {"cycle": None},
        {"cycle": Cycle(9, 400)},
        {"unlearning_steps": (1,)},
        {"n": 4000},
        {"adjacency": "remove"},
        {"smoothness": "spectral-with-margin", "largest_eigenvalue": 0.9},
        {"n": 2801, "places": (((2, 1), (7, 3)),)},
        {"epsilon": stated.epsilon * 0.999},
        {"radius": 5.0},
        {"start": 0.5},
        {"rounding_error": None},
        {"rounding_error": None, "noise_delta": None, "noise_resolution": None},
    ):
        with pytest.raises((certificate.CertificateError, AssumptionError, ParameterError)):
            certificate.verify(stated.model_copy(update=change))


def test_places_are_read_strictly_though_a_schedule_has_checked_others():
    """Those of the schedule that a certificate speaks of, and they alone, are taken as they are."""
    learner = planned()
    history = learner.history().after(learner.plan_removal([], 4, ((2, 1), (7, 3))))
    run = learner.run(history, dataset="own", features="given", data_digest="0")
    stated = certificate.of(run, key="k", noise_source="system entropy", stream=learner.stream(history))
    assert stated.places is learner.schedule(history).places
    assert stated.places[0] is run.requests[0].places
    told = stated.model_dump(mode="json")
    assert certificate.StepsCertificate.model_validate(told) == stated
    for wrong in ([[[2, 1, 7]]], [[[2, "one"]]], [2, 1], "places", [[[2.5, 1]]], [[2, 1]], {"2": 1}):
        for context in (None, learner.schedule(history)):
            with pytest.raises(ValidationError, match="places"):
                certificate.StepsCertificate.model_validate(told | {"places": wrong}, context=context)
    # Whatever types a schedule was given, its own are those of a certificate, and do not change.
    for odd in ([((2, 1), (7, 3))], (((np.int64(2), 1), (7, 3)),), ([[2, 1], [7, 3]],)):
        places = Schedule(0.1, (4,), (5,), 48, Cycle(8, 400), odd).places
        assert repr(places) == "(((2, 1), (7, 3)),)"


def test_a_history_says_of_its_removals_what_is_said_of_them_anew():
    """Histories that begin alike and go on otherwise, longer and shorter ones, in any order."""
    learner, generator = planned(), np.random.default_rng(0)
    histories = [learner.history()]
    while len(histories) < 60:
        some = histories[int(generator.integers(len(histories)))]
        if generator.random() < 0.5:
            learner.plan_removal(some, 4)
        places = ((int(generator.integers(3)), 4),) if generator.random() < 0.8 else None
        histories.append(some.after(Removal(4, int(generator.integers(1, 3)), places)))
    for number in generator.permutation(len(histories)):
        known, anew = histories[number], list(histories[number])
        assert learner.history(known) is known
        assert known == learner.history(anew)
        assert learner.schedule(known) == learner.schedule(anew)
        assert learner.stream(known).largest == learner.stream(anew).largest
        assert learner.run_key(known, "d") == learner.run_key(anew, "d")
        assert learner.plan_removal(known, 2) == learner.plan_removal(anew, 2)


def test_a_history_is_copied_and_pickled_with_its_learner():
    learner = planned()
    history = learner.history().after(learner.plan_removal([], 4))
    learner.stream(history)
    for learner_too, same in (copy.deepcopy((learner, history)), pickle.loads(pickle.dumps((learner, history)))):
        assert learner_too.history(same) is same
        assert list(same) == list(history)
        assert learner_too.stream(same).largest == learner.stream(history).largest


def test_removals_are_kept_as_plain_numbers():
    """Whatever types they were given in, and they do not change."""
    learner, plain = planned(), [Removal(4, 5, ((2, 1), (7, 3)))]
    expected = learner.run_key(plain, "d"), learner.schedule(plain)
    for odd in (
        Removal(np.int64(4), np.int32(5), ((np.int64(2), 1), (7, 3))),
        Removal(4, 5, [[2, 1], [7, 3]]),
    ):
        assert (learner.run_key([odd], "d"), learner.schedule([odd])) == expected
        assert repr(list(learner.history().after(odd))) == repr(plain)
    changing = Removal(4, 5, [[2, 1], [7, 3]])
    history = learner.history().after(changing)
    changing.places[0][0] = 3
    assert learner.schedule([changing]).places == (((3, 1), (7, 3)),)
    assert learner.schedule(history).places == (((2, 1), (7, 3)),)
    with pytest.raises(TypeError):
        learner.run_key([Removal(4, 5.5, None)], "d")
    assert learner.places_of(5) == ((0, 1),)


def test_runs_of_other_histories_leave_no_trace():
    """A history is its learner's alone: another takes its removals, and none of what they came to."""
    first, second = Removal(4, 5, ((2, 1), (7, 3))), Removal(1, 2, ((0, 1),))
    histories = [[first], [first, second], [second], [second, first], [first, Removal(1, 2, ((1, 1),))], [], [first]]
    learners = [planned(), planned(epsilon=2.0), planned(epsilon=3.0, sigma=0.3, learning_steps=11)]
    for history in histories:
        removed = np.cumsum([each.records for each in history]).tolist()
        known = learners[0].history(history)
        learners[0].stream(known)
        for learner in learners:
            assert (learner.history(known) is known) == (learner is learners[0])
            run = learner.run(known, dataset="own", features="given", data_digest=f"{learner.epsilon}")
            assert (run.epsilon_target, run.constants.data_sha256) == (learner.epsilon, f"{learner.epsilon}")
            assert [request.records_removed for request in run.requests] == removed
            assert run.records_per_request == tuple(each.records for each in history)
            assert [(each.unlearning_steps, each.places) for each in run.requests] == [each[1:] for each in history]
            assert run.schedule == learner.schedule(known)
            same = {"key": "", "noise_source": "seed", "all_published": True}
            assert certificate.of(run, stream=learner.stream(known), **same) == certificate.of(run, **same)
            assert type(run).model_validate(run.model_dump()) == run


@pytest.mark.parametrize("places", [[], [((2, 1), (7, 3))], [((2, 1), (7, 3)), ((0, 1),)], [None, ((0, 1),)]])
def test_the_key_of_a_run_is_that_of_its_parts_together(places):
    learner = planned()
    history = [Removal(4 - 3 * number, 5 + number, each) for number, each in enumerate(places)]
    told = [[list(pair) for pair in each] for each in places if each is not None]
    parts = [learner.model_dump(mode="json"), [each.records for each in history], [each.steps for each in history]]
    assert learner.run_key(history, "digest") == content_key([*parts, *([told] if told else []), "digest"])


def test_the_documents_steps_of_a_request_are_those_that_are_planned():
    page = (Path(__file__).parents[2] / "docs" / "howto" / "which-mechanism.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d ]+) \| ([\d.]+) \| (\d+) \| (\d+), (\d+), (\d+) \|", page, re.MULTILINE)
    assert len(rows) == 6
    for n, epsilon, batch_size, *steps in rows:
        n = int(n.replace(" ", ""))
        assert mini_batches_for(n, features=21, C=80 / n, classes=2, intercept=True) == (int(batch_size), 1.0)
        learner = planned(
            n=n,
            features=21,
            regularisation=regularisation_of(C=80 / n, n=n, intercept=True),
            epsilon=float(epsilon),
            delta=1e-6,
            batch_size=int(batch_size),
        )
        assert [learner.plan_removal([], records).steps for records in (1, 10, 100)] == [int(each) for each in steps]


def mini_batches(n, *, conditioning, features=21, intercept=True):
    return mini_batches_for(n, features=features, C=conditioning / n, classes=2, intercept=intercept)


def test_mini_batches_follow_from_the_conditioning_and_few_records_need_none():
    assert mini_batches(1_000_000, conditioning=80) == (1051, 1.0)
    # The stronger the regulariser, the smaller the weights: gradients have to be as exact.
    assert mini_batches(1_000_000, conditioning=8) == (10_000, 1.0)
    assert mini_batches(30_000, conditioning=8) is None
    assert mini_batches(2000, conditioning=80) is None
    assert mini_batches(1_000_000, conditioning=1_000_000) is None
    even, _ = mini_batches(100_001, conditioning=80, intercept=False)
    assert -(-100_001 // even) * even - 100_001 < -(-100_001 // even)


@pytest.mark.parametrize(
    ("features", "conditioning", "expected"),
    [
        (21, 80, (1051, 1.0)),
        (290, 80, (1051, 1.0)),
        (291, 80, (452, 0.5)),
        (785, 80, (452, 0.5)),
        (785, 20, (4000, 1.0)),
        (21, 320, (1742, 0.5)),
        (785, 320, (1742, 0.5)),
        (5000, 100, (561, 0.5)),
    ],
)
def test_where_batches_may_be_smaller_steps_are_shorter(features, conditioning, expected):
    """Steps half as long take less than half the rows, if so few are not read as slowly."""
    size, share = mini_batches(10_000_000, features=features, conditioning=conditioning)
    assert (size, share) == (pytest.approx(expected[0], abs=1), expected[1])


def test_a_share_of_the_longest_step_is_stated_and_kept():
    learner, longest = planned(step_share=0.25), planned()
    assert learner.exact_problem.step_size == longest.exact_problem.step_size / 4
    assert learner.problem.step_size == learner.exact_problem.step_size
    assert learner.learning_steps in range(4 * longest.learning_steps - 24, 4 * longest.learning_steps + 1)
    assert MiniBatchLearner.model_validate(learner.model_dump(mode="json")) == learner
    # Learners of before there was a share have none, and names of their runs stay.
    assert "step_share" not in longest.model_dump(mode="json")
    history = [learner.plan_removal([], 4, ((2, 1), (7, 3)))]
    (steps,) = (each.steps for each in history)
    assert steps > 3 * longest.plan_removal([], 4, ((2, 1), (7, 3))).steps
    run = learner.run(history, dataset="own", features="given", data_digest=None)
    stated = certificate.of(run, key="k", noise_source="system entropy", all_published=True)
    assert stated.step_size == learner.exact_problem.step_size
    certificate.verify(stated)
    with pytest.raises(certificate.CertificateError):
        certificate.verify(stated.model_copy(update={"step_size": stated.step_size * 0.9}))


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"batch_size": 3001}, ParameterError, "at most the number of records, 3000, got 3001"),
        ({"batch_size": 0}, ParameterError, "batch_size must be a whole number, at least 1"),
        ({"sigma": 0.1, "steps": 3}, ParameterError, "sigma and steps cannot both be given"),
        ({"step_share": 0.0}, ParameterError, "step_share must be a finite number above 0, got 0"),
        ({"step_share": 1.01}, ParameterError, r"step_share must be at most 1.* got 1\.01"),
        ({"adjacency": "remove"}, ParameterError, "zero-out, replace"),
        ({"epsilon": 0.0}, ParameterError, "epsilon"),
        ({"sigma": 1e-18}, AssumptionError, "rounding"),
    ],
)
def test_plans_that_make_no_sense_are_refused(change, error, said):
    with pytest.raises(error, match=said):
        planned(**change)


def test_more_records_than_there_are_cannot_be_removed():
    learner = planned()
    with pytest.raises((ParameterError, InfeasibleError), match="at most n"):
        learner.plan_removal([Removal(3000, 5)], 300)
