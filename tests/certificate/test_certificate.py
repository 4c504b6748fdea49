"""A certificate is recomputed from its own constants, and a wrong one is found."""

import functools
import json
import math
from dataclasses import replace

import pytest

from certified_unlearning import accounting, certificate
from certified_unlearning.accounting import assumptions
from certified_unlearning.certificate import CertificateError
from certified_unlearning.certificate.preprocessing import preprocessing
from certified_unlearning.errors import AssumptionError, DataError
from certified_unlearning.mechanisms.run import ExperimentPlan
from tests.support.planning import ANEW, make, settings_of, sweep_of

SUMMARY = {
    "n": 1437, "d": 64, "classes": {"train": {"-1": 700, "+1": 737}}, "largest_eigenvalue": 0.595,
    "sha256": "0" * 64, "features": "pixels",
}  # fmt: skip
TEN_CLASSES = SUMMARY | {"classes": {"train": {str(number): 144 for number in range(10)}}}


def certified_by(whole: ExperimentPlan) -> list[certificate.StepsCertificate]:
    return [
        certificate.of(run, key=whole.key(run), noise_source="seed") for run in whole.runs if run.mechanism not in ANEW
    ]


@functools.cache
def certificates(experiment: str, **settings: object) -> list[certificate.StepsCertificate]:
    sweep = sweep_of("digits", experiment)
    return certified_by(make(experiment, settings_of("digits", **settings), sweep, SUMMARY))


@functools.cache
def ten_class_certificates(features: str | None) -> list[certificate.StepsCertificate]:
    settings = settings_of("digits", dataset="cifar10", features=features)
    return certified_by(make("fig3a", settings, sweep_of("digits", "fig3a"), TEN_CLASSES))


@pytest.mark.parametrize(
    ("origin", "features"),
    [
        ({"classes_from": "records"}, "declared, classes from the records"),
        ({"classes_from": "declaration"}, "declared"),
        ({}, "declared"),  # Prepared by an earlier version.
    ],
)
def test_the_pipelines_certificates_say_where_the_classes_of_a_table_come_from(
    origin: dict[str, str], features: str
) -> None:
    sweep, settings = sweep_of("digits", "fig3a"), settings_of("digits", dataset="loans")
    for certified in certified_by(make("fig3a", settings, sweep, SUMMARY | origin)):
        certificate.verify(certified)
        assert certified.features == features
        said = [each.by for each in certified.assumptions if "list of classes" in each.statement]
        assert len(said) == (features != "declared")
        other = "declared" if said else "declared, classes from the records"
        with pytest.raises(CertificateError, match="states the wrong assumptions"):
            certificate.verify(certified.model_copy(update={"features": other}))


@pytest.mark.parametrize("experiment", ["fig3a", "fig3b", "fig3c", "fig4", "fig5a"])
@pytest.mark.parametrize("adjacency", ["replace", "zero-out"])
def test_every_certificate_of_the_pipeline_verifies(experiment: str, adjacency: str) -> None:
    for certified in certificates(experiment, adjacency=adjacency):
        certificate.verify(certified)
        assert certified.delta == 1 / 1437
        assert certified.adjacency == adjacency


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.9},
        {"sigma": 0.0299},
        {"n": 1400},
        {"lipschitz": 1.5},
        {"delta": 1e-5},
        {"records_per_request": 6},
        {"strong_convexity": 0.02},
        {"learning_steps": 100},
        {"extra_delta": 0.0},
    ],
)
def test_an_edited_langevin_certificate_is_found(change: dict[str, float]) -> None:
    original = certificates("fig3b")[0]
    message = r"states (epsilon|extra_delta) = .*, but its constants give|after \d+ learning steps"
    with pytest.raises((CertificateError, AssumptionError), match=message):
        certificate.verify(original.model_copy(update=change))


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.9},
        {"mu": 0.3},
        {"mu": None},
        {"sigma": 0.0299},
        {"n": 1400},
        {"lipschitz": 1.5},
        {"adjacency": "zero-out"},
        {"extra_delta": 1e-9},
    ],
)
@pytest.mark.parametrize(
    ("experiment", "accountant"),
    [("fig3b", "shifted"), ("fig3a", "descent-to-delete shifted"), ("fig3b", "descent-to-delete shifted")],
)
def test_an_edited_certificate_of_shifted_interpolation_is_found(
    experiment: str, accountant: str, change: dict[str, object]
) -> None:
    original = next(each for each in certificates(experiment) if each.accountant == accountant)
    certificate.verify(original)
    with pytest.raises(CertificateError, match=r"states (epsilon|mu|extra_delta) = .*, but its constants give"):
        certificate.verify(original.model_copy(update=change))


