"""Certificates of private learning: written, read, recomputed, and found when wrong."""

import json
import math
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from certified_unlearning import certificate
from certified_unlearning.accounting.core.conversion import epsilon_from_mu
from certified_unlearning.accounting.private.learners import Learner, NoisyDescent, OutputPerturbation
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.searches import Boosting, GridSearch, PrivateLearner
from certified_unlearning.certificate import CertificateError, PrivateCertificate
from certified_unlearning.cli import app
from certified_unlearning.errors import ParameterError, UnlearningError

DELTA = 1e-6
WHOLE = LinearProblem(n=10_000, features=50, row_norm=1.0, loss=ScalarLoss(name="logistic"), radius=2.0)
SQUARED = replace(WHOLE, loss=ScalarLoss(name="squared", target=0.5))


def by_descent(problem: LinearProblem, runs: int = 1) -> Learner:
    return NoisyDescent.plan(problem, epsilon=1, delta=DELTA, steps=100, runs=runs)


def by_output(problem: LinearProblem, runs: int = 1) -> Learner:
    return OutputPerturbation.plan(problem, epsilon=1, delta=DELTA, runs=runs)


PLANS: dict[str, PrivateLearner] = {
    "descent": by_descent(WHOLE),
    "output": by_output(SQUARED),
    "embedded": by_descent(SQUARED.embedded(7)),
    "add-remove": by_output(replace(WHOLE, relation="add-remove")),
    "absolute": by_output(replace(WHOLE, loss=ScalarLoss(name="absolute", width=0.01))),
    "search": GridSearch.plan(SQUARED, (0.5, 1.0, 2.0), by_output, epsilon=1),
    "boosting": Boosting.plan(SQUARED, by_descent, epsilon=1),
}


def stated(name: str) -> PrivateCertificate:
    return PrivateCertificate.of(PLANS[name], delta=DELTA, features=50, row_norm=1.0, noise_source="system entropy")


@pytest.mark.parametrize("name", PLANS)
def test_a_certificate_is_recomputed_from_its_constants(name: str) -> None:
    said = stated(name)
    certificate.verify(said)
    assert said.plan == PLANS[name]
    assert 1 - 1e-9 <= said.epsilon <= 1
    assert said.n == 10_000


def test_what_is_stated() -> None:
    said = stated("descent")
    assert said.relation == "replace-one"
    assert "replaced by any other" in said.hidden
    assert "added or left out" in stated("add-remove").hidden
    assert said.sampling == "full batch"
    # Of 100 deletions epsilon is so large that what the sampler leaves out would take all of delta.
    assert [each.records for each in said.deletions] == [1, 2, 5, 10]
    assert max(each.extra_delta for each in stated("search").deletions) <= DELTA
    assert said.deletions[0].epsilon == said.epsilon
    assert said.deletions[2].epsilon == pytest.approx(epsilon_from_mu(5 * said.mu, DELTA), rel=1e-9)
    assert max(said.extra_delta, stated("search").extra_delta) < 1e-100
    assert 1e-16 < stated("boosting").extra_delta < 1e-12
    assert stated("search").selection_epsilon == 1
    assert any("without" in each or "retrained" in each for each in said.not_promised)
    bounds = next(each for each in said.assumptions if each.statement == "every record is within its bounds")
    assert bounds.status == "checked"
    seeded = PrivateCertificate.of(PLANS["output"], delta=DELTA, features=50, row_norm=1.0, noise_source="seed")
    assert next(
        each for each in seeded.assumptions if "noise" in each.statement and "knows" in each.statement
    ).status == ("assumed")
    certificate.verify(seeded)


def run_of(said: PrivateCertificate, **changes: object) -> dict[str, object]:
    return {"runs": (said.runs[0].model_copy(update=changes), *said.runs[1:])}


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("descent", {"epsilon": 0.9}, "epsilon"),
        ("descent", {"mu": 0.1}, "mu"),
        ("descent", {"relation": "add-remove"}, "epsilon"),
        ("descent", {"learned_n": 9_000, "n": 9_000}, "epsilon"),
        ("descent", {"n": 9_000}, "must be equal to 10000"),
        ("descent", {"row_norm": 2.0}, "epsilon"),
        ("descent", {"deletions": ()}, "deletions"),
        ("descent", {"comparator": "nothing"}, "wrong comparator"),
        ("descent", {"hidden": "everything"}, "wrong hidden"),
        ("descent", {"assumptions": ()}, "wrong assumptions"),
        ("descent", {"features": "made up"}, "features"),
        ("descent", {"selection_epsilon": 1.0}, "selection_epsilon"),
        ("descent", {"embedded": True}, "learned_d"),
        ("descent", {"mechanism": "output-perturbation"}, "impossible"),
        ("descent", {"extra_delta": 1e-7}, "extra_delta"),
        ("output", {"target": 0.25}, "epsilon"),
        ("output", {"loss": "tanh"}, "impossible"),
        ("search", {"selection_epsilon": 1.5}, "epsilon"),
        ("search", {"n": 5_000}, "must be above"),
        ("search", {"beta": None}, "beta"),
        ("boosting", {"chunks": 6}, "must be above"),
        ("boosting", {"chunks": None}, "chunks"),
        ("embedded", {"learned_d": 50}, "below d"),
    ],
)
def test_a_wrong_certificate_is_found(name: str, changes: dict[str, object], said: str) -> None:
    with pytest.raises(CertificateError, match=said):
        certificate.verify(stated(name).model_copy(update=changes))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("descent", {"steps": 400}),
        ("descent", {"sigma": 1e-3}),
        ("descent", {"steps": None}),
        ("output", {"radius": 4.0}),
        ("output", {"strong_convexity": 1e-3}),
        ("output", {"inexactness": 1.0}),
        ("search", {"sigma": 1e-3}),
        ("embedded", {"radius": 9.0}),
    ],
)
def test_wrong_constants_of_a_run_are_found(name: str, changes: dict[str, object]) -> None:
    said = stated(name)
    with pytest.raises(CertificateError):
        certificate.verify(said.model_copy(update=run_of(said, **changes)))


