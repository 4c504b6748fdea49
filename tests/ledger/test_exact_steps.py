"""A ledger whose removals are exact: the state follows from who is left, nothing of who left stays, all is checked."""

import hmac
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

from certified_unlearning import certificate
from certified_unlearning.certificate import ExactCertificate
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.errors import (
    AssumptionError,
    DataError,
    InfeasibleError,
    LedgerError,
    ParameterError,
    UnlearningError,
)
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory, file_sha256
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.model import read_secret
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.verification import verify
from certified_unlearning.mechanisms.exact.descent import ExactDescent
from tests.ledger.conftest import Forks, Original, Unlearn
from tests.ledger.test_crashes import KILLED, require_consistent, rows_are_those_left
from tests.ledger.test_residue import found, traces
from tests.ledger.test_tampering import make_chain_again, sql

MECHANISMS = ("noisy-sgd", "accelerated-noisy-sgd", "quantized-sgd", "subsample-gd")


def make(path: Path, data: Path, mechanism: str = "noisy-sgd", **asked: Any) -> None:
    initialise(path, Table(path=str(data), label="ill", identifier="person"), mechanism=mechanism, **asked)  # type: ignore[arg-type]


@pytest.fixture(scope="module", params=MECHANISMS)
def any_made(request: pytest.FixtureRequest, original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(request.param) / "model"
    make(path, original.data, request.param)
    return path


@pytest.fixture(scope="module")
def made(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exact") / "model"
    make(path, original.data)
    return path


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "model"))


def state_of(path: Path) -> dict[str, np.ndarray]:
    secret = read_secret(ModelDirectory(path), requests.status(path).state.current)
    assert secret is not None
    return dict(secret.arrays)