def test_shifted_interpolation_pays_nothing_for_finite_learning_and_says_what_it_compares_with() -> None:
    by_name = {each.accountant: each for each in certificates("fig4")}
    assert by_name["shifted"].extra_delta < 1e-20 < by_name["lsi"].extra_delta
    assert "for the same total number of steps" in by_name["shifted"].comparator
    assert "stationary" not in " ".join(each.statement for each in by_name["shifted"].assumptions)
    assert "stationary" in " ".join(each.statement for each in by_name["lsi-tight"].assumptions)


@pytest.mark.parametrize("change", [{"accountant": "descent-to-delete shifted"}, {"mechanism": "descent-to-delete"}])
def test_an_accountant_of_another_mechanism_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(CertificateError, match=r"states mechanism = .*, the mechanism that the accountant covers"):
        certificate.verify(certificates("fig4")[0].model_copy(update=change))


def test_the_tightened_form_reckons_with_every_request() -> None:
    original = next(each for each in certificates("fig3a") if each.accountant == "descent-to-delete shifted")
    with pytest.raises(CertificateError, match="states epsilon"):
        certificate.verify(original.model_copy(update={"unlearning_steps": (1, 1)}))
    with pytest.raises(CertificateError, match="states the wrong comparator"):
        certificate.verify(original.model_copy(update={"variant": "published-state"}))


@pytest.mark.parametrize(
    "change",
    [
        {"guarantee": "exact"},
        {"smoothness": "spectral"},
        {"smoothness_constant": 0.1},
        {"assumptions": ()},
        {"comparator": "anything stronger"},
        {"mechanism": "retraining"},
        {"mechanism": "scikit-learn"},
        {"accountant": "descent-to-delete N.1"},
        {"dataset": "adult"},
        {"dtype": "float32"},
    ],
)
def test_a_certificate_edited_in_its_words_is_found(change: dict[str, object]) -> None:
    original = certificates("fig3b")[0]
    with pytest.raises(CertificateError):
        certificate.verify(original.model_copy(update=change))


def test_a_heuristic_cannot_be_relabelled_as_proven() -> None:
    spectral = certificates("fig3b", smoothness="spectral")[0]
    certificate.verify(spectral)
    proven = certificates("fig3b")[0]
    words = {"guarantee": proven.guarantee, "assumptions": proven.assumptions}
    with pytest.raises(CertificateError, match=r"the rule 'bound' needs at least"):
        certificate.verify(spectral.model_copy(update=words | {"smoothness": "bound"}))


def test_a_certificate_with_a_margin_needs_the_margin_of_its_own_removals() -> None:
    for certified in certificates("fig4", smoothness="spectral-with-margin"):
        certificate.verify(certified)
        assert certified.guarantee == "upper bound"
        curvature = next(each for each in certified.assumptions if each.statement.startswith("smoothness_constant"))
        assert curvature.status == "assumed"
        removed = certified.records_per_request * len(certified.unlearning_steps)
        needed = (0.595 + removed / 1437) / 4 + certified.strong_convexity
        with pytest.raises(CertificateError, match=r"the rule 'spectral-with-margin' needs at least"):
            certificate.verify(certified.model_copy(update={"smoothness_constant": needed * (1 - 1e-6)}))


