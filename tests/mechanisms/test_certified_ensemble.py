"""Ensembles of certified networks: what they answer is what the retrained ensemble says, whoever leaves and when.

Answers after streams of removals are compared with those of an ensemble that is trained from its starts on who is left,
bit for bit in its parameters where a shard was trained again. Planted faults change some answers.
"""

import itertools
from collections.abc import Iterator

import pytest
import torch

from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.training import Batch, train
from certified_unlearning.engine.intervals import kernel
from certified_unlearning.engine.intervals.interval import Interval, IntervalError
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.mechanisms.certified_sgd import ensemble, votes
from certified_unlearning.mechanisms.certified_sgd.ensemble import CertifiedEnsemble, CertifiedShards
from certified_unlearning.mechanisms.certified_sgd.sgd import dense_network
from certified_unlearning.mechanisms.certified_sgd.shards import Sharding, ShardState, replayed
from certified_unlearning.mechanisms.certified_sgd.votes import NO_ANSWER, Votes, decided


def made(
    *,
    n: int = 60,
    shards: int = 5,
    slices: int = 2,
    budgets: tuple[int, ...] = (1, 2),
    classes: int = 2,
    hidden: tuple[int, ...] = (),
    epochs: int = 2,
    seed: int = 0,
    present: torch.Tensor | None = None,
) -> CertifiedShards:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % classes
    centres = torch.randn(classes, 2, generator=generator).double() * 1.5
    rows = torch.randn(n, 2, generator=generator).double() + centres[labels]
    loss = "binary-cross-entropy" if classes == 2 else "cross-entropy"
    settings = CertifiedEnsemble(
        dense_network(2, hidden, classes),
        Descent(loss=loss, step_size=2.0),  # type: ignore[arg-type]
        Sharding(n, shards, slices, budgets),
        epochs,
    )
    everyone = torch.ones(n, dtype=torch.bool) if present is None else present
    return settings.learn(rows, labels, everyone, torch.Generator().manual_seed(seed + 1))


def queries() -> torch.Tensor:
    return torch.cartesian_prod(*[torch.linspace(-4, 4, 15, dtype=torch.float64)] * 2)


def same(one: CertifiedShards, other: CertifiedShards) -> bool:
    names = ("parameters", "lower", "upper")
    return all(
        torch.equal(left, right)
        for name in names
        for left, right in zip(getattr(one, name), getattr(other, name), strict=True)
    )


# What is decided.


def by_all_assignments(possible: torch.Tensor) -> torch.Tensor:
    """The label that all assignments of votes give, by trying every one."""
    found = []
    for record in range(possible.shape[1]):
        choices = [each.nonzero()[:, 0].tolist() for each in possible[:, record]]
        winners = set()
        for assignment in itertools.product(*choices):
            counts = [assignment.count(label) for label in range(possible.shape[2])]
            winners.add(counts.index(max(counts)))
        found.append(winners.pop() if len(winners) == 1 else NO_ANSWER)
    return torch.tensor(found)


@pytest.mark.parametrize(("shards", "classes"), [(1, 2), (2, 2), (5, 2), (3, 3), (4, 4), (5, 3)])
def test_a_label_is_given_exactly_where_no_assignment_of_unknown_votes_changes_it(shards: int, classes: int) -> None:
    generator = torch.Generator().manual_seed(shards * classes)
    possible = torch.rand(shards, 300, classes, generator=generator) < 0.45
    possible[..., 0] |= ~possible.any(dim=-1)
    found = decided(possible)
    assert torch.equal(found.labels, by_all_assignments(possible))
    assert torch.equal(found.abstaining, (possible.sum(dim=-1) > 1).sum(dim=0))
    assert shards == 1 or {NO_ANSWER, 0, 1} <= {*found.labels.tolist()}


# Streams by force.


