"""Verdicts on the paper's claims by the formulas alone, against the specification."""

import re
import time

import pytest

from certified_unlearning.accounting.core import losses as constants
from certified_unlearning.accounting.core.losses import LossConstants
from certified_unlearning.files import write_json
from certified_unlearning.papers.langevin_unlearning import constants as paper
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.reproduction.claims.evidence import Evidence
from certified_unlearning.reproduction.claims.model import claims_of
from certified_unlearning.reproduction.claims.verdicts import evaluate
from tests.reproduction.claims.mnist_results import DATA

CLAIMS = {each.claim.id: each for each in claims_of([PAPER])[PAPER.name]}
CONTRADICTED = {
    "table-1-strong-convexity": "entry 3 (cifar10): printed 0.0499, computed 0.05",
    "data-mnist-features-text": "entry 1 (d): printed 724, computed 784",
    "table-2-mnist-i1-bound": "entry 1 (epsilon = 0.05): printed 36.8573, computed 50.45377",
    "table-2-mnist-i2-bound": "entry 1 (epsilon = 0.05): printed 17.303, computed 24.07311",
    "table-2-mnist-i5-bound": "entry 1 (epsilon = 0.05): printed 5.6774, computed 8.332673",
    "table-2-mnist-i1-spectral": "entry 1 (epsilon = 0.05): printed 36.8573, computed 36.87536",
    "table-2-mnist-i2-spectral": "entry 2 (epsilon = 0.1): printed 8.6229, computed 8.66296",
    "table-2-cifar10-binary-i1-bound": "entry 1 (epsilon = 0.05): printed 59.5184, computed 85.95498",
    "table-2-cifar10-binary-i2-bound": "entry 1 (epsilon = 0.05): printed 28.134, computed 41.32451",
    "table-2-cifar10-binary-i5-bound": "entry 1 (epsilon = 0.05): printed 9.4523, computed 14.65158",
    "table-3-cifar10-binary-bound": "entry 1 (epsilon = 0.05): printed 0.2431, computed 0.2431048",
    "table-3-cifar10-binary-guarantee": "entry 1 (sigma = 0.2431): printed 0.05, computed 0.05000098",
    "table-3-cifar10-bound": (
        "entry 5 (epsilon = 2): printed 0.0012, computed 0.001226531; "
        "entry 6 (epsilon = 5): printed 0.0005, computed 0.0005178255"
    ),
    "table-3-cifar10-guarantee": (
        "entry 5 (sigma = 0.0012): printed 2, computed 2.04605; entry 6 (sigma = 0.0005): printed 5, computed 5.195047"
    ),
    "fig-3b-mnist-by-20-bound": "entry 1 (request 1): printed 864, computed 1163",
    "fig-3b-mnist-by-10-bound": "entry 1 (request 1): printed 579, computed 778",
    "fig-3b-mnist-by-5-bound": "entry 1 (request 1): printed 263, computed 354",
    "fig-3b-cifar10-binary-by-20-bound": "entry 1 (request 1): printed 1072, computed 1522",
    "fig-3b-cifar10-binary-by-10-bound": "entry 1 (request 1): printed 762, computed 1082",
    "fig-3b-cifar10-binary-by-5-bound": "entry 1 (request 1): printed 430, computed 610",
    "fig-3b-mnist-descent-bound": "entry 1 (request 1): printed 90, computed 123",
    "fig-3b-cifar10-binary-descent-bound": "entry 1 (request 1): printed 99, computed 145",
    "fig-3b-cifar10-descent-parameters": "entry 1 (request 1): printed 117, computed 130",
    "fig-3c-cifar10-binary-steps-bound": "entry 1 (S = 100, sigma = 0.05, epsilon = 1): printed 1541, computed 2191",
    "fig-3c-text-initial-epsilon": "entry 1 (sigma = 0.05): printed 100, computed 27.99305",
    "fig-4-mnist-s50-bound": "entry 1 (S = 50, sigma = 0.03, epsilon = 0.5): printed 2831, computed 3801",
    "fig-4-mnist-s100-bound": "entry 1 (S = 100, sigma = 0.03, epsilon = 0.5): printed 3321, computed 4461",
    "appendix-e-gaussian-divergence": "entry 2 (distance 2): printed 0.011982, computed 0.023964",
}
"""Claims that the specification calls wrong, or that follow from other constants than the paper states."""

