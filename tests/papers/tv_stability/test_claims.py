"""Verdicts on the dissertation's claims: all are decided, and planted faults turn what every measure says."""

import dataclasses
import math
from fractions import Fraction

import pandas as pd
import pytest

from certified_unlearning.accounting.tv import tree
from certified_unlearning.mechanisms.exact.noisy_sgd import NoisySgd
from certified_unlearning.papers.tv_stability.deletions import deletions_table
from certified_unlearning.papers.tv_stability.edits import edits_table
from certified_unlearning.papers.tv_stability.findings import findings
from certified_unlearning.papers.tv_stability.measures import (
    baselines,
    batches,
    prefix_sums,
    simulated,
)
from certified_unlearning.papers.tv_stability.theory import enumeration
from certified_unlearning.reproduction.claims.verdicts import evaluate
from tests.papers.tv_stability.evidence import BY_ID, CLAIMS, MEASURES, OF_RATES, OF_ROWS, judged
from tests.papers.tv_stability.planted_faults import FAULTS, times
from tests.support.evidence import Tables
from tests.support.planning import sweep_of

PUBLISHED = {name for name in OF_ROWS if name.startswith("tv-c12")}
"""They need the stream of 600 edits on MNIST."""
CONTRADICTED = {
    "tv-reflect-printed": "entry 1 (mean): printed 1, computed -0.3829249",
    "tv-ratio-printed": "entry 1 (mean): printed 1, computed -0.2362649",
    "tv-remark-5": "k1 = 1, k2 = 0: 1.994776, expected at most 1",
    "tv-algorithm-24-fresh": "printed 1, computed 0.6",
    "tv-insertion-bias": "entry 1 (n = 5, m = 2): printed 0, computed 0.06666667",
    "tv-insertion-one-draw": "entry 1 (insert): printed 1, computed 0.64",
    "tv-batch-gain": "k = 100: 8.22792, expected at most 2",
    "tv-insertion-place": "entry 2 (n = 4): printed 0, computed 0.2",
    "tv-average-printed": "printed 1, computed 1.005",
    "tv-proposition-3-small": "H D / G = 50: 4.877295, expected at most 1",
    "tv-proposition-1-condition": "m = 1: 2, expected at most 1.256",
    "tv-proposition-1-step-size": "d = 20: 2.913075, expected between 0.7 and 1.42",
    "tv-proposition-7-step-size": "d = 20: 2.913054, expected between 0.7 and 1.42",
    "tv-extrapolation": "entry 2 (t = 5): printed 1, computed -4.083333",
    "tv-theorem-44-rate": "entry 1 (rho = 0.01): printed 1, computed 0.3968503",
    "tv-theorem-48-steps": "n = 10000: 9.693466, expected at most 1",
    "tv-algorithm-10-iterate": "printed 0, computed 0.4214",
    "tv-algorithm-10-noise": "printed 0, computed 2.5",
    "tv-sisa-speedup": "entry 2 (R = 4): printed 1, computed 0.5333333",
    "tv-remark-7": "g = 4: 4.277817, expected at most 1",
    "tv-proposition-11": "rho = 0.01: 50, expected at most 1",
    "tv-section-c-1": "entry 1 (k = 1): printed 1, computed 44.72136",
    "tv-algorithm-32": "entry 7 (t = 7): printed 0, computed 6",
    "tv-algorithms-33-34-append": "entry 2 (t = 4): printed 1, computed 2.5",
    "tv-theorem-25-noise": "rho = 1e-06: 3.524463, expected at most 1",
    "tv-theorems-26-27-noise": "entry 1 (Theorem 26): printed 1, computed 0.5",
    "tv-theorem-27-step-size": "rho = 1 to rho = 0.1: 2.584534, expected at most 0.5",
    "tv-algorithm-14-smoothness": "2, expected at most 1",
    "tv-theorem-29-dimension": "projection, n rho = 16384: 2.244924, expected at most 1",
    "tv-section-1-3-3": "entry 2 (n = 1000000): printed 0.6666667, computed 0.75",
    "tv-theorem-51-noise": "T = 1000: 1.576855, expected at most 1",
    "tv-algorithm-29-linear": "printed 1, computed 0.4285714",
    "tv-c12-printed-batches": "printed 520, computed 92.35798",
}
"""Claims that are wrong, with the number that says so."""


