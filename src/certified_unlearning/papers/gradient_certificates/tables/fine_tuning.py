"""Fine-tuning of dense layers behind fixed convolutions, in batches of private and public records."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from certified_unlearning.engine.abstract_training.descent import Descent, Parameters, logits
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.abstract_training.training import Batch, train
from certified_unlearning.engine.intervals.network import Network, parameters_of
from certified_unlearning.engine.intervals.propagation import TIGHTEST
from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.certified_sgd.learned import Learned
from certified_unlearning.papers.gradient_certificates.learning import CHANGES
from certified_unlearning.papers.gradient_certificates.sweeps import FineTuning
from certified_unlearning.papers.gradient_certificates.tasks import NewClass, new_class_of
from certified_unlearning.reproduction.simulation.held_out import with_spread

PRETRAINING_BATCH = 100
PRETRAINING_RATE = 0.05
PRETRAINING_MOMENTUM = 0.9


@dataclass(frozen=True, eq=False)
class Pretrained:
    """The result of pre-training: fixed features, and dense layers to train further.

    Attributes:
        data: The training and test records.
        convolutions: The fixed layers that compute the features of images; they return other rows unchanged.
        network: The dense layers.
        start: The parameters of the dense layers.
        private: The places of the training records of the new class.
        public: The places of the training records that are not of the new class.
        tests: The features of the test records.
        new: Whether each test record is of the new class.
    """

    data: NewClass
    convolutions: nn.Module
    network: Network
    start: Parameters
    private: Tensor
    public: Tensor
    tests: Tensor
    new: Tensor

    @property
    def test_labels(self) -> Tensor:
        """The labels of the test records."""
        return self.data.test_labels


def features_of(convolutions: nn.Module, rows: Tensor) -> Tensor:
    """Return the features of records, shape ``(records, features)``, computed in pieces to save memory."""
    with torch.no_grad():
        return torch.cat([convolutions(piece) for piece in torch.split(rows, 1000)])


def fine_tuning_table(sweep: FineTuning) -> pd.DataFrame:
    """Return certified shares of the new class: one row for each mode, gamma and k.

    Raises:
        DataError: The raw files of a data set are missing, or a features file cannot be used.
        ParameterError: A batch needs more private records than the new class has.
    """
    data = new_class_of(sweep.data, seed=sweep.seed, held_back=sweep.held_back)
    if int(data.new.sum()) < sweep.private:
        raise ParameterError(
            f"`private` must be at most the number of training records of {data.name}, {int(data.new.sum())}, got "
            f"{sweep.private}"
        )
    before = [pretrained(data, sweep, sweep.seed + trial) for trial in range(sweep.trials)]
    rows = [row for mode in CHANGES for gamma in sweep.gamma for row in _of_level(before, sweep, mode, gamma)]
    return pd.DataFrame(rows).assign(
        experiment="fine_tuning",
        new_class=data.name,
        channels="-".join(map(str, sweep.channels)) if data.are_images else "",
        n=int(data.new.sum()),
        parameters=before[0].network.size,
        updates=sweep.epochs * (len(before[0].private) // sweep.private),
        **sweep.model_dump(include={"data", "units", "private", "public", "epochs", "trials", "seed"}),
    )


def pretrained(data: NewClass, sweep: FineTuning, seed: int) -> Pretrained:
    """Train a network on all classes except the new class; return the network's features and dense layers.

    The network has convolutions if the records are images.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        convolutions = nn.Sequential(nn.Flatten())
        if data.are_images:
            _require_pixels(data, sweep)
            first, second = sweep.channels
            convolutions = nn.Sequential(
                nn.Conv2d(data.rows.shape[1], first, sweep.kernel, sweep.stride),
                nn.ReLU(),
                nn.Conv2d(first, second, sweep.kernel),
                nn.ReLU(),
                nn.Flatten(),
            ).double()
        features = convolutions(data.rows[:1]).shape[1]
        dense = nn.Sequential(
            nn.Linear(features, sweep.units), nn.ReLU(), nn.Linear(sweep.units, data.classes)
        ).double()
        private, public = (flags.nonzero().view(-1) for flags in (data.new, ~data.new))
        _descend(nn.Sequential(convolutions, dense), data, public, sweep)
    return Pretrained(
        data,
        convolutions,
        Network.of(dense),
        parameters_of(dense),
        private,
        public,
        features_of(convolutions, data.test_rows),
        data.test_new,
    )


