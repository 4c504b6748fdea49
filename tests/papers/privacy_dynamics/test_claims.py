"""Verdicts on the paper's claims: which hold, and which number contradicts the others."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import pytest

from certified_unlearning.accounting.core.curves import RenyiCurve
from certified_unlearning.papers.privacy_dynamics.measures import lemmas as measures_lemmas
from certified_unlearning.papers.privacy_dynamics.measures.bounds import first_steps_below_composition
from certified_unlearning.papers.privacy_dynamics.measures.lemmas import lemma_2_bound_over_half
from certified_unlearning.papers.privacy_dynamics.measures.printed import gibbs_rate
from certified_unlearning.papers.privacy_dynamics.paper import PAPER
from certified_unlearning.papers.privacy_dynamics.theory.dynamics import BOUNDS
from certified_unlearning.papers.privacy_dynamics.theory.gaussian_pairs import (
    Gaussian,
    information_ratio,
    lemma_3_left,
    renyi_divergence,
)
from certified_unlearning.papers.privacy_dynamics.theory.log_sobolev import _MAPS, log_sobolev_quotient
from certified_unlearning.papers.privacy_dynamics.theory.quadrature import (
    field_difference,
    logistic_divergences,
    projected_risks,
)
from certified_unlearning.reproduction.claims.model import load_claims
from certified_unlearning.reproduction.claims.registry import measures
from certified_unlearning.reproduction.claims.verdicts import evaluate
from tests.support.evidence import Tables

MEASURES = measures(PAPER.measures)
CLAIMS = load_claims(PAPER.claims, MEASURES)

CONTRADICTED = {
    "dynamics-lemma-5-start": "entry 1 (lambda = 1): printed 1, computed 6.4e-07",
    "dynamics-equations-62-to-66": "entry 1 (to alpha = 10): printed 10, computed 2",
    "dynamics-field-sign": "printed 0, computed -2",
    "dynamics-figure-2-crossing-order": "alpha = 10 to alpha = 20: 0, expected below 0",
    "dynamics-section-4-quoted": "entry 1 (K = 1): printed 1, computed 1.99005",
    "dynamics-section-4-variance": "printed 1, computed 0.0003",
    "dynamics-section-4-objective": "entry 3 (K = 1000): printed 1, computed 0.505102",
    "dynamics-appendix-e-gap": "entry 2 (lambda = 1, K = inf): printed 2, computed 1.020304",
    "dynamics-appendix-e-gamma-late": "gamma = 0.25: 1, expected below 0",
    "dynamics-lemma-6-unrolled": "K = 500: 49.99795, expected at most 1",
    "dynamics-table-1-gradient-gain-n": "entry 3 (n = 1e+15): printed 1, computed 0.1724138",
    "dynamics-equation-4": "printed 0, computed 1",
}
"""Claims of the paper that do not hold, with the number that says so."""
MISPRINTS = set(CONTRADICTED) - {"dynamics-figure-2-crossing-order", "dynamics-appendix-e-gap"}
OF_RUNS = {each.claim.id for each in CLAIMS if MEASURES[each.claim.measure].function.__module__.endswith("runs")}


def judged(*evidence: Tables, names: Sequence[str] | None = None) -> dict[str, str]:
    """Return the verdicts on the claims of these names, or on all."""
    claims = [each for each in CLAIMS if names is None or each.claim.id in names]
    assert len(claims) == len(CLAIMS if names is None else names)
    return {verdict.id: verdict.verdict for verdict in evaluate(claims, evidence)}


@pytest.fixture(scope="module")
def verdicts(measured):
    return {verdict.id: verdict for verdict in evaluate(CLAIMS, [Tables(measured=measured)])}


# --- Verdicts --------------------------------------------------------------------------------------------------------


def test_there_are_at_least_25_claims_and_all_are_decided(verdicts):
    assert len(verdicts) >= 25
    assert {verdict.verdict for verdict in verdicts.values()} == {"reproduced", "contradicted"}


def test_what_does_not_hold_is_contradicted_and_nothing_else(verdicts):
    assert {name for name, verdict in verdicts.items() if verdict.verdict == "contradicted"} == set(CONTRADICTED)


@pytest.mark.parametrize("name", CONTRADICTED)
def test_contradictions_name_the_number_and_what_explains_it(verdicts, name):
    claim = next(each.claim for each in CLAIMS if each.claim.id == name)
    assert claim.whose == "paper"
    assert claim.reading is not None
    assert claim.misprint == (name in MISPRINTS)
    assert CONTRADICTED[name] in verdicts[name].reason
    assert claim.note
    assert claim.note[1:] in verdicts[name].reason


def test_without_results_claims_of_runs_are_not_run_and_formulas_are():
    found = judged()
    assert len(OF_RUNS) >= 8
    assert {name for name, verdict in found.items() if verdict == "not run"} == OF_RUNS
    assert found["dynamics-lemma-6-unrolled"] == "contradicted"


def test_claims_and_measures_share_no_names_with_those_of_other_papers():
    assert all(each.claim.id.startswith("dynamics-") for each in CLAIMS)
    assert set(MEASURES) == {each.claim.measure for each in CLAIMS}


# --- Planted faults --------------------------------------------------------------------------------------------------


def test_a_bound_with_half_the_sensitivity_is_contradicted(monkeypatch, measured):
    bound = BOUNDS["corollary-1"]

    def quartered(*arguments, **options):
        curve = bound.curve(*arguments, **options)
        return RenyiCurve(lambda alpha: curve.log_divergence(alpha) - math.log(4))

    monkeypatch.setitem(BOUNDS, "corollary-1", dataclasses.replace(bound, curve=quartered))
    names = ["dynamics-corollary-1-point", "dynamics-corollary-1-logistic", "dynamics-figure-1-plateaus"]
    assert judged(Tables(measured=measured), names=names) == dict.fromkeys(names, "contradicted")


def test_a_lower_bound_without_its_factor_4_is_contradicted(monkeypatch, measured):
    bound = BOUNDS["theorem-3"]

    def fourfold(*arguments, **options):
        curve = bound.curve(*arguments, **options)
        return RenyiCurve(lambda alpha: curve.log_divergence(alpha) + math.log(4))

    monkeypatch.setitem(BOUNDS, "theorem-3", dataclasses.replace(bound, curve=fourfold))
    names = ["dynamics-theorem-3"]
    assert judged(Tables(measured=measured), names=names) == dict.fromkeys(names, "contradicted")


def test_the_variance_put_for_its_inverse_contradicts_lemma_3(monkeypatch):
    monkeypatch.setattr(
        measures_lemmas, "information_ratio", lambda alpha, p, q: information_ratio(alpha, p, q) / q.variance
    )
    names = ["dynamics-lemma-3", "dynamics-lemma-3-equality"]
    assert judged(names=names) == dict.fromkeys(names, "contradicted")


def test_a_sensitivity_of_one_record_too_small_contradicts_lemma_4(monkeypatch):
    """The bound with half the distance of the two data sets' gradients."""
    monkeypatch.setattr(measures_lemmas, "field_difference", lambda **point: 2 * field_difference(**point))
    assert judged(names=["dynamics-lemma-4"]) == {"dynamics-lemma-4": "contradicted"}