@pytest.fixture(scope="module")
def deletions() -> pd.DataFrame:
    return deletions_table(sweep_of("smoke", "deletions"))


@pytest.fixture(scope="module")
def edits() -> pd.DataFrame:
    return edits_table(sweep_of("smoke", "edits").model_copy(update={"trials": 80}))


@pytest.fixture(scope="module")
def verdicts(deletions, edits):
    return {verdict.id: verdict for verdict in evaluate(CLAIMS, [Tables(deletions=deletions, edits=edits)])}


# --- Verdicts --------------------------------------------------------------------------------------------------------


def test_there_are_at_least_40_claims_and_all_are_decided_but_those_of_the_published_stream(verdicts):
    assert len(verdicts) >= 40
    assert {name for name, verdict in verdicts.items() if verdict.verdict == "not run"} == PUBLISHED | OF_RATES


def test_what_is_wrong_is_contradicted_and_nothing_else(verdicts):
    assert {name for name, verdict in verdicts.items() if verdict.verdict == "contradicted"} == set(CONTRADICTED)


@pytest.mark.parametrize("name", CONTRADICTED)
def test_contradictions_name_the_number_and_what_explains_it(verdicts, name):
    claim = BY_ID[name].claim
    assert CONTRADICTED[name] in verdicts[name].reason
    assert claim.note
    assert claim.note[1:] in verdicts[name].reason


def test_every_contradiction_was_read_a_second_time_and_nothing_else():
    assert {name for name, each in BY_ID.items() if each.claim.reading is not None} == set(CONTRADICTED)
    assert {name for name, each in BY_ID.items() if each.claim.misprint} < set(CONTRADICTED)
    assert all(BY_ID[name].claim.whose == "paper" for name in CONTRADICTED)


def test_a_claim_is_ours_where_its_source_says_so():
    for name, each in BY_ID.items():
        said = each.claim.source.startswith(("derived here", "a self-check of ours"))
        assert (each.claim.whose == "ours") == said, name


def test_without_results_claims_of_rows_are_not_run_and_all_others_are():
    found = judged()
    assert {name for name, verdict in found.items() if verdict == "not run"} == OF_ROWS


def test_claims_and_measures_share_no_names_with_those_of_other_papers():
    assert all(name.startswith("tv-") for name in BY_ID)
    assert set(MEASURES) == {each.claim.measure for each in CLAIMS}


# --- Planted faults --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_turns_the_verdict(monkeypatch, verdicts, fault):
    planted, names = FAULTS[fault]
    assert {verdicts[name].verdict for name in names} == {"reproduced"}
    for target, name, replacement in planted:
        where = f"{target}.{name}" if isinstance(target, str) else target
        monkeypatch.setattr(where, *((replacement,) if isinstance(target, str) else (name, replacement)))
    assert judged(names=names) == dict.fromkeys(names, "contradicted")


def with_squared_rho(rho, real=tree.theorem_25_sigma, **options):
    return real(rho=rho**2, **options)


TRUE_WHERE = {
    "tv-batch-gain": (batches, "one_by_one_recomputations", batches.batch_edit_probability),
    "tv-theorems-26-27-noise": (tree, "theorem_25_sigma", times(tree.theorem_25_sigma, 0.5)),
    "tv-algorithm-10-noise": (simulated, "_POINTS", (1.0,) * 7),
    "tv-algorithm-10-iterate": (simulated, "_IN_A_BALL", dataclasses.replace(simulated._SETTINGS, accelerated=False)),
    "tv-theorem-25-noise": (tree, "theorem_25_sigma", with_squared_rho),
}
"""What would have to be so for claims that are wrong, of measures that judge no other claim."""


