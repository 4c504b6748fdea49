"""After a restore nothing is stated that forgets the models which were published and lost."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certified_unlearning import certificate
from certified_unlearning.certificate import CertificateError, ResidualCertificate
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.errors import StorageError
from certified_unlearning.ledger import requests
from certified_unlearning.ledger.adding.addition import add
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.copies.exports import export
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.log import replay as replaying
from certified_unlearning.ledger.log.replay import replay
from certified_unlearning.ledger.log.setting import set_log
from certified_unlearning.ledger.method import Secret, answered_of
from certified_unlearning.ledger.methods import exact_steps
from certified_unlearning.ledger.methods.exact_steps import ExactSteps
from certified_unlearning.ledger.model import method_of, read_stored, read_weights
from certified_unlearning.ledger.personal.report import report_on
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Original
from tests.ledger.log.conftest import backed_up, restore
from tests.ledger.tables import LANGEVIN, make_refit, write_new

SETTINGS: dict[str, dict[str, Any]] = {
    "langevin": {**LANGEVIN, "C": 0.1, "steps": 5, "records": 3, "device": "cpu"},
    "mini-batches": {**LANGEVIN, "C": 0.1, "steps": 5, "records": 3, "device": "cpu", "batch_size": 60},
    "newton-removal": {"epsilon": 1.0, "C": 0.1, "sigma": 0.03, "records_between_reads": 4},
    "noisy-sgd": {"mechanism": "noisy-sgd", "C": 0.1, "steps": 40, "batch_size": 20},
    "certified-ensemble": {"mechanism": "certified-ensemble", "shards": 3, "slices": 1, "budgets": (2,)},
    "federated-averaging": {"mechanism": "federated-averaging", "steps": 4},
}


@pytest.fixture(scope="module", params=SETTINGS)
def made(request: pytest.FixtureRequest, original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lost") / request.param
    table = Table(path=str(original.data), label="ill", identifier="person", classes=("no", "yes"))
    initialise(path, table, **SETTINGS[request.param])
    set_log(path, path.with_name(f"{request.param}.log"))
    return path


@pytest.fixture
def lost(made: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A restored directory whose log has two versions more, and the log."""
    model = Path(shutil.copytree(made, tmp_path / made.name))
    set_log(model, tmp_path / "log")
    backup = backed_up(model, "backup")
    requests.request(model, ["p3"])
    apply(model)
    requests.request(model, ["p5", "p7"])
    apply(model)
    restore(model, backup)
    return model, tmp_path / "log"


def _killed(*_: object) -> None:
    raise StorageError("killed")