@pytest.mark.parametrize(("lemma", "name"), [("lipschitz", "dynamics-lemma-8"), ("noise", "dynamics-lemma-9")])
def test_a_constant_without_the_square_of_the_map_or_without_the_noise_is_contradicted(monkeypatch, lemma, name):
    def faulty(*, map_name, noise_variance, function):
        lipschitz = _MAPS[map_name].lipschitz
        honest = lipschitz**2 + noise_variance
        wrong = lipschitz**3 + noise_variance if lemma == "lipschitz" else lipschitz**2
        quotient = log_sobolev_quotient(map_name=map_name, noise_variance=noise_variance, function=function)
        return quotient * honest / wrong

    monkeypatch.setattr(measures_lemmas, "log_sobolev_quotient", faulty)
    assert judged(names=[name]) == {name: "contradicted"}


def test_runs_with_half_the_noise_contradict_the_claims_of_runs(measured):
    faulty = measured.copy()
    runs = faulty["bound"] == "sampled"
    faulty.loc[runs, ["renyi", "low", "high"]] *= 4
    names = [f"dynamics-runs-{name}" for name in ("exact", "corollary-1", "composition")]
    assert judged(Tables(measured=faulty), names=names) == dict.fromkeys(names, "contradicted")


def test_runs_that_do_not_diverge_bear_out_equation_4_as_printed(measured):
    equal = measured.copy()
    runs = equal["bound"] == "sampled"
    equal.loc[runs, ["renyi", "low", "high"]] = 0.0
    assert judged(Tables(measured=equal), names=["dynamics-equation-4"]) == {"dynamics-equation-4": "reproduced"}
    names = ["dynamics-runs-exact", "dynamics-runs-theorem-3"]
    assert judged(Tables(measured=equal), names=names) == dict.fromkeys(names, "contradicted")


def test_intervals_too_wide_to_tell_decide_nothing(measured):
    vague = measured.copy()
    runs = vague["bound"] == "sampled"
    vague.loc[runs, "low"] = 0.0
    vague.loc[runs, "high"] *= 100
    names = [f"dynamics-runs-{name}" for name in ("corollary-1", "tight", "saturate", "composition-loose")]
    assert judged(Tables(measured=vague), names=names) == dict.fromkeys(names, "not run")


# --- What measures rest on -------------------------------------------------------------------------------------------


def test_gaussian_pairs_have_the_sheets_values():
    first, second = Gaussian(0.3, 1.2), Gaussian(0.0, 1.5)
    divergence, ratio = renyi_divergence(3, first, second), information_ratio(3, first, second)
    assert [math.exp(2 * divergence), divergence, ratio] == pytest.approx([1.20139, 0.0917394, 0.0442177], rel=1e-5)
    assert lemma_3_left(3, first, second) == pytest.approx(0.203277, rel=1e-5)
    assert renyi_divergence(10, Gaussian(0, 2), Gaussian(0, 1)) == math.inf


