"""A ledger whose answers are certified: they are those of an ensemble that never knew who left, whatever is killed."""

import hmac
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy

from certified_unlearning import certificate
from certified_unlearning.certificate import CertificateError, EnsembleCertificate
from certified_unlearning.commands.ledger.use import predict
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.data.tables.table import Records
from certified_unlearning.errors import DataError, InfeasibleError, LedgerError, ParameterError
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.method import Answered
from certified_unlearning.ledger.methods.certified_answers import CertifiedAnswers
from certified_unlearning.ledger.model import method_of, read_secret, read_stored
from certified_unlearning.ledger.prediction import LoadedEnsemble
from certified_unlearning.ledger.quality import quality_left
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.verification import verify
from certified_unlearning.mechanisms.certified_sgd import ensemble_plan
from certified_unlearning.mechanisms.certified_sgd.ensemble import CertifiedShards
from tests.ledger.conftest import Forks, Original, Unlearn
from tests.ledger.test_crashes import KILLED, require_consistent
from tests.ledger.test_exact_steps import same_bits, state_of
from tests.ledger.test_residue import found, traces
from tests.ledger.test_tampering import make_chain_again, sql


def make(path: Path, data: Path, *, classes: tuple[str, ...] | None = None, **asked: Any) -> None:
    table = Table(path=str(data), label="ill", identifier="person", classes=classes)
    initialise(path, table, mechanism="certified-ensemble", **({"budgets": (1, 2)} | asked))


@pytest.fixture(scope="module")
def made(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("answers") / "model"
    with pytest.MonkeyPatch.context() as patch:
        # So that every run of these tests sees the same slices.
        patch.setattr(ensemble_plan.secrets, "randbits", lambda bits: 5)
        make(path, original.data)
    return path


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "model"))


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A directory in memory where there is one: disks take longer to synchronise than everything else."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as path:
        yield Path(path)


def shards_of(path: Path) -> CertifiedShards:
    directory, state = ModelDirectory(path), requests.status(path).state
    method = method_of(directory, read_stored(directory, state))
    assert isinstance(method, CertifiedAnswers)
    return method.shards(read_secret(directory, state.current))


def grid(path: Path) -> np.ndarray:
    """Rows on the unit circle of heights and weights, many of them near the boundary."""
    angles = np.linspace(0, 2 * np.pi, 400)
    table = pd.DataFrame({"height": np.cos(angles), "weight": np.sin(angles), "age": 0.1})
    return load_model(path).rows(table)


def answers_of(path: Path) -> list[Any]:
    return load_model(path).predict(grid(path)).tolist()


def answers_anew(path: Path) -> list[Any]:
    """What an ensemble says that was trained on who is left."""
    loaded, anew = load_model(path), shards_of(path).fresh()
    loaded._shards = anew  # type: ignore[attr-defined]
    return loaded.predict(grid(path)).tolist()


# What is answered.


def test_answers_after_a_stream_are_those_of_the_ensemble_trained_without_who_left(model: Path) -> None:
    refused = trained = 0
    gone: list[str] = []
    for people in (["p3"], ["p4", "p5"], ["p6"], ["p7", "p9"], [f"p{each}" for each in range(100, 106)]):
        requests.request(model, people)
        apply(model)
        gone += people
        given, due = answers_of(model), answers_anew(model)
        assert all(one in (None, other) for one, other in zip(given, due, strict=True))
        assert None not in due
        refused += given.count(None)
        assert {"yes", "no"} <= {*given}
        said = verify(model).current
        assert isinstance(said, EnsembleCertificate)
        assert said.pending == tuple(shards_of(model).standing.spent(shard) for shard in range(5))
        trained = said.trained_again
    assert refused > 0
    assert trained > 0
    assert (said.requests, said.deleted, said.n) == (5, 450 - said.n, len(np.flatnonzero(shards_of(model).present)))


def test_three_classes_and_a_hidden_layer(original: Original, tmp_path: Path) -> None:
    table = original.table.copy()
    table.loc[table["weight"] > 0.5, "ill"] = "perhaps"
    table.to_csv(tmp_path / "three.csv", index=False)
    make(tmp_path / "model", tmp_path / "three.csv", hidden=(4,), steps=2)
    requests.request(tmp_path / "model", ["p3", "p10"])
    apply(tmp_path / "model")
    said = verify(tmp_path / "model").current
    assert isinstance(said, EnsembleCertificate)
    assert (said.loss, said.hidden, said.classes) == ("cross-entropy", (4,), 3)
    given, due = answers_of(tmp_path / "model"), answers_anew(tmp_path / "model")
    assert all(one in (None, other) for one, other in zip(given, due, strict=True))


