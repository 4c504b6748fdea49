"""Verdicts on the dissertation’s claims: by formulas at once, by rows of known laws; planted faults turn them."""

import numpy as np
import pandas as pd
import pytest

from certified_unlearning.errors import DataError
from certified_unlearning.papers.private_learning import figures, group_figure
from certified_unlearning.papers.private_learning.covered import covered_deletions
from certified_unlearning.papers.private_learning.findings import covered, findings
from certified_unlearning.papers.private_learning.measures import noise
from certified_unlearning.papers.private_learning.names import GRADIENT_PARTS, PARTS, RISK_PARTS, SYSTEMS
from certified_unlearning.papers.private_learning.paper import PAPER
from certified_unlearning.papers.private_learning.runs import groups
from certified_unlearning.reproduction.claims.model import load_claims
from certified_unlearning.reproduction.claims.registry import measures
from certified_unlearning.reproduction.claims.verdicts import evaluate
from certified_unlearning.reproduction.figure_style import FigureStyle
from tests.support.evidence import Tables

MEASURES = measures(PAPER.measures)
CLAIMS = load_claims(PAPER.claims, MEASURES)
BY_ID = {each.claim.id: each for each in CLAIMS}
OF_ROWS = {
    name
    for name, each in BY_ID.items()
    if MEASURES[each.claim.measure].function.__module__.rpartition(".")[2] in ("rates", "groups", "audited")
}
STYLE = FigureStyle(context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=50)
CONTRADICTED = {
    "theorem-12-noise": "epsilon = 1: 1.10987",
    "theorem-9-noise": "2.492585",
    "theorem-32-noise": "1.642309",
    "theorem-10-gradient": "D = 1: 1.171573",
    "lemma-10": "D = 1: 1.333333",
    "theorem-5": "2.519079",
    "algorithm-4-sensitivity": "0.02415608",
    "algorithm-15-scale": "n = 50: 0.6123724",
    "theorem-20-part-2": "3.479114",
    "theorem-20-part-1-noise": "(K = 1.26e+10): printed 1, computed 2.181665e+07",
    "theorem-9-units": "computed 0.4807499",
    "theorem-32-step-size": "epsilon = 0.01: 39.98306",
    "theorem-14-selection": "computed 6.579251",
    "theorem-14-units": "Y = 8: 4, expected at most 1",
    "lemma-6-fact-1": "computed 2",
    "theorem-42-period": "0.06203551",
    "section-3-3-leaves": "(D = 7): printed 1, computed 2",
    "theorem-20-norm": "|w*| = 10: 3.162278, expected at most 1",
    "lemma-21-steps": "x = 1000: 1.279779",
    "lemma-25": "n = 1000000: 10.13881",
    "theorem-21-proof": "k = 40: 28.02605",
    "theorem-33-constant": "rank = 1e+01: -14.74",
    "theorem-33-norms": "d' = 100: 10, expected at most 1",
}
"""Claims that formulas contradict, with the number that says so."""
CONTRADICTED_BY_ROWS = {"private-x14-printed"}
"""Claims that the preset `private` contradicts; misprints."""
LARGER_THAN_A_SLIP = {
    "theorem-12-noise", "lemma-10", "theorem-32-step-size", "theorem-14-units", "lemma-25", "theorem-21-proof",
}  # fmt: skip
"""Those of which a statement, or a proof of one, does not stand as it is; the others are misprints."""


def judged(*evidence: Tables, names: list[str] | None = None) -> dict[str, str]:
    claims = CLAIMS if names is None else [BY_ID[f"private-{name}"] for name in names]
    return {verdict.id.removeprefix("private-"): verdict.verdict for verdict in evaluate(claims, evidence)}


@pytest.fixture(scope="module")
def verdicts():
    return {verdict.id: verdict for verdict in evaluate(CLAIMS, [])}


def test_there_are_at_least_45_claims_and_formulas_decide_theirs(verdicts):
    assert len(CLAIMS) >= 45
    assert {name for name, verdict in verdicts.items() if verdict.verdict == "not run"} == OF_ROWS


def test_what_is_wrong_is_contradicted_and_nothing_else(verdicts):
    found = {name.removeprefix("private-") for name, each in verdicts.items() if each.verdict == "contradicted"}
    assert found == set(CONTRADICTED)