def replayed_without_apply(model: Path, log: Path) -> None:
    """Leave a directory as `replay` does that is killed before it applies anything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replaying, "apply", _killed)
        with pytest.raises(StorageError, match="killed"):
            replay(model, log)


def test_certificates_count_lost_releases_or_state_nothing_of_all(lost: tuple[Path, Path]) -> None:
    model, log = lost
    replay(model, log)
    verified = verify(model)
    certified, current = verified.current, verified.state.current
    assert (certified.lost, current.lost_before, current.version) == (2, 2, 4)
    certificate.verify(certificate.read_any(ModelDirectory(model).certificate(4)))
    stated = certified.stated()
    if certified.mechanism == "newton-removal":
        # Four models were published: versions 1 to 4.
        assert certified.releases == 4  # type: ignore[attr-defined]
        assert "and the epsilon for all versions takes lost versions into account" in current.scope.sentence
        assert current.scope.adaptive
    else:
        assert stated.epsilon_all_published is None
        assert "2 published versions were lost" in current.scope.sentence
    # A condition on requests names the restore, too; answers that are equal have none.
    assert ("this assumes that no model was a reason for the restore" in current.scope.sentence) == (
        model.name != "certified-ensemble"
    )
    named = "Nor may any of this have been a reason" in str(certified.meaning())
    assert named == (model.name in ("noisy-sgd", "federated-averaging"))
    text = report_on(model, "p3").as_text()
    assert "Someone has all versions, including" not in text
    assert not [each.statement for each in certified.assumptions if each.statement in text]
    assert "brought the records back. The removal was carried out again." in text


def test_a_certificate_that_leaves_lost_releases_out_is_refused(lost: tuple[Path, Path]) -> None:
    """The planted fault: nobody counts them. The directory finds it, and words that do not fit are found alone."""
    model, log = lost
    replay(model, log)
    state = verify(model).state
    directory = ModelDirectory(model)
    method = method_of(directory, read_stored(directory, state))
    answered = answered_of(state)
    planted = method.certificate(answered, "", 0)
    certificate.verify(planted)
    assert not method.is_of(planted, answered, state.current.lost_before)
    assert method.is_of(certificate.read_any(directory.certificate(4)), answered, state.current.lost_before)
    hiding = certificate.read_any(directory.certificate(4)).model_copy(update={"lost_releases": 0})
    with pytest.raises(CertificateError, match="states"):
        certificate.verify(hiding)


@pytest.mark.parametrize("changed", [{"lost_releases": 5}, {"lost_releases": 3}, {"releases": 3}, {"removed": 0}])
def test_lost_releases_that_do_not_fit_the_others_are_refused(
    original: Original, tmp_path: Path, changed: dict[str, int]
) -> None:
    """Of four models two were lost: what was stated of two models must not be stated of four."""
    model, log = tmp_path / "model", tmp_path / "log"
    make_refit(model, original.data)
    set_log(model, log)
    backup = backed_up(model, "backup")
    for person in ("p3", "p5"):
        requests.request(model, [person])
        apply(model)
    alone = verify(model).current
    restore(model, backup)
    replay(model, log)
    certified = verify(model).current
    assert isinstance(alone, ResidualCertificate)
    assert isinstance(certified, ResidualCertificate)
    assert (alone.releases, certified.releases, certified.lost_releases) == (3, 4, 2)
    assert certified.mu_all_releases == pytest.approx(2 * certified.mu)
    with pytest.raises(CertificateError, match="states"):
        certificate.verify(certified.model_copy(update=changed))


def test_before_the_next_version_nothing_is_stated_of_all_versions(lost: tuple[Path, Path]) -> None:
    model, log = lost
    replayed_without_apply(model, log)
    current = requests.status(model).state.current
    assert (current.version, current.lost_since) == (1, 2)
    assert current.stated.epsilon_all_published is None
    certified = requests.current_certificate(ModelDirectory(model), requests.status(model).state)
    assert certified.with_reactions() is None
    assert certified.share_with_earlier_versions() is None
    assert apply(model).versions[0].version == 4
    verify(model)


@pytest.mark.parametrize("made", ["langevin", "mini-batches"], indirect=True)
def test_noisy_steps_state_a_number_for_all_versions_until_one_is_lost(made: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(made, tmp_path / "model"))
    set_log(model, tmp_path / "log")
    requests.request(model, ["p3"])
    apply(model)
    certified = verify(model).current
    assert certified.stated().epsilon_all_published is not None
    planted = certified.model_copy(update={"lost_releases": 1})
    with pytest.raises(CertificateError, match="states"):
        certificate.verify(planted)


def test_a_copy_of_the_version_that_was_restored_has_a_certificate_that_counts_what_was_lost(
    original: Original, tmp_path: Path
) -> None:
    """Only an addition was lost, so no request waits, and nothing makes a new version with a certificate of its own."""
    model, log = tmp_path / "model", tmp_path / "log"
    make_refit(model, original.data)
    set_log(model, log)
    requests.request(model, ["p3"])
    apply(model)
    backup = backed_up(model, "backup")
    write_new(tmp_path / "new.csv", people=4)
    add(model, tmp_path / "new.csv")
    restore(model, backup)
    assert replay(model, log).applied.versions == ()
    export(model, to=tmp_path / "copy")
    copied = certificate.read_any(tmp_path / "copy" / "certificate.json")
    certificate.verify(copied)
    before = certificate.read_any(ModelDirectory(model).certificate(2))
    assert (copied.lost, before.lost) == (1, 0)
    assert copied.releases == before.releases + 1 == 3  # type: ignore[attr-defined]
    numbers = [each.stated().epsilon_all_published for each in (before, copied)]
    assert numbers[0] < numbers[1]  # type: ignore[operator]


@pytest.fixture
def exact(original: Original, tmp_path: Path) -> tuple[Path, Path]:
    """A restored directory of exact unlearning, whose lost version removed one person, and its lost weights' file."""
    model, log = tmp_path / "exact", tmp_path / "log"
    table = Table(path=str(original.data), label="ill", identifier="person", classes=("no", "yes"))
    initialise(model, table, **SETTINGS["noisy-sgd"], log=log)
    backup = backed_up(model, "backup")
    # So many that steps are taken again with near certainty.
    requests.request(model, [f"p{person}" for person in range(40)])
    apply(model)
    shutil.copy(ModelDirectory(model).weights(2), tmp_path / "lost-weights")
    restore(model, backup)
    return model, log