MISPRINTS = """
    table-1-strong-convexity data-mnist-features-text table-2-mnist-i1-spectral table-2-mnist-i2-spectral
    table-3-cifar10-binary-bound table-3-cifar10-binary-guarantee table-3-cifar10-bound table-3-cifar10-guarantee
    fig-3c-text-initial-epsilon appendix-e-gaussian-divergence
"""
"""Contradicted claims whose conclusion stands."""

REPRODUCED = """
    fig-3a-mnist-descent-excess fig-3a-mnist-descent-excess-stream
    table-1-delta smoothness-bound-holds data-mnist-records data-mnist-eigenvalue table-2-mnist-i5-spectral
    table-2-cifar10-binary-i1-spectral table-2-cifar10-binary-i2-spectral table-2-cifar10-binary-i5-spectral
    table-2-cifar10-i1-bound table-2-cifar10-i2-bound table-2-cifar10-i5-bound fig-5b-adult-descent-sigma
    table-3-mnist-bound table-3-mnist-spectral table-3-mnist-guarantee table-3-cifar10-binary-spectral
    fig-3b-mnist-by-20-spectral fig-3b-mnist-by-10-spectral fig-3b-mnist-by-5-spectral fig-3b-mnist-total-by-5
    fig-3b-cifar10-binary-by-20-spectral fig-3b-cifar10-binary-by-10-spectral
    fig-3b-cifar10-binary-by-5-spectral fig-3b-cifar10-binary-total-by-5 fig-3b-cifar10-by-20-bound
    fig-3b-cifar10-by-10-bound fig-3b-cifar10-by-5-bound fig-3b-cifar10-total-by-5 fig-3b-mnist-descent-spectral
    fig-3b-mnist-descent-total fig-3b-cifar10-binary-descent-spectral fig-3b-cifar10-binary-descent-total
    fig-3b-cifar10-descent-features fig-3b-mnist-saving-by-20 fig-3b-cifar10-binary-saving-by-20
    fig-3b-mnist-by-5-costs-more fig-3b-cifar10-binary-by-5-costs-more fig-3b-cifar10-by-5-costs-more
    fig-3c-mnist-steps-bound fig-3c-mnist-steps-spectral fig-3c-cifar10-steps-bound
    fig-3c-cifar10-binary-steps-spectral fig-3c-text-initial-renyi fig-3c-text-steps fig-3c-mnist-steps-fall
    fig-3c-mnist-initial-epsilon-falls fig-3c-cifar10-binary-steps-fall
    fig-3c-cifar10-binary-initial-epsilon-falls fig-3c-cifar10-steps-fall fig-3c-cifar10-initial-epsilon-falls
    fig-4-mnist-s1-bound fig-4-mnist-s1-spectral fig-4-mnist-s50-spectral fig-4-mnist-s100-spectral
    fig-4-mnist-larger-groups fig-4-mnist-larger-epsilons fig-4-mnist-fewer-than-retraining
    theorem-3-2-mnist-monotone theorem-3-2-cifar10-binary-monotone theorem-3-2-cifar10-monotone
    theorem-3-2-adult-monotone appendix-e-saving-grows
    theorem-3-3-convex-levels-off theorem-3-3-smooth-levels-off theorem-3-2-convex-monotone theorem-3-2-smooth-monotone
    section-4-smooth-not-practical section-4-convex-not-practical theorem-3-2-convex-steps-to-halve
    theorem-3-3-convex-noise-for-epsilon-1 theorem-3-3-convex-over-composition theorem-3-3-smooth-over-composition
    theorem-3-3-convex-finite theorem-3-3-smooth-finite theorem-3-2-convex-finite theorem-3-2-smooth-finite
    appendix-e-proposition-e-1 appendix-e-proposition-e-1-small-steps section-3-3-insufficient-training
    section-3-3-eps-t-not-negligible
    section-4-learning-steps-converge authors-fig-3a-superior-i1 authors-fig-3a-superior-i2
    authors-fig-3a-superior-i5 authors-fig-3a-more-steps
"""