def _require_pixels(data: NewClass, sweep: FineTuning) -> None:
    """Raise `ParameterError` if the images are too small for both convolutions."""
    height, width = data.rows.shape[2:]
    if (min(height, width) - sweep.kernel) // sweep.stride + 1 < sweep.kernel:
        raise ParameterError(
            f"`kernel` must be small enough for two convolutions of {height} x {width} pixels, got {sweep.kernel} with "
            f"stride {sweep.stride}"
        )


def fine_tuned(before: Pretrained, sweep: FineTuning, *, mode: str, gamma: float, seed: int) -> Learned:
    """Fine-tune the dense layers, with a box for each k; private records come first in every batch."""
    generator = torch.Generator().manual_seed(seed)
    private = torch.randperm(len(before.private), generator=generator)
    private = private[: len(private) // sweep.private * sweep.private].reshape(-1, sweep.private)
    public = torch.randint(len(before.public), (len(private), sweep.public), generator=generator)
    known = torch.cat([torch.zeros(sweep.private, dtype=torch.bool), torch.ones(sweep.public, dtype=torch.bool)])
    places = torch.cat([before.private[private], before.public[public]], dim=1)
    data = before.data
    batches = [Batch(features_of(before.convolutions, data.rows[each]), data.labels[each], known) for each in places]
    trained = train(
        before.network,
        Descent(step_size=sweep.step_size, decay=sweep.decay, clipping="clamp", bound=gamma),
        before.start,
        batches * sweep.epochs,
        k=sweep.k,
        neighbourhood=Neighbourhood(CHANGES[mode]),
    )
    return Learned(before.network, TIGHTEST, trained.parameters, trained.box, tuple(sweep.k), sweep.private)


def _of_level(before: list[Pretrained], sweep: FineTuning, mode: str, gamma: float) -> Iterator[dict[str, Any]]:
    begun = time.monotonic()
    numbers: dict[str, list[float]] = {}
    shares, others = [], []
    for trial, each in enumerate(before):
        found = fine_tuned(each, sweep, mode=mode, gamma=gamma, seed=sweep.seed + trial)
        sure = found.certified(each.tests).double()
        shares.append(sure[:, each.new].mean(dim=1))
        others.append(sure[:, ~each.new].mean(dim=1))
        right = (found.classes(each.tests) == each.test_labels).double()
        was_right = (logits(each.network, each.start, each.tests[None])[0].argmax(dim=1) == each.test_labels).double()
        for name, value in (
            ("accuracy", right[each.new]),
            ("accuracy_before", was_right[each.new]),
            ("others_accuracy", right[~each.new]),
            ("others_accuracy_before", was_right[~each.new]),
        ):
            numbers.setdefault(name, []).append(float(value.mean()))
    means = {name: sum(values) / len(values) for name, values in numbers.items()}
    seconds = time.monotonic() - begun
    for place, k in enumerate(sweep.k):
        yield {
            "mode": mode,
            "gamma": gamma,
            "k": k,
            **with_spread("share", [float(each[place]) for each in shares]),
            "others_share": sum(float(each[place]) for each in others) / len(others),
            **means,
            **with_spread("accuracy", numbers["accuracy"]),
            "seconds": seconds,
        }


def _descend(model: nn.Module, data: NewClass, places: Tensor, sweep: FineTuning) -> None:
    """Train without bounds, by SGD with momentum; pre-training sees only public records."""
    # SGD is written out: the import and first use of one of PyTorch's optimisers take longer than a small pre-training.
    parameters = list(model.parameters())
    velocities = [torch.zeros_like(each) for each in parameters]
    for _ in range(sweep.pretraining_epochs):
        for batch in torch.split(places[torch.randperm(len(places))], PRETRAINING_BATCH):
            loss = nn.functional.cross_entropy(model(data.rows[batch]), data.labels[batch])
            gradients = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for each, velocity, gradient in zip(parameters, velocities, gradients, strict=True):
                    velocity.mul_(PRETRAINING_MOMENTUM).add_(gradient)
                    each.sub_(PRETRAINING_RATE * velocity)
