"""Membership inference against certified predictions, and noise: claims that are measured, turned by planted faults."""

import pytest
import torch

from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.papers.gradient_certificates.measures import attacks
from tests.papers.gradient_certificates.test_claims import BY_ID, judged

REPRODUCED = (
    "gc-theorem-4-1",
    "gc-theorem-4-1-uncertified",
    "gc-theorem-4-1-right-labels",
    "gc-theorem-4-1-right-labels-uncertified",
    "gc-line-16-outside-sum",
    "gc-line-16-shared",
    "gc-line-16-check-labels",
    "gc-theorem-4-1-status",
)
CONTRADICTED = ("gc-line-16-outside", "gc-line-16-check")


def test_what_is_proved_holds_and_what_is_not_is_contradicted() -> None:
    expected = dict.fromkeys(REPRODUCED, "reproduced") | dict.fromkeys(CONTRADICTED, "contradicted")
    assert judged(names=[*expected]) == expected
    assert all(BY_ID[name].claim.reading for name in CONTRADICTED)


def test_some_queries_are_certified_and_some_are_not() -> None:
    attacked = attacks._attacked()
    sure = attacks.certify(attacked.network, attacked.box, attacked.queries[None]).certified[0]
    assert 0.2 < float(sure.double().mean()) < 0.98


def test_every_network_without_a_target_lies_in_the_box_bit_for_bit() -> None:
    attacked = attacks._attacked()
    assert bool(attacks._inside(attacked.box, attacked.without).all())
    assert bool(attacks._inside(attacked.box, attacked.with_all).all())


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: boxes that are a point, so that everything is certified."""
    attacked = attacks._attacked()
    point = tuple(Interval(each.clone(), each.clone()) for each in attacked.with_all)
    wrong = attacks.replace(attacked, box=point)
    monkeypatch.setattr(attacks, "_attacked", lambda: wrong)


def test_boxes_that_are_too_narrow_give_the_adversary_an_advantage(narrow: None) -> None:
    names = ["gc-theorem-4-1", "gc-theorem-4-1-right-labels"]
    assert judged(names=names) == dict.fromkeys(names, "contradicted")
    (found,) = attacks.advantage_of_full_knowledge(answers="certified")
    assert found.value > 0


def test_noise_that_only_the_network_has_leaves_boxes_that_claim_to_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = attacks._boxes
    monkeypatch.setattr(attacks, "_boxes", lambda attacked, batch, noise=None: boxes(attacked, batch))
    assert judged(names=["gc-line-16-shared"]) == {"gc-line-16-shared": "contradicted"}


def test_certified_labels_change_where_every_query_counts_as_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    attacked = attacks._attacked()
    (before,) = attacks.labels_changed_after_the_check()
    assert before.value == 0
    everything = attacks.replace(attacked, box=tuple(Interval(each, each) for each in attacked.with_all))
    monkeypatch.setattr(attacks, "_attacked", lambda: everything)
    monkeypatch.setattr(attacks, "_passes", lambda attacked, noise: True)
    assert judged(names=["gc-line-16-check-labels"]) == {"gc-line-16-check-labels": "contradicted"}


def test_line_16_prints_noise_that_is_larger_by_the_size_of_a_batch() -> None:
    attacked = attacks._attacked()
    level = float(attacked.descent.bound or 0)
    drawn = torch.cat([each.flatten() for update in attacks._noise(attacked, level, 0) for each in update])
    assert float(drawn.std()) == pytest.approx(level, rel=0.2)
