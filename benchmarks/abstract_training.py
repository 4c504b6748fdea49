"""Abstract gradient training compared with plain SGD of the same network, in the same process, on one core.

    python benchmarks/abstract_training.py [--updates 9]

For each network and number of records in a batch, it prints the median processor seconds of an update of plain SGD
(PyTorch's autograd and optimiser, float64) and of abstract training with one budget, measured in turns, and their
ratio. It also prints the time of the linear bounds on the last update, as a number of plain steps, and the largest
resident memory so far. (These bounds are computed once after all updates; the number is 0 if there are none.)
UNLEARNING_KERNEL=off switches the compiled kernel off.
"""

import argparse
import itertools
import resource
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import torch
from torch import nn

from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.last_update import last_update
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.abstract_training.training import Batch, train
from certified_unlearning.engine.intervals.network import Network, parameters_of
from certified_unlearning.engine.intervals.propagation import TIGHTEST

CASES = (
    ("784-128-10", (784, 128, 10), 1000, 25),
    ("768-100-2", (768, 100, 2), 2000, 20),
    ("49-32-10", (49, 32, 10), 10_000, 12),
    ("logistic 784", (784, 1), 2000, 4),
)
SETTINGS = (
    ("removals, no clipping", Neighbourhood(), "none", None),
    ("removals, clamp", Neighbourhood(), "clamp", 0.01),
    ("additions and removals, clamp", Neighbourhood("additions and removals"), "clamp", 0.01),
)


def module_of(widths: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


def seconds(step: Callable[[], object]) -> float:
    begun = time.process_time()
    step()
    return time.process_time() - begun


def compare(name: str, widths: tuple[int, ...], records: int, goal: int, *, updates: int, budgets: list[int]) -> None:
    module, network = module_of(widths), Network.dense(*widths)
    batch = Batch(torch.rand(records, widths[0]).double(), torch.randint(0, max(2, widths[-1]), (records,)))
    optimiser = torch.optim.SGD(module.parameters(), lr=0.01)
    start = parameters_of(module)

    def plain() -> None:
        optimiser.zero_grad()
        logits = module(batch.rows)
        if logits.shape[1] == 1:
            nn.functional.binary_cross_entropy_with_logits(logits[:, 0], batch.labels.double()).backward()
        else:
            nn.functional.cross_entropy(logits, batch.labels).backward()
        optimiser.step()

    loss = "cross-entropy" if widths[-1] > 1 else "binary-cross-entropy"
    for (setting, neighbourhood, clipping, bound), k in itertools.product(SETTINGS, budgets):
        descent = Descent(loss=loss, step_size=0.01, clipping=clipping, bound=bound)
        found: list[float] = []
        plainly: list[float] = []
        batches = timed(itertools.repeat(batch, 1 + updates), found, plain, plainly)
        trained = train(network, descent, start, batches, k=[k], neighbourhood=neighbourhood)
        assert trained.before is not None
        lines = partial(
            last_update, network, descent, trained.before, batch, [k], neighbourhood, TIGHTEST, update=updates
        )
        after = statistics.median(seconds(lines) for _ in range(5)) if lines() else 0.0
        # After the first update, the ends of a box differ.
        each, base = statistics.median(found[1:]), statistics.median(plainly[1:])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{name:14}{records:7}  {setting:32}{k:4}{base:10.4f}{each:10.4f}{each / base:8.1f}{goal:6}"
            f"{after / base:8.1f}{memory:7.0f}",
            flush=True,
        )


def timed(
    batches: Iterable[Batch], found: list[float], plain: Callable[[], object], plainly: list[float]
) -> Iterator[Batch]:
    """Yield the batches, and record the time that each is worked on and the time of a plain step between them."""
    for batch in batches:
        plain()  # The second call finds its records in the cache, as a loop of plain steps would.
        plainly.append(seconds(plain))
        begun = time.process_time()
        yield batch
        found.append(time.process_time() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--updates", type=int, default=9, help="number of timed updates of each kind, after one that is not timed"
    )
    parser.add_argument(
        "--budgets", type=int, nargs="+", default=[1, 10], help="values of k, which are measured one at a time"
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    columns = f"{'k':>4}{'plain':>10}{'abstract':>10}{'ratio':>8}{'goal':>6}{'lines':>8}{'MB':>7}"
    print(f"{'network':14}{'batch':>7}  {'setting':32}{columns}")
    for case in CASES:
        compare(*case, updates=given.updates, budgets=given.budgets)


if __name__ == "__main__":
    main()
