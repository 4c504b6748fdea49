"""Cases of networks: bounds, abstract training with all its options, and certified predictions."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from certified_unlearning.engine.abstract_training.descent import Descent, State, directions, logits
from certified_unlearning.engine.abstract_training.last_update import last_update
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.abstract_training.poisoning import Poisoning
from certified_unlearning.engine.abstract_training.training import Batch, Trained, train
from certified_unlearning.engine.intervals.clipping import clipped_by_norm
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.last_update import LastUpdate
from certified_unlearning.engine.intervals.losses import any_label_bounds
from certified_unlearning.engine.intervals.margins import certify, margin_bounds, possible
from certified_unlearning.engine.intervals.network import Convolution, Dense, Flatten, Network, Relu
from certified_unlearning.engine.intervals.products import exact_product, norm_above, rump_product, signed_product
from certified_unlearning.engine.intervals.propagation import RUMP, TIGHTEST, Bounding
from certified_unlearning.engine.intervals.rounding import NAIVE
from tests.engine.cuda.case import Case, moved, normal, whole

FEATURES, RECORDS = 3, 6
DENSE = Network.dense(FEATURES, 4, 2)
DEEP = Network.dense(FEATURES, 4, 3, 3)
ONE_LOGIT = Network.dense(FEATURES, 4, 1)
CONVOLUTIONS = Convolution(1, 2, (2, 2), padding=(1, 1)), Relu(), Convolution(2, 2, (3, 3), stride=(2, 2)), Relu()
PICTURES = Network((*CONVOLUTIONS, Flatten(), Dense(2 * 2 * 2, 3)))
LOOKS = (
    # Bounds must be finite and in order, records finite, labels classes, and parameters inside their box.
    "engine.intervals.interval:Interval._is_surely_sound",
    "engine.intervals.losses:require_labels",
    "engine.abstract_training.training:_require_batch",
    "engine.abstract_training.training:_require_inside",
    # The largest budget says how many extremes are kept, and how many removals are tried.
    "engine.abstract_training.neighbourhoods:_choices",
    "engine.abstract_training.neighbourhoods:_slack",
    "engine.abstract_training.neighbourhoods:_sum_of_first",
    "engine.abstract_training.neighbourhoods:_upper",
    "engine.abstract_training.training:_directions",
    "engine.abstract_training.training:_noise_of",
    # Records that may not be removed are counted; terms whose signs are all alike are left out; and so on.
    "engine.abstract_training.extremes:_extremes",
    "engine.abstract_training.extremes:_selected",
    "engine.abstract_training.extremes:summed",
    "engine.intervals.products:signed_product",
    "engine.intervals.propagation:_by_other_classes",
    "engine.intervals.propagation:_gathered_together",
)
"""Where every update of abstract training looks at numbers. It takes some hundred operations an update."""


def problem(network: Network, device: torch.device, batches: int, dtype: torch.dtype) -> tuple[Any, list[Batch]]:
    start = [normal(1, *shape, seed=number, dtype=dtype) for number, shape in enumerate(network.shapes)]
    row = (1, 4, 4) if network is PICTURES else (FEATURES,)
    made = []
    for number in range(batches):
        rows = normal(RECORDS, *row, seed=10 + number, dtype=dtype)
        labels = whole(max(2, network.outputs), RECORDS, seed=20 + number)
        made.append(Batch(*moved(device, rows, labels)))
    return moved(device, *start), made


def tensors_of(trained: Trained) -> list[Tensor]:
    return [*trained.parameters, *(end for each in trained.box for end in each)]


def trained_on(
    network: Network,
    device: torch.device,
    rounds: int,
    *,
    dtype: torch.dtype = torch.float64,
    k: tuple[int, ...] = (1,),
    neighbourhood: Neighbourhood | None = None,
    bounding: Bounding = TIGHTEST,
    divisor: int | None = None,
    poisoning: Poisoning | None = None,
    public: bool = False,
    everyone: bool = False,
    shares_noise: bool = False,
    **descent: Any,
) -> list[Tensor]:
    """Train for as many updates as there are rounds."""
    start, batches = problem(network, device, rounds, dtype)
    if public:
        batches = [Batch(each.rows, each.labels, (whole(2, RECORDS) == 1).to(device)) for each in batches]
    records = Batch(*(torch.cat([getattr(each, name) for each in batches]) for name in ("rows", "labels")))
    loss = "binary-cross-entropy" if network.outputs == 1 else "cross-entropy"
    found = train(
        network,
        Descent(**{"loss": loss, "step_size": 0.1, **descent}),
        start,
        batches,
        k=k,
        neighbourhood=neighbourhood,
        bounding=bounding,
        divisor=divisor,
        poisoning=poisoning,
        everyone=records if everyone else None,
        noise=[start] * rounds if shares_noise else None,
    )
    return tensors_of(found)


def predictions(
    network: Network, device: torch.device, rounds: int, *, bounding: Bounding = TIGHTEST, k: tuple[int, ...] = (1, 2)
) -> list[Tensor]:
    """Train, then certify predictions, with lines of the last update where there are some."""
    start, batches = problem(network, device, 2, torch.float64)
    descent = Descent(loss="binary-cross-entropy" if network.outputs == 1 else "cross-entropy", step_size=0.05)
    done = train(network, descent, start, batches, k=k, bounding=bounding)
    assert done.before is not None
    last = last_update(network, descent, done.before, batches[-1], k, Neighbourhood(), bounding, update=1)
    assert (last is None) == (network.outputs > 2 or bounding is not TIGHTEST)
    found = []
    for number in range(rounds):
        rows = moved(device, normal(1, 5, *batches[0].rows.shape[1:], seed=30 + number))[0]
        found += [
            *certify(network, done.box, rows, bounding, last=last),
            possible(network, done.box, rows, bounding, last=last),
            *margin_bounds(network, done.box, rows, bounding, joint=False),
            logits(network, done.parameters, rows),
        ]
    if last is not None:
        again = LastUpdate.of(last.tensors, done.parameters, len(k)).of_runs(slice(0, 1))
        found += [*again.tensors.values()]
    return found


def retrained(device: torch.device, rounds: int) -> list[Tensor]:
    """Train several runs, some of whose records are missing."""
    start, batches = problem(DENSE, device, rounds, torch.float64)
    state = State(tuple(each.expand(3, *each.shape[1:]) for each in start))
    descent = Descent(step_size=0.1, clipping="l2", bound=0.3, momentum=0.5)
    present = (whole(3, 3, RECORDS) > 0).to(device)
    for batch in batches:
        found = directions(DENSE, descent, state.parameters, batch.rows[None], batch.labels, present=present, at_once=4)
        state.follow(descent, found)
    return [*state.parameters]


def pieces(device: torch.device, rounds: int) -> list[Tensor]:
    """Functions that training does not call, or not with these arguments."""
    left, right = (Interval(middle - 0.1, middle + 0.1) for middle in moved(device, normal(3, 4), normal(4, 2, seed=1)))
    found = [exact_product(left, right), rump_product(left, right), signed_product(left, right, NAIVE)]
    found += [clipped_by_norm(left, 0.75), any_label_bounds(left, "cross-entropy")]
    return [*(end for each in found for end in each), norm_above(left, 0), left.holds(left.lower)]


def _training(name: str, network: Network = DENSE, **options: Any) -> Case:
    return Case(f"train {name}", partial(trained_on, network, **options), LOOKS)


FIXED = Neighbourhood("additions or removals", "fixed")
CASES = [
    _training("two budgets", k=(1, 2)),
    _training("float32", dtype=torch.float32),
    _training("clamped", clipping="clamp", bound=0.1),
    _training("clipped", clipping="l2", bound=0.3, momentum=0.9, weight_decay=0.5, decay=0.3),
    _training("looking ahead", momentum=0.5, nesterov=True),
    _training("pictures", PICTURES, clipping="l2", bound=0.3),
    _training("one logit", ONE_LOGIT),
    _training("squared loss", ONE_LOGIT, loss="squared", clipping="clamp", bound=0.2),
    _training("by midpoints", DEEP, bounding=RUMP),
    _training("without rounding", DEEP, bounding=Bounding(rounding=NAIVE)),
    _training("public records", public=True, k=(1, 2), clipping="clamp", bound=0.1),
    _training("a divisor", neighbourhood=FIXED, divisor=RECORDS, clipping="clamp", bound=0.1, k=(0, 2)),
    _training("newcomers", neighbourhood=Neighbourhood("additions and removals"), clipping="l2", bound=0.1, k=(1, 3)),
    _training("any order", neighbourhood=Neighbourhood(order_free=True), everyone=True),
    _training("coupled decay", momentum=0.5, weight_decay=0.3, couples_decay=True),
    _training("shared noise", shares_noise=True),
    _training("poisoned", poisoning=Poisoning(2, 0.01, 1), k=(0,), clipping="l2", bound=0.2),
    _training("poisoned to one class", poisoning=Poisoning(relabelled=2, to=1), k=(0,), clipping="clamp", bound=0.2),
    _training("shifted numbers", ONE_LOGIT, loss="squared", poisoning=Poisoning(relabelled=1, shift=0.1), k=(0,)),
    Case("predictions", partial(predictions, DENSE)),
    Case("predictions of one logit", partial(predictions, ONE_LOGIT)),
    Case("predictions of deep networks", partial(predictions, DEEP)),
    Case("predictions of pictures", partial(predictions, PICTURES)),
    Case("predictions by midpoints", partial(predictions, DENSE, bounding=RUMP)),
    Case("retraining", retrained),
    Case("pieces of bounds", pieces),
]
