"""Batches are read in pieces, logistic regression by whole rows, and one budget by minima: the boxes are the same."""

import pytest
import torch
from torch import nn

from certified_unlearning.engine.abstract_training import training
from certified_unlearning.engine.abstract_training.descent import Descent, Parameters
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.abstract_training.training import Batch, Trained, train
from certified_unlearning.engine.intervals import kernel
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.network import Network, parameters_of
from certified_unlearning.engine.intervals.propagation import RUMP, TIGHTEST, Bounding, forward
from certified_unlearning.vocabulary import Clipping
from tests.support.retraining import inside, retrained, subsets

NETS = {
    "logistic": (nn.Sequential(nn.Linear(37, 1)), (37,)),
    "dense": (nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4)), (5,)),
    "convolution": (
        nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(18, 3)),
        (1, 5, 5),
    ),
}


def problem(name: str, records: int = 9) -> tuple[Network, Parameters, list[Batch]]:
    torch.manual_seed(11)
    module, shape = NETS[name]
    network, start = Network.of(module), tuple(each.double() for each in parameters_of(module))
    batches = [
        Batch(torch.randn(records, *shape).double(), torch.randint(0, max(2, network.outputs), (records,)))
        for _ in range(2)
    ]
    return network, start, batches * 2


def descent_of(network: Network, clipping: Clipping = "none") -> Descent:
    loss = "cross-entropy" if network.outputs > 1 else "binary-cross-entropy"
    return Descent(loss=loss, step_size=0.1, clipping=clipping, bound=None if clipping == "none" else 0.2)


def assert_same(one: Trained, two: Trained) -> None:
    for first, second in zip(one.box, two.box, strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("clipping", ["none", "clamp", "l2"])
@pytest.mark.parametrize("bounding", [TIGHTEST, RUMP])
def test_pieces_of_a_batch_give_the_box_of_the_whole(
    name: str, clipping: Clipping, bounding: Bounding, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, start, batches = problem(name)
    known = [Batch(each.rows, each.labels, torch.arange(9) < 3) for each in batches]
    descent, found = descent_of(network, clipping), []
    for numbers in (1, 4 * 3 * network.widest(NETS[name][1]), 10**9):
        monkeypatch.setattr(training, "NUMBERS_AT_ONCE", numbers)
        found.append(
            [train(network, descent, start, some, k=[0, 1, 3], bounding=bounding) for some in (batches, known)]
        )
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert_same(one, two)


def test_pieces_of_all_records_give_the_box_of_the_whole_where_the_order_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, start, batches = problem("dense")
    everyone = Batch(torch.cat([each.rows for each in batches[:2]]), torch.cat([each.labels for each in batches[:2]]))
    found = []
    for numbers in (1, 10**9):
        monkeypatch.setattr(training, "NUMBERS_AT_ONCE", numbers)
        neighbourhood = Neighbourhood(order_free=True)
        found.append(
            train(
                network,
                descent_of(network),
                start,
                batches,
                k=[1, 3],
                neighbourhood=neighbourhood,
                everyone=everyone,
            )
        )
    assert_same(*found)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", ["logistic", "dense"])
@pytest.mark.parametrize("clipping", ["none", "clamp", "l2"])
@pytest.mark.parametrize("k", [1, 2])
def test_all_removals_lie_in_boxes_of_one_record_at_a_time(
    name: str, clipping: Clipping, k: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No tolerance; the trainer reads its batch at once, and the box is that of single records."""
    network, start, batches = problem(name, 7)
    if not compiled:
        monkeypatch.setattr(kernel, "takes", lambda *_: False)
    descent = descent_of(network, clipping)
    whole = train(network, descent, start, batches, k=[k])
    monkeypatch.setattr(training, "NUMBERS_AT_ONCE", 1)
    trained = train(network, descent, start, batches, k=[k])
    assert_same(whole, trained)
    masks = subsets(7, k)
    one, two = torch.meshgrid(torch.arange(len(masks)), torch.arange(len(masks)), indexing="ij")
    present = [masks[one.flatten()], masks[two.flatten()]] * 2
    found = retrained(network, descent, start, batches, present)
    for box in (whole, trained):
        assert bool(inside(box, found).all())


@pytest.mark.parametrize(("name", "numbers"), [("logistic", 1), ("dense", 6), ("convolution", 81)])
def test_the_widest_layer_counts_unfolded_inputs_and_pairs_of_logits(name: str, numbers: int) -> None:
    network, start, batches = problem(name)
    assert network.widest(NETS[name][1]) == numbers
    if name == "convolution":
        seen = forward(network, tuple(Interval.point(each) for each in start), batches[0].rows[None])
        assert seen.columns[0].lower[0, 0].numel() == numbers
