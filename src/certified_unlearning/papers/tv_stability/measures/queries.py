"""Measures of runs of federated averaging and of Lloyd's k-means (linear queries), before and after an edit."""

import math
from typing import Literal

import torch
from torch import Tensor

from certified_unlearning.accounting.tv.recomputation import query_recompute_probability
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.mechanisms.exact.queries.federated_averaging import (
    FederatedAveraging,
    FederatedAveragingSettings,
)
from certified_unlearning.mechanisms.exact.queries.linear_queries import (
    LinearQueries,
    LinearQuerySettings,
    QueryMethod,
    QueryRun,
)
from certified_unlearning.mechanisms.exact.queries.lloyd import Lloyd
from certified_unlearning.papers.tv_stability.measures.simulated import Change
from certified_unlearning.reproduction.claims.registry import measure, sweep
from certified_unlearning.reproduction.claims.relations import Quantity

System = Literal["federated averaging", "k-means"]
_TRIALS = 10_000
_LEARNED, _LEAVES = 17, 3
"""The number of learned records, and the record that a deletion removes. An insertion adds record ``_LEARNED``."""
_STEPS, _SIGMA, _CLIP = 4, 1.5, 2.2
_LOCAL_STEPS, _LOCAL_STEP_SIZE = 3, 0.4


@sweep("{edit}")
def edited_queries(*, system: System, edit: Change) -> list[Quantity]:
    """Return the differences between the last models of edited and of fresh runs, in standard errors.

    The compared numbers are the mean of every entry of a model, and the mean of its square.
    """
    edited, _ = _edited(system, edit)
    records = (
        [*range(_LEARNED), _LEARNED] if edit == "insert" else [each for each in range(_LEARNED) if each != _LEAVES]
    )
    queries = LinearQueries(_method(system), LinearQuerySettings(_STEPS, _SIGMA))
    fresh, _ = queries.learn(torch.tensor(records), _TRIALS, Draws.at("tv_stability", system, edit, "fresh"))
    found = []
    for name, power in (("mean", 1), ("square", 2)):
        here, there = (queries.model(each) ** power for each in (edited, fresh))
        spread = ((here.var(dim=0) + there.var(dim=0)) / _TRIALS).sqrt()
        off = (here.mean(dim=0) - there.mean(dim=0)) / spread
        found += [
            Quantity(float(each), f"{edit}, {name} of number {number}") for number, each in enumerate(off, start=1)
        ]
    return found


@sweep("{edit}")
def edited_query_recomputations(*, system: System, edit: Change) -> Quantity:
    """Return the share of edits that cause a recomputation, divided by our bound.

    The quotient's uncertainty is three standard errors.
    """
    _, again = _edited(system, edit)
    bound = math.hypot(1.0, 1.0) if system == "k-means" else _CLIP
    stated = query_recompute_probability(queries=_STEPS, sigma=_SIGMA, bound=bound)
    return Quantity(float(again.mean()) / stated, "", 3 * float(again.std()) / math.sqrt(_TRIALS) / stated)


@measure
def update_of_two_parts(*, printed: bool) -> float:
    """Return a cluster's update on two parts of the data together, divided by the sum of its updates on each part.

    For every linear query, the quotient is 1, because a linear query is a sum over records. The printed update is the
    mean of the members; our update is their sum.
    """
    parts = torch.tensor([[1.0], [3.0]], dtype=torch.float64), torch.tensor([[5.0]], dtype=torch.float64)
    whole = Lloyd(torch.cat(parts), torch.zeros(1, 1, dtype=torch.float64), row_norm=5.0)

    def asked(records: list[int]) -> float:
        total, members = whole.sums(1, torch.zeros(1, 1, dtype=torch.float64), torch.tensor(records))[0].tolist()
        return float(total / members if printed else total)

    return asked([0, 1, 2]) / (asked([0, 1]) + asked([2]))


def _edited(system: System, edit: Change) -> tuple[QueryRun, Tensor]:
    """Return runs after one edit, and for each run whether it was recomputed."""
    queries, draws = (
        LinearQueries(_method(system), LinearQuerySettings(_STEPS, _SIGMA)),
        Draws.at("tv_stability", system, edit),
    )
    run, _ = queries.learn(torch.arange(_LEARNED), _TRIALS, draws)
    work = queries.insert(run, _LEARNED, draws) if edit == "insert" else queries.delete(run, _LEAVES, draws)
    return run, work.recomputations.double()


def _method(system: System) -> QueryMethod:
    rows = _rows()
    if system == "k-means":
        centres = torch.tensor([[0.6, 0.0], [-0.6, 0.1]], dtype=torch.float64)
        return Lloyd(rows, centres, row_norm=1.0)

    def train(models: Tensor, clients: Tensor) -> Tensor:
        """Return each client's model after some steps towards its own point."""
        own = models[:, None].expand(-1, len(clients), -1)
        for _ in range(_LOCAL_STEPS):
            own = own - _LOCAL_STEP_SIZE * (own - 3 * rows[clients])
        return own

    start = torch.zeros(2, dtype=torch.float64)
    return FederatedAveraging(train, start, FederatedAveragingSettings(clip=_CLIP, nominal_clients=_LEARNED))


def _rows() -> Tensor:
    """Return points of two groups in the disc of radius 1: records for k-means, or clients' data for averaging."""
    angle = torch.arange(_LEARNED + 1, dtype=torch.float64)
    spread = torch.stack([angle.cos(), (2.0 * angle).sin()], dim=1) / 5
    return spread + torch.where(angle % 2 == 0, 0.6, -0.6)[:, None] * torch.tensor([1.0, 0.0], dtype=torch.float64)
