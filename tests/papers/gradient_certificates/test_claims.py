"""Verdicts on the claims of certified predictions: decided where their rows are there, turned by planted faults."""

import pandas as pd
import pytest
import torch
from torch import nn

from certified_unlearning.accounting.core import occupancy
from certified_unlearning.engine.abstract_training.descent import Descent, directions
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.network import Network, parameters_of
from certified_unlearning.papers.gradient_certificates.measures import boxes, intervals, printed_numbers
from certified_unlearning.papers.gradient_certificates.paper import PAPER
from certified_unlearning.reproduction.claims.model import load_claims
from certified_unlearning.reproduction.claims.registry import measures
from certified_unlearning.reproduction.claims.verdicts import evaluate
from tests.support.evidence import Tables
from tests.support.planning import experiment_called, make, settings_of, sweep_of

MEASURES = measures(PAPER.measures)
BY_ID = {each.claim.id: each for each in load_claims(PAPER.claims, MEASURES)}
CLAIMS = [each for name, each in BY_ID.items() if not name.startswith("gc-service")]
"""Those of the service have tests of their own."""
EXPERIMENTS = ("regions", "batches", "fine_tuning", "head", "shares")
OF_ROWS = {name for name, each in BY_ID.items() if MEASURES[each.claim.measure].function.__module__.endswith("runs")}
ELSEWHERE = {
    "gc-figure-2-amex",
    "gc-figure-3-oct",
    "gc-figure-3-oct-clipping",
    "gc-figure-3-oct-low-k",
    "gc-figure-4-imdb",
    "gc-figure-4-imdb-accuracy",
}
CONTRADICTED = {
    "gc-appendix-a": "printed 0, computed 2.768115",
    "gc-line-10-norm": "entry 0: -0.4500624, expected at least 0",
    "gc-theorem-4-2-divisor": "1.5, expected at most 1",
    "gc-recut": "printed 0, computed 1",
    "gc-limit-kink": "b = 10000 over b = 100: 0.98",
    "gc-line-16-outside": ", expected",
    "gc-line-16-check": "printed 0, computed 10",
    "gc-appendix-c-1": "epsilon = 0.1: -0.1051709, expected at least 0",
    "gc-table-1-amex": "printed 5.4, computed 5.531451",
}
"""Claims that are wrong whatever is run, with the number that says so."""


def judged(*evidence: Tables, names=None) -> dict[str, str]:
    claims = CLAIMS if names is None else [BY_ID[name] for name in names]
    return {verdict.id: verdict.verdict for verdict in evaluate(claims, evidence)}


@pytest.fixture(scope="module")
def tables() -> Tables:
    settings = settings_of("smoke")
    return Tables(**{name: make(name, settings, sweep_of("smoke", name), {}) for name in EXPERIMENTS})


@pytest.fixture(scope="module")
def verdicts(tables):
    return {verdict.id: verdict for verdict in evaluate(CLAIMS, [tables])}


def test_claims_and_measures_share_no_names_with_those_of_other_papers():
    assert all(name.startswith("gc-") for name in BY_ID)
    assert len(BY_ID) >= 30


def test_without_results_claims_of_rows_are_not_run_and_all_others_are():
    found = judged()
    assert {name for name, verdict in found.items() if verdict == "not run"} == OF_ROWS | ELSEWHERE


def test_rows_have_the_columns_that_are_declared(tables):
    for name in EXPERIMENTS:
        assert set(tables.table(name).columns) == set(experiment_called(name).rows.names), name


def test_what_is_wrong_is_contradicted(verdicts):
    always = {name: each for name, each in verdicts.items() if name not in OF_ROWS}
    assert {name for name, each in always.items() if each.verdict == "contradicted"} == set(CONTRADICTED)


@pytest.mark.parametrize("name", CONTRADICTED)
def test_contradictions_name_the_number_and_what_explains_it(verdicts, name):
    assert CONTRADICTED[name] in verdicts[name].reason
    assert BY_ID[name].claim.note
    assert BY_ID[name].claim.note[1:] in verdicts[name].reason
    assert BY_ID[name].claim.reading


def test_of_the_papers_own_only_slips_are_contradicted_by_formulas():
    own = {name for name in CONTRADICTED if BY_ID[name].claim.whose == "paper"}
    assert own == {"gc-appendix-a", "gc-appendix-c-1", "gc-table-1-amex", "gc-line-16-outside"}
    assert all(BY_ID[name].claim.misprint for name in own)


def test_four_trainings_are_fewer_than_one_and_one_a_request_from_four_requests_on():
    costs = MEASURES["boxes_over_retrainings"].bind({"requests": [3, 4]})([])
    assert [each.value for each in costs] == [1, 0.8]


MONOTONE = (
    "gc-figure-1-modes",
    "gc-figure-3-modes",
    "gc-figure-4-earlier",
    "gc-figure-4-head-modes",
    "gc-figure-4-bounds",
    "gc-shares-fall",
)
"""What holds by construction, on any data."""


@pytest.mark.parametrize("name", MONOTONE)
def test_what_boxes_imply_holds_in_rows(verdicts, name):
    assert verdicts[name].verdict == "reproduced"


# --- Planted faults --------------------------------------------------------------------------------------------------


