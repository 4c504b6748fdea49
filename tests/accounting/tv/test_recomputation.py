"""How likely edits are rejected, against simulation, enumeration and the dissertation's numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from certified_unlearning.accounting.tv import recomputation as rerun
from certified_unlearning.accounting.tv.distances import gaussian_tv
from certified_unlearning.accounting.tv.erm import ConvexProblem, stable_sigma
from certified_unlearning.accounting.tv.subsampling import subsampling_tv
from certified_unlearning.errors import AssumptionError
from certified_unlearning.papers.tv_stability.theory import stability
from certified_unlearning.papers.tv_stability.theory.distances import last_iterate_tv
from certified_unlearning.papers.tv_stability.theory.rates import proposition_1_steps

NOISY = st.tuples(
    st.integers(2, 10**5), st.floats(0.001, 1), st.integers(1, 1000), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3)
)


def test_noisy_sgd_at_the_parameters_of_theorem_22() -> None:
    case = {"n": 10**5, "steps": 31, "sigma": 0.0496}
    sharp = rerun.noisy_recompute_probability(**case, batch_size=5466, gap=4 / 5466)
    assert sharp == pytest.approx(0.00992549, rel=5e-6)
    assert stability.lemma_30(**case, lipschitz=2) == pytest.approx(0.0125)
    assert stability.proposition_2(rho=0.1 / math.sqrt(31), steps=31, edits=10) == pytest.approx(0.25)
    assert stability.proposition_2(rho=0.1 / math.sqrt(31), steps=31, edits=100) == 1


def test_stability_of_noisy_sgd_is_above_the_example_of_proposition_5() -> None:
    case = {"n": 50, "batch_size": 5, "steps": 10, "sigma": 2.0, "lipschitz": 1.0}
    assert stability.noisy_stability(**case, printed=True) == pytest.approx(0.252982, rel=5e-6)
    assert stability.noisy_stability(**case) == pytest.approx(0.252982 / math.sqrt(2), rel=5e-6)
    assert last_iterate_tv(**case) <= stability.noisy_stability(**case)


def test_stability_needs_noise_enough_for_batches_to_amplify() -> None:
    """The least noise is that of the least T of Proposition 1, whose noise grows with T."""
    problem = ConvexProblem(n=1000, dimension=3, lipschitz=1, smoothness=1, diameter=1, rho=0.5)
    steps = proposition_1_steps(problem, batch_size=10)
    case = {"n": 1000, "batch_size": 10, "lipschitz": 1.0}
    for share in (1 - 1e-9, 1 + 1e-9):
        sigma = stable_sigma(problem, steps=share * steps)
        if share > 1:
            assert stability.noisy_stability(**case, steps=248, sigma=sigma) <= 0.5
        else:
            with pytest.raises(AssumptionError, match=r"amplification by sub-sampling holds for sigma of at least"):
                stability.noisy_stability(**case, steps=248, sigma=sigma)


@given(NOISY)
def test_lemma_30_is_above_and_noise_only_spares(case: tuple[int, float, int, float, float]) -> None:
    n, share, steps, sigma, lipschitz = case
    m = max(1, int(n * share))
    asked = {"n": n, "batch_size": m, "steps": steps, "gap": 2 * lipschitz / m}
    sharp = rerun.noisy_recompute_probability(**asked, sigma=sigma)
    assert sharp <= stability.lemma_30(n=n, steps=steps, sigma=sigma, lipschitz=lipschitz) * (1 + 1e-12)
    assert sharp <= subsampling_tv(n=n, batch_size=m, steps=steps) * (1 + 1e-12)
    assert rerun.noisy_recompute_probability(**asked, sigma=2 * sigma) <= sharp
    assert rerun.noisy_recompute_probability(**asked, sigma=0) == subsampling_tv(n=n, batch_size=m, steps=steps)


def test_noisy_sgd_against_a_simulation_of_the_coupling() -> None:
    """200 000 runs whose gap is constant; a deviation of 6 standard errors has probability 2e-9."""
    runs, n, m, steps, gap = 200_000, 12, 3, 4, 1.3
    random = np.random.default_rng(5)
    hit = random.random((runs, steps)) < m / n
    noise = random.standard_normal((runs, steps))
    # Noise is kept with the smaller one of 1 and the ratio of densities, new over old.
    rejected = np.log(random.random((runs, steps))) > noise * gap - gap**2 / 2
    rate = (hit & rejected).any(axis=1).mean()
    exact = rerun.noisy_recompute_probability(n=n, batch_size=m, steps=steps, sigma=1.0, gap=gap)
    assert abs(rate - exact) < 6 * math.sqrt(exact * (1 - exact) / runs)


def test_edits_in_a_stream() -> None:
    assert stability.recourse_bound(rho=0.1, edits=10) == pytest.approx(2)
    assert stability.recourse_bound(rho=0.1, edits=10, printed=True) == pytest.approx(4)


def test_the_quantiser_of_the_example() -> None:
    assert stability.quantiser_disagreement([0.07, 0.12], resolution=0.5) == pytest.approx(0.3464, rel=5e-6)
    distance = math.hypot(0.07, 0.12)
    printed = rerun.quantiser_disagreement_bound(distance, dimension=2, resolution=1.0, printed=True)
    assert 2 * printed == pytest.approx(1.11140, rel=5e-6)
    assert rerun.quantiser_disagreement_bound(distance, dimension=2, resolution=0.5, printed=True) == 1
    assert stability.quantiser_disagreement([0.1], resolution=0.5) == pytest.approx(0.2)
    assert stability.quantiser_variance(dimension=2, resolution=0.5) == pytest.approx(0.0416667, rel=5e-6)
    assert stability.quantiser_variance(dimension=2, resolution=0.5, printed=True) == pytest.approx(0.5)


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=6), st.floats(0.1, 10))
def test_bounds_of_the_quantiser_are_above_and_in_order(differences: list[float], resolution: float) -> None:
    exact = stability.quantiser_disagreement(differences, resolution=resolution)
    case = {"dimension": len(differences), "resolution": resolution}
    sharp = rerun.quantiser_disagreement_bound(math.hypot(*differences), **case)
    printed = rerun.quantiser_disagreement_bound(math.hypot(*differences), **case, printed=True)
    assert exact <= sharp + 1e-12
    assert sharp <= printed


def test_the_quantiser_against_a_simulation_of_shifts() -> None:
    """300 000 shifts; a deviation of 6 standard errors has probability 2e-9."""
    shifts = np.random.default_rng(3).uniform(-0.5, 0.5, (300_000, 2))
    one, other = np.array([1.13, -0.42]), np.array([1.20, -0.30])
    differ = (np.round(one / 0.5 - shifts) != np.round(other / 0.5 - shifts)).any(axis=1)
    assert abs(differ.mean() - 0.3464) < 6 * math.sqrt(0.3464 * 0.6536 / len(shifts))


def test_lemma_32_has_a_short_form_above_it() -> None:
    case = {"n": 100, "steps": 3, "resolution": 50.0, "dimension": 5, "lipschitz": 1.0}
    short = 4 * 3 * 5 * (2 + 4) / (100 * 50)
    bound = stability.lemma_32(**case, replaced=2, added=4)
    assert bound == pytest.approx(4 * 3 * 5 / 50 * (2 / 100 + 1 / 101 + 1 / 102 + 1 / 103 + 1 / 104))
    assert bound < short
    assert stability.lemma_32(**case, replaced=2) == pytest.approx(4 * 3 * 5 * 2 / (100 * 50))
    assert stability.lemma_32(**case | {"resolution": 0.1}, replaced=2) == 1


@given(st.integers(2, 1000), st.floats(0.01, 1), st.integers(1, 100), st.floats(0.01, 100), st.integers(1, 50))
def test_quantised_sgd_is_bounded_by_lemma_32(
    n: int, share: float, steps: int, resolution: float, dimension: int
) -> None:
    m = max(1, int(n * share))
    case = {"n": n, "steps": steps, "resolution": resolution, "dimension": dimension}
    bound = rerun.quantised_recompute_probability(**case, batch_size=m, gap=2 / m)
    assert bound <= stability.lemma_32(**case, lipschitz=1.0, replaced=1) * (1 + 1e-12)
    assert bound <= subsampling_tv(n=n, batch_size=m, steps=steps) * (1 + 1e-12)


def test_linear_queries() -> None:
    sigma = stability.query_sigma(queries=100, rho=0.1, bound=1)
    assert sigma == pytest.approx(50)
    exact = rerun.query_recompute_probability(queries=100, sigma=sigma, bound=1)
    assert exact == pytest.approx(0.551152, rel=5e-6)
    assert 100 * gaussian_tv(1 / sigma) <= 0.797885 * 0.1 * math.sqrt(100) == pytest.approx(0.797885)
    assert stability.query_sigma(queries=100, rho=0.1, bound=1, n=40, printed=True) == pytest.approx(2)


def test_a_deletion_moves_a_sum_by_the_whole_part_of_the_record() -> None:
    """Parts ``z_j + c``: replacing one moves the sum by 1 at most, whatever ``c``; deleting one by ``c``."""
    parts = np.array([0.0, 1.0]) + 100
    assert np.ptp(parts) == 1
    assert rerun.query_recompute_probability(queries=1, sigma=1.0, bound=float(parts.max())) == 1
    assert rerun.query_recompute_probability(queries=1, sigma=1.0, bound=float(np.ptp(parts))) < 0.4


@pytest.mark.parametrize(("rejection", "expected"), [(1 / 1200, 15.8611), (0.01, 114.264)])
def test_iterations_run_again(rejection: float, expected: float) -> None:
    assert rerun.iterations_run_again(steps=200, rejection=rejection) == pytest.approx(expected, rel=5e-6)
    times = np.arange(1, 201)
    direct = rejection * (1 - rejection) ** (times - 1)
    assert rerun.iterations_run_again(steps=200, rejection=rejection) == pytest.approx((direct * (201 - times)).sum())
    without = rerun.iterations_run_again(steps=200, rejection=rejection, reflected_counts=False)
    assert without == pytest.approx((direct * (200 - times)).sum())


@pytest.mark.parametrize(("rejection", "share"), [(1 / 1200, 0.516388), (0.01, 0.659707)])
def test_an_edit_that_computes_again_computes_half_of_a_run_only_where_that_is_rare(
    rejection: float, share: float
) -> None:
    triggered = -math.expm1(200 * math.log1p(-rejection))
    assert rerun.iterations_run_again(steps=200, rejection=rejection) / triggered / 200 == pytest.approx(
        share, rel=5e-6
    )


def test_iterations_run_again_at_the_ends() -> None:
    assert rerun.iterations_run_again(steps=200, rejection=1.0) == 200
    assert rerun.iterations_run_again(steps=200, rejection=1.0, reflected_counts=False) == 199
    assert rerun.iterations_run_again(steps=200, rejection=0.0) == 0
