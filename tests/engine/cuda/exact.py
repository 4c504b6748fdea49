"""Cases of exact unlearning and of private records."""

from functools import partial

import torch
from torch import Tensor

from certified_unlearning.accounting.private import losses
from certified_unlearning.engine.exact import couplings
from certified_unlearning.engine.exact.alive import Alive
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.engine.exact.gradients import GivenRecords, LinearRecords, Loss
from certified_unlearning.engine.exact.prefix_tree import PrefixTree
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from tests.engine.cuda.case import Case, moved, normal, short_rows, whole
from tests.support.prefix_sums import example

N, FEATURES, CLASSES = 12, 3, 3
EDITS = tuple(
    f"engine.exact.{name}"
    for name in (
        "alive:Alive._add",
        "alive:Alive._remove",
        "alive:Alive.edit",
        "couplings:_replace_first",
        "couplings:_seat",
        "couplings:_shuffled_slots",
        "couplings:edited_batches",
    )
)
"""How many batches an edit changes follows from the numbers of the batches."""
LABELS = "engine.exact.gradients:LinearRecords._checked"
"""Labels of records that are appended must be -1 or +1, or classes."""
TREE = tuple(
    f"engine.exact.prefix_tree:{name}"
    for name in (
        "PrefixTree._learn_from",
        "PrefixTree._replace",
        "PrefixTree._sums_below",
        "PrefixTree.delete",
        "PrefixTree.insert",
        "_whole",
    )
)
"""How far up the tree an edit goes follows from draws."""


def edits(device: torch.device, rounds: int) -> list[Tensor]:
    """Edit a set of ids and the batches drawn from it, one request a round."""
    draws = Draws(5, device=device)
    alive = Alive(torch.arange(N, device=device))
    batches = draws.subsets(alive.ids, 4, 3, 5).sort(dim=-1).values
    found: list[Tensor] = []
    for _ in range(rounds):
        # Pairs and removals; newcomers alone; pairs and newcomers.
        for leave, join in (([0, 1, 2], 1), ([], 2), ([3], 2)):
            first = alive.next_id
            removed = torch.tensor([alive_at(alive, each) for each in leave], dtype=torch.int64, device=device)
            inserted = torch.arange(first, first + join, device=device)
            alive.edit(removed, inserted)
            changes = couplings.edited_batches(batches, alive, removed, inserted, draws)
            batches[changes.trials, changes.steps] = changes.members
            found += [changes.leaving, changes.entering, changes.changed, couplings.first_uses(batches, first)]
        found += [batches.clone(), alive.ids.clone(), alive.positions(batches)]
    return found


def alive_at(alive: Alive, place: int) -> int:
    return int(alive.ids[place])


def drawn(device: torch.device, rounds: int) -> list[Tensor]:
    draws = Draws.at("case", device=device)
    fresh = Draws.fresh(device=device)
    assert fresh.device == draws.device == device
    found = []
    for _ in range(rounds):
        found += [draws.normal(2, 3), draws.uniform(4), draws.integers(7, 3)]
        found += [draws.orders(torch.arange(5, device=device), 2), draws.subsets(torch.arange(6, device=device), 3, 2)]
    found.append(couplings.quantized(found[0], 0.3, draws.uniform(2, 3) - 0.5))
    return found


def sums(loss: Loss, dtype: torch.dtype, device: torch.device, rounds: int) -> list[Tensor]:
    """Sum gradients of single records, append records and erase some."""
    labels = {"softmax": whole(CLASSES, N), "squared": normal(N, seed=3)}.get(loss, 2.0 * whole(2, N) - 1)
    rows, more = moved(device, short_rows(N, FEATURES, dtype=dtype), normal(2, FEATURES, dtype=dtype))
    labels, their = moved(device, labels, labels[:2])
    records = LinearRecords(rows, labels, loss=loss, classes=CLASSES, strong_convexity=0.1)
    weights, members = moved(device, normal(4, records.dimension), whole(N, 4, 5))
    found = []
    for _ in range(rounds):
        records.append(more, their)
        found.append(records.sums(weights, members))
        records.erase(members[0])
        records.truncate(N)
    return [*found, records.rows, records.labels]