def same_bits(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return all(one[name].tobytes() == other[name].tobytes() for name in one | other)


# What a removal leaves.


def test_a_stream_of_requests_leaves_a_state_that_follows_from_who_is_left(
    original: Original, any_made: Path, tmp_path: Path
) -> None:
    path, gone = Path(shutil.copytree(any_made, tmp_path / "model")), []
    for people in (["p3"], ["p4", "p5"], [f"p{each}" for each in range(100, 140)]):
        requests.request(path, people)
        apply(path)
        gone += people
        left = np.flatnonzero(~original.table["person"].isin(gone).to_numpy())
        state = state_of(path)
        assert state["alive"].tolist() == left.tolist()
        assert set(state["batches"].ravel().tolist()) <= set(left.tolist())
        said = verify(path).current
        assert isinstance(said, ExactCertificate)
        certificate.verify(said)
        assert (said.mechanism, said.n, said.deleted, said.inserted) == (
            any_made.parent.name[:-1],
            len(left),
            450 - len(left),
            0,
        )
    assert (said.requests, said.epsilon, said.delta) == (3, 0, 0)
    loaded = load_model(path)
    assert loaded.score(loaded.rows(original.data), original.table["ill"]) > 0.8


def test_three_classes(original: Original, tmp_path: Path) -> None:
    table = original.table.copy()
    table.loc[table["weight"] > 0.5, "ill"] = "perhaps"
    table.to_csv(tmp_path / "three.csv", index=False)
    make(tmp_path / "model", tmp_path / "three.csv")
    requests.request(tmp_path / "model", ["p3", "p10"])
    apply(tmp_path / "model")
    said = verify(tmp_path / "model").current
    assert isinstance(said, ExactCertificate)
    assert (said.loss, said.d) == ("softmax", 12)
    loaded = load_model(tmp_path / "model")
    assert loaded.score(loaded.rows(table), table["ill"]) > 0.75


def test_a_removal_reads_no_row_of_the_removed(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, sums = set(), ExactDescent.__init__

    def watched(descent: Any, settings: Any, records: Any, **options: Any) -> None:
        sums(descent, settings, records, **options)
        plain = records.sums
        records.sums = lambda weights, named: read.update(named.ravel().tolist()) or plain(weights, named)

    used = state_of(model)["batches"]
    requests.request(model, ["p3", "p5"])
    monkeypatch.setattr(ExactDescent, "__init__", watched)
    apply(model)
    gone = {4, 5, 7, 8}
    assert gone & set(used.ravel().tolist())
    assert read
    assert not read & gone


def test_the_seed_is_kept_for_the_next_removal_alone(model: Path) -> None:
    seeds = []
    for person in ("p3", "p4", "p5"):
        secret = read_secret(ModelDirectory(model), requests.status(model).state.current)
        assert secret is not None
        seeds.append(secret.header["seed"])
        requests.request(model, [person])
        apply(model)
        kept = {path.name: path.read_bytes() for path in model.rglob("*") if path.is_file()}
        assert not any(seeds[-1].encode() in content for content in kept.values())
    assert len(set(seeds)) == 3


# What leaves, leaves no trace.


def test_no_file_has_a_feature_or_an_old_state_of_a_removed_record(
    original: Original, model: Path, tmp_path: Path
) -> None:
    directory, gone = ModelDirectory(model), ["p3", "p4", "p150"]
    (tmp_path / "linked").hardlink_to(directory.secret(1))
    before = state_of(model)
    requests.request(model, gone)
    assert found(model, traces(original, gone)) == {"features.float32"}
    with Ledger.opened(directory.ledger, read_only=True):
        apply(model)
        assert found(model, traces(original, gone)) == set()
    assert not directory.secret(1).exists()
    assert set((tmp_path / "linked").read_bytes()) == {0}
    removed = np.flatnonzero(original.table["person"].isin(gone))
    used = np.isin(before["batches"], removed).any(axis=2)
    assert used.any()
    # The gradients that knew them.
    old = {gradient.tobytes() for gradient in before["gradients"][used]}
    assert not any(gradient.tobytes() in old for gradient in state_of(model)["gradients"][0])


def test_no_gradient_points_to_a_removed_record(original: Original, tmp_path: Path) -> None:
    """With one record in a batch and no regulariser to speak of, a gradient is a multiple of the record's row."""

    def pointing(rows: np.ndarray) -> bool:
        gradients = state_of(tmp_path / "model")["gradients"][0]
        lengths = np.outer(np.linalg.norm(gradients, axis=1), np.linalg.norm(rows, axis=1))
        return bool((np.abs(gradients @ rows.T) > (1 - 1e-12) * lengths).any())

    make(tmp_path / "model", original.data, batch_size=1, C=1e12)
    directory = ModelDirectory(tmp_path / "model")
    rows = np.fromfile(directory.features, np.float32).reshape(-1, 4).astype(np.float64)
    members = state_of(tmp_path / "model")["batches"].ravel()
    person = original.table["person"][members[0]]
    mine = rows[original.table["person"] == person]
    assert pointing(mine)
    requests.request(tmp_path / "model", [person])
    apply(tmp_path / "model")
    assert not pointing(mine)


def test_nothing_that_is_shown_or_recorded_tells_what_a_request_cost(
    original: Original, tmp_path: Path, unlearn: Unlearn
) -> None:
    """Of somebody whose record was used, and of somebody whose was not: the same words, keys and certificate."""
    model = tmp_path / "model"
    make(model, original.data, steps=64)  # A third of 150 people with one record are in no batch.
    used = set(state_of(model)["batches"].ravel().tolist())
    single = original.table[~original.table["person"].duplicated(keep=False)]
    hit = next(single["person"][row] for row in single.index if row in used)
    missed = next(single["person"][row] for row in single.index if row not in used)
    shown, recorded, certified = [], [], []
    for person in (hit, missed):
        path = Path(shutil.copytree(model, tmp_path / person))
        before = state_of(path)
        requests.request(path, [person])
        printed = unlearn("apply", path, "--no-quality").stdout
        assert same_bits(state_of(path), before | {"alive": state_of(path)["alive"]}) == (person == missed)
        shown.append(printed.split("head")[0].split("):")[1])
        with Ledger.opened(ModelDirectory(path).ledger) as ledger:
            events = ledger.events("planned", "applied")
        recorded.append([sorted(event.payload) for event in events])
        certified.append(ModelDirectory(path).certificate(2).read_text())
    assert shown[0] == shown[1]
    assert recorded[0] == recorded[1]
    assert certified[0] == certified[1]


# What was killed ends alike.


@pytest.mark.sampled
@pytest.mark.parametrize(("accident", "ends_with", "step"), [("kill_at", KILLED, 1), ("fail_at", 1, 6)])
def test_apply_that_is_killed_or_finds_the_disk_full_at_its_changes_ends_with_the_same_bits(
    original: Original, model: Path, tmp_path: Path, fork: Forks, accident: str, ends_with: int, step: int
) -> None:
    requests.request(model, ["p3", "p4"])
    untouched = Path(shutil.copytree(model, tmp_path / "untouched"))
    apply(untouched)
    due, accidents = state_of(untouched), 0
    assert not same_bits(due, state_of(model))
    while True:
        copy = Path(shutil.copytree(model, tmp_path / f"{accident}-{accidents + 1}"))
        status = fork("apply", copy, **{accident: accidents + 1})
        require_consistent(copy, requested=2)
        if status == 0:
            break
        assert status == ends_with
        accidents += step
        assert fork("apply", copy) == 0
        verify(copy)
        assert same_bits(state_of(copy), due)
        assert np.array_equal(load_model(copy).weights, load_model(untouched).weights)
        assert rows_are_those_left(copy, original, {"p3", "p4"})
        shutil.rmtree(copy)
    assert accidents > 40


def test_an_apply_that_drew_anew_would_end_with_other_bits(model: Path, tmp_path: Path, fork: Forks) -> None:
    requests.request(model, ["p3", "p4"])
    untouched = Path(shutil.copytree(model, tmp_path / "untouched"))
    apply(untouched)
    assert fork("apply", model, new_seed=7) == 0
    verify(model)
    assert not same_bits(state_of(model), state_of(untouched))


def test_an_interrupted_apply_ends_with_the_same_bits(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    requests.request(model, ["p3", "p4"])
    untouched = Path(shutil.copytree(model, tmp_path / "untouched"))
    apply(untouched)
    for step in ("edit", "_run_again"):
        with monkeypatch.context() as patch:
            patch.setattr(ExactDescent, step, interrupted)
            with pytest.raises(KeyboardInterrupt):
                apply(model)
    with pytest.raises(LedgerError, match="was interrupted"):
        verify(model)
    apply(model)
    assert same_bits(state_of(model), state_of(untouched))
    assert np.array_equal(load_model(model).weights, load_model(untouched).weights)


# What was tampered with is found.


def forge(path: Path, **arrays: np.ndarray) -> None:
    """Write another state, as somebody could who has the directory, and make all digests and hashes again."""
    directory, current = ModelDirectory(path), requests.status(path).state.current
    secret = read_secret(directory, current)
    assert secret is not None
    header = {"secret": json.dumps(secret.header)}
    kept = {name: np.ascontiguousarray(each) for name, each in (dict(secret.arrays) | arrays).items()}
    content = safetensors.numpy.save(kept, header)
    directory.secret(current.version).write_bytes(content)
    key = directory.digest_key(current.version).read_bytes()
    digests = (current.secret_digest, hmac.digest(key, content, "sha256").hex())
    sql(path, "UPDATE events SET payload = replace(payload, '{}', '{}')".format(*digests))
    make_chain_again(path)


def forge_weights(path: Path) -> None:
    directory, current = ModelDirectory(path), requests.status(path).state.current
    weights = safetensors.numpy.load_file(directory.weights(2))["weights"]
    safetensors.numpy.save_file({"weights": 1.001 * weights}, directory.weights(2), {"version": "2"})
    digests = (current.weights_sha256, file_sha256(directory.weights(2)))
    sql(path, "UPDATE events SET payload = replace(payload, '{}', '{}')".format(*digests))
    make_chain_again(path)


def forge_gradient(path: Path) -> None:
    gradients = state_of(path)["gradients"].copy()
    gradients[0, 7] *= 1.001
    forge(path, gradients=gradients)


def forge_batch(path: Path) -> None:
    batches = state_of(path)["batches"].copy()
    batches[0, 9, 0] = 4  # A row that was removed; it is below all others.
    forge(path, batches=np.sort(batches))


def forge_alive(path: Path) -> None:
    forge(path, alive=np.sort(np.append(state_of(path)["alive"], 4)))


def edit_secret(path: Path) -> None:
    secret = ModelDirectory(path).secret(2)
    content = bytearray(secret.read_bytes())
    content[-1] ^= 1
    secret.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (edit_secret, "is not the secret state that the ledger recorded"),
        (lambda path: ModelDirectory(path).secret(2).unlink(), "cannot read .*secret-2"),
        (forge_gradient, "gradients of iteration 8 are off by"),
        (
            forge_batch,
            "a batch contains a record that is not present|gradients of iteration 10|members of a batch must",
        ),
        (forge_alive, "does not hold exactly the remaining records"),
        (forge_weights, "published weights are off by"),
    ],
)
def test_a_state_that_was_tampered_with_is_found(model: Path, spoil: Any, sentence: str) -> None:
    requests.request(model, ["p3"])
    apply(model)
    verify(model)
    spoil(model)
    with pytest.raises(UnlearningError, match=sentence) as caught:
        verify(model)
    assert "\n" not in str(caught.value)


def test_an_edited_or_missing_state_is_refused_by_apply(model: Path) -> None:
    requests.request(model, ["p3"])
    apply(model)
    requests.request(model, ["p4"])
    edit_secret(model)
    with pytest.raises(LedgerError, match="is not the secret state that the ledger recorded"):
        apply(model)
    assert requests.status(model).state.pending == 1


# Wrong use.


def test_so_many_that_no_batch_can_be_filled_are_refused_before_anything_is_done(
    original: Original, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    make(path, original.data, batch_size=440)
    requests.request(path, ["p1", "p3", "p5", "p7", "p9"])
    before = {each.name: each.read_bytes() for each in path.rglob("*") if each.is_file()}
    with pytest.raises(InfeasibleError, match=r"10 records cannot be removed from 450: .* at most 9 can be"):
        apply(path)
    after = {each.name: each.read_bytes() for each in path.rglob("*") if each.is_file()}
    assert {name for name in before | after if before.get(name) != after.get(name)} <= {"ledger.sqlite-shm"}
    assert requests.status(path).state.pending == 5


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"epsilon": 1.0}, "`epsilon` does not apply to noisy-sgd"),
        ({"delta": 0.1}, "`delta` does not apply to noisy-sgd"),
        ({"records": 3}, "`records` does not apply to noisy-sgd"),
        ({"dtype": "float64"}, "`dtype` does not apply to noisy-sgd"),
        ({"accountant": "lsi"}, "`accountant` does not apply to noisy-sgd"),
        ({"strict_timing": True}, "`strict_timing` does not apply to noisy-sgd"),
        ({"quantum": 0.1}, "`quantum` does not apply to noisy-sgd"),
        ({"mechanism": "quantized-sgd", "sigma": 0.1}, "`sigma` does not apply to quantized-sgd"),
        ({"mechanism": "sgd"}, "mechanism must be one of langevin, newton-removal, certified-ensemble, subsample-gd"),
        ({"batch_size": None}, "batch_size must be a number or 'auto'"),
        ({"batch_size": 450}, "batch_size must be below the number of records"),
        ({"device": "cuda"}, "device must be left out: noisy-sgd computes on the CPU"),
        ({"sigma": -1.0}, "sigma must be a finite number, at least 0"),
        ({"steps": 0}, "steps must be a whole number, at least 1"),
        ({"step_size": 1e6}, "step_size must be at most 2 / lambda"),
        ({"radius": 0.0}, "radius must be a finite number above 0"),
    ],
)
def test_what_means_nothing_or_makes_no_sense_is_refused(
    original: Original, tmp_path: Path, asked: dict[str, Any], sentence: str
) -> None:
    with pytest.raises((ParameterError, AssumptionError), match=sentence):
        make(tmp_path / "model", original.data, **asked)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["step_size", "radius", "quantum"])