SCOPE = {
    "by the theorem for a secret state": ("fig3b", -2, {"accountant": "descent-to-delete N.1"}),
    "a secret state by the theorem without": ("fig3b", -2, {"variant": "secret-state"}),
    "another variant": ("fig3c", 0, {"variant": "published-state"}),
    "a hundred records by a theorem for one": ("fig3a", 18, {"records_per_request": 100}),
    "no record": ("fig3c", 0, {"records_per_request": 0}),
    "less than no record": ("fig3a", 18, {"records_per_request": -800}),
    "more records than there are": ("fig3c", 0, {"records_per_request": 2000}),
    "more records than there are, in a stream": ("fig3b", 0, {"records_per_request": 72}),
    "learning for less than no step": ("fig3a", 19, {"learning_steps": -5}),
    "learning too short for stationarity": ("fig3b", 0, {"learning_steps": 50, "extra_delta": 1.0}),
    "delta above 1": ("fig3c", 0, {"delta": 1.5}),
    "ten classes": ("fig3c", 0, {"classes": 10}),
    "features of what has no images": ("fig3c", 0, {"features": "hog"}),
    "an eigenvalue too small for rows of norm 1": ("fig3c", 0, {"largest_eigenvalue": 1 / 65}),
    "an eigenvalue too large for rows of norm 1": ("fig3c", 0, {"largest_eigenvalue": 100.0}),
    "a negative number of unlearning steps": ("fig3c", 0, {"unlearning_steps": (-1,)}),
}  # fmt: skip


@pytest.mark.parametrize("name", SCOPE)
@pytest.mark.parametrize("smoothness", ["bound", "spectral-with-margin"])
def test_what_the_accountant_does_not_speak_of_is_refused_whatever_epsilon_it_gives(name: str, smoothness: str) -> None:
    experiment, index, change = SCOPE[name]
    original = certificates(experiment, smoothness=smoothness)[index]
    certificate.verify(original)
    (field, *_) = change if name != "by the theorem for a secret state" else ("variant",)
    if name == "learning too short for stationarity":
        field = "extra_delta"
    with pytest.raises(CertificateError, match=rf"states {field} = .*, but by .* on digits it must be "):
        certificate.verify(original.model_copy(update=change))


def test_a_certificate_of_ten_classes_is_held_to_the_constants_of_softmax() -> None:
    certified = ten_class_certificates(None)[0]
    certificate.verify(certified)
    assert (certified.classes, certified.d, certified.lipschitz) == (10, 640, 2.0)
    for change, sentence in (
        ({"lipschitz": 1.4}, "known to be bounded by 1.414"),
        ({"smoothness_constant": 0.5}, "the rule 'bound' needs at least"),
        ({"classes": 2}, "states classes = 2, but by lsi on cifar10 it must be 10"),
    ):
        with pytest.raises(CertificateError, match=sentence):
            certificate.verify(certified.model_copy(update=change))


def test_features_of_a_network_are_an_assumption() -> None:
    for features, status in ((None, "checked"), ("hog", "checked"), ("resnet18", "assumed")):
        (certified, *_) = ten_class_certificates(features)
        certificate.verify(certified)
        assert certified.assumptions[1].status == status


@pytest.mark.parametrize("experiment", ["fig3a", "fig3b"])
@pytest.mark.parametrize("change", [{"epsilon": 0.01}, {"sigma": 1e-6}, {"learning_steps": 1}, {"radius": None}])
def test_an_edited_descent_certificate_is_found(experiment: str, change: dict[str, float]) -> None:
    original = next(each for each in certificates(experiment) if each.mechanism == "descent-to-delete")
    with pytest.raises((CertificateError, AssumptionError)):
        certificate.verify(original.model_copy(update=change))


def test_too_large_a_step_is_refused_by_name() -> None:
    with pytest.raises(AssumptionError, match="step_size"):
        certificate.verify(certificates("fig3c")[0].model_copy(update={"step_size": 9.0}))


def test_a_spectral_certificate_says_that_it_guarantees_nothing() -> None:
    for certified in certificates("fig3a", smoothness="spectral"):
        assert certified.guarantee == "heuristic"
        curvature = next(each for each in certified.assumptions if each.statement.startswith("smoothness_constant"))
        assert curvature.status == "assumed"


def test_a_certificate_survives_its_file(tmp_path) -> None:
    original = certificates("fig3b")[0]
    certificate.write(original, tmp_path / "certificate.json")
    assert certificate.read(tmp_path / "certificate.json") == original