def given(device: torch.device, rounds: int) -> list[Tensor]:
    def squares(weights: Tensor, rows: Tensor) -> Tensor:
        return weights[:, None] - rows

    rows, weights, members = moved(device, normal(N, FEATURES), normal(4, FEATURES), whole(N, 4, 5))
    return [GivenRecords(squares, rows, dimension=FEATURES).sums(weights, members) for _ in range(rounds)]


def tree(device: torch.device, rounds: int) -> list[Tensor]:
    """Learn prefix sums, delete and insert, and store the state."""
    method, draws = example([0.1, 0.2, -0.3, 1.0]), Draws(8, device=device)
    method.values = method.values.to(device)
    order = draws.orders(torch.arange(7, device=device), 20)
    state, work = PrefixTree.learn(method, torch.tensor([0.4, 0.5, 0.6, 0.7]).double().to(device), order, draws)
    found = [work.queries]
    for number in range(rounds):
        work = state.delete(5 + number, draws)
        found += [work.queries, work.tests, work.rejections, work.learned_again]
        positions = 1 + draws.integers(state.size + 1, state.trials)
        found.append(state.insert(8 + number, positions, draws).learned_again)
    return [*found, *PrefixTree.from_tensors(method, state.tensors()).tensors().values()]


def longer_tree(device: torch.device, rounds: int) -> list[Tensor]:
    """Learn seven positions a round."""
    method, draws = example([0.1, 0.2, -0.3, 1.0, 0.3, 0.7, -0.5]), Draws(8, device=device)
    method.values = method.values.to(device)
    order = draws.orders(torch.arange(7 * rounds, device=device), 5)
    state, work = PrefixTree.learn(method, torch.tensor([0.4, 0.5, 0.6, 0.7]).double().to(device), order, draws)
    return [work.queries, *state.tensors().values()]


def bounded(loss: losses.ScalarLoss, device: torch.device, rounds: int) -> list[Tensor]:
    """Take mean gradients and losses of records whose bounds are enforced."""
    targets = 2.0 * whole(2, N) - 1 if loss.name == "logistic" else normal(N, seed=3)
    rows, targets = moved(device, 2 * short_rows(N, FEATURES), targets)
    rows[0] = 3 * rows[0]
    records = BoundedRecords(rows, targets, loss=loss, row_norm=1.0)
    weights, *members = moved(device, normal(2, FEATURES), torch.tensor([1, 2]), torch.tensor([], dtype=torch.int64))
    found = []
    for _ in range(rounds):
        found += [records.mean_gradients(weights), records.clipped_sums(weights, members, 0.2)]
        found += [records.mean_losses(weights, 1.0), records.part(2, 9).mean_gradients(weights)]
    return found


CASES = [
    Case("edits", edits, EDITS),
    Case("draws", drawn),
    *(
        Case(f"sums of {loss} {dtype}", partial(sums, loss, dtype), () if loss == "squared" else (LABELS,))
        for loss in ("logistic", "softmax", "squared", "hinge")
        for dtype in (torch.float32, torch.float64)
    ),
    Case("given gradients", given),
    Case("prefix tree", tree, TREE),
    Case("prefix tree of more records", longer_tree),
    *(
        Case(f"records bounded for the {loss.name} loss", partial(bounded, loss))
        for loss in (
            losses.ScalarLoss(name="logistic"),
            losses.ScalarLoss(name="squared"),
            losses.ScalarLoss(name="tanh"),
            losses.ScalarLoss(name="absolute", width=0.5),
            losses.ScalarLoss(name="huber", width=0.5),
        )
    ),
]