def weights_of(model: Path) -> np.ndarray:
    return read_weights(ModelDirectory(model), requests.status(model).state.current)


def lost_weights(log: Path) -> np.ndarray:
    import safetensors.numpy

    return safetensors.numpy.load_file(log.with_name("lost-weights"))["weights"]


@pytest.mark.parametrize("fault", [False, True])
def test_after_a_restore_exact_unlearning_draws_other_numbers_than_the_lost_version(
    exact: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, fault: bool
) -> None:
    """The planted fault: the seed is used as it was kept, and the same numbers are drawn a second time."""
    model, log = exact
    if fault:
        kept = ExactSteps._kept

        def as_kept(self: ExactSteps, secret: Secret | None) -> Any:
            return kept(self, None if secret is None else secret._replace(restored=None))

        monkeypatch.setattr(ExactSteps, "_kept", as_kept)
    replay(model, log)
    verify(model)
    assert np.array_equal(weights_of(model), lost_weights(log)) == fault


def test_after_a_restore_exact_unlearning_that_is_killed_ends_with_the_same_bits(exact: tuple[Path, Path]) -> None:
    model, log = exact
    replayed_without_apply(model, log)
    twin = backed_up(model, "twin")
    set_log(twin, None)
    apply(model)
    apply(twin)
    assert np.array_equal(weights_of(model), weights_of(twin))


@pytest.mark.parametrize("fault", [False, True])
def test_a_restore_that_no_log_names_draws_other_numbers_for_other_requests(
    original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: bool
) -> None:
    """The planted fault: the seed is used as it was kept, and two models differ in their requests only."""
    model = tmp_path / "model"
    table = Table(path=str(original.data), label="ill", identifier="person", classes=("no", "yes"))
    initialise(model, table, **SETTINGS["noisy-sgd"])
    new = original.table.head(3).assign(person=["new0", "new1", "new2"])
    new.to_csv(tmp_path / "new.csv", index=False)
    new.tail(2).to_csv(tmp_path / "other.csv", index=False)
    seeds: list[int] = []

    def noted(seed: int) -> Draws:
        seeds.append(seed)
        return Draws(seed)

    monkeypatch.setattr(exact_steps, "Draws", noted)
    if fault:
        monkeypatch.setattr(exact_steps, "address", lambda *parts: int(parts[1], 16))
    for number, people in enumerate((["p3"], ["p3"], ["p5"], ["p3", "p5"])):
        copy = backed_up(model, f"removed-{number}")
        requests.request(copy, people)
        apply(copy)
    for name in ("new.csv", "new.csv", "other.csv"):
        copy = backed_up(model, f"added-{len(seeds)}")
        add(copy, tmp_path / name)
    assert (seeds[0], seeds[4]) == (seeds[1], seeds[5])
    assert len({*seeds}) == (1 if fault else 5)