def test_a_file_that_is_no_certificate_is_refused(tmp_path) -> None:
    path = tmp_path / "certificate.json"
    with pytest.raises(DataError, match="No such file"):
        certificate.read(path)
    path.write_text("{}")
    with pytest.raises(DataError, match=r"is not a certificate: run_key: Field required"):
        certificate.read(path)
    certificate.write(certificates("fig3a")[0], path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"accountant": "wishful"}))
    with pytest.raises(DataError, match=r"is not a certificate: accountant: .*must be one of lsi, lsi-tight, sh"):
        certificate.read(path)


def test_without_a_request_nothing_is_guaranteed() -> None:
    stated = certificates("fig3a")[0]
    with pytest.raises(CertificateError, match=r"but its constants give 0\.0"):
        certificate.verify(stated.model_copy(update={"unlearning_steps": ()}))
    zeros = dict.fromkeys(("epsilon", "epsilon_in_exact_arithmetic", "mu", "extra_delta", "noise_delta"), 0.0)
    (arithmetic,) = [each for each in stated.assumptions if "rounding errors" in each.statement]
    paid = replace(arithmetic, by=arithmetic.by.replace(f"{stated.noise_delta:.2g}", "0"))
    words = tuple(paid if each is arithmetic else each for each in stated.assumptions)
    certificate.verify(stated.model_copy(update={"unlearning_steps": (), "assumptions": words, **zeros}))


def test_a_certificate_cannot_claim_smaller_gradients_than_records_of_norm_1_have() -> None:
    original = next(each for each in certificates("fig4") if each.accountant == "shifted")
    with pytest.raises(CertificateError, match=r"states lipschitz = 0\.1, but the gradients"):
        certificate.verify(original.model_copy(update={"lipschitz": 0.1}))


def test_a_certificate_of_noise_that_rounding_swallows_is_refused() -> None:
    original = next(each for each in certificates("fig4") if each.accountant == "shifted")
    with pytest.raises(AssumptionError, match="with rounding, epsilon is"):
        certificate.verify(original.model_copy(update={"sigma": 1e-30}))


@pytest.mark.parametrize(
    "change",
    [{"d": -3}, {"start": math.nan}, {"radius": -1}, {"variant": "foo"}, {"strong_convexity": 0}, {"n": 0}],
)
def test_a_certificate_with_impossible_fields_is_not_read(tmp_path, change: dict[str, object]) -> None:
    original = next(each for each in certificates("fig4") if each.accountant == "shifted")
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(json.loads(original.model_dump_json()) | change))
    with pytest.raises(DataError, match=r"is (not a|no) certificate"):
        certificate.read(path)


STRIPPED = dict.fromkeys(("epsilon_in_exact_arithmetic", "rounding_error", "noise_delta", "noise_resolution"))


def of_before(certified: certificate.StepsCertificate) -> certificate.StepsCertificate:
    """Return the certificate as it was written when arithmetic was assumed to be exact."""
    words = assumptions.assumptions(
        certified.accountant, certified.smoothness, certified.dtype,
        preprocessing(certified.dataset, certified.features), certified.classes, certified.noise_source,
        certified.adjacency, None,
    )  # fmt: skip
    exact = {"epsilon": certified.epsilon_in_exact_arithmetic, "extra_delta": 0.0, "assumptions": words}
    if certified.mu is not None:
        exact["mu"] = accounting.mu_from_epsilon(certified.epsilon_in_exact_arithmetic, certified.delta)
    return certified.model_copy(update=STRIPPED | exact)


def test_a_certificate_of_before_is_taken_where_rounding_is_negligible_and_refused_where_it_is_not() -> None:
    certified = next(each for each in certificates("fig4") if each.accountant == "shifted")
    before = of_before(certified)
    certificate.verify(before)
    coarse = assumptions.assumptions(
        before.accountant, before.smoothness, "float32", preprocessing(before.dataset, before.features),
        before.classes, before.noise_source, before.adjacency, None,
    )  # fmt: skip
    with pytest.raises(CertificateError, match=r"assumes exact arithmetic: with the rounding of float32"):
        certificate.verify(before.model_copy(update={"dtype": "float32", "assumptions": coarse}))


def test_stripping_what_rounding_adds_hides_no_delta() -> None:
    certified = next(each for each in certificates("fig4") if each.accountant == "lsi")
    with pytest.raises(CertificateError):
        certificate.verify(of_before(certified))