@pytest.mark.parametrize("name", CONTRADICTED)
def test_contradictions_name_the_number_and_what_explains_it(verdicts, name):
    claim = BY_ID[f"private-{name}"].claim
    assert CONTRADICTED[name] in verdicts[claim.id].reason
    assert claim.note
    assert claim.note[1:] in verdicts[claim.id].reason


def test_contradictions_are_of_what_the_dissertation_says_and_read_twice(verdicts):
    for each in CLAIMS:
        contradicted = verdicts[each.claim.id].verdict == "contradicted" or each.claim.id in CONTRADICTED_BY_ROWS
        assert (each.claim.reading is not None) == contradicted, each.claim.id
        assert not contradicted or each.claim.whose == "paper", each.claim.id
    slips = {name for name in CONTRADICTED if BY_ID[f"private-{name}"].claim.misprint}
    assert set(CONTRADICTED) - slips == LARGER_THAN_A_SLIP
    misprints = {f"private-{name}" for name in slips} | CONTRADICTED_BY_ROWS
    assert {each.claim.id for each in CLAIMS if each.claim.misprint} == misprints


def test_what_is_derived_here_or_asked_by_us_is_ours():
    for each in CLAIMS:
        told = "derived here" in each.claim.source or "the question is ours" in each.claim.source
        assert (each.claim.whose == "ours") == told, each.claim.id


def test_every_measure_has_a_claim():
    assert set(MEASURES) == {each.claim.measure for each in CLAIMS}
    assert all(name.startswith("private-") for name in BY_ID)


def test_larger_noise_is_seen(monkeypatch):
    """A planted fault: noise as printed in Theorem 12 where Theorem 8's is judged, and the other way round."""
    printed = dict(noise.PRINTED)
    swapped = printed | {"theorem 8": printed["theorem 12"], "theorem 12": printed["theorem 8"]}
    monkeypatch.setattr("certified_unlearning.papers.private_learning.theory.privacy.PRINTED", swapped)
    names = ["theorem-8-noise", "theorem-12-noise"]
    assert judged(names=names) == {"theorem-8-noise": "contradicted", "theorem-12-noise": "reproduced"}


# Rows of known laws.


def rate_rows(slopes: dict[str, float], *, part: str, n: tuple[int, ...], trials: int = 20, **columns) -> pd.DataFrame:
    generator = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "part": part, "method": method, "n": size, "features": 50, "epsilon": 1.0, "level": 0.0, "trial": trial,
            "error": size**slope * np.exp(0.1 * generator.normal()), "bound": 2.0 * size**slope, "at_zero": 1.0,
            "noiseless": None, "estimate_error": size**slope * np.exp(0.1 * generator.normal()), **columns,
        }
        for method, slope in slopes.items()
        for size in n
        for trial in range(trials)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("slope", "rate", "reached"),
    [(-0.67, "reproduced", "reproduced"), (-0.9, "reproduced", "contradicted"), (-0.45, "contradicted", "reproduced")],
)
def test_a_rate_is_contradicted_by_a_shallower_line_only(slope, rate, reached):
    rows = rate_rows({"printed strength": slope}, part="X1", n=(1_000, 4_000, 16_000))
    assert judged(Tables(private_risk=rows), names=["x1-rate", "x1-rate-reached"]) == {
        "x1-rate": rate,
        "x1-rate-reached": reached,
    }


def test_a_short_range_or_few_trials_decide_nothing():
    for rows in (
        rate_rows({"printed strength": -0.67}, part="X1", n=(1_000, 8_000)),
        rate_rows({"printed strength": -0.67}, part="X1", n=(1_000, 16_000), trials=19),
    ):
        assert judged(Tables(private_risk=rows), names=["x1-rate"]) == {"x1-rate": "not run"}


def test_an_error_above_its_bound_contradicts_it():
    rows = rate_rows({"printed strength": -0.67, "least cost": -0.7}, part="X1", n=(1_000, 16_000))
    assert judged(Tables(private_risk=rows), names=["x1-bound"]) == {"x1-bound": "reproduced"}
    above = rows.assign(bound=rows["bound"] / 3)
    assert judged(Tables(private_risk=above), names=["x1-bound"]) == {"x1-bound": "contradicted"}