def narrower(product, factor=0.5):
    def narrowed(left, right, *rounding):
        low, high = product(left, right, *rounding)
        middle, radius = (low + high) / 2, factor * (high - low) / 2
        return Interval(middle - radius, middle + radius)

    return narrowed


def of_removals(changes, normaliser="present"):
    return Neighbourhood("removals", normaliser)


def without_the_widest(network, descent, start, batches, *, k, **options):
    return TRAIN(network, descent, start, batches, k=[0] * len(k), **options)


TRAIN = boxes.train
FAULTS = {
    "products half as wide": (
        [(intervals, "rump_product", narrower(intervals.rump_product))],
        ["gc-theorem-4-3", "gc-theorem-4-3-width"],
    ),
    "softmax half as wide": (
        [
            (
                intervals,
                "softmax_bounds",
                lambda box, rounding=None: narrower(lambda left, right: intervals_softmax(left))(box, box),
            )
        ],
        ["gc-appendix-b-tight-sound"],
    ),
    "additions left out": ([(boxes, "Neighbourhood", of_removals)], ["gc-lines-14-15", "gc-fixed-divisor"]),
    "boxes for no removals": ([(boxes, "train", without_the_widest)], ["gc-lines-12-13", "gc-theorem-4-2"]),
    "one hit too few": (
        [(occupancy, "requests_until_all", lambda d, m, real=occupancy.requests_until_all: real(d, m + 1))],
        ["gc-dos-shards"],
    ),
    "clamping that changes ends": (
        [(intervals, "clamped", lambda values, bound: Interval(values.upper, values.lower))],
        ["gc-line-10-clamp"],
    ),
    "a table of other proportions": (
        [(printed_numbers, "FIGURE_4", {("unlearning", 1): 0.5, ("privacy", 1): 0.6})],
        ["gc-figure-4-modes"],
    ),
}
"""What is planted, and claims that are reproduced without it and contradicted with it."""
intervals_softmax = intervals.softmax_bounds


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_turns_the_verdict(monkeypatch, verdicts, fault):
    planted, names = FAULTS[fault]
    assert {verdicts[name].verdict for name in names} == {"reproduced"}
    for target, name, replacement in planted:
        monkeypatch.setattr(target, name, replacement)
    assert judged(names=names) == dict.fromkeys(names, "contradicted")


@pytest.mark.parametrize(
    ("experiment", "column", "change", "names"),
    [
        ("shares", "share", lambda table: 1 - table["share"], ["gc-shares-fall"]),
        ("regions", "radius", lambda table: table["radius"] * (table["mode"] == "privacy"), ["gc-figure-1-modes"]),
        ("fine_tuning", "share", lambda table: (table["mode"] == "privacy") + 0.0, ["gc-figure-3-modes"]),
        ("head", "share", lambda table: table["epochs"] / 10, ["gc-figure-4-earlier"]),
        ("head", "share", lambda table: (table["mode"] == "privacy") + 0.0, ["gc-figure-4-head-modes"]),
        ("head", "least_accuracy", lambda table: table["accuracy"] + 0.1, ["gc-figure-4-bounds"]),
    ],
)  # fmt: skip
def test_rows_that_say_otherwise_turn_the_verdict(tables, experiment, column, change, names):
    table = tables.table(experiment)
    wrong = tables.changed(experiment, **{column: change(table)}, **({"share_std": 0.0} if column == "share" else {}))
    assert judged(wrong, names=names) == dict.fromkeys(names, "contradicted")


def test_least_batches_are_compared_by_depth_and_by_mode():
    rows = pd.DataFrame(
        [
            {"mode": mode, "depth": depth, "batch_size": size, "share": share, "wanted": 0.9}
            for mode, depth, size, share in (
                ("unlearning", 0, 10, 0.95), ("unlearning", 1, 10, 0.5), ("unlearning", 1, 20, 0.9),
                ("privacy", 0, 10, 0.5), ("privacy", 0, 20, 0.9), ("privacy", 1, 20, 0.1),
            )
        ]
    )  # fmt: skip
    evidence = [Tables(batches=rows)]
    assert [each.value for each in MEASURES["least_batch_changes"].bind({"across": "depth"})(evidence)] == [2]
    assert [each.value for each in MEASURES["least_batch_changes"].bind({"across": "mode"})(evidence)] == [2]


# --- Oracles ---------------------------------------------------------------------------------------------------------


def test_the_trainers_gradient_is_pytorchs():
    torch.manual_seed(1)
    module = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    row, label = torch.randn(1, 3).double(), torch.zeros(1, dtype=torch.int64)
    nn.functional.cross_entropy(module(row), label).backward()
    found = directions(Network.of(module), Descent(), parameters_of(module), row[None], label)
    for ours, theirs in zip(found, module.parameters(), strict=True):
        assert torch.allclose(ours[0], theirs.grad, atol=1e-14)


def test_a_sweep_with_more_private_records_than_a_batch_is_refused():
    sweep = sweep_of("smoke", "fine_tuning")
    assert "private" not in (sweep.check() or "")
    wrong = sweep.model_copy(update={"k": [sweep.private]})
    assert wrong.check() == (
        f"k has k = {sweep.private} removals in batches of {sweep.private} records, but k must be below the batch size"
    )