@pytest.mark.parametrize("name", TRUE_WHERE)
def test_a_wrong_claim_would_be_reproduced_where_it_holds(monkeypatch, name):
    target, attribute, replacement = TRUE_WHERE[name]
    monkeypatch.setattr(target, attribute, replacement)
    if name == "tv-algorithm-10-noise":  # Equal points: no edit changes a gradient.
        assert simulated.followed_after_edit()[0].value == pytest.approx(0, abs=1e-12)
    else:
        assert judged(names=[name]) == {name: "reproduced"}


def test_arithmetic_of_printed_forms():
    assert [each.value for each in prefix_sums.appended_over_sum(length=[1, 7], printed=False)] == [1, 1]
    assert [each.value for each in prefix_sums.appended_over_sum(length=[7], printed=True)] == [4]
    solved = baselines.solution_of_section_c_1(n=1000, dimension=3, edits=[2], cube_root=True)
    assert solved[0].value == pytest.approx(1)
    (copies,) = baselines.reduction_records(n=100_000, rho=[0.01], accuracy=0.05, printed=False)
    assert copies.value == pytest.approx(0.5)
    assert [each.value for each in batches.average_of_equal_iterates(steps=4)] == [1.25]


def test_every_measure_is_tested_on_a_fault():
    turned = {name for _, names in FAULTS.values() for name in names} | set(TRUE_WHERE) | OF_ROWS
    arithmetic = {
        "appended_over_sum",
        "average_of_equal_iterates",
        "solution_of_section_c_1",
        "reduction_records",
    }
    assert {BY_ID[name].claim.measure for name in turned} | arithmetic == set(MEASURES)


# --- Enumeration and closed forms ------------------------------------------------------------------------------------


def test_enumerated_laws_have_the_published_values():
    wrong = enumeration.batch_after_insertion(5, 2, probability=Fraction(2, 5))
    assert {chance for batch, chance in wrong.items() if 5 in batch} == {Fraction(2, 25)}
    assert {chance for batch, chance in wrong.items() if 5 not in batch} == {Fraction(3, 50)}
    assert enumeration.edited_run_law(4, 2, 2, "delete")[1] == Fraction(3, 4)
    assert enumeration.edited_run_law(4, 2, 2, "insert")[1] == Fraction(16, 25)
    again, _ = enumeration.edited_run_law(4, 2, 2, "insert", insertion="drawn again")
    assert enumeration.total_variation(again, enumeration.run_law(5, 2, 2)) == Fraction(36, 125)


def test_laws_of_last_iterates_have_the_published_values():
    plain = NoisySgd(steps=4, batch_size=2, step_size=0.4, sigma=0.6)
    fast = dataclasses.replace(plain, accelerated=True)
    learned, left = [0, 0.3, -0.5, 1.2, 3.0, -2.0], [0, 0.3, -0.5, 1.2, -2.0]
    assert simulated.last_iterate_moments(learned, fast) == pytest.approx((0.330933, 0.423322), abs=1e-6)
    assert simulated.last_iterate_moments(left, fast) == pytest.approx((-0.198560, 0.253332), abs=1e-6)
    assert simulated.last_iterate_moments([*learned, 0.7], plain) == pytest.approx((0.335726, 0.296667), abs=1e-6)


# --- Claims of rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("claim", "table", "column", "factor"),
    [
        ("tv-runs-subsampled", "deletions", "recompute_probability", 1.1),
        ("tv-runs-bound", "deletions", "recompute_probability", 4),
        ("tv-runs-sums-bound", "deletions", "recompute_probability", 4),
        ("tv-runs-share", "deletions", "gradients", 4),
        ("tv-stream-expected", "edits", "unstable_edits", 2),
    ],
)
def test_planted_rows_turn_the_verdict(deletions, edits, claim, table, column, factor):
    rows = {"deletions": deletions.copy(), "edits": edits.copy()}
    assert judged(Tables(**rows), names=[claim]) == {claim: "reproduced"}
    rows[table][column] *= factor
    assert judged(Tables(**rows), names=[claim]) == {claim: "contradicted"}