@pytest.fixture(scope="module")
def formulas(tmp_path_factory):
    """The verdicts where nothing was run: only the summary of MNIST is there."""
    results = tmp_path_factory.mktemp("results")
    write_json(results / "mnist" / "data.json", DATA)
    verdicts = evaluate(list(CLAIMS.values()), [Evidence.read(results, "mnist", PAPER)])
    return {verdict.id: verdict for verdict in verdicts}


def verdict_of(claim_id, evidence=()):
    return evaluate([CLAIMS[claim_id]], evidence)[0]


def test_the_paper_has_more_than_sixty_claims():
    assert len(CLAIMS) >= 60


def test_notes_point_to_claims_that_there_are():
    named = {name: re.findall(r"\b[a-z0-9]+(?:-[a-z0-9]+){2,}\b", each.claim.note) for name, each in CLAIMS.items()}
    assert {target for targets in named.values() for target in targets} <= CLAIMS.keys()
    moved = [name for name in CONTRADICTED if name.endswith("-bound") and "cifar10-bound" not in name]
    assert len(moved) == 18
    assert all(name.replace("-bound", "-spectral") in named[name] for name in moved)


def test_every_claim_with_the_fitted_eigenvalue_says_so():
    fitted = [
        each.claim
        for each in CLAIMS.values()
        if each.claim.arguments.get("dataset") == "cifar10-cat-vs-ship"
        and each.claim.arguments.get("smoothness") == "spectral"
    ]
    assert len(fitted) == 13
    assert all("lambda_max = 0.692438 is inferred from Table 2, not measured" in claim.statement for claim in fitted)


def test_self_checks_and_questions_of_ours_are_marked_as_ours():
    ours = {name for name, each in CLAIMS.items() if each.claim.whose == "ours"}
    told = ("Self-check of our ", "Our question about our runs; ", "Our question about the bounds; ")
    assert ours == {name for name, each in CLAIMS.items() if each.claim.source.startswith(told)}
    assert len(ours) == 38


def test_what_only_the_authors_repository_holds_names_its_file():
    theirs = {name: each.claim.source for name, each in CLAIMS.items() if each.claim.whose == "authors' code"}
    assert len(theirs) == 62
    assert all(re.match(r"Graph-COM/Langevin_unlearning, \S+\.(py|log|npy)\b", source) for source in theirs.values())


def test_no_claim_of_the_paper_takes_the_smoothness_of_the_code_without_saying_so():
    spectral = [each.claim for each in CLAIMS.values() if each.claim.arguments.get("smoothness") == "spectral"]
    assert all(claim.whose == "authors' code" or "the authors' L" in claim.statement for claim in spectral)


def test_every_contradiction_has_a_second_reading_and_so_has_what_lays_runs_beside_the_authors_trials():
    beside = {name for name, each in CLAIMS.items() if each.claim.measure == "gaps_to_authors"}
    assert {name for name, each in CLAIMS.items() if each.claim.reading} == CONTRADICTED.keys() | beside
    assert {name for name, each in CLAIMS.items() if each.claim.misprint} == set(MISPRINTS.split())


@pytest.mark.parametrize("name", CONTRADICTED)
def test_the_specifications_contradictions_come_out_with_both_numbers(formulas, name):
    assert formulas[name].verdict == "contradicted"
    assert CONTRADICTED[name] in formulas[name].reason


