"""Certified shares against attacks: neighbours that were made to change a prediction, trained as the original was.

No sound bound certifies what such a neighbour predicts otherwise. So attacks bound certified shares from above, as
certificates bound from below what attacks can do.
"""

import itertools
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn import functional

from certified_unlearning.engine.abstract_training.descent import Descent, Parameters, State, directions, logits
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.intervals.margins import margin_bounds
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.mechanisms.certified_sgd.learned import Learned
from certified_unlearning.mechanisms.certified_sgd.sgd import CertifiedSgd
from certified_unlearning.papers.gradient_certificates.learning import uniform_start
from certified_unlearning.papers.gradient_certificates.tasks import Task, task_of

pytestmark = pytest.mark.exhaustive

GAMMA = 0.08
DESCENT = Descent(step_size=2.0, decay=0.6, weight_decay=0.02, clipping="clamp", bound=GAMMA)
SEED = 123
"""Of the preset: its first start."""


class Attacked:
    """A network trained with boxes as the preset `certificates` does, and neighbours with ``k`` records exchanged."""

    def __init__(self, data: str, hidden: Sequence[int], epochs: int, k: int) -> None:
        self.task: Task = task_of(data, seed=SEED)
        self.k, self.epochs = k, epochs
        self.network = Network.dense(self.task.features, *hidden, 2)
        sgd = CertifiedSgd(self.network, DESCENT, 2000, epochs, Neighbourhood("additions and removals"))
        generator = torch.Generator().manual_seed(SEED)
        self.start = uniform_start(self.network, generator)
        places = sgd.places(len(self.task), generator)
        everyone = torch.ones(len(self.task), dtype=torch.bool)
        self.learned: Learned = sgd.learn(self.task.rows, self.task.labels, places, self.start, everyone, [k])
        (self.batch,) = places
        self.rows, self.labels = self.task.rows[self.batch], self.task.labels[self.batch]
        signs = torch.tensor([*itertools.product([-1.0, 0.0, 1.0], repeat=self.task.features)], dtype=torch.float64)
        self.newcomers = torch.cat([scale * signs for scale in (1, 10, 100, 1e4)])

    def gradients(self, parameters: Parameters, rows: Tensor, labels: Tensor, towards: Parameters) -> Tensor:
        """How much each record's clamped gradient raises a margin; its step lowers it by as much."""

        def loss(values: tuple[Tensor, ...], row: Tensor, label: Tensor) -> Tensor:
            return functional.cross_entropy(self.scores(values, row), label)

        found = vmap(grad(loss), (None, 0, 0))(tuple(each[0] for each in parameters), rows, labels)
        return sum(
            (each.clamp(-GAMMA, GAMMA) * way).flatten(1).sum(dim=1) for each, way in zip(found, towards, strict=True)
        )

    def scores(self, values: tuple[Tensor, ...], row: Tensor) -> Tensor:
        for place in range(0, len(values), 2):
            row = functional.linear(row.clamp_min(0) if place else row, values[place], values[place + 1])
        return row

    def neighbour(self, target: int) -> Parameters:
        """Parameters learned with ``k`` other records, chosen to change the prediction of a test record."""
        row, values = self.task.test_rows[target], tuple(each[0] for each in self.learned.parameters)
        sign = 1 if int(self.learned.classes(row[None])) == 1 else -1
        towards = grad(lambda inner: sign * (self.scores(inner, row)[1] - self.scores(inner, row)[0]))(values)
        gone = self.gradients(self.start, self.rows, self.labels, towards).topk(self.k, largest=False).indices
        offered = [
            self.gradients(self.start, self.newcomers, torch.full((len(self.newcomers),), label), towards).max(dim=0)
            for label in (0, 1)
        ]
        label = int(offered[1].values > offered[0].values)
        rows, labels = self.rows.clone(), self.labels.clone()
        rows[gone], labels[gone] = self.newcomers[offered[label].indices], label
        state = State(self.start)
        for _ in range(self.epochs):
            state.follow(DESCENT, directions(self.network, DESCENT, state.parameters, rows[None], labels))
        return state.parameters

    def changed(self, targets: Sequence[int]) -> list[bool]:
        """Which of the test records a neighbour predicts otherwise; all differences are within their bounds."""
        found = []
        for target in targets:
            row, other = self.task.test_rows[[target]], self.neighbour(target)
            bounds = margin_bounds(self.network, self.learned.box, row[None], last=self.learned.last)
            here, there = (logits(self.network, each, row[None])[0, 0] for each in (self.learned.parameters, other))
            for scores in (here, there):
                apart = scores[1] - scores[0]
                assert bool((bounds.lower[0, 0, 0, 1] <= apart) & (apart <= bounds.upper[0, 0, 0, 1]))
            found.append(bool(here.argmax() != there.argmax()))
        return found


@pytest.fixture(scope="module")
def near() -> Attacked:
    return Attacked("near", [128], epochs=2, k=80)


@pytest.fixture(scope="module")
def three_layers() -> Attacked:
    return Attacked("far", [32, 32, 32], epochs=1, k=10)


def by_margin(attacked: Attacked) -> list[int]:
    """Test records that are certified, those with the smallest margins of the trained network first."""
    sure = attacked.learned.certified(attacked.task.test_rows)[0]
    scores = attacked.learned.logits(attacked.task.test_rows)
    margins = (scores[:, 1] - scores[:, 0]).abs().masked_fill(~sure, torch.inf)
    return margins.argsort()[: int(sure.sum())].tolist()


def test_no_attack_changes_a_certified_prediction(near: Attacked, three_layers: Attacked) -> None:
    for attacked in (near, three_layers):
        assert not any(attacked.changed(by_margin(attacked)[:30]))


def test_attacks_change_some_predictions_that_are_not_certified(near: Attacked) -> None:
    sure = near.learned.certified(near.task.test_rows)[0]
    assert any(near.changed((~sure).nonzero()[:20, 0].tolist()))


def test_no_sound_bound_certifies_all_predictions_of_three_layers(three_layers: Attacked) -> None:
    # Our notes expect a share of 1.0 for k = 10, of a start that they do not state. Of this one, 36 of 800 predictions
    # change when 10 records are exchanged: no more than .955 can be certified, and .91 are.
    sure = three_layers.learned.certified(three_layers.task.test_rows)[0]
    assert float(sure.double().mean()) == pytest.approx(0.91)
    changed = three_layers.changed((~sure).nonzero()[:, 0].tolist())
    assert sum(changed) / len(sure) > 0.04
