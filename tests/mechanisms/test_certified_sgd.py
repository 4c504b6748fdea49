"""Certified SGD: places that no data chooses, boxes of many budgets at once, radii."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.intervals.margins import certify
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.propagation import TIGHTEST, Bounding
from certified_unlearning.engine.intervals.rounding import NAIVE
from certified_unlearning.errors import AssumptionError, ParameterError
from certified_unlearning.mechanisms.certified_sgd.learned import Learned
from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd, dense_network, widths

DESCENT = Descent(loss="binary-cross-entropy", step_size=0.5, clipping="clamp", bound=0.05)
SETTINGS = CertifiedSgd(Network.dense(2, 6, 1), DESCENT, 30, 3, Neighbourhood("additions and removals"))
MOST = 9


def learned(budgets: tuple[int, ...], settings: CertifiedSgd = SETTINGS) -> Learned:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(70) % 2
    rows = torch.randn(70, 2, generator=generator).double() * 0.5 + (2 * labels - 1)[:, None]
    places, start = settings.places(70, generator), settings.start(generator)
    return settings.learn(rows, labels, places, start, torch.ones(70).bool(), budgets)


def queries() -> torch.Tensor:
    return torch.cartesian_prod(*[torch.linspace(-2, 2, 15, dtype=torch.float64)] * 2)


def test_radii_are_those_of_all_boxes() -> None:
    everything = learned(tuple(range(1, MOST + 1)))
    due = everything.certified(queries()).long().cumprod(dim=0).sum(dim=0)
    assert {0, MOST} <= {*due.tolist()}
    assert len({*due.tolist()}) > 4
    assert torch.equal(everything.radii(queries()), due)


def test_budgets_between_boxes_take_the_next_one() -> None:
    found = learned((2, 5))
    assert torch.equal(found.certified_at(queries(), 3), found.certified(queries())[1])
    assert torch.equal(found.certified_at(queries(), 1), found.certified(queries())[0])
    with pytest.raises(ParameterError, match="at most the largest budget, 5, got 6"):
        found.certified_at(queries(), 6)
    assert {*found.radii(queries()).tolist()} <= {0, 2, 5}
    assert found.certified(queries()[:0]).shape == (2, 0)


def test_accuracy_lies_between_its_bounds() -> None:
    found = learned((1, 4))
    labels = (queries().sum(dim=1) > 0).long()
    right = (found.classes(queries()) == labels).double().mean().item()
    bounds = found.accuracy_bounds(queries(), labels)
    assert all(low <= right <= high for low, high in bounds)
    assert bounds[1][0] <= bounds[0][0] < bounds[0][1] <= bounds[1][1]


def test_places_are_drawn_by_number_and_short_batches_are_left_out() -> None:
    one, two = (SETTINGS.places(70, torch.Generator().manual_seed(seed)) for seed in (0, 1))
    assert one.shape == (2, 30)
    assert len({*one.flatten().tolist()}) == 60
    assert not torch.equal(one, two)
    assert torch.equal(one, SETTINGS.places(70, torch.Generator().manual_seed(0)))
    with pytest.raises(ParameterError, match="batch_size must be at most the number of records, 29, got 30"):
        SETTINGS.places(29, torch.Generator())


def test_what_has_no_box_is_refused() -> None:
    with pytest.raises(ParameterError, match="fixed batches"):
        CertifiedSgd(SETTINGS.network, DESCENT, 30, 1, Neighbourhood(normaliser="fixed"))
    for budgets in ((), (-1, 1), (2, 1), (1, 1)):
        with pytest.raises(ParameterError, match="budgets must be whole numbers of at least 0 in increasing order"):
            learned(budgets)
    places = torch.arange(60).reshape(2, 30)
    present = torch.arange(70) >= 30
    rows, labels = torch.zeros(70, 2).double(), torch.zeros(70).long()
    with pytest.raises(AssumptionError, match="a batch has no record left"):
        SETTINGS.learn(rows, labels, places, SETTINGS.start(torch.Generator()), present, (1,))


def test_widths_are_of_dense_networks() -> None:
    assert widths(dense_network(4, (3, 2), 2)) == (4, 3, 2, 1)
    assert widths(dense_network(4, (), 3)) == (4, 3)
    from torch import nn

    with pytest.raises(ParameterError, match="only networks of dense layers"):
        widths(Network.of(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))))


@pytest.mark.parametrize("sizes", [(2, 6, 2), (2, 6, 3), (2, 6, 6, 2), (2, 6, 6, 1)])
def test_naive_rounding_trains_networks_with_hidden_layers(sizes: tuple[int, ...]) -> None:
    """Without it in the bounds both ends of a point may come out of order by a unit in the last place."""
    descent = Descent(loss="binary-cross-entropy" if sizes[-1] == 1 else "cross-entropy", step_size=0.5)
    boxes = [
        learned((0, 1), CertifiedSgd(Network.dense(*sizes), descent, 30, 2, bounding=bounding)).box
        for bounding in (Bounding(rounding=NAIVE), TIGHTEST)
    ]
    for naive, outward in zip(*boxes, strict=True):
        torch.testing.assert_close(naive.lower, outward.lower, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(naive.upper, outward.upper, rtol=1e-9, atol=1e-9)


def test_one_box_is_asked_where_bounds_of_larger_ones_are_no_narrower(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(network: Network, box: Any, *given: Any, **more: Any) -> Any:
        asked.append(len(box[0].lower))
        return certify(network, box, *given, **more)

    shallow = learned((1, 2, 4), replace(SETTINGS, bounding=Bounding(differences="relaxed")))
    deep = learned((1, 2, 4), CertifiedSgd(Network.dense(2, 6, 6, 1), DESCENT, 30, 3))
    updated = learned((1, 2, 4))
    monkeypatch.setattr("certified_unlearning.mechanisms.certified_sgd.learned.certify", counted)
    assert torch.equal(shallow.certified_at(queries(), 1), shallow.certified(queries())[0])
    assert torch.equal(deep.certified_at(queries(), 1), deep.certified(queries())[0])
    assert torch.equal(updated.certified_at(queries(), 1), updated.certified(queries())[0])
    assert asked == [1, 3, 3, 3, 3, 3]
    for each in (shallow, deep, updated):
        nested = each.certified(queries())
        assert bool((nested[1:] <= nested[:-1]).all())
        assert torch.equal(each.radii(queries()), torch.tensor([0, 1, 2, 4])[nested.sum(dim=0)])