@pytest.mark.parametrize("alpha", [1.5, 3.0, 7.0])
def test_the_left_side_of_lemma_3_has_the_derivative_by_the_order(alpha):
    first, second = Gaussian(0.3, 1.2), Gaussian(-0.4, 1.9)
    h = 1e-5
    slope = (renyi_divergence(alpha + h, first, second) - renyi_divergence(alpha - h, first, second)) / (2 * h)
    expected = renyi_divergence(alpha, first, second) + alpha * (alpha - 1) * slope
    assert lemma_3_left(alpha, first, second) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("alpha", "sheet"),
    [
        (2.0, [0.100000, 0.196002, 0.431568, 0.625733, 0.700651]),
        (5.0, [0.250000, 0.490013, 1.07926, 1.56592, 1.75402]),
        (10.0, [0.500000, 0.980073, 2.16087, 3.14233, 3.52361]),
    ],
)
def test_logistic_divergences_have_the_sheets_values(alpha, sheet):
    assert logistic_divergences(alpha, [1, 2, 5, 10, 60]) == pytest.approx(sheet, rel=1e-5)


@pytest.mark.parametrize(
    ("alpha", "sheet"),
    [
        (2.0, [0.0262162, 0.0973401, 0.381664, 0.621422, 0.700651]),
        (5.0, [0.0655295, 0.243239, 0.954274, 1.55517, 1.75402]),
        (10.0, [0.130974, 0.485648, 1.90925, 3.12104, 3.52361]),
    ],
)
def test_logistic_divergences_from_corollary_1s_gaussian_have_the_sheets_values(alpha, sheet):
    assert logistic_divergences(alpha, [1, 2, 5, 10, 60], start_variance=0.02) == pytest.approx(sheet, rel=1e-5)


def test_the_gibbs_law_stays_under_equation_9_where_the_field_is_the_gradient():
    assert [found.value for found in gibbs_rate(sign=1)] == [0]


def test_corollary_1_falls_below_composition_after_160_steps_of_figure_1():
    (found,) = first_steps_below_composition(bound="corollary-1", strong_convexity=1.0, alpha=[10.0])
    assert found.value == 160


@pytest.mark.parametrize("gamma", [0.1, 0.25])
def test_a_rate_bound_with_a_small_gamma_is_above_that_with_one_half(gamma):
    # Late, where the information is the largest that these diffusions reach.
    (found,) = lemma_2_bound_over_half(gamma=[gamma], time=[1e9], start_variance=1.0)
    assert found.value > 1


def test_projected_risks_are_those_of_gaussians_where_the_set_is_never_left():
    steps, step_size, sigma, minimiser = [1, 2, 10, 40], 0.3, 0.1, 0.2
    kept = [(1 - step_size) ** count for count in steps]
    stationary = 2 * sigma**2 / (2 - step_size)
    exact = [((minimiser * k) ** 2 + 2 * sigma**2 * k**2 + stationary * (1 - k**2)) / 2 for k in kept]
    found = projected_risks(step_size=step_size, sigma=sigma, steps=steps, radius=2.0, minimiser=minimiser)
    assert found == pytest.approx(exact, rel=1e-9)


def test_projected_risks_are_those_of_chains_that_are_projected():
    # Risks lie between 0 and 0.72, their standard deviation is below 0.1: 6 standard errors are 0.0014.
    rng = np.random.default_rng(2)
    theta = np.clip(math.sqrt(2) * 0.3 * rng.standard_normal(200_000), -0.5, 0.5)
    for _ in range(3):
        theta = np.clip(0.5 * theta + 0.5 * 0.3 + 0.3 * rng.standard_normal(len(theta)), -0.5, 0.5)
    (found,) = projected_risks(step_size=0.5, sigma=0.3, steps=[3], radius=0.5, minimiser=0.3)
    assert np.mean((theta - 0.3) ** 2 / 2) == pytest.approx(found, abs=0.0014)


@pytest.mark.parametrize(("steps", "share"), [(0, 0.1), (5, 1.0)])
def test_the_fields_of_lemma_4_are_nearly_as_far_apart_as_it_allows(steps, share):
    """Given where the diffusions are, the start of the step is nearly known: the largest gap is nearly reached."""
    assert 0.5 < field_difference(steps=steps, share=share) <= 1


@pytest.mark.parametrize("name", list(_MAPS))
def test_the_maps_of_lemma_8_have_the_slopes_that_they_state(name):
    points = np.linspace(-9, 9, 100_001)
    slopes = np.abs(np.diff(_MAPS[name].move(points)) / np.diff(points))
    assert slopes.max() == pytest.approx(_MAPS[name].lipschitz, rel=1e-3)
