"""Certificates of a bounded gradient: written, read, told from the others, recomputed, and found when wrong."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from certified_unlearning import certificate
from certified_unlearning.accounting import epsilon_from_mu
from certified_unlearning.accounting.residual import release
from certified_unlearning.certificate import CertificateError, ResidualCertificate, residual
from certified_unlearning.cli import app
from certified_unlearning.errors import DataError, UnlearningError
from certified_unlearning.mechanisms.refit_plan import Counts, RefitPlan

EARLIER = sorted((Path(__file__).parent / "earlier" / "residual").glob("*.json"))
PLAN = RefitPlan.make(n=300_000, features=21, classes=2, strong_convexity=1 / 160, epsilon=1, delta=1e-6, sigma=1e-3)
COUNTS = Counts(removed=120, requests=12, since_read=120)


def stated(plan: RefitPlan = PLAN, counts: Counts = COUNTS) -> ResidualCertificate:
    return residual.of(plan, counts, noise_source="system entropy")


def plan_of(**options: object) -> RefitPlan:
    given = {"n": 3000, "features": 5, "classes": 2, "strong_convexity": 0.05}
    return RefitPlan.make(**given | {"epsilon": 1, "delta": 1e-6, "sigma": 1e-3} | options)


@pytest.mark.parametrize(
    ("plan", "counts"),
    [
        (PLAN, Counts()),
        (PLAN, COUNTS),
        (PLAN, Counts(removed=100_000, requests=7, since_read=0, scheduled=3, unscheduled=2, passes=2)),
        (plan_of(), Counts(removed=700, requests=7, since_read=0, scheduled=3, unscheduled=2)),
        (plan_of(classes=7), Counts(removed=3, requests=2, scheduled=2)),
        (plan_of(classes=7, one_vs_rest=True), Counts(removed=3, requests=2, since_read=3)),
        (plan_of(classes=7, one_vs_rest=True, n=100_000), Counts(removed=30, requests=2, since_read=30, passes=1)),
        (plan_of(classes=7, one_vs_rest=True, strict=True, sigma=1.0), Counts(removed=1, requests=1, since_read=1)),
        (plan_of(classes=7, one_vs_rest=True, features=6000), Counts(removed=3, requests=2, scheduled=2)),
        (plan_of(strict=True), Counts(removed=6, requests=2, scheduled=1)),
        (plan_of(features=6000), Counts(removed=3, requests=2, scheduled=2)),
    ],
)
def test_a_certificate_is_recomputed_from_its_constants(plan: RefitPlan, counts: Counts):
    certificate.verify(stated(plan, counts))


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.stem)
def test_certificates_from_before_readings_learned_anew_are_still_verified(path: Path):
    said = certificate.read_any(path)
    assert isinstance(said, ResidualCertificate)
    certificate.verify(said)


def test_there_is_an_earlier_certificate_of_each_kind():
    assert {path.stem for path in EARLIER} == {"certified_refit", "newton_removal", "ridge", "strict", "unscheduled"}


def test_what_is_stated():
    said = stated()
    assert said.epsilon <= 1
    assert said.epsilon == pytest.approx(1, rel=1e-9)
    assert said.mu == pytest.approx(said.budget / said.strong_convexity / said.sigma)
    assert said.releases == 13
    assert said.epsilon_all_releases == pytest.approx(epsilon_from_mu(said.mu * 13**0.5, 1e-6))
    assert "exact minimiser" in said.comparator
    assert "adaptive" not in said.comparator
    assert any("protect the remaining records" in each for each in said.not_promised)
    assert {each.status for each in said.assumptions} == {"checked", "assumed"}


def test_the_realised_bound_is_nowhere():
    assert not {"residual", "tau", "weights"} & set(ResidualCertificate.model_fields)


def test_timing_is_checked_in_strict_plans_alone():
    def timing(plan: RefitPlan, counts: Counts) -> tuple[str, str]:
        said = next(each for each in stated(plan, counts).assumptions if "at which data were read" in each.statement)
        return said.status, said.by

    strict = plan_of(strict=True)
    assert timing(strict, Counts(removed=1, requests=1))[0] == "checked"
    assert timing(plan_of(), Counts(removed=1, requests=1))[0] == "assumed"
    unscheduled = timing(strict, Counts(removed=1, requests=1, unscheduled=1))
    assert unscheduled[0] == "assumed"
    assert "not scheduled" in unscheduled[1]
    assert "needed a pass" in timing(PLAN, COUNTS)[1]


def test_plans_with_passes_say_what_a_pass_does_not_wash_out():
    assert PLAN.by_passes
    assert not plan_of().by_passes
    assert stated().passes == 0
    assert "until the model is learned anew" in stated().not_promised[-1]
    assert "until the data are read again" in stated(plan_of(), Counts()).not_promised[-1]
    assert "passes" not in stated(plan_of(), Counts()).model_dump()


@pytest.mark.parametrize("change", [{"passes": 13}, {"passes": 0, "strict": True}, {"passes": None}])
def test_passes_that_cannot_have_been_are_refused(change: dict[str, object]):
    with pytest.raises(CertificateError, match=r"passes|not_promised"):
        certificate.verify(stated().model_copy(update=change))


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.9},
        {"mu": 0.1},
        {"epsilon_all_releases": 1.0},
        {"mu_all_releases": 0.3},
        {"releases": 12},
        {"sigma": 1.1e-3},
        {"budget": 1.4e-6},
        {"strong_convexity": 1 / 159},
        {"delta": 1e-7},
        {"extra_delta": 0.0},
        {"noise_resolution": 0.0},
        {"d": 22},
    ],
)
def test_a_wrong_number_is_found_and_both_are_named(change: dict[str, float]):
    with pytest.raises(CertificateError, match=r"states \w+ = .* but its constants give"):
        certificate.verify(stated().model_copy(update=change))


@pytest.mark.parametrize(
    "change",
    [
        {"mechanism": "certified-refit"},
        {"loss": "softmax"},
        {"classes": 4},
        {"delta": 1.0},
        {"sigma": 1e16},
        {"removed": 300_000},
        {"removed": 11},
        {"scheduled_reads": 13},
        {"features": "pixels"},
        {"strict": True},
        {"comparator": "anything"},
        {"observers": "nobody"},
        {"not_promised": ()},
        {"assumptions": ()},
        {"noise_source": "seed"},
        {"unscheduled_reads": 1},
    ],
)
def test_what_cannot_be_is_found(change: dict[str, object]):
    with pytest.raises(CertificateError):
        certificate.verify(stated().model_copy(update=change))


def test_a_budget_that_float64_cannot_keep_is_refused():
    said = stated()
    small = {
        "sigma": said.sigma * 1e-12,
        "budget": said.budget * 1e-12,
        "noise_resolution": said.noise_resolution * 1e-12,
    }
    wrong = said.model_copy(update=small)
    wrong = wrong.model_copy(update=wrong.words())
    with pytest.raises(UnlearningError, match="rounding in float64"):
        certificate.verify(wrong)


def test_no_certificate_states_an_extra_delta_above_delta():
    budget = release.budget_of(epsilon=400, delta=1e-6, strong_convexity=PLAN.strong_convexity, sigma=PLAN.sigma)
    said = stated(PLAN.model_copy(update={"epsilon": 400.0, "budget": budget}))
    assert said.extra_delta > said.delta
    with pytest.raises(UnlearningError, match="epsilon = 400 is too large to be guaranteed"):
        certificate.verify(said)
    with pytest.raises(UnlearningError, match="epsilon = 400 is too large to be guaranteed"):
        plan_of(epsilon=400)


def test_files_of_both_kinds_are_told_apart(tmp_path):
    path = tmp_path / "certificate.json"
    certificate.write(stated(), path)
    assert json.loads(path.read_text())["kind"] == "residual"
    assert certificate.read_any(path) == stated()
    with pytest.raises(DataError, match="is not a certificate"):
        certificate.read(path)
    path.write_text(json.dumps({"kind": "another"}))
    with pytest.raises(DataError, match="is not a certificate"):
        certificate.read_any(path)


def test_the_command_verifies_it(tmp_path):
    path, wrong = tmp_path / "certificate.json", tmp_path / "wrong.json"
    certificate.write(stated(), path)
    said = CliRunner().invoke(app, ["verify", str(path)])
    assert said.exit_code == 0
    assert "epsilon = 1 at delta = 1e-06" in said.output
    assert "for all 13 releases together, or if requests are adaptive" in said.output
    certificate.write(stated().model_copy(update={"epsilon": 0.5}), wrong)
    assert CliRunner().invoke(app, ["verify", str(wrong), str(path)]).exit_code == 1