@pytest.mark.parametrize("name", REPRODUCED.split())
def test_what_the_specification_confirms_is_reproduced(formulas, name):
    assert (formulas[name].verdict, formulas[name].reason) == ("reproduced", "")


def test_all_other_claims_wait_for_runs(formulas):
    others = formulas.keys() - CONTRADICTED.keys() - set(REPRODUCED.split())
    assert {formulas[name].verdict for name in others} == {"not run"}
    assert all(formulas[name].reason.split("; ")[1].startswith("run `snakemake --config preset=") for name in others)


def test_a_misprint_is_the_only_entry_named(formulas):
    assert formulas["table-2-mnist-i1-spectral"].reason.count("entry") == 1
    assert formulas["table-2-mnist-i2-spectral"].reason.count("entry") == 1


def test_without_any_results_the_spectral_numbers_of_mnist_wait_and_those_of_cifar_do_not():
    assert verdict_of("table-2-mnist-i5-spectral").verdict == "not run"
    assert "no results on mnist-3-vs-8" in verdict_of("table-2-mnist-i5-spectral").reason
    assert verdict_of("table-2-cifar10-binary-i5-spectral").verdict == "reproduced"


def test_the_formulas_take_less_than_two_seconds():
    start = time.process_time()
    evaluate(list(CLAIMS.values()), [])
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("dataset", "smoothness", "lipschitz"),
    [("mnist-3-vs-8", 0.261982, 1), ("cifar10-cat-vs-ship", 0.26, 1), ("cifar10", 1.05, 2), ("adult", 0.279304, 1)],
)
def test_the_formulas_take_the_smoothness_and_the_gradient_bound_of_table_1(dataset, smoothness, lipschitz):
    problem = paper.paper_problem([], dataset, "bound")
    assert (problem.smoothness, problem.lipschitz) == (pytest.approx(smoothness, rel=1e-12), lipschitz)
    assert problem.step_size == 1 / problem.smoothness


def test_another_regularisation_contradicts(monkeypatch):
    monkeypatch.setattr(paper, "REGULARISATION", 1.01e-6)
    assert verdict_of("table-2-cifar10-i1-bound").verdict == "contradicted"
    assert verdict_of("fig-3b-cifar10-by-20-bound").verdict == "contradicted"


def test_another_lipschitz_constant_contradicts(monkeypatch):
    monkeypatch.setattr(constants, "softmax_constants", lambda **_: LossConstants(0.05, 1.05, 1.99))
    assert verdict_of("table-2-cifar10-i1-bound").verdict == "contradicted"
    assert verdict_of("fig-3b-cifar10-by-20-bound").verdict == "contradicted"


def test_another_eigenvalue_contradicts(tmp_path):
    write_json(tmp_path / "mnist" / "data.json", DATA | {"largest_eigenvalue": 0.7309})
    evidence = [Evidence.read(tmp_path, "mnist", PAPER)]
    assert verdict_of("data-mnist-eigenvalue", evidence).verdict == "contradicted"
    assert verdict_of("table-2-mnist-i5-spectral", evidence).verdict == "contradicted"


@pytest.mark.parametrize(
    ("features", "verdict"),
    [
        ("ResNet-18 (ImageNet) of CIFAR-10 images", "contradicted"),
        ("HOG and colour moments of CIFAR-10 images", "reproduced"),
    ],
)
def test_an_eigenvalue_measured_on_the_papers_features_takes_the_place_of_the_fitted_one(tmp_path, features, verdict):
    data = DATA | {"name": "cifar10-cat-vs-ship", "features": features, "largest_eigenvalue": 0.7}
    write_json(tmp_path / "c" / "data.json", data)
    found = verdict_of("table-2-cifar10-binary-i5-spectral", [Evidence.read(tmp_path, "c", PAPER)])
    assert found.verdict == verdict
    assert found.reason.endswith("See data-cifar10-binary-eigenvalue") == (verdict == "contradicted")
