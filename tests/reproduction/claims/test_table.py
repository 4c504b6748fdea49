"""The tables of claims: every paper's is whole, and damaged ones are refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.papers.all import PAPERS, papers
from certified_unlearning.papers.langevin_unlearning.fig4 import FIG4
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction.claims.model import by_cause, claims_of, load_claims
from certified_unlearning.reproduction.claims.registry import measures
from certified_unlearning.reproduction.claims.verdicts import evaluate
from certified_unlearning.reproduction.paper import Paper

TWIN = Paper(name="twin", title="Twin", package=PAPER.package, experiments=(FIG4,))
WITH_CLAIMS = [paper for paper in PAPERS if paper.claims is not None]


def load(path):
    return load_claims(path, measures(PAPER.measures))


# --- The tables of all papers. ------------------------------------------------------------------------------


def test_claims_of_all_papers_have_distinct_names():
    names = [each.claim.id for claims in claims_of(PAPERS).values() for each in claims]
    assert len(names) == len(set(names)) >= 90


def test_two_papers_with_a_claim_of_one_name_are_refused():
    with pytest.raises(DataError, match=r"claim .* occurs in two tables of claims"):
        claims_of([PAPER, replace(PAPER, name="twin")])


def test_no_two_papers_have_an_experiment_of_one_name():
    names = [each.name for paper in PAPERS for each in paper.experiments]
    assert len(names) == len(set(names))
    with pytest.raises(ParameterError, match="two experiments are called fig4; rename one"):
        papers([f"{__name__}:TWIN"])


@pytest.mark.parametrize("paper", WITH_CLAIMS, ids=lambda paper: paper.name)
def test_no_verdict_is_written_by_hand(paper):
    keys = {key for entry in yaml.safe_load(paper.claims.read_text(encoding="utf-8")) for key in entry}
    always = {"id", "source", "statement", "measure", "arguments", "expected"}
    assert always <= keys <= always | {"data", "note", "whose", "misprint", "reading"}


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_every_measure_has_a_claim(paper):
    assert {each.claim.measure for each in claims_of([paper]).get(paper.name, [])} == set(measures(paper.measures))


# --- Damaged tables. ----------------------------------------------------------------------------------------

CLAIM = {
    "id": "a-claim",
    "source": "Table 1",
    "statement": "M = 1.",
    "measure": "table_1_constant",
    "arguments": {"datasets": ["adult"], "constant": "lipschitz"},
    "expected": {"relation": "equals", "values": [1]},
}
ORDER = {"relation": "between", "why": "none"}


def table(path: Path, *claims: object) -> Path:
    file = path / "claims.yaml"
    file.write_text(yaml.safe_dump(list(claims)))
    return file


READING = {"assumes": "Nothing.", "setting": "None.", "right_if": "M is 2.", "cause": "M is 1"}
LONG = "M is " + "very " * 20 + "small"


@pytest.mark.parametrize("cause", ["M is 1.", "m is 1", LONG, " "])
def test_a_cause_that_is_no_short_clause_is_refused(cause, tmp_path):
    with pytest.raises(DataError, match=r"claim a-claim: reading\.cause: String should"):
        load(table(tmp_path, CLAIM | {"reading": READING | {"cause": cause}}))


def test_claims_with_one_cause_must_agree_on_what_would_make_them_right(tmp_path):
    claims = [
        CLAIM | {"id": name, "reading": READING | {"right_if": right}} for name, right in [("a", "x"), ("b", "y")]
    ]
    with pytest.raises(DataError, match="claims a and b have the same cause, but not the same right_if"):
        load(table(tmp_path, *claims))
    claims[1]["reading"]["cause"] = ""
    assert [
        [each.id for each in group] for group in by_cause(each.claim for each in load(table(tmp_path, *claims)))
    ] == [
        ["a"],
        ["b"],
    ]


def test_a_table_of_ones_own_can_be_read(tmp_path):
    assert [each.claim.id for each in load(table(tmp_path, CLAIM))] == ["a-claim"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"measure": "magic"}, "claim a-claim: measure 'magic' is none of accuracy_change"),
        ({"arguments": {"datasets": ["adult"]}}, "claim a-claim: constant: Field required"),
        ({"arguments": CLAIM["arguments"] | {"colour": 1}}, "claim a-claim: colour: Extra inputs"),
        ({"arguments": CLAIM["arguments"] | {"datasets": ["moons"]}}, r"claim a-claim: datasets\.0: Input should be"),
        ({"expected": {"relation": "resembles"}}, "claim a-claim: expected: Input tag 'resembles'"),
        ({"expected": {"relation": "equals", "values": []}}, r"claim a-claim: expected\.equals\.values"),
        ({"expected": {"relation": "equals", "values": [1], "absolute": 0.1}}, "a tolerance needs a `why`"),
        ({"expected": ORDER}, "give `low`, `high` or both"),
        ({"expected": {"relation": "equals", "values": [float("nan")]}}, "finite number"),
        ({"verdict": "reproduced"}, "claim a-claim: verdict: Extra inputs"),
        ({"statement": ""}, "claim a-claim: statement"),
        ({"id": "A claim"}, "claim A claim: id"),
    ],
)
def test_a_damaged_claim_is_refused_by_its_name(tmp_path, change, message):
    with pytest.raises(DataError, match=message):
        load(table(tmp_path, CLAIM | change))


def test_two_claims_of_one_name_are_refused(tmp_path):
    with pytest.raises(DataError, match="claim a-claim occurs twice"):
        load(table(tmp_path, CLAIM, CLAIM))


def test_a_claim_without_a_name_is_refused_by_its_number(tmp_path):
    with pytest.raises(DataError, match="claim number 2: id: Field required"):
        load(table(tmp_path, CLAIM, {key: CLAIM[key] for key in CLAIM if key != "id"}))
    with pytest.raises(DataError, match="claim number 2"):
        load(table(tmp_path, CLAIM, "M = 1"))


@pytest.mark.parametrize(
    ("text", "message"),
    [("- {", "is not valid YAML"), ("id: x", "does not hold a list"), ("[]", "does not hold a list")],
)
def test_what_is_no_table_is_refused(tmp_path, text, message):
    (tmp_path / "claims.yaml").write_text(text)
    with pytest.raises(DataError, match=message):
        load(tmp_path / "claims.yaml")


def test_a_table_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"cannot read .*claims\.yaml: No such file"):
        load(tmp_path / "claims.yaml")


def test_as_many_values_must_be_expected_as_measured(tmp_path):
    claims = load(table(tmp_path, CLAIM | {"expected": {"relation": "equals", "values": [1, 2]}}))
    with pytest.raises(ParameterError, match="claim a-claim: 2 values are expected, but 1 were measured"):
        evaluate(claims, [])


def test_ten_classes_have_no_spectral_smoothness(tmp_path):
    arguments = {"dataset": "cifar10", "smoothness": "spectral", "records_per_request": 5}
    claims = load(table(tmp_path, CLAIM | {"measure": "stream_total", "arguments": arguments}))
    with pytest.raises(ParameterError, match=r"claim a-claim: .*cifar10 needs `smoothness: bound`, got `spectral`"):
        evaluate(claims, [])


# --- Second readings. ----------------------------------------------------------------------------------------

BASELINES = Path(__file__).parents[3] / "workflow" / "baselines" / "claims"
CONTRADICTED = {
    name
    for path in BASELINES.glob("*.json")
    for name, verdict in json.loads(path.read_text(encoding="utf-8")).items()
    if verdict == "contradicted"
}


@pytest.mark.parametrize("paper", WITH_CLAIMS, ids=lambda paper: paper.name)
def test_every_contradiction_has_a_second_reading_and_no_other_claim_is_a_misprint(paper):
    claims = [each.claim for each in claims_of([paper])[paper.name]]
    assert [each.id for each in claims if each.id in CONTRADICTED and each.reading is None] == []
    assert [each.id for each in claims if each.misprint and each.id not in CONTRADICTED] == []


def test_self_checks_and_what_was_derived_here_are_ours():
    every = [each.claim for about in claims_of(PAPERS).values() for each in about]
    own = [each for each in every if each.source.startswith(("Self-check", "derived here"))]
    assert [each.id for each in own if each.whose != "ours"] == []
