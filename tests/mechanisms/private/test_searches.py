"""Searches: disjoint records, privacy of the selection by enumeration on neighbours, noise of its own for every run."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from certified_unlearning.accounting.private.learners import NoisyDescent, OutputPerturbation
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.searches import Boosting, GridSearch
from certified_unlearning.accounting.private.selections import generalised_probabilities
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.private import output_perturbation
from certified_unlearning.mechanisms.private.searches import learn
from certified_unlearning.papers.private_learning.audit_statistics import least_of_noisy

SQUARED = ScalarLoss(name="squared")
RADII = (0.5, 1.0, 2.0, 4.0)
EPSILON, DELTA = 1.0, 1e-6


def by_output(problem: LinearProblem, runs: int) -> OutputPerturbation:
    return OutputPerturbation.plan(problem, epsilon=EPSILON, delta=DELTA, runs=runs)


def by_descent(problem: LinearProblem, runs: int) -> NoisyDescent:
    return NoisyDescent.plan(problem, epsilon=EPSILON, delta=DELTA, runs=runs, steps=20)


def data(n: int) -> BoundedRecords:
    generator = torch.Generator().manual_seed(0)
    rows = torch.nn.functional.normalize(torch.randn(n, 3, generator=generator, dtype=torch.float64))
    return BoundedRecords(rows, rows @ torch.tensor([0.8, 0.3, 0.1]).double(), loss=SQUARED, row_norm=1.0)


def problem(n: int) -> LinearProblem:
    return LinearProblem(n=n, features=3, row_norm=1.0, loss=SQUARED, radius=1.0)


@pytest.mark.parametrize("planner", [by_output, by_descent])
def test_a_search_is_as_private_as_asked_and_spends_all_of_it_on_both_halves(planner):
    plan = GridSearch.plan(problem(2001), RADII, planner, epsilon=EPSILON)
    assert EPSILON * (1 - 1e-9) <= plan.guarantee.epsilon(DELTA) <= EPSILON
    assert (plan.problem.n, plan.validated) == (1000, 1001)
    assert plan.failure < 1e-13
    alone = planner(replace(plan.problem, radius=0.5), 1)
    assert plan.learners[0].sensitivity * alone.sigma * 2 == pytest.approx(
        plan.learners[0].sigma * alone.sensitivity, rel=1e-6
    )  # sqrt(K) times the noise.


@pytest.mark.parametrize("planner", [by_output, by_descent])
def test_a_boosted_learner_is_as_private_as_asked(planner):
    plan = Boosting.plan(problem(2003), planner, epsilon=EPSILON)
    assert EPSILON * (1 - 1e-9) <= plan.guarantee.epsilon(DELTA) <= EPSILON
    assert (plan.chunks, plan.problem.n, plan.validated) == (4, 400, 403)


def test_n_for_the_chunk_size_is_caught_by_the_plan_and_by_its_epsilon():
    plan = Boosting.plan(problem(2003), by_descent, epsilon=EPSILON)
    planted = replace(plan, learner=by_descent(problem(2003), 1))
    told = replace(planted, learner=replace(planted.learner, problem=plan.problem))
    assert told.guarantee.epsilon(DELTA) > 4
    with pytest.raises(ParameterError, match="to learn from"):
        learn(planted, data(2003), [0])


def test_a_selection_learns_nothing_from_the_records_that_are_learned_from():
    records = data(400)
    plan = GridSearch.plan(problem(400), RADII, by_descent, epsilon=EPSILON)
    found = learn(plan, records, [1, 2, 3])
    other = data(400)
    other.targets[200:] = -other.targets[200:]
    for trial, (one, another) in enumerate(zip(found.selected, learn(plan, other, [1, 2, 3]).selected, strict=True)):
        if one == another:
            assert torch.equal(found.weights[trial], learn(plan, other, [1, 2, 3]).weights[trial])


def test_selection_probabilities_on_neighbours_differ_by_e_to_the_epsilon():
    """Enumerated: one validation record is replaced by whatever is worst among many, all candidates at once."""
    plan = GridSearch.plan(problem(40), RADII, by_output, epsilon=EPSILON)
    generator = np.random.default_rng(1)
    candidates = [torch.zeros(1, 3).double(), *(torch.from_numpy(generator.normal(size=(1, 3))) for _ in RADII)]
    records = data(40).part(20, 40)

    def probabilities(some: BoundedRecords, sensitivities: tuple[float, ...]) -> np.ndarray:
        losses = [
            float(some.mean_losses(each, largest))
            for each, largest in zip(candidates, plan.largest_losses, strict=True)
        ]
        return generalised_probabilities(losses, sensitivities, epsilon=EPSILON, beta=plan.beta)

    def worst(sensitivities: tuple[float, ...]) -> float:
        before, ratios = probabilities(records, sensitivities), []
        for _ in range(200):
            row = generator.normal(size=(1, 3))
            other = BoundedRecords(
                torch.cat([torch.from_numpy(row / np.linalg.norm(row)), records.rows[1:]]),
                torch.cat([torch.from_numpy(generator.uniform(-1, 1, 1).round()), records.targets[1:]]),
                loss=SQUARED,
                row_norm=1.0,
            )
            ratios.append(np.abs(np.log(before / probabilities(other, sensitivities))).max())
        return max(ratios)

    assert worst(plan.sensitivities) <= EPSILON
    # As if all records, and a hundredth of the bound, had been what a score rests on.
    assert worst(tuple(each / 100 for each in plan.sensitivities)) > EPSILON


def test_candidates_are_selected_with_their_probabilities():
    """A chi-squared test of 4000 trials with one and the same model for each radius; wrong once in 1e6."""
    plan = GridSearch.plan(problem(60), RADII, by_output, epsilon=EPSILON)
    quiet = replace(plan, learners=tuple(replace(each, sigma=1e-300) for each in plan.learners))
    quiet = replace(quiet, epsilon=8.0)
    trials = 4000
    found = Counter(learn(quiet, data(60), list(range(trials))).selected.tolist())
    models = [torch.zeros(1, 3).double(), *(learn(each, data(60).part(0, 30), [0]).weights for each in quiet.learners)]
    losses = [
        float(data(60).part(30, 60).mean_losses(each, largest))
        for each, largest in zip(models, quiet.largest_losses, strict=True)
    ]
    expected = generalised_probabilities(losses, quiet.sensitivities, epsilon=8.0, beta=quiet.beta)
    counts = [found[k] for k in range(len(expected))]
    assert stats.chisquare(counts, trials * expected).pvalue > 1e-6


@pytest.mark.parametrize("kind", [GridSearch, Boosting])
def test_runs_of_one_plan_do_not_share_their_noise(kind, monkeypatch):
    """With the noise of one run in another, two releases would be worth one."""
    used: list[int] = []
    given = output_perturbation.normal_rows
    monkeypatch.setattr(output_perturbation, "normal_rows", lambda keys, like: used.extend(keys) or given(keys, like))
    more = {"radii": RADII} if kind is GridSearch else {}
    plan = kind.plan(problem(200), planner=by_output, epsilon=EPSILON, **more)
    learn(plan, data(200), [1, 2, 3])
    assert len(used) == len(set(used)) == 12


def test_boosting_selects_the_best_chunk_where_there_is_no_noise():
    plan = Boosting.plan(problem(1000), by_output, epsilon=1e9)
    records = data(1000)
    records.targets[:200] = -records.targets[:200]  # The first chunk learns the opposite.
    quiet = replace(plan, learner=replace(plan.learner, sigma=1e-300))
    assert 0 not in learn(quiet, records, list(range(50))).selected.tolist()


def test_chunks_are_selected_with_the_law_of_a_noisy_minimum():
    """Chi-squared, 4000 trials with one and the same model of each chunk; wrong once in 1e6."""
    plan = Boosting.plan(problem(100), by_output, epsilon=2.0)
    quiet = replace(plan, learner=replace(plan.learner, sigma=1e-300))
    records, trials = data(100), 4000
    found = Counter(learn(quiet, records, list(range(trials))).selected.tolist())
    models = [learn(quiet.learner, records.part(20 * chunk, 20 * chunk + 20), [0]).weights for chunk in range(4)]
    losses = [float(records.part(80, 100).mean_losses(each, quiet.largest_loss)) for each in models]
    expected = least_of_noisy(losses, quiet.scale)
    assert expected.sum() == pytest.approx(1, abs=1e-6)
    counts = [found[chunk] for chunk in range(4)]
    assert stats.chisquare(counts, trials * expected / expected.sum()).pvalue > 1e-6


def test_what_cannot_be_split_is_refused():
    with pytest.raises(ParameterError, match="chunks"):
        Boosting.plan(problem(4), by_output, epsilon=1.0)
    with pytest.raises(ParameterError, match="at least one radius"):
        GridSearch(learners=(), validated=3, epsilon=1.0)
    runs = (by_output(problem(10), 2), by_output(problem(11), 2))
    with pytest.raises(ParameterError, match="same problem"):
        GridSearch(learners=runs, validated=3, epsilon=1.0)


def test_a_candidate_of_any_probability_can_be_drawn(monkeypatch):
    """The largest number of 512 bits draws the last candidate, the least the first, rare as they may be."""
    from certified_unlearning.mechanisms.private import searches

    rare = np.array([1e-100, 1.0, 1e-100])
    for drawn, candidate in ((0, 0), (1 << 511, 1), ((1 << 512) - 1, 2)):
        monkeypatch.setattr(searches, "bits", lambda key, count, drawn=drawn: drawn)
        assert searches._drawn(rare, 0) == candidate
    monkeypatch.undo()
    drawn = [searches.bits(key, 512) for key in range(500)]
    assert 0.3 < sum(each >> 511 for each in drawn) / 500 < 0.7
    assert len(set(drawn)) == 500
