"""Private labels of a certified network: laws of real neighbours, what is refused, and that draws follow the law."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from certified_unlearning.accounting.private.stable_labels import LabelLaw, divergence, label_law
from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.intervals.propagation import RUMP, Bounding
from certified_unlearning.engine.intervals.rounding import NAIVE
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.mechanisms.certified_sgd.learned import Learned
from certified_unlearning.mechanisms.certified_sgd.releases import LabelRelease
from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd, dense_network

RECORDS, LARGEST = 24, 6
DESCENT = Descent(loss="binary-cross-entropy", step_size=0.5, clipping="clamp", bound=0.05)
SETTINGS = CertifiedSgd(dense_network(2, (), 2), DESCENT, RECORDS // 2, 2, Neighbourhood("additions and removals"))
EVERY = tuple(range(1, LARGEST + 1))
EPSILON, DELTA = 1.0, 1e-3
RULES = [("cauchy", 0.0), ("laplace", DELTA), ("stable", DELTA)]


def records(outputs: int = 1) -> tuple[Tensor, Tensor]:
    labels = torch.arange(RECORDS) % max(2, outputs)
    noise = torch.randn(RECORDS, 2, generator=torch.Generator().manual_seed(0)).double()
    return noise * 0.3 + (2 * labels - 1)[:, None], labels


def trained(
    settings: CertifiedSgd = SETTINGS,
    budgets: tuple[int, ...] = EVERY,
    *,
    gone: int | None = None,
    replaced: tuple[int, Tensor, int] | None = None,
    outputs: int = 1,
) -> Learned:
    rows, labels = records(outputs)
    present = torch.ones(RECORDS, dtype=torch.bool)
    if gone is not None:
        present[gone] = False
    if replaced is not None:
        rows[replaced[0]], labels[replaced[0]] = replaced[1], replaced[2]
    places = torch.arange(RECORDS).reshape(2, -1)
    start = settings.start(torch.Generator().manual_seed(1))
    return settings.learn(rows, labels, places, start, present, budgets)


def queries() -> Tensor:
    return torch.cartesian_prod(*[torch.linspace(-2, 2, 25, dtype=torch.float64)] * 2)


def neighbours(settings: CertifiedSgd, relation: str) -> Iterator[Learned]:
    corner = torch.tensor([20.0, 20.0], dtype=torch.float64)
    for place in range(0, RECORDS, 2):
        if relation == "add-remove":
            yield trained(settings, gone=place)
        else:
            yield trained(settings, replaced=(place, corner, 0))
            yield trained(settings, replaced=(place, -corner, 1))


def radii(learned: Learned) -> Tensor:
    return learned.certified(queries()).long().cumprod(dim=0).sum(dim=0)


def coarse(learned: Learned) -> Tensor:
    return torch.where(radii(learned) == LARGEST, LARGEST, 0)


def worst(law: LabelLaw, settings: CertifiedSgd, relation: str, of: Callable[[Learned], Tensor] = radii) -> float:
    """Return the least delta at epsilon, by the exact laws of this data set and of its neighbours, over all queries."""

    def laws(learned: Learned) -> list[tuple[int, int]]:
        return list(zip(of(learned).tolist(), learned.classes(queries()).tolist(), strict=True))

    mine = laws(trained(settings))
    return max(
        divergence(law.outcomes(*p), law.outcomes(*q), EPSILON)
        for other in neighbours(settings, relation)
        for one, two in {*zip(mine, laws(other), strict=True)}
        for p, q in ((one, two), (two, one))
    )


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        replace(SETTINGS, bounding=RUMP),
        replace(SETTINGS, network=dense_network(2, (4,), 2), descent=replace(DESCENT, clipping="l2", momentum=0.5)),
        replace(SETTINGS, network=dense_network(2, (4,), 2), bounding=RUMP),
    ],
)
def test_radii_of_neighbours_differ_by_one_and_labels_agree_above_zero(relation, settings):
    mine = trained(settings)
    assert len({*radii(mine).tolist()}) >= 4
    moved = 0
    for other in neighbours(settings, relation):
        gap = (radii(mine) - radii(other)).abs()
        moved += int(gap.sum())
        assert int(gap.max()) <= 1
        sure = (radii(mine) > 0) | (radii(other) > 0)
        assert torch.equal(mine.classes(queries())[sure], other.classes(queries())[sure])
    assert moved


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("rule", "delta"), RULES)
def test_laws_of_real_neighbours_keep_the_guarantee(rule, delta, relation):
    law = label_law(rule, epsilon=EPSILON, delta=delta, largest=LARGEST)
    assert worst(law, SETTINGS, relation) <= delta


def test_radii_of_a_coarse_grid_break_the_guarantee():
    law = label_law("stable", epsilon=EPSILON, delta=DELTA, largest=LARGEST)
    assert worst(law, SETTINGS, "replace-one", coarse) > 10 * DELTA


def test_radii_of_unlearning_boxes_break_the_guarantee():
    # Removals need no clipping; then a single other record may turn any label.
    descent = replace(DESCENT, clipping="none", bound=None)
    unlearning = replace(SETTINGS, neighbourhood=Neighbourhood("removals"), descent=descent)
    law = label_law("stable", epsilon=EPSILON, delta=DELTA, largest=LARGEST)
    assert worst(law, unlearning, "replace-one") > 10 * DELTA


@pytest.mark.parametrize(
    ("changes", "relation", "budgets", "words"),
    [
        ("removals", "replace-one", EVERY, "boxes for the changes 'additions and removals', got 'removals'"),
        ("removals", "add-remove", EVERY, "'additions and removals' or 'additions or removals', got 'removals'"),
        ("substitutions", "add-remove", EVERY, "got 'substitutions'"),
        ("additions or removals", "replace-one", EVERY, "got 'additions or removals'"),
        ("additions and removals", "replace-one", (1, 2, 4), r"up to the largest, 4, but k = 3 is missing"),
        ("additions and removals", "replace-one", (2, 3), r"k = 1 is missing"),
    ],
)
def test_radii_that_are_none_are_refused(changes, relation, budgets, words):
    settings = replace(SETTINGS, neighbourhood=Neighbourhood(changes))
    found = trained(settings, budgets)
    with pytest.raises(AssumptionError, match=words):
        LabelRelease(settings, found, rule="cauchy", epsilon=1.0, relation=relation)


def test_what_else_is_refused():
    found = trained()
    naive = replace(SETTINGS, bounding=Bounding(rounding=NAIVE))
    with pytest.raises(AssumptionError, match="need rounding outward"):
        LabelRelease(naive, trained(naive), rule="cauchy", epsilon=1.0)
    with pytest.raises(ParameterError, match="settings must be those that the network was trained with"):
        LabelRelease(replace(SETTINGS, bounding=RUMP), found, rule="cauchy", epsilon=1.0)
    with pytest.raises(ParameterError, match="relation must be replace-one or add-remove, got 'zero-out'"):
        LabelRelease(SETTINGS, found, rule="cauchy", epsilon=1.0, relation="zero-out")
    with pytest.raises(ParameterError, match="delta must be 0 for Cauchy noise"):
        LabelRelease(SETTINGS, found, rule="cauchy", epsilon=1.0, delta=1e-5)
    descent = replace(DESCENT, loss="cross-entropy")
    three = replace(SETTINGS, network=dense_network(2, (), 3), descent=descent)
    classes = trained(three, outputs=3)
    with pytest.raises(ParameterError, match="rule must be 'stable' for more than two classes, got 'laplace'"):
        LabelRelease(three, classes, rule="laplace", epsilon=1.0, delta=DELTA)
    assert LabelRelease(three, classes, rule="stable", epsilon=1.0, delta=DELTA).labels(queries()[:1])[0] in (
        None,
        *range(3),
    )


def test_queries_are_counted_and_end():
    release = LabelRelease(SETTINGS, trained(), rule="laplace", epsilon=0.5, delta=1e-6, queries=3)
    assert release.spent == (0, 0)
    release.labels(queries()[:2])
    assert release.spent == pytest.approx((1.0, 2e-6))
    with pytest.raises(ParameterError, match="at most 1, because 1 of 3 queries are left, got 2"):
        release.labels(queries()[:2])
    assert release.answered == 2
    release.labels(queries()[:1])
    assert release.spent == pytest.approx((1.5, 3e-6))
    assert release.spent[0] >= 1.5


@pytest.mark.parametrize(("rule", "delta"), RULES)
def test_draws_follow_the_law(rule, delta):
    # Hoeffding: of a correct program, each rule fails with probability at most 2 x 2 exp(-2 x 4000 x 0.06^2) < 2e-12.
    found, draws = trained(), 4000
    law = label_law(rule, epsilon=2.0, delta=0.2 if delta else 0.0, largest=LARGEST)
    release = LabelRelease(SETTINGS, found, rule=rule, epsilon=2.0, delta=law.delta, queries=2 * draws)
    for radius in (0, 3):
        place = int((radii(found) == radius).nonzero()[0])
        row = queries()[place]
        due, label = law.kept[radius], int(found.classes(row[None]))
        drawn = release.labels(row.expand(draws, 2))
        assert {*drawn} == {label, None if rule == "stable" else 1 - label}
        assert abs(drawn.count(label) / draws - float(due)) <= 0.06


def test_radii_of_a_deep_network_are_those_of_bounds_without_lines() -> None:
    """Lines of a larger box may give narrower bounds, so that by them neighbours' radii may differ by more than one."""
    deep = replace(SETTINGS, network=dense_network(2, (6, 6), 2))
    learned = trained(deep)
    without = replace(learned, bounding=Bounding(differences="joint"))
    assert bool((radii(learned) > radii(without)).any())
    released = LabelRelease(deep, learned, rule="laplace", epsilon=EPSILON, delta=DELTA)
    assert torch.equal(radii(released._learned), radii(without))