def test_an_ensemble_gives_labels_and_no_numbers(model: Path, original: Original) -> None:
    loaded = load_model(model)
    rows = loaded.rows(original.data)
    assert loaded.score(rows, original.table["ill"]) > 0.8
    assert loaded.weights.size == 0
    for ask in (loaded.decision_function, loaded.predict_proba, loaded.predict_log_proba):
        with pytest.raises(ParameterError, match="gives only labels"):
            ask(rows)
    with pytest.raises(DataError, match="the model's parameters are secret"):
        quality_left(model)


def test_all_but_one_record_can_leave(original: Original, tmp_path: Path) -> None:
    original.table.drop_duplicates("person").head(14).to_csv(tmp_path / "few.csv", index=False)
    make(tmp_path / "model", tmp_path / "few.csv", classes=("no", "yes"), shards=2, slices=2)
    requests.request(tmp_path / "model", [f"p{each}" for each in range(13)])
    apply(tmp_path / "model")
    verify(tmp_path / "model")
    assert None not in answers_of(tmp_path / "model")
    requests.request(tmp_path / "model", ["p13"])
    with pytest.raises(InfeasibleError, match="no record would be left"):
        apply(tmp_path / "model")


# What leaves.


def test_no_row_of_who_left_stays_and_parameters_forget_when_they_are_trained_again(
    original: Original, model: Path, tmp_path: Path
) -> None:
    """Three records of a shard leave: with a budget of two that is one too many."""
    directory = ModelDirectory(model)
    (tmp_path / "linked").hardlink_to(directory.secret(1))
    before = shards_of(model)
    single = ~original.table["person"].duplicated(keep=False)
    of_first = [row for row in np.flatnonzero(before.slices // 2 == 0) if single[row]][:3]
    gone = original.table["person"][of_first].tolist()
    requests.request(model, gone[:2])
    apply(model)
    assert found(model, traces(original, gone[:2])) == set()
    assert shards_of(model).standing.spent(0) == 2
    # For the time being a shard's parameters are those that knew the two.
    assert state_of(model)["parameters/0"][0].tobytes() == before.tensors()["parameters/0"][0].numpy().tobytes()
    requests.request(model, gone[2:])
    with Ledger.opened(directory.ledger, read_only=True):
        apply(model)
        assert found(model, traces(original, gone)) == set()
    assert set((tmp_path / "linked").read_bytes()) == {0}
    now = shards_of(model)
    assert not any(now.standing.pending)
    anew = now.fresh().tensors()
    assert same_bits(state_of(model), {name: each.numpy() for name, each in anew.items()})
    assert np.flatnonzero(~np.fromfile(directory.features, np.float32).reshape(450, 3).any(axis=1)).tolist() == of_first


def test_a_removal_reads_no_row_of_the_removed(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With their zeroed rows made infinite, training again would fail."""
    training = CertifiedAnswers._training

    def spoiled(method: CertifiedAnswers) -> Any:
        rows, labels = training(method)
        rows[~rows.any(dim=1)] = np.inf
        return rows, labels

    requests.request(model, [f"p{each}" for each in range(12)])
    monkeypatch.setattr(CertifiedAnswers, "_training", spoiled)
    apply(model)
    assert isinstance(verify(model).current, EnsembleCertificate)


# What was killed ends alike.


@pytest.mark.parametrize(("accident", "ends_with", "step"), [("kill_at", KILLED, 3), ("fail_at", 1, 11)])
def test_apply_that_is_killed_or_finds_the_disk_full_at_its_changes_ends_with_the_same_bits(
    model: Path, scratch: Path, fork: Forks, accident: str, ends_with: int, step: int
) -> None:
    requests.request(model, ["p3", "p4", "p7"])
    untouched = Path(shutil.copytree(model, scratch / "untouched"))
    apply(untouched)
    due, accidents = state_of(untouched), 0
    assert not same_bits(due, state_of(model))
    while True:
        copy = Path(shutil.copytree(model, scratch / f"{accident}-{accidents + 1}"))
        status = fork("apply", copy, **{accident: accidents + 1})
        require_consistent(copy, requested=3)
        if status == 0:
            break
        assert status == ends_with
        accidents += step
        assert fork("apply", copy) == 0
        assert same_bits(state_of(copy), due)
        assert ModelDirectory(copy).certificate(2).read_bytes() == ModelDirectory(untouched).certificate(2).read_bytes()
        assert ModelDirectory(copy).features.read_bytes() == ModelDirectory(untouched).features.read_bytes()
        shutil.rmtree(copy)
    assert accidents > 40
    verify(untouched)


# What was tampered with is found.


def forge(path: Path, header: dict[str, Any] | None = None, **arrays: np.ndarray) -> None:
    """Write another state, as somebody could who has the directory, and make all digests and hashes again."""
    directory, current = ModelDirectory(path), requests.status(path).state.current
    secret = read_secret(directory, current)
    assert secret is not None
    text = {"secret": json.dumps({**secret.header, **(header or {})})}
    content = safetensors.numpy.save(
        {name: np.ascontiguousarray(each) for name, each in (dict(secret.arrays) | arrays).items()}, text
    )
    directory.secret(current.version).write_bytes(content)
    key = directory.digest_key(current.version).read_bytes()
    digests = (current.secret_digest, hmac.digest(key, content, "sha256").hex())
    sql(path, "UPDATE events SET payload = replace(payload, '{}', '{}')".format(*digests))
    make_chain_again(path)


def test_another_state_than_follows_from_the_records_is_found(model: Path, tmp_path: Path) -> None:
    requests.request(model, ["p2"])
    apply(model)
    state = state_of(model)
    for name, stage in (("parameters/0", 2), ("lower/0", 1), ("upper/0", 2), ("parameters/0", 0)):
        copy = Path(shutil.copytree(model, tmp_path / f"{name}-{stage}".replace("/", "-")))
        forged = state[name].copy()
        forged[:, stage] *= 1 + 1e-12
        forge(copy, **{name: forged})
        with pytest.raises(LedgerError, match=r"tampered with: shard . was trained again, and the values"):
            verify(copy)
    present = state["present"].copy()
    present[3] ^= True
    forge(model, present=present)
    with pytest.raises(LedgerError, match="does not hold exactly the remaining records"):
        verify(model)


def test_other_counts_than_those_of_the_records_are_found(model: Path) -> None:
    forge(model, header={"left": [44, *[45] * 9]})
    with pytest.raises(LedgerError, match="has wrong counts of the remaining records"):
        verify(model)


def test_votes_that_a_spent_budget_leaves_open_are_found(model: Path, tmp_path: Path) -> None:
    """With one record pending a shard votes by its own parameters where its box is sure: others change answers."""
    requests.request(model, ["p2"])
    apply(model)
    verify(model)
    shards, given = shards_of(model), answers_of(model)
    forged = [each.clone().numpy() for each in shards.parameters]
    for shard in range(5):
        if shards.standing.spent(shard):
            for each in forged:
                each[shard, -1] *= -1
    assert 0 < sum(shards.standing.pending) <= 2
    forge(model, **{f"parameters/{place}": each for place, each in enumerate(forged)})
    assert answers_of(model) != given
    with pytest.raises(LedgerError, match=r"tampered with: shard . has parameters outside its box for"):
        verify(model)


def test_other_budgets_than_requests_left_are_found(model: Path) -> None:
    requests.request(model, ["p2"])
    apply(model)
    pending = shards_of(model).standing.pending
    place = next(place for place, count in enumerate(pending) if count)
    forge(model, header={"pending": [*pending[:place], 2 * pending[place], *pending[place + 1 :]]})
    with pytest.raises(LedgerError, match="has budgets that do not follow from its requests"):
        verify(model)


def test_a_batch_that_does_not_say_where_its_records_lay_is_found(model: Path) -> None:
    """The second batch is said to have lost the first one's record as well: all sums are right."""
    requests.request(model, ["p3"])
    apply(model)
    requests.request(model, ["p4"])
    apply(model)
    directory, batches = ModelDirectory(model), requests.status(model).state.batches
    method = method_of(directory, read_stored(directory, requests.status(model).state))
    assert isinstance(method, CertifiedAnswers)
    first, second = (Answered(batch, None) for batch in batches)
    assert first.batch.places
    assert second.batch.places
    due = method._standing([first, second])
    assert due.left == shards_of(model).standing.left
    moved = [
        first._replace(batch=replace(first.batch, places=())),
        second._replace(batch=replace(second.batch, places=[*first.batch.places, *second.batch.places])),
    ]
    with pytest.raises(DataError, match="version 2 does not state the slices of all its records"):
        method._standing(moved)
    (place, _), *_ = first.batch.places
    many = replace(first.batch, places=[(place, 450)], records=450)
    with pytest.raises(DataError, match=r"versions of .* state impossible slices: "):
        method._standing([first._replace(batch=many)])


@pytest.fixture(scope="module")
def stated(made: Path, tmp_path_factory: pytest.TempPathFactory) -> EnsembleCertificate:
    path = Path(shutil.copytree(made, tmp_path_factory.mktemp("stated") / "model"))
    requests.request(path, [f"p{each}" for each in range(8)])
    apply(path)
    said = verify(path).current
    assert isinstance(said, EnsembleCertificate)
    return said


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("n", 449, "wrong n: "),
        ("deleted", 1, "wrong deleted: "),
        ("requests", 2, "wrong requests: "),
        ("pending", (0, 0, 0, 0, 0), "wrong pending: "),
        ("trained_again", 99, "wrong trained_again: "),
        ("removed", (((99, 1),),), "impossible constants: places must be pairs of a slice"),
        ("removed", ((),), "wrong n: "),
        ("budgets", (2, 1), "impossible constants: budgets must be in rising order"),
        ("loss", "cross-entropy", "wrong loss: "),
        ("hidden", (0,), "states hidden = "),
        ("comparator", "retraining", "wrong comparator: "),
        ("not_promised", (), "wrong not_promised: "),
        ("features", "hog", "wrong assumptions: "),
    ],
)
def test_a_wrong_certificate_is_found(stated: EnsembleCertificate, name: str, value: object, sentence: str) -> None:
    certificate.verify(stated)
    with pytest.raises(CertificateError, match=sentence):
        certificate.verify(stated.model_copy(update={name: value}))


def test_a_budget_that_is_larger_than_the_ledgers_is_another_certificate(stated: EnsembleCertificate) -> None:
    assert max(stated.pending) <= 2
    with pytest.raises(CertificateError, match="wrong pending: "):
        certificate.verify(stated.model_copy(update={"budgets": (1, 40)}))


# The commands.


def test_commands(original: Original, tmp_path: Path, unlearn: Unlearn) -> None:
    path = tmp_path / "model"
    columns = ("--data", original.data, "--label", "ill", "--id", "person")
    chosen = ("--shards", 3, "--slices", 2, "--budget", 1, "--budget", 4, "--steps", 3, "--step-size", 5)
    printed = unlearn("init", path, *columns, "--mechanism", "certified-ensemble", *chosen, "--bound", 0.2).stdout
    assert "if requests name random single records, the first shard is trained again after about 10 requests" in printed
    unlearn("request", path, "--id", "p3", "--id", "p4")
    assert "certified: every answer of version 2 is one of" in unlearn("apply", path).stdout
    assert "weights: secret" in unlearn("status", path, "--no-quality").stdout
    guarantee = json.loads(unlearn("status", path, "--json").stdout)["guarantee"]
    assert guarantee["epsilon"] is None
    assert guarantee["compared_with"].startswith("the answers of the ensemble trained from the same starts")
    assert "certified: every answer" in unlearn("verify", path).stdout
    assert json.loads(unlearn("verify", path, "--json").stdout)["verified"]
    certified = ModelDirectory(path).certificate(2)
    assert (
        "of 3 shards trained on the 447 records that are left; the parameters must stay secret, and still depend on 3 "
        "of 3 removed records" in unlearn("verify", certified).stdout
    )
    as_json = json.loads(unlearn("verify", certified, "--json").stdout)
    assert (as_json["verified"], as_json["epsilon"], as_json["mechanism"]) == (True, None, "certified-ensemble")
    unlearn("predict", path, original.data, "--output", tmp_path / "out.csv")
    table = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    assert [*table.columns] == ["person", "prediction", "abstaining"]
    assert {"yes", "no", ""} == {*table["prediction"]}
    assert (table["abstaining"][table["prediction"] == ""] > 0).all()
    said = json.loads(unlearn("evaluate", path, original.data, "--json").stdout)
    assert said["answered"] == (table["prediction"] != "").sum()
    assert said["accuracy_of_answers"] > 0.8
    assert "belong to people whose records the model was made from" in said["warnings"][0]
    assert "3 of the records belong to people whose removal was requested" in said["warnings"][1]
    printed = unlearn("evaluate", path, original.data)
    assert f"answered: {said['answered']}" in printed.stdout
    assert f"warning: {said['warnings'][1]}" in printed.stderr


def test_answers_no_better_than_the_most_frequent_class_are_warned_of(
    model: Path, original: Original, tmp_path: Path, unlearn: Unlearn
) -> None:
    other = {"yes": "no", "no": "yes"}
    original.table.assign(ill=original.table["ill"].map(other)).to_csv(tmp_path / "wrong.csv", index=False)
    warnings = json.loads(unlearn("evaluate", model, tmp_path / "wrong.csv", "--json").stdout)["warnings"]
    assert "right no more often than always predicting the most frequent class" in warnings[0]


def test_a_block_without_answers_is_written_as_others_are(
    model: Path, original: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = iter([[None, None], ["yes", None]])

    def two_blocks(self: object, source: object) -> Iterator[Records]:
        yield from (Records(row, np.zeros((2, 3), np.float32), None, ["a", "b"]) for row in (1, 3))

    monkeypatch.setattr(LoadedEnsemble, "read", two_blocks)
    monkeypatch.setattr(
        LoadedEnsemble, "answers", lambda self, rows, threshold: {"prediction": np.array(next(blocks), object)}
    )
    predict(model, original.data, tmp_path / "out.parquet")
    written = pd.read_parquet(tmp_path / "out.parquet")["prediction"]
    assert [None if pd.isna(each) else each for each in written] == [None, None, "yes", None]


@pytest.mark.parametrize("name", ["features", "labels"])
def test_a_damaged_training_copy_is_named(model: Path, original: Original, name: str) -> None:
    path = getattr(ModelDirectory(model), name)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match=rf"{path.name} is damaged: it holds [\d,]+ numbers, not [\d,]+$"):
        load_model(model)
    path.unlink()
    with pytest.raises(DataError, match=f"cannot read .*{path.name}: No such file"):
        load_model(model)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"epsilon": 1.0}, "`epsilon` does not apply to certified-ensemble"),
        ({"C": 1.0}, "`C` does not apply to certified-ensemble"),
        ({"intercept": False}, "`intercept` does not apply to certified-ensemble"),
        ({"radius": 1.0}, "`radius` does not apply to certified-ensemble"),
        ({"batch_size": 5}, "`batch_size` does not apply to certified-ensemble"),
        ({"device": "cuda"}, "device must be left out: certified-ensemble computes on the CPU"),
        ({"budgets": (45,)}, "budgets must be below the number of records in the smallest slice, 45, got 45"),
        ({"budgets": (2, 1)}, "budgets must be in rising order"),
        ({"shards": 500}, "shards x slices must be at most the number of records, 450"),
        ({"hidden": (0,)}, r"hidden\[0\] must be a whole number"),
        ({"bound": 0.0}, "bound must be a finite number above 0"),
        ({"steps": 0}, "epochs must be a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(
    original: Original, tmp_path: Path, asked: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ParameterError, match=sentence):
        make(tmp_path / "model", original.data, **asked)
    assert not (tmp_path / "model").exists()


def test_other_mechanisms_have_no_shards(original: Original, tmp_path: Path) -> None:
    table = Table(path=str(original.data), label="ill", identifier="person")
    for name, value in (("shards", 3), ("slices", 3), ("budgets", (1,)), ("hidden", (3,)), ("bound", 0.1)):
        with pytest.raises(
            ParameterError, match=f"`{name}` does not apply to newton-removal; .*--mechanism certified-ensemble"
        ):
            initialise(tmp_path / "model", table, epsilon=1.0, **{name: value})  # type: ignore[arg-type]