def test_a_line_above_the_one_that_it_is_compared_with_is_no_gain():
    rows = rate_rows({"tree": -0.33, "one pass": -0.2}, part="X8", n=(1_000, 16_000))
    names = ["x8-rate", "x8-gain", "x8-steeper"]
    assert judged(Tables(private_gradients=rows), names=names) == dict.fromkeys(names, "reproduced")
    swapped = rows.assign(method=rows["method"].map({"tree": "one pass", "one pass": "tree"}))
    assert judged(Tables(private_gradients=swapped), names=names) == dict.fromkeys(names, "contradicted")


def test_an_error_that_falls_below_a_lower_bound_is_seen():
    rows = rate_rows(dict.fromkeys(["zero", "output perturbation", "noisy descent"], -0.67), part="X11", n=(100, 6_400))
    assert judged(Tables(private_risk=rows), names=["x11-theorem-11"]) == {"x11-theorem-11": "reproduced"}
    fallen = rows.assign(error=rows["error"] * rows["n"] ** -0.5)
    assert judged(Tables(private_risk=fallen), names=["x11-theorem-11"]) == {"x11-theorem-11": "contradicted"}


# Deletions.


def group_rows(accuracy: dict[int, float], *, retraining: float = 0.9) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "data": "digits", "epsilon": 1.0, "system": system, "deletions": count, "n": 1437, "d": 64,
            "accuracy": accuracy[count] if system == "private" else retraining, "accuracy_error": 0.001,
            "gradients": 0.0 if system == "private" else 100.0, "learning_gradients": 1000.0,
        }
        for system in SYSTEMS
        for count in accuracy
    )  # fmt: skip


def test_covered_deletions_are_the_most_that_are_accurate():
    rows = group_rows({1: 0.9, 10: 0.895, 100: 0.6})
    assert covered_deletions(rows, beside="retraining") == 10
    assert "covers 10 deletions" in covered(rows)
    none = group_rows({1: 0.8, 10: 0.7})
    assert covered_deletions(none, beside="retraining") == 0
    assert "covers even one deletion is less accurate than retraining by more than 0.01: its accuracy" in covered(none)
    assert "its accuracy is 80.0%, and that of retraining is 90.0%" in covered(none)


def test_findings_tell_of_deletions_and_slopes():
    risk = pd.concat(
        [
            rate_rows({"printed strength": -0.67}, part="X1", n=(1_000, 16_000)),
            rate_rows({"noisy descent": -1.0}, part="X2", n=(1_000, 16_000)),
        ]
    )
    told = findings(Tables(group_privacy=group_rows({1: 0.9}), private_risk=risk))
    assert len(told) == 2
    assert "−0.6" in told[1]
    assert "(theory: −2/3)" in told[1]


# Figures.


def test_figures_have_a_panel_for_each_part_and_name_slopes():
    assert set(PARTS) == {*RISK_PARTS, *GRADIENT_PARTS}
    rows = pd.concat(
        [
            rate_rows({"printed strength": -0.67, "least cost": -0.7}, part="X1", n=(1_000, 16_000)),
            rate_rows({"noisy descent": -1.0}, part="X2", n=(1_000, 16_000)),
            rate_rows({"search": -0.1, "radius 2": -0.2}, part="X5", n=(16_000,), level=1.0),
            rate_rows({"boosted": -0.1, "one chunk": -0.2}, part="X6", n=(4_000,)),
        ]
    )
    figure = figures.draw_risk(rows, STYLE)
    assert [axes.get_title() for axes in figure.axes] == [PARTS[name].title for name in ("X1", "X2", "X5", "X6")]
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels[0].startswith("printed strength: −0.6")
    assert labels[0].endswith("[−0.67]")


def test_the_figure_of_deletions_has_all_systems():
    figure = group_figure.draw_groups(group_rows({1: 0.9, 10: 0.8}), STYLE)
    (legend,) = figure.legends
    assert sorted(filter(None, (text.get_text() for text in legend.get_texts()))) == sorted(SYSTEMS.values())
    with pytest.raises(DataError, match="the rows of `group_privacy` hold 'magic', which has no line"):
        group_figure.draw_groups(group_rows({1: 0.9}).replace("langevin", "magic"), STYLE)


