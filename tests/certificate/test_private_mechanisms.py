"""Certificates of the mechanisms of private learning that no estimator runs: every number and every word recomputed."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from certified_unlearning import certificate
from certified_unlearning.accounting.private.losses import LinearProblem, ScalarLoss
from certified_unlearning.accounting.private.phased import PhasedDescent
from certified_unlearning.accounting.private.plan import PrivatePlan
from certified_unlearning.accounting.private.recursive import RecursiveRegularisation
from certified_unlearning.accounting.private.sampled import SampledDescent
from certified_unlearning.accounting.private.sampled_spider import SampledSpider
from certified_unlearning.accounting.private.spider import SpiderBoost
from certified_unlearning.accounting.private.tree_spider import TreeSpider
from certified_unlearning.certificate import CertificateError, PrivateCertificate
from certified_unlearning.cli import app
from certified_unlearning.engine.private.bounded_records import BoundedRecords
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.mechanisms.private import phased, recursive, sampled_descent, spider_boost, tree_spider

EARLIER = sorted((Path(__file__).parent / "earlier").glob("*.json"))
ASKED = {"epsilon": 1.0, "delta": 1e-6}
LOGISTIC = ScalarLoss(name="logistic")
WHOLE = LinearProblem(n=10_000, features=50, row_norm=1.0, loss=LOGISTIC, radius=2.0)
ONE_GRADIENT = SpiderBoost.plan(WHOLE, **ASKED, gap=LOGISTIC.at_zero**2, steps=60)
SPIDER = replace(ONE_GRADIENT, period=12, sigma_gradient=ONE_GRADIENT.sigma_gradient * 5**0.5)
SAMPLED = SampledDescent(problem=WHOLE, steps=20, share=0.02, clip=1.0, multiplier=4.0, step_size=0.5)
SAMPLED_SPIDER = SampledSpider(
    problem=WHOLE, steps=40, period=6, batch=500, step_size=2.0, sigma_gradient=0.004, sigma_difference=0.016
)
PLANS: dict[str, PrivatePlan] = {
    "spider-boost": SPIDER,
    "tree-spider": TreeSpider.plan(WHOLE, **ASKED),
    "recursive-regularisation": RecursiveRegularisation.plan(WHOLE, **ASKED, steps=60),
    "phased-descent": PhasedDescent.plan(WHOLE, **ASKED),
    "sampled-descent": SAMPLED,
    "sampled-spider": SAMPLED_SPIDER,
}
OTHERS: dict[str, PrivatePlan] = {
    "embedded": SpiderBoost.plan(WHOLE.embedded(7), **ASKED, gap=LOGISTIC.at_zero**2, steps=60),
    "one gradient": ONE_GRADIENT,
    "squared": PhasedDescent.plan(replace(WHOLE, loss=ScalarLoss(name="squared", target=0.5)), **ASKED),
    "add-remove": replace(SAMPLED, problem=replace(WHOLE, relation="add-remove")),
    "tanh": TreeSpider.plan(replace(WHOLE, loss=ScalarLoss(name="tanh")), **ASKED),
}
NO_MATTER = {"sampled-descent": {"row_norm"}}
"""Of DP-SGD epsilon rests on clipped gradients, whatever rows were."""


def stated(plan: PrivatePlan) -> PrivateCertificate:
    return PrivateCertificate.of(plan, delta=1e-6, features=50, row_norm=1.0, noise_source="system entropy")


SAID = {name: stated(plan) for name, plan in (PLANS | OTHERS).items()}


@pytest.mark.parametrize("name", SAID)
def test_a_certificate_is_read_and_recomputed_from_its_constants(name: str, tmp_path: Path) -> None:
    plan, said = (PLANS | OTHERS)[name], SAID[name]
    certificate.write(said, tmp_path / "certificate.json")
    read = certificate.read_any(tmp_path / "certificate.json")
    assert read == said
    certificate.verify(read)
    assert said.epsilon == plan.guarantee.epsilon(1e-6)
    assert said.plan.guarantee.epsilon(1e-6) == pytest.approx(said.epsilon, rel=1e-9)
    again = PrivateCertificate.of(said.plan, delta=1e-6, features=50, row_norm=1.0, noise_source="system entropy")
    assert replace(again.constants, runs=()) == replace(said.constants, runs=())
    assert said.n == 10_000
    assert [each.records for each in said.deletions][:2] == [1, 2]
    assert said.deletions[1].epsilon > 2 * said.epsilon


@pytest.mark.parametrize("name", ["one gradient", "tree-spider", "recursive-regularisation", "phased-descent"])
def test_what_was_asked_is_stated(name: str) -> None:
    assert 1 - 1e-6 < SAID[name].epsilon <= 1 + 1e-9
    assert SAID[name].mu is not None


@pytest.mark.parametrize(
    ("name", "parts", "changes", "named"),
    [
        ("recursive-regularisation", "stages", {"relation": "add-remove"}, "must have the same problem"),
        ("phased-descent", "phases", {"relation": "add-remove"}, "must have the same problem"),
        ("recursive-regularisation", "stages", {"radius": 1e-3}, "no stage may have a smaller ball"),
    ],
)
def test_parts_of_other_problems_are_no_plan(name: str, parts: str, changes: dict[str, Any], named: str) -> None:
    """A certificate would state the first part's relation and the least private part's mu."""
    plan: Any = PLANS[name]
    first, second, *rest = getattr(plan, parts)
    with pytest.raises(ParameterError, match=named):
        replace(plan, **{parts: (first, replace(second, problem=replace(second.problem, **changes)), *rest)})


def test_a_delta_below_what_can_be_accounted_for_has_no_certificate() -> None:
    """Infinity would be written as null, and not be read again."""
    with pytest.raises(ParameterError, match="no epsilon is found at delta = 1e-20"):
        PrivateCertificate.of(SAMPLED, delta=1e-20, noise_source="system entropy")


@pytest.mark.parametrize("name", ["spider-boost", "phased-descent"])
def test_an_extra_delta_above_delta_is_refused_though_the_constants_give_it(name: str) -> None:
    """At such a delta the event on which nothing is guaranteed is likelier than all that delta allows."""
    said = PrivateCertificate.of(PLANS[name], delta=1e-200, features=50, row_norm=1.0, noise_source="system entropy")
    assert said.extra_delta > said.delta
    with pytest.raises(CertificateError, match=r"states extra_delta = .*, but it must be at most delta = 1e-200"):
        certificate.verify(said)


def test_a_file_that_states_two_epsilons_is_refused(tmp_path: Path) -> None:
    """Whoever reads the first, and whoever recomputes the last, would not speak of the same statement."""
    path = tmp_path / "certificate.json"
    path.write_text(SAID["spider-boost"].model_dump_json().replace('"epsilon":', '"epsilon":0.1,"epsilon":', 1))
    with pytest.raises(DataError, match="the key 'epsilon' occurs twice"):
        certificate.read_any(path)
    result = CliRunner().invoke(app, ["verify", str(path)])
    assert result.exit_code == 1
    assert "occurs twice" in result.output


def edits() -> Iterator[tuple[str, str, int | None]]:
    for name in PLANS:
        said = SAID[name]
        for field, value in said:
            if isinstance(value, int | float) and field not in NO_MATTER.get(name, ()):
                yield name, field, None
        for number, run in enumerate(said.runs):
            for field, value in run:
                if value is not None:
                    yield name, field, number


def edited(value: float) -> float:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else (value or 1e-3) * 1.01


@pytest.mark.parametrize(("name", "field", "run"), list(edits()))
def test_every_edited_number_is_refused(name: str, field: str, run: int | None) -> None:
    said = SAID[name]
    if run is None:
        changed = said.model_copy(update={field: edited(getattr(said, field))})
    else:
        runs = list(said.runs)
        runs[run] = runs[run].model_copy(update={field: edited(getattr(runs[run], field))})
        changed = said.model_copy(update={"runs": tuple(runs)})
    with pytest.raises(CertificateError):
        certificate.verify(changed)


@pytest.mark.parametrize("name", PLANS)
def test_every_edited_word_and_every_foreign_constant_is_refused(name: str) -> None:
    said = SAID[name]
    other = "spider-boost" if name != "spider-boost" else "tree-spider"
    changes = {
        "mechanism": other,
        "relation": "add-remove",
        "selection": "boosting",
        "loss": "tanh",
        "noise_source": "seed",
        "hidden": "everything",
        "observers": f"{said.observers}.",
        "comparator": "nothing",
        "not_promised": (),
        "sampling": "full batch of some records",
        "assumptions": said.assumptions[1:],
        "features": "made up",
        "deletions": said.deletions[1:],
        "runs": SAID[other].runs,
        "chunks": 2,
        "beta": 0.1,
        "mu": 0.1 if said.mu is None else None,
        "width": 0.5,
    }
    for field, value in changes.items():
        with pytest.raises(CertificateError):
            certificate.verify(said.model_copy(update={field: value}))
    for field in ("epsilon", "extra_delta"):
        second = said.deletions[1].model_copy(update={field: 0.9 * getattr(said.deletions[1], field)})
        with pytest.raises(CertificateError, match=f"{field} of 2 deletions"):
            certificate.verify(said.model_copy(update={"deletions": (said.deletions[0], second, *said.deletions[2:])}))


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("spider-boost", {"gradients": 10**400}),
        ("spider-boost", {"gradients": 7, "differences": 5}),
        ("spider-boost", {"batch": 10}),
        ("sampled-spider", {"batch": None}),
        ("sampled-spider", {"batch": 10_001}),
        ("sampled-spider", {"sigma_difference": 1e-300}),
        ("tree-spider", {"depth": 10**18}),
        ("tree-spider", {"rounds": 10**400}),
        ("recursive-regularisation", {"steps": 10**400}),
        ("recursive-regularisation", {"radius": 1e308}),
        ("phased-descent", {"records": 10**400}),
        ("phased-descent", {"sigma": 1e-320}),
        ("sampled-descent", {"steps": 10**400}),
        ("sampled-descent", {"clip": 1e308}),
        ("sampled-descent", {"sigma": 1e-320}),
    ],
)
def test_impossible_constants_are_no_traceback(name: str, constants: dict[str, object]) -> None:
    said = SAID[name]
    runs = [run.model_dump() for run in said.runs]
    changed = PrivateCertificate.model_validate(said.model_dump() | {"runs": [runs[0] | constants, *runs[1:]]})
    with pytest.raises(CertificateError):
        certificate.verify(changed)


@pytest.mark.parametrize(
    ("name", "faulty"),
    [
        ("a forgotten sqrt(T)", replace(SPIDER, sigma_gradient=SPIDER.sigma_gradient / SPIDER.gradients**0.5)),
        ("a forgotten sqrt(T)", replace(SPIDER, sigma_difference=SPIDER.sigma_difference / SPIDER.differences**0.5)),
        ("noise of add-remove", replace(PLANS["tree-spider"], multiplier=PLANS["tree-spider"].multiplier / 2)),
        (
            "n for the size of a chunk",
            replace(
                PLANS["recursive-regularisation"],
                stages=tuple(
                    replace(each, sigma=each.sigma * each.problem.n / WHOLE.n)
                    for each in PLANS["recursive-regularisation"].stages
                ),
            ),
        ),
        (
            "L0 for G",
            replace(
                PLANS["phased-descent"],
                phases=tuple(
                    replace(each, sigma=each.sigma * LOGISTIC.at_zero**2) for each in PLANS["phased-descent"].phases
                ),
            ),
        ),
        ("noise of add-remove", replace(SAMPLED, multiplier=SAMPLED.multiplier / 2)),
        ("noise of add-remove", replace(SAMPLED_SPIDER, sigma_difference=0.008)),
    ],
)
def test_faulty_noise_is_found(name: str, faulty: PrivatePlan) -> None:
    """Whoever planned so says what was asked: the certificate is that of a right plan with the noise that was used."""
    found = stated(faulty)
    right = SAID[found.mechanism]
    assert found.epsilon > 1.01 * right.epsilon
    with pytest.raises(CertificateError):
        certificate.verify(right.model_copy(update={"runs": found.runs}))


def test_steps_that_stretch_have_no_certificate() -> None:
    said = SAID["phased-descent"]
    long = said.runs[0].model_copy(update={"step_size": 9.0})
    with pytest.raises(CertificateError, match="step_size must be at most 2 / H"):
        certificate.verify(said.model_copy(update={"runs": (long, *said.runs[1:])}))


def test_what_is_said_is_that_of_the_mechanism() -> None:
    assumed = {name: {each.statement: each.status for each in said.assumptions} for name, said in SAID.items()}
    order, exact = "the order of the records does not depend on their contents", "every step starts from a sum with"
    for name in PLANS:
        assert (order in assumed[name]) == (SAID[name].sampling.startswith("disjoint parts"))
        uncounted = [status for statement, status in assumed[name].items() if statement.startswith(exact)]
        assert uncounted == (["assumed"] if name in ("spider-boost", "sampled-descent", "sampled-spider") else [])
        assert assumed[name]["nobody who sees the model knows the noise"] == "assumed"
    assert "probability 0.02" in SAID["sampled-descent"].sampling
    assert "probability 0.05" in SAID["sampled-spider"].sampling
    assert "secret" in SAID["sampled-spider"].sampling
    for name in ("sampled-descent", "sampled-spider"):
        assert assumed[name]["nobody learns which records were in which batch"] == "assumed"
        assert "but not which records were in which batch" in SAID[name].observers
        assert not any("their mu" in each for each in SAID[name].not_promised)
    assert "but not the iterates of a phase" in SAID["phased-descent"].observers
    assert assumed["phased-descent"]["no step moves two paths farther apart"] == "checked"
    assert SAID["spider-boost"].sampling == "full batch"
    assert SAID["embedded"].learned_d == 7


def test_several_deletions_under_poisson_batches_follow_from_one() -> None:
    """Tight where batches are full: then the exact law says more, and never less than is stated."""
    full = replace(SAMPLED, share=1.0, steps=1, multiplier=40.0)
    said = stated(full)
    exact = SpiderBoost(
        problem=WHOLE, steps=1, period=1, step_size=1.0, sigma_gradient=40.0 / WHOLE.n, sigma_difference=1.0
    ).guarantee
    for each in said.deletions:
        assert each.epsilon >= exact.epsilon(1e-6, records=each.records) / 1.02
    assert said.deletions[1].records == 2
    assert said.deletions[1].epsilon <= 2.2 * said.epsilon


@pytest.mark.parametrize("command", [True, False])
def test_without_dp_accounting_one_sentence_names_the_extra(
    command: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "certificate.json"
    certificate.write(SAID["sampled-descent"], path)
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    certificate.verify(SAID["spider-boost"])
    if command:
        done = CliRunner().invoke(app, ["verify", str(path)])
        assert done.exit_code == 1
        assert "not installed: install the extra `private`" in done.output
        return
    with pytest.raises(ParameterError, match="install the extra `private`"):
        certificate.verify(SAID["sampled-descent"])
    with pytest.raises(ParameterError, match="install the extra `private`"):
        stated(SAMPLED)


@pytest.mark.parametrize("name", PLANS)
def test_the_command_says_what_holds(name: str, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    certificate.write(SAID[name], path)
    done = CliRunner().invoke(app, ["verify", str(path)])
    assert done.exit_code == 0
    assert f"private by {name}" in done.output
    assert ("as long as batches stay secret" in done.output) == name.startswith("sampled")
    assert "unchanged after deletions of several records, epsilon of 2: " in done.output


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.stem)
def test_certificates_of_earlier_versions_are_still_verified(path: Path) -> None:
    said = certificate.read_any(path)
    assert isinstance(said, PrivateCertificate)
    certificate.verify(said)
    with pytest.raises(CertificateError, match="epsilon"):
        certificate.verify(said.model_copy(update={"epsilon": 0.9}))


def test_there_are_certificates_of_earlier_versions() -> None:
    assert len(EARLIER) == 3


def test_a_plan_that_was_run_has_a_certificate() -> None:
    small = replace(WHOLE, n=400, features=3)
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(400, 3, generator=generator, dtype=torch.float64)
    records = BoundedRecords(rows, torch.sign(rows[:, 0]), loss=LOGISTIC, row_norm=1.0)
    asked = {"epsilon": 4.0, "delta": 1e-4}
    ran = {
        spider_boost: SpiderBoost.plan(small, **asked, gap=0.7, steps=6),
        tree_spider: TreeSpider.plan(small, **asked),
        recursive: RecursiveRegularisation.plan(small, **asked, steps=4),
        phased: PhasedDescent.plan(small, **asked),
        sampled_descent: SampledDescent(problem=small, steps=4, share=0.1, clip=1.0, multiplier=3.0, step_size=1.0),
    }
    for mechanism, plan in ran.items():
        assert mechanism.learn(plan, records, [7]).isfinite().all()
        said = PrivateCertificate.of(plan, delta=1e-4, noise_source="seed")
        assert (said.n, said.d, said.embedded) == (400, 3, False)
        certificate.verify(said)