@pytest.mark.parametrize(("claim", "column"), [("noise", "unstable_edits"), ("iterations", "iterations_run_again")])
def test_noise_that_spares_nothing_is_noticed(deletions, edits, claim, column):
    swapped = edits.copy()
    for each in (column, f"{column}_std"):
        swapped[each] = swapped[each].to_numpy()[::-1]
    assert judged(Tables(deletions=deletions, edits=swapped), names=[f"tv-stream-{claim}"]) == {
        f"tv-stream-{claim}": "contradicted"
    }


def published(edits, **changes):
    """The rows as if they were of the dissertation's stream, with its numbers."""
    rows = edits.assign(data="mnist-10", edits=600, steps=200, batch_size=600, sigma=[0.0, 0.05])
    given = {"unstable_edits": [520.0, 210.0], "accuracy": [0.88, 0.87], "iterations_run_again": [52_000.0, 21_000.0]}
    return rows.assign(**given | changes)


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("tv-c12-unstable", {"unstable_edits": [92.0, 37.0]}),
        ("tv-c12-accuracy", {"accuracy": [0.88, 0.80]}),
        ("tv-c12-fewer", {"unstable_edits": [520.0, 400.0]}),
        ("tv-c12-partial", {"iterations_run_again": [52_000.0, 30_000.0]}),
    ],
)
def test_the_published_stream_is_judged_by_its_numbers(deletions, edits, claim, changes):
    assert judged(Tables(deletions=deletions, edits=published(edits)), names=[claim]) == {claim: "reproduced"}
    assert judged(Tables(deletions=deletions, edits=published(edits, **changes)), names=[claim]) == {
        claim: "contradicted"
    }


# --- Findings --------------------------------------------------------------------------------------------------------


def of_systems(**costs):
    """Rows of settings that are equally accurate, and a cheaper one that is not."""
    rows = [
        {"system": name, "gradients": cost, "accuracy": 0.9, "validation_accuracy": 0.9} for name, cost in costs.items()
    ]
    rows.append({"system": "quantized-sgd", "gradients": 1.0, "accuracy": 0.6, "validation_accuracy": 0.6})
    return pd.DataFrame(rows).assign(data="digits", guarantee="exact")


def test_findings_tell_the_cheapest_exact_system_of_those_that_are_accurate(edits):
    rows = of_systems(**{"retraining": 1000.0, "sisa": 400.0, "noisy-sgd": 50.0})
    langevin = rows.iloc[:1].assign(system="langevin", guarantee="upper bound", gradients=2.0)
    deletion, stream = findings(Tables(deletions=pd.concat([rows, langevin]), edits=edits))
    assert "Noisy SGD takes 50 gradients per deleted record" in deletion
    assert "and retraining takes 1,000, 20\N{NO-BREAK SPACE}times as many; SISA takes 400." in deletion
    first, last = edits["unstable_edits"].iloc[0], edits["unstable_edits"].iloc[-1]
    assert f"{first:.1f} recomputed a part of the run at σ\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0 and" in stream
    assert f"{last:.1f} at σ\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}0.03" in stream
    noisy = edits.iloc[-1]
    again = noisy["edits"] * noisy["steps"] * noisy["batch_size"] / noisy["gradients"]
    assert 2 < again < 10
    assert f"retraining after every edit takes {again:.1f}\N{NO-BREAK SPACE}times as many gradients" in stream


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ({"retraining": 1000.0}, "no system needs fewer gradients than retraining, 1,000."),
        ({"retraining": 1000.0, "sisa": 40.0}, "no other system needs fewer gradients."),
        ({"retraining": 1000.0, "subsample-gd": 40.0}, "SISA does not reach this accuracy."),
    ],
)
def test_findings_say_so_where_there_is_nothing_to_compare(edits, costs, said):
    assert findings(Tables(deletions=of_systems(**costs), edits=edits))[0].endswith(said)


def test_findings_are_made_of_rows_as_they_are(deletions, edits):
    found = findings(Tables(deletions=deletions, edits=edits))
    assert len(found) == 2
    assert not any(math.isnan(value) for value in edits["unstable_edits"])
    assert all(text.endswith(".") for text in found)