def test_other_mechanisms_refuse_what_is_for_exact_ones(original: Original, tmp_path: Path, name: str) -> None:
    for mechanism in ("langevin", "newton-removal"):
        with pytest.raises(ParameterError, match=f"`{name}` does not apply to {mechanism}"):
            make(tmp_path / "model", original.data, mechanism, epsilon=1.0, **{name: 1.0})
        with pytest.raises(ParameterError, match="epsilon is missing"):
            make(tmp_path / "model", original.data, mechanism)


def test_what_diverges_is_not_published(original: Original, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="learning diverged with step_size"), np.errstate(all="ignore"):
        make(tmp_path / "model", original.data, step_size=1e290, sigma=1e200, C=1e300)
    assert list(tmp_path.iterdir()) == []


def test_a_device_means_nothing(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests.request(model, ["p3"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(
        ParameterError, match="device='cuda' is not possible: this model's mechanism computes on the CPU"
    ):
        apply(model, device="cuda")
    assert requests.status(model).state.pending == 1
    apply(model)


# The command line.


def test_the_command_line_from_a_table_to_a_verified_certificate(
    original: Original, tmp_path: Path, unlearn: Unlearn
) -> None:
    model = tmp_path / "model"
    asked = ("--data", original.data, "--label", "ill", "--id", "person", "--mechanism", "noisy-sgd", "--batch-size", 4)
    said = unlearn("init", model, *asked, "--steps", 100, "--sigma", 0.02)
    assert said.exit_code == 0, said.output
    assert "learning takes 100 steps of 4 records, and removing one record repeats steps with prob" in said.output
    assert "while all " in said.output
    assert "nothing was removed yet" in unlearn("status", model).output
    unlearn("request", model, "--id", "p3", "--id", "p4")
    said = unlearn("apply", model)
    assert "removed 3 records of 2 people by exact unlearning" in said.output
    assert "exact: epsilon = 0 at delta = 0 for a reader of version 2 alone" in said.output
    assert "if no request depended on a model or on the duration of a request" in said.output
    assert "none for the remaining records" in said.output
    for path in (model, model / "certificate-2.json"):
        assert unlearn("verify", path).exit_code == 0
    stated = json.loads(unlearn("verify", model, "--json").stdout)["guarantee"]
    assert stated == {
        "version": 2,
        "compared_with": "the same steps from scratch on the remaining records",
        "epsilon": 0.0,
        "delta": 0.0,
        "epsilon_all_versions": None,
        "delta_all_versions": None,
        "adaptive_requests": False,
    }
    versions = json.loads(unlearn("status", model, "--json").stdout)["versions"]
    assert [version["steps"] for version in versions] == [None, None]
    assert "prediction" in unlearn("predict", model, original.data).output
    assert "accuracy 0." in unlearn("evaluate", model, original.data).output
    for wrong in (("--epsilon", 1), ("--batch-size", "all")):
        with pytest.raises(ParameterError):
            unlearn("init", tmp_path / "other", *asked, *wrong)


@pytest.mark.parametrize("steps", [10**18, 10**30])
def test_steps_that_do_not_fit_in_memory_are_refused(steps: int, original: Original, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=rf"^{steps:,} steps .* do not fit in memory: take fewer steps$"):
        make(tmp_path / "model", original.data, steps=steps)
    assert list(tmp_path.iterdir()) == []


def test_secrets_and_keys_are_for_their_owner_only(model: Path) -> None:
    requests.request(model, ["p3"])
    apply(model)
    for name in ("secret-2.safetensors", "digest-key-2", "identifier-key"):
        assert (model / name).stat().st_mode & 0o777 == 0o600