def test_descent_on_another_objective_has_no_certificate() -> None:
    plan = replace(PLANS["descent"], regulariser=0.1)
    for each in (plan, Boosting(learner=plan, chunks=3, validated=100, epsilon=1)):
        with pytest.raises(ParameterError, match="regulariser"):
            PrivateCertificate.of(each, delta=DELTA, features=50, row_norm=1.0, noise_source="seed")


def test_the_command_reads_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    certificate.write(stated("search"), path)
    assert certificate.read_any(path) == stated("search")
    done = CliRunner().invoke(app, ["verify", str(path)])
    assert done.exit_code == 0
    assert "epsilon = 1 at delta = 1e-06" in done.output.replace("1.00001e-06", "1e-06")
    assert "under replace-one" in done.output
    found = json.loads(CliRunner().invoke(app, ["verify", "--json", str(path)]).output)
    assert (found["verified"], found["adjacency"], found["mechanism"]) == (True, "replace-one", "output-perturbation")
    path.write_text(path.read_text().replace('"selection_epsilon": 1.0', '"selection_epsilon": 1.25'))
    assert CliRunner().invoke(app, ["verify", str(path)]).exit_code == 1


def test_a_certificate_names_its_relation(tmp_path: Path) -> None:
    content = stated("descent").model_dump()
    with pytest.raises(ValidationError, match="relation"):
        PrivateCertificate.model_validate({name: each for name, each in content.items() if name != "relation"})


def test_under_add_remove_a_record_is_left_out_and_not_replaced() -> None:
    problem = LinearProblem(
        n=1000, features=3, row_norm=1.0, loss=ScalarLoss(name="logistic"), radius=1.0, relation="add-remove"
    )
    said = PrivateCertificate.of(by_descent(problem), delta=1e-6, features=3, row_norm=1.0, noise_source="seed")
    certificate.verify(said)
    assert epsilon_from_mu(2 * said.mu, 1e-6) > 2 * said.epsilon  # Of replacing one.
    assert "a row of zeros" in said.hidden
    assert "under add-remove, the guarantee does not cover replacements" in said.comparator
    assert "the comparator is a run in which the places of the deleted records are empty" in said.comparator


@pytest.mark.parametrize(
    "changes",
    [
        {"row_norm": 1e308},
        {"runs": ({**stated("descent").runs[0].model_dump(), "strong_convexity": 1.0},)},
        {"runs": ({**stated("descent").runs[0].model_dump(), "steps": 10**400},)},
    ],
)
def test_impossible_constants_are_no_traceback(changes: dict[str, object]) -> None:
    said = PrivateCertificate.model_validate(stated("descent").model_dump() | changes)
    with pytest.raises(CertificateError, match="constants are impossible"):
        certificate.verify(said)


def test_a_kind_that_is_no_word_is_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(stated("descent").model_dump(mode="json") | {"kind": ["private"]}))
    with pytest.raises(UnlearningError):
        certificate.read_any(path)


@pytest.mark.parametrize("name", PLANS)
def test_a_bet_on_one_record_counts_what_a_selection_tells(name: str) -> None:
    """A pure epsilon of the selection bounds no mu: bets are right up to e / (1 + e) of the time at epsilon = 1."""
    said, share = stated(name), stated(name).right_guesses()
    pure = math.exp(said.selection_epsilon) / (1 + math.exp(said.selection_epsilon))
    assert share is not None
    assert share >= max(pure, statistics.NormalDist().cdf((said.mu or 0) / 2))
    assert ("At most 73.2 %" if said.selection_epsilon else "At most 54.8 %") in (said.meaning() or "")
    assert ("or another in its place" in (said.meaning() or "")) is (said.relation == "replace-one")