def test_a_fault_that_no_audit_catches_is_told():
    rows = pd.DataFrame(
        {
            "mechanism": "noisy descent", "planted": planted, "method": method, "runs": 20_000,
            "stated": 1.0, "shown": shown, "caught": shown > 1,
        }
        for planted, method, shown in (
            ("", "exact law", 0.9), ("a fault", "exact law", 0.9), ("a fault", "recomputed guarantee", 1.2),
        )
    )  # fmt: skip
    names = ["x12-mechanisms", "x12-faults"]
    assert judged(Tables(private_audits=rows), names=names) == dict.fromkeys(names, "reproduced")
    missed = rows.assign(caught=False)
    assert judged(Tables(private_audits=missed), names=names)["x12-faults"] == "contradicted"
    leaking = rows.assign(shown=1.1)
    assert judged(Tables(private_audits=leaking), names=names)["x12-mechanisms"] == "contradicted"
    assert judged(Tables(private_audits=rows.assign(runs=100)), names=names) == dict.fromkeys(names, "not run")


def test_renewing_takes_gradients_only_when_deletions_are_used_up():
    private = [
        {"system": "private", "deletions": count, "accuracy": accuracy, "learning_gradients": 1000.0}
        for count, accuracy in ((1, 0.9), (10, 0.89), (25, 0.7))
    ]
    renewed = groups._renewed(private, [{"accuracy": 0.895}] * 3)
    assert [row["gradients"] for row in renewed] == [0, 0, 2000]
    assert groups._renewed(private, [{"accuracy": 0.95}] * 3) == []


def test_an_algorithm_below_the_lower_bound_of_lipschitz_losses_is_seen():
    rows = rate_rows(dict.fromkeys(["zero", "noisy descent", "no privacy"], 0.0), part="X13", n=(4_000,))
    rows["error"] *= rows["method"].map({"zero": 16.0, "noisy descent": 16.0, "no privacy": 0.5})
    names = ["x13-theorem-13", "x13-without"]
    assert judged(Tables(private_risk=rows), names=names) == dict.fromkeys(names, "reproduced")
    wrong = rows.assign(
        error=rows["error"] * rows["method"].map({"zero": 1.0, "noisy descent": 0.01, "no privacy": 16.0})
    )
    assert judged(Tables(private_risk=wrong), names=names) == dict.fromkeys(names, "contradicted")


def test_descent_without_noise_is_judged_by_its_own_slope():
    rows = rate_rows({"noisy descent": -1.0}, part="X2", n=(1_000, 4_000, 16_000)).assign(noiseless=0.01)
    assert judged(Tables(private_risk=rows), names=["corollary-2-rate"]) == {"corollary-2-rate": "contradicted"}
    fallen = rows.assign(noiseless=rows["n"] ** -0.6)
    names = ["corollary-2-rate", "corollary-2-bound"]
    assert judged(Tables(private_risk=fallen), names=names) == dict.fromkeys(names, "reproduced")
    above = fallen.assign(noiseless=1e4 * fallen["noiseless"])
    assert judged(Tables(private_risk=above), names=["corollary-2-bound"]) == {"corollary-2-bound": "contradicted"}


def test_reductions_and_linear_time_are_judged_by_their_rows():
    passes = rate_rows({"halved blocks": -0.55, "equal blocks": -0.55}, part="X14", n=(1_000, 16_000))
    steady = rate_rows({"recursive, embedding": -0.6}, part="X16", n=(1_000, 4_000, 16_000))
    wide = pd.concat(
        rate_rows({f"{learner}, {kind}": slope}, part="X15", n=(1_000,), features=features)
        for learner in ("recursive", "noisy descent")
        for kind, features, slope in (
            ("embedding", 20, -0.5),
            ("all columns", 1_000, -0.3 if learner != "recursive" else -0.6),
        )
    )
    names = ["x14-printed", "x14-rate", "x14-trend", "x15-recursive", "x15-any", "x16-rate"]
    rows = pd.concat([passes, steady, wide])
    assert judged(Tables(private_gradients=rows), names=names) == dict.fromkeys(names, "reproduced")
    worse = rows.assign(error=6 * rows["error"] * rows["n"] ** 0.5)
    turned = {"recursive, all columns": 1e3, "noisy descent, embedding": 1e3}
    worse["error"] *= worse["method"].map(turned).fillna(1)
    assert judged(Tables(private_gradients=worse), names=names) == dict.fromkeys(names, "contradicted")
