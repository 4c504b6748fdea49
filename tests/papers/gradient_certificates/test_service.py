"""Streams of requests to shards with budgets: rows follow their streams, counts are counts, claims turn with faults."""

import pandas as pd
import pytest
import torch
from pydantic import ValidationError

from certified_unlearning.errors import ParameterError
from certified_unlearning.mechanisms.certified_sgd.shards import Sharding, ShardState
from certified_unlearning.papers.gradient_certificates.figures.service import draw
from certified_unlearning.papers.gradient_certificates.findings import service
from certified_unlearning.papers.gradient_certificates.service import ROWS, SERVICE
from certified_unlearning.papers.gradient_certificates.service_sweep import Service
from certified_unlearning.papers.gradient_certificates.tables.service import (
    boxes_of,
    compared_work,
    service_table,
    stream_of,
    waits,
)
from certified_unlearning.reproduction.figure_style import FigureStyle
from tests.papers.gradient_certificates.test_claims import Tables, judged
from tests.support.planning import sweep_of

STYLE = FigureStyle(context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=50)


@pytest.fixture(scope="module")
def sweep() -> Service:
    return sweep_of("smoke", "service")


@pytest.fixture(scope="module")
def rows(sweep: Service) -> pd.DataFrame:
    return service_table(sweep)


def test_every_stream_and_budget_has_its_row(rows: pd.DataFrame, sweep: Service) -> None:
    assert len(rows) == len(sweep.streams) * len(sweep.budgets)
    assert set(rows.columns) == {field.name for field in ROWS}
    assert not rows.duplicated(["stream", "budget"]).any()
    assert (rows["box_cost"] > 1).all()
    assert (rows["compared"] > 100).all()
    assert (rows["wrong"] == 0).all()


def test_counts_are_those_of_the_streams(rows: pd.DataFrame, sweep: Service) -> None:
    one = rows[rows["stream"] == "one shard"].set_index("budget")
    in_turn = rows[rows["stream"] == "in turn"].set_index("budget")
    for budget in sweep.budgets:
        assert one.loc[budget, "first"] == budget + 1
        assert one.loc[budget, "trainings"] == sweep.requests // (budget + 1)
        assert in_turn.loc[budget, "first"] == sweep.shards * budget + 1
        assert in_turn.loc[budget, "out"] == sweep.shards * (budget + 1)
    assert one["out"].isna().all()
    assert one.loc[2, "against_sisa"] > one.loc[1, "against_sisa"] > 1
    assert (one["against_retraining"] > sweep.shards * one["against_sisa"] * 0.8).all()


def test_streams_name_records_of_their_shards(sweep: Service) -> None:
    slices = [place % 6 for place in range(90)]
    for stream, shards in (("one shard", [0] * 10), ("in turn", [0, 1, 2] * 3 + [0])):
        order = stream_of(sweep, stream, slices, torch.Generator().manual_seed(1))
        assert [slices[record] // 2 for record in order[:10]] == shards
        assert len({*order}) == len(order)
    assert sorted(stream_of(sweep, "random", slices, torch.Generator().manual_seed(1))) == [*range(90)]
    with pytest.raises(
        ParameterError, match=r"`requests` must be below the number of records of the stream \(one shard\), 4"
    ):
        stream_of(sweep, "one shard", slices[:10], torch.Generator())


def test_waits_and_work_of_a_stream_that_is_counted_by_hand() -> None:
    sharding = Sharding(12, 2, 2, (1,))
    places = [[(0, 1)], [(2, 1)], [(1, 1)], [(3, 1)]]
    assert waits(torch.tensor([0, 1, 0, 1]), count=2, hits=2) == (3, 4)
    assert waits(torch.tensor([0, 1, 0]), count=2, hits=2) == (3, None)
    assert waits(torch.tensor([1, 1, 1]), count=2, hits=1) == (1, None)
    # Plain SISA trains both stages (2 + 5), those of the other shard, its own second (2 + 2), and the other's.
    assert compared_work(sharding, places) == (7 + 7 + 4 + 4, (7 + 9) + (7 + 7) + (6 + 7) + (6 + 6))


def test_plain_sisa_is_a_budget_of_none() -> None:
    standing = ShardState(Sharding(12, 2, 2, (1,)))
    standing.remove([(3, 1)])
    standing.retrain([1])
    assert (standing.trainings, standing.stages, standing.gradients) == (1, 1, 5)


def test_boxes_are_of_powers_of_two_and_the_budget() -> None:
    assert [boxes_of(each) for each in (1, 2, 5, 8)] == [(1,), (1, 2), (1, 2, 4, 5), (1, 2, 4, 8)]


def test_the_figure_has_a_line_for_each_stream(rows: pd.DataFrame) -> None:
    figure = draw(rows, STYLE)
    refused, saved = figure.axes
    assert len(refused.lines) >= 3
    assert refused.get_xlabel() == saved.get_xlabel() == "Budget of a shard"
    missing = rows.assign(against_sisa=None, against_sisa_std=None)
    assert draw(missing, STYLE).axes


def test_findings_say_what_is_saved_and_what_it_costs(rows: pd.DataFrame) -> None:
    (said,) = service(Tables(service=rows.assign(box_cost=7.2)))  # type: ignore[arg-type]
    assert "times as many gradients as these shards, but each gradient with boxes takes 7 times as long" in said
    assert ": 0 of " in said or "; 0 of " in said
    assert service(Tables()) == []  # type: ignore[arg-type]
    assert service(Tables(service=rows.assign(against_sisa=None))) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("claim", "fault"),
    [
        ("gc-service-no-wrong-answer", {"wrong": 1}),
        ("gc-service-answers", {"compared": 3}),
        ("gc-service-one-shard", {"first": 4.0}),
        ("gc-service-out", {"out": 900.0}),
        ("gc-service-adversary", {"refused": lambda rows: (rows["stream"] == "one shard").astype(float)}),
        ("gc-service-less-work", {"against_sisa": 0.2}),
    ],
)
def test_claims_hold_and_are_contradicted_by_planted_faults(rows: pd.DataFrame, claim: str, fault: dict) -> None:
    assert judged(Tables(service=rows), names=[claim])[claim] == "reproduced"
    assert judged(Tables(service=rows.assign(**fault)), names=[claim])[claim] == "contradicted"


def test_what_makes_no_sense_is_refused(sweep: Service) -> None:
    given = sweep.model_dump()
    for wrong, sentence in (
        ({"data": "nobody"}, "data is 'nobody'"),
        ({"budgets": [4, 2]}, "budgets is \\[4, 2\\], but these numbers must be in increasing order"),
        ({"comparisons": 99}, "`comparisons` must be at most the number of requests"),
        ({"streams": ["else"]}, "streams"),
    ):
        try:
            found = Service.model_validate(given | wrong).check()
        except ValidationError as error:
            found = str(error)
        assert found is not None
        assert sentence.replace("\\", "") in found
    assert sweep.check() is None
    assert SERVICE.sweep is Service