def random_streams(shards: CertifiedShards, streams: int, seed: int) -> Iterator[list[list[int]]]:
    """Requests of one to three records; half of the streams keep to one shard's records."""
    generator = torch.Generator().manual_seed(seed)
    for stream in range(streams):
        everyone = torch.arange(len(shards.present))
        if stream % 2:
            everyone = everyone[shards.slices // shards.settings.sharding.slices == 0]
        order = everyone[torch.randperm(len(everyone), generator=generator)].tolist()
        sizes = torch.randint(1, 4, (8,), generator=generator).tolist()
        ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
        yield [order[end - size : end] for size, end in zip(sizes, ends, strict=True) if order[end - size : end]]


def by_force(make: dict[str, object], *, streams: int, seed: int = 3) -> tuple[int, int, int, int]:
    """Return the answers given with a vote unknown, wrong ones, refusals, and labels that removals changed."""
    answered = wrong = refused = changed = 0
    first = made(**make)  # type: ignore[arg-type]
    before = first.votes(queries()).labels
    for stream in random_streams(first, streams, seed):
        shards = made(**make)  # type: ignore[arg-type]
        for request in stream:
            shards.forget(request)
            anew = shards.fresh()
            due, found = anew.votes(queries()), shards.votes(queries())
            assert not bool(due.abstaining.any())
            given = found.labels != NO_ANSWER
            answered += int((given & (found.abstaining > 0)).sum())
            wrong += int((found.labels[given] != due.labels[given]).sum())
            refused += int((~given).sum())
            changed += int((due.labels != before).sum())
    return answered, wrong, refused, changed


SMALL = (
    {},
    {"classes": 3, "n": 66},
    {"hidden": (4,), "n": 100, "epochs": 1},
    {"slices": 3, "budgets": (1, 3), "shards": 4, "epochs": 1},
)


@pytest.mark.parametrize("make", SMALL, ids=str)
def test_every_answer_is_that_of_the_ensemble_trained_again(make: dict[str, object]) -> None:
    answered, wrong, refused, changed = by_force(make, streams=4)
    assert wrong == 0
    assert answered > 500
    assert refused > 20
    assert changed > 20


def ignoring(possible: torch.Tensor) -> Votes:
    known = possible.sum(dim=-1) == 1
    counts = (possible & known[..., None]).sum(dim=0)
    return Votes(counts.argmax(dim=-1), (~known).sum(dim=0))


def split_among_the_others(possible: torch.Tensor) -> Votes:
    """An unknown vote counted as half a vote against."""
    known = possible.sum(dim=-1) == 1
    counts = (possible & known[..., None]).sum(dim=0)
    best = counts.topk(2, dim=-1)
    sure = best.values[:, 0] - best.values[:, 1] > (~known).sum(dim=0) / 2
    return Votes(torch.where(sure, best.indices[:, 0], NO_ANSWER), (~known).sum(dim=0))


@pytest.mark.parametrize("fault", [ignoring, split_among_the_others])
def test_unknown_votes_that_count_less_than_they_may_are_found(monkeypatch: pytest.MonkeyPatch, fault: object) -> None:
    monkeypatch.setattr(ensemble, "decided", fault)
    assert by_force({"shards": 4}, streams=2)[1] > 0


def test_a_budget_that_is_off_by_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One update of a logistic regression on one stage has a tight box: a removal too many leaves it."""

    def wrong() -> tuple[int, bool]:
        shards = made(n=40, shards=1, slices=1, budgets=(1,), epochs=1)
        # Removals that pull in one direction: those of one class.
        one_class = (shards.labels == 1).nonzero()[:2, 0].tolist()
        shards.forget(one_class)
        rows = queries() / 20
        found, due = shards.votes(rows), shards.fresh().votes(rows)
        given = found.labels != NO_ANSWER
        try:
            shards.check(shards.fresh())
        except DataError:
            return int((found.labels[given] != due.labels[given]).sum()), False
        return int((found.labels[given] != due.labels[given]).sum()), True

    assert wrong() == (0, True)
    monkeypatch.setattr(ShardState, "largest", lambda standing, shard: 2)
    boxes = CertifiedShards._boxes
    monkeypatch.setattr(
        CertifiedShards, "_boxes", lambda shards, which, needed: boxes(shards, which, [1] * len(needed))
    )
    assert wrong() != (0, True)


def test_a_checkpoint_one_slice_too_late_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def answers_are_right() -> bool:
        shards = made(slices=3, budgets=(1,), n=90)
        shards.forget((shards.slices == 0).nonzero()[:2, 0].tolist())
        return same(shards, shards.fresh())

    assert answers_are_right()
    first = ShardState.first_stage
    monkeypatch.setattr(
        ShardState, "first_stage", lambda self, shard: None if first(self, shard) is None else first(self, shard) + 1
    )
    assert not answers_are_right()


# What training again leaves.


@pytest.mark.parametrize("make", SMALL, ids=str)
def test_a_shard_that_is_trained_again_has_the_bits_of_one_that_never_knew(make: dict[str, object]) -> None:
    shards = made(**make)  # type: ignore[arg-type]
    gone = [3, 14, 15, 9, 26]
    shards.remove(gone)
    assert not same(shards, shards.fresh())
    shards.retrain(range(shards.settings.sharding.shards))
    present = torch.ones(len(shards.present), dtype=torch.bool)
    present[gone] = False
    assert same(shards, made(**make, present=present))  # type: ignore[arg-type]
    assert same(shards, shards.fresh())
    assert shards.standing.spent(0) == 0
    shards.check(shards.fresh())


def test_removed_records_are_not_read_again() -> None:
    shards = made()
    mine = shards.rows
    shards.forget([3, 14])
    assert not shards.rows[[3, 14]].any()
    assert bool(mine[3].any())
    spoiled = made()
    spoiled.remove([3, 14])
    spoiled.rows[[3, 14]] = torch.nan
    spoiled.retrain(range(5))
    spoiled.check(spoiled.fresh())


def test_what_a_check_compares() -> None:
    shards = made()
    shards.remove([3])
    shards.check(shards.fresh())
    shard = int(shards.slices[3]) // 2
    for name in ("parameters", "lower", "upper"):
        other = made()
        other.remove([3])
        getattr(other, name)[0][(shard + 1) % 5, -1] += 1e-9
        with pytest.raises(DataError, match=f"again, and the values of `{name}` differ from the stored values"):
            other.check(other.fresh())
    with pytest.raises(DataError, match=r"^records or slices of the ensemble"):
        shards.check(made(seed=4))
    shards.upper[0][shard, -1] = shards.lower[0][shard, -1]
    with pytest.raises(DataError, match="outside its box"):
        shards.check(shards.fresh())


@pytest.mark.skipif(kernel.library() is None, reason="there is no C++ compiler")
def test_a_check_with_other_software_says_that_it_may_be_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a compiler sums have another order: nobody changed anything, and bits differ."""
    shards = made(n=600, shards=2, hidden=(4,), classes=3)
    shards.check(shards.fresh())
    monkeypatch.setattr(kernel, "library", lambda: None)
    with pytest.raises(DataError, match=r"from the stored values; .* or if a C\+\+ compiler was added"):
        shards.check(shards.fresh())


def test_a_check_finds_what_a_spent_budget_leaves_open() -> None:
    """A shard with records pending votes by its own parameters, and later by larger boxes: neither may be anything."""
    shards = made()
    shards.remove([3])
    shard = int(shards.slices[3]) // 2
    shards.check(shards.fresh())
    # All of the box still votes as before, but the vote that is taken is another one.
    before = shards.votes(queries()).labels
    kept = shards.parameters[0][shard, -1].clone()
    shards.parameters[0][shard, -1] *= -1
    assert not torch.equal(shards.votes(queries()).labels, before)
    with pytest.raises(DataError, match=f"^shard {shard} has parameters outside its box for 1 removal"):
        shards.check(shards.fresh())
    shards.parameters[0][shard, -1] = kept
    shards.check(shards.fresh())
    shards.upper[0][shard, -1, 1] = shards.lower[0][shard, -1, 1]
    with pytest.raises(DataError, match=f"^trained again, shard {shard} has parameters outside its box for 2 removals"):
        shards.check(shards.fresh())


def test_from_tensors_gives_the_same_shards() -> None:
    shards = made()
    shards.forget([3, 14, 15])
    again = CertifiedShards.from_tensors(
        shards.settings,
        shards.rows,
        shards.labels,
        shards.standing,
        {k: v.clone() for k, v in shards.tensors().items()},
    )
    assert same(shards, again)
    assert torch.equal(again.votes(queries()).labels, shards.votes(queries()).labels)


# How long a shard answers.


def test_a_shard_is_trained_again_when_more_than_its_budget_have_left() -> None:
    shards = made(n=100, budgets=(1, 3))
    of_first = (shards.slices == 1).nonzero()[:, 0].tolist()
    for count, record in enumerate(of_first[:8], 1):
        shards.forget([record])
        assert shards.standing.trainings == count // 4
        assert shards.standing.spent(0) == count % 4
    # Slice 1 is the second of two: only that stage is learned again.
    assert shards.standing.stages == 2
    assert shards.standing.gradients == (20 - 4) + (20 - 8)


def test_until_they_are_trained_again_spent_shards_have_no_vote() -> None:
    shards = made(n=100, shards=3, slices=1)
    for shard in range(2):
        shards.remove((shards.slices == shard).nonzero()[:3, 0].tolist())
    assert shards.standing.offline == [0, 1]
    found = shards.votes(queries())
    assert bool((found.labels == NO_ANSWER).all())
    assert bool((found.abstaining == 2).all())
    shards.retrain()
    assert not bool((shards.votes(queries()).labels == NO_ANSWER).any())


def test_an_ensemble_can_lose_all_but_one_record() -> None:
    """Empty batches make no move, and have no budget to spend."""
    shards = made(n=12, shards=2, slices=3, budgets=(1, 2))
    for record in range(11):
        shards.forget([record])
        assert same(shards, shards.fresh()) == (not any(shards.standing.pending))
        shards.check(shards.fresh())
        found, due = shards.votes(queries()), shards.fresh().votes(queries())
        given = found.labels != NO_ANSWER
        assert torch.equal(found.labels[given], due.labels[given])


def test_slices_are_drawn_by_number_and_hold_as_many_records() -> None:
    for n in (60, 61, 67, 69):
        shards = made(n=n)
        counts = shards.slices.bincount(minlength=10).tolist()
        assert counts == [*shards.settings.sharding.sizes]
        assert max(counts) - min(counts) <= 1
    assert not torch.equal(made(seed=1).slices, made(seed=2).slices)


def test_where_an_ensemble_stands_follows_from_where_removed_records_lay() -> None:
    shards, history = made(n=100), []
    for request in next(random_streams(shards, 1, 5)):
        history.append(shards.places(request))
        shards.forget(request)
    assert replayed(shards.settings.sharding, history) == shards.standing
    assert shards.standing.trainings > 0


# What is refused.


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ParameterError, match="budgets must be in rising order"):
        Sharding(10, 2, 1, (2, 1))
    with pytest.raises(ParameterError, match="at most the number of records, 10, got 4 x 3"):
        Sharding(10, 4, 3, (1,))
    with pytest.raises(ParameterError, match="epochs"):
        CertifiedEnsemble(dense_network(2, (), 2), Descent(), Sharding(10, 2, 1, (1,)), 0)
    shards = made()
    with pytest.raises(ParameterError, match="record 60 is not there"):
        shards.remove([60])
    with pytest.raises(ParameterError, match="named twice"):
        shards.remove([3, 3])
    shards.remove([3])
    with pytest.raises(ParameterError, match="record 3 is not there"):
        shards.remove([3])
    with pytest.raises(ParameterError, match="places must be pairs of a slice"):
        ShardState(Sharding(10, 2, 1, (1,))).remove([(0, 6)])


def test_training_goes_on_from_a_box() -> None:
    """Two trainings of one update each are one of two."""
    shards = made(n=30, shards=1, slices=1)
    settings, batch = shards.settings, Batch(shards.rows, shards.labels)
    start = tuple(each[0, 0] for each in shards.parameters)
    once = train(settings.network, settings.descent, start, [batch], k=(1, 2))
    twice = train(settings.network, settings.descent, once.parameters, [batch], k=(1, 2), box=once.box)
    due = train(settings.network, settings.descent, start, [batch, batch], k=(1, 2))
    for one, other in zip(twice.box, due.box, strict=True):
        assert torch.equal(one.lower, other.lower)
        assert torch.equal(one.upper, other.upper)
    with pytest.raises(ParameterError, match="`box` must have the shapes"):
        train(settings.network, settings.descent, start, [batch], k=(1,), box=once.box)
    away = tuple(Interval(each.lower + 9, each.upper + 9) for each in once.box)
    with pytest.raises(IntervalError, match="left its box"):
        train(settings.network, settings.descent, start, [batch], k=(1, 2), box=away)


def test_votes_module_says_no_answer_for_nobody() -> None:
    assert len(made().votes(queries()[:0]).labels) == 0
    assert votes.NO_ANSWER < 0
