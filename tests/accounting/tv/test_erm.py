"""Chapter 4's parameters: the worked example, and relations that any problem keeps."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.tv import erm
from certified_unlearning.accounting.tv.subsampling import subsampling_tv, subsampling_tv_bound
from certified_unlearning.errors import ParameterError
from certified_unlearning.papers.tv_stability.theory import rates

EXAMPLE = erm.ConvexProblem(n=10**5, dimension=20, lipschitz=2, smoothness=1.5, diameter=3, rho=0.1)
PROBLEMS = st.builds(
    erm.ConvexProblem,
    n=st.integers(100, 10**7),
    dimension=st.integers(1, 10**4),
    lipschitz=st.floats(0.1, 10),
    smoothness=st.floats(0.1, 10),
    diameter=st.floats(0.1, 10),
    rho=st.floats(0.02, 1),
)


def near(value: float) -> object:
    return pytest.approx(value, rel=5e-6)


def test_proposition_3() -> None:
    found = erm.proposition_3(EXAMPLE)
    assert (found.steps, found.batch_size, found.step_size) == (near(225), near(44.4444), near(0.333333))
    assert found.excess_risk == near(0.06)
    whole = erm.proposition_3_whole(EXAMPLE)
    assert (whole.steps, whole.batch_size) == (225, 44)
    case = {"n": EXAMPLE.n, "batch_size": 44, "steps": 225}
    assert subsampling_tv_bound(**case) == near(0.099)
    assert subsampling_tv(**case) == near(0.0942770)


@given(PROBLEMS)
def test_whole_parameters_stay_stable(problem: erm.ConvexProblem) -> None:
    whole = erm.proposition_3_whole(problem)
    assert whole.steps * whole.batch_size <= problem.stable_records
    assert 1 <= whole.batch_size <= problem.n - 1


def test_printed_parameters_would_not_stay_stable_in_batches_of_one() -> None:
    steep = replace(EXAMPLE, n=1000, smoothness=100)
    assert steep.condition * math.sqrt(steep.stable_records) > steep.stable_records
    assert erm.proposition_3(steep).steps == near(steep.stable_records)


def test_too_small_a_rho_is_refused() -> None:
    with pytest.raises(ParameterError, match="rho must be at least 1 / n"):
        erm.proposition_3_whole(replace(EXAMPLE, rho=1e-6))


def test_theorem_22() -> None:
    found = erm.theorem_22(EXAMPLE)
    assert (found.steps, found.batch_size, found.noise) == (near(30.2459), near(5465.58), near(0.0483935))
    inner = erm.inner_problem(EXAMPLE, steps=found.steps)
    assert inner.rho == near(0.0181830)
    assert found.excess_risk == near(0.0147571)
    assert found.excess_risk == pytest.approx(
        (1.5**0.25 * 2 * 3**1.5 * math.sqrt(20) / (0.1 * 10**5)) ** 0.8
    )  # The theorem's own form of it.
    condition = rates.proposition_1_steps(inner, batch_size=found.batch_size, printed=True)
    assert condition == near(0.00691737)
    assert rates.proposition_1_steps(inner, batch_size=found.batch_size) == near(condition * 16 / 10.048)
    assert rates.theorem_22_risk(EXAMPLE) == found.excess_risk


def test_theorem_22_in_whole_numbers() -> None:
    assert erm.whole_numbers(erm.theorem_22(EXAMPLE), n=EXAMPLE.n) == (31, 5466)
    assert erm.whole_numbers(erm.theorem_22(EXAMPLE), n=5000) == (31, 4999)
    found = erm.theorem_22_at(EXAMPLE, steps=31, batch_size=5466)
    assert (found.noise, found.step_size) == (near(0.0496), near(0.0698404))
    case = {"steps": 31, "batch_size": 5466, "sigma": 0.0496, "accelerated": True}
    assert rates.proof_step_size(EXAMPLE, **case) == near(0.0772177)
    assert rates.printed_step_size(EXAMPLE, **case) == near(0.226755)


def test_corollary_7() -> None:
    least, most = rates.corollary_7_batches(EXAMPLE)
    assert (least, most) == (near(1.25), near(70491.4))
    found = rates.corollary_7(EXAMPLE, batch_size=most)
    assert (found.steps, found.noise, found.excess_risk) == (near(70.9306), near(0.0134753), near(0.00268328))
    assert most == pytest.approx(found.steps**3 / EXAMPLE.condition**2)


def test_theorem_44() -> None:
    found = erm.theorem_44(EXAMPLE)
    assert (found.steps, found.batch_size, found.noise) == (near(293.615), near(57.9980), near(0.469784))
    assert found.excess_risk == near(0.0459786)
    assert erm.theorem_44(EXAMPLE, printed_risk=True).excess_risk == near(0.0182466)


def test_corollary_8() -> None:
    least, most = rates.corollary_8_batches(EXAMPLE)
    found = rates.corollary_8(EXAMPLE, batch_size=most)
    assert (found.steps, most) == (near(5031.15), near(993.808))
    assert least == near(1.25)
    assert found.steps == pytest.approx(rates.corollary_8(EXAMPLE, batch_size=2 * most).steps)


def test_quantised_sgd() -> None:
    found = erm.theorem_45(EXAMPLE)
    assert (found.steps, found.batch_size, found.noise) == (near(39.8497), near(7.87154), near(0.637595))
    assert found.excess_risk == near(0.338773)
    assert found.step_size == near(min(1 / 3, 3 / ((2 / 7.87154**0.5 + 0.637595 * 20**0.5) * 39.8497**0.5)))


def test_population_risk_and_lower_bound() -> None:
    assert rates.theorem_48_risk(EXAMPLE) == near(0.0216569)
    assert rates.theorem_48_steps(EXAMPLE) == near(100000)
    assert rates.theorem_48_steps(EXAMPLE, printed=True) == near(711.512)
    assert rates.theorem_24_risk(EXAMPLE) == near(0.0006)


@given(PROBLEMS)
def test_no_rate_is_below_the_lower_bound(problem: erm.ConvexProblem) -> None:
    assert rates.theorem_24_risk(problem) <= rates.theorem_23_risk(problem) * (1 + 1e-12)
    assert rates.theorem_23_risk(problem) <= erm.proposition_3(problem).excess_risk * (1 + 1e-12)
    assert rates.theorem_23_risk(problem) <= rates.theorem_48_risk(problem)


@given(PROBLEMS)
def test_a_larger_rho_never_has_a_larger_rate(problem: erm.ConvexProblem) -> None:
    looser = replace(problem, rho=2 * problem.rho)
    for risk in (rates.theorem_22_risk, rates.theorem_23_risk, rates.theorem_24_risk, rates.theorem_48_risk):
        assert risk(looser) <= risk(problem)
    assert erm.theorem_44(looser).excess_risk < erm.theorem_44(problem).excess_risk
    assert erm.theorem_45(looser).excess_risk < erm.theorem_45(problem).excess_risk


@given(PROBLEMS, st.floats(1, 1000), st.floats(1, 1000))
def test_missing_dimension_makes_printed_steps_longer(
    problem: erm.ConvexProblem, steps: float, batch_size: float
) -> None:
    for make, accelerated in ((erm.proposition_1, True), (erm.proposition_7, False)):
        found = make(problem, steps=steps, batch_size=batch_size)
        case = {"steps": steps, "batch_size": batch_size, "sigma": found.noise, "accelerated": accelerated}
        assert found.step_size <= rates.printed_step_size(problem, **case)
        assert found.step_size <= rates.proof_step_size(problem, **case) * math.sqrt(2)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ParameterError, match="dimension"):
        replace(EXAMPLE, dimension=0)
    with pytest.raises(ParameterError, match="rho"):
        replace(EXAMPLE, rho=0.0)
