"""New people's records enter a model: it is the one of all records, and what cannot be added has its sentence."""

import calendar
import json
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from certified_unlearning import certificate
from certified_unlearning.certificate import ExactCertificate, ResidualCertificate
from certified_unlearning.certificate.base import CertificateError
from certified_unlearning.data.tables.table import Table, read_blocks
from certified_unlearning.errors import (
    AssumptionError,
    DataError,
    InfeasibleError,
    LedgerError,
    ParameterError,
    UnlearningError,
)
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.adding.addition import add
from certified_unlearning.ledger.adding.reading import UNCHANGED
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.method import answered_of
from certified_unlearning.ledger.model import method_of, read_secret, read_stored, with_intercept
from certified_unlearning.ledger.quality import quality_left
from certified_unlearning.ledger.trouble import trouble_left
from certified_unlearning.ledger.verification import verify
from certified_unlearning.mechanisms.refit_plan import Counts, RefitPlan
from tests.ledger.conftest import Original, Unlearn
from tests.ledger.tables import make_refit, write_new
from tests.ledger.test_residue import found, traces
from tests.ledger.test_tampering import name_of


@pytest.fixture(scope="module")
def made(original: Original, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adding") / "model"
    make_refit(path, original.data)
    return path


@pytest.fixture
def model(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "model"))


@pytest.fixture
def new(tmp_path: Path) -> Path:
    write_new(tmp_path / "new.csv")
    return tmp_path / "new.csv"


def everything_in(path: Path) -> dict[str, bytes]:
    """Return all files but SQLite's own beside the ledger."""
    files = (file for file in sorted(path.rglob("*")) if file.is_file() and not file.name.endswith(("-shm", "-wal")))
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


def refuse(model: Path, file: Path, sentence: str, error: type[UnlearningError] = DataError) -> None:
    """Check that a file is refused with a sentence, and that nothing of it stays."""
    before = everything_in(model)
    with pytest.raises(error, match=sentence):
        add(model, file)
    assert everything_in(model) == before
    verify(model)


def plan_of(path: Path) -> RefitPlan:
    state = requests.status(path).state
    directory = ModelDirectory(path)
    plan = method_of(directory, read_stored(directory, state)).plan_after(answered_of(state))
    assert isinstance(plan, RefitPlan)
    return plan


def distance_from_exact(path: Path, data: list[Path], gone: set[str], C: float = 0.1) -> float:
    """Return how far the secret weights are from the minimiser on these files' records without some people's.

    SciPy minimises scikit-learn's objective, in which no number of records stands.
    """
    state = requests.status(path).state
    stored, secret = read_stored(ModelDirectory(path), state), read_secret(ModelDirectory(path), state.current)
    assert secret is not None
    rows, signs = [], []
    for file in data:
        (block,) = read_blocks(stored.table.model_copy(update={"path": str(file)}))
        kept = np.array([each not in gone for each in block.identifiers or []])
        rows.append(with_intercept(block.features)[kept].astype(float))
        signs.append(block.labels[kept].astype(float))
    x, y = np.vstack(rows), np.concatenate(signs)

    # The row is (x, 1) / sqrt(2), so half of C's regulariser is that of scikit-learn.
    def value(w: np.ndarray) -> float:
        return float(C * np.logaddexp(0, -y * (x @ w)).sum() + w @ w / 4)

    def gradient(w: np.ndarray) -> np.ndarray:
        return C * x.T @ (-y / (1 + np.exp(y * (x @ w)))) + w / 2

    exact = minimize(value, np.zeros(x.shape[1]), jac=gradient, method="BFGS", options={"gtol": 1e-11}).x
    return float(np.linalg.norm(secret.arrays["weights"] - exact))


def test_the_model_is_that_of_all_records_and_a_later_removal_that_of_those_left(
    original: Original, model: Path, new: Path
) -> None:
    add(model, new)
    near = 1e-3
    assert near < plan_of(model).budget / plan_of(model).strong_convexity
    assert distance_from_exact(model, [original.data, new], set()) < near
    # The check sees a single record.
    assert distance_from_exact(model, [original.data, new], {"p300"}) > near
    # One who was there from the start, and one who was added; then four records are gone, and a fifth needs a reading.
    gone: set[str] = set()
    for person, reading in (("p0", "none"), ("p301", "none"), ("p302", "none"), ("p2", "scheduled")):
        requests.request(model, [person])
        (version,) = apply(model).versions
        assert version.reading == reading
        gone.add(person)
        assert distance_from_exact(model, [original.data, new], gone) < near
    state = verify(model).state
    assert (state.rows, state.records_added, state.people_added, state.records_removed) == (480, 30, 20, 5)


def test_additions_in_a_row_and_between_removals_verify_and_their_certificates_count_all_releases(
    original: Original, model: Path, tmp_path: Path
) -> None:
    files = [tmp_path / f"{number}.csv" for number in range(3)]
    for number, file in enumerate(files):
        write_new(file, 4, 300 + 10 * number)
    add(model, files[0])
    add(model, files[1])
    requests.request(model, ["p300", "p0"])
    apply(model)
    add(model, files[2])
    current = verify(model).current
    assert isinstance(current, ResidualCertificate)
    assert (current.n, current.removed, current.added, current.additions, current.releases) == (468, 2, 18, 3, 5)
    # Each release was held to the budget of its time, which was larger: what was the same for all is the distance.
    statements = {each.statement for each in current.assumptions}
    assert "the gradient's norm on the remaining records was at most budget at every release" not in statements
    assert any("at most budget / strong_convexity from the exact minimiser" in each for each in statements)
    certificate.verify(current)
    assert distance_from_exact(model, [original.data, *files], {"p300", "p0"}) < 1e-3
    first = certificate.read_any(ModelDirectory(model).certificate(1))
    assert isinstance(first, ResidualCertificate)
    assert (first.n, first.added, first.additions) == (450, 0, 0)
    assert "added" not in ModelDirectory(model).certificate(1).read_text()


def test_mu_stays_what_it_was_whatever_is_added(made: Path) -> None:
    """Of a fixed C and sigma the shift of means is the same: the budget falls as the strong convexity does."""
    plan = plan_of(made)
    for records in (1, 30, 4_000, 1_000_000):
        more = plan.with_more(records)
        assert more.n * more.strong_convexity == pytest.approx(plan.n * plan.strong_convexity, rel=1e-12)
        assert more.budget / more.strong_convexity == pytest.approx(plan.budget / plan.strong_convexity, rel=1e-12)
        assert (more.epsilon, more.delta, more.sigma) == (plan.epsilon, plan.delta, plan.sigma)


@pytest.mark.parametrize("records", [1, 17, 450, 10_000])
@pytest.mark.parametrize("downdate", [True, False])
def test_where_counts_alone_say_when_to_read_more_records_do_not_change_the_count(records: int, downdate: bool) -> None:
    numbers: dict[str, Any] = {"n": 1_000, "features": 4, "classes": 2, "epsilon": 1.0, "delta": 1e-6, "sigma": 0.03}
    plan = RefitPlan.make(**numbers, strong_convexity=0.01, strict=True, downdate=downdate)
    assert plan.records_between_reads > 0
    assert plan.with_more(records).records_between_reads == plan.records_between_reads


def test_more_records_than_float64_can_keep_a_budget_for_are_refused_before_anything_is_done(
    original: Original, tmp_path: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_refit(tmp_path / "model", original.data)
    grown = RefitPlan.with_more

    def too_many(plan: RefitPlan, records: int) -> RefitPlan:
        return grown(plan, records * 10**15)

    monkeypatch.setattr(RefitPlan, "with_more", too_many)
    refuse(tmp_path / "model", new, "sigma = 0.03 allows only a gradient", AssumptionError)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"added": 0}, "states added = 0, but it must be 1 to 479, and 0 only if additions = 0"),
        ({"added": 480}, "states added = 480"),
        ({"additions": 0}, "states added = 30"),
        ({"additions": 3}, "states additions = 3, but it must be at most 2"),
        ({"removed": 0}, "states removed = 0, but it must be 1 to 479"),
        ({"removed": 5}, "states"),
        ({"releases": 2}, "states"),
        ({"n": 450}, "states"),
        ({"comparator": "a fit"}, "states the wrong comparator"),
    ],
)
def test_a_certificate_after_an_addition_with_other_counts_is_refused(
    model: Path, new: Path, changed: dict[str, Any], sentence: str
) -> None:
    add(model, new)
    requests.request(model, ["p0"])
    apply(model)
    current = verify(model).current
    planted = current.model_copy(update=changed)
    if changed in ({"removed": 5}, {"n": 450}):
        # Another stream has these counts: the ledger, which knows what happened, refuses them.
        directory, state = ModelDirectory(model), requests.status(model).state
        assert not method_of(directory, read_stored(directory, state)).is_of(planted, answered_of(state))
        return
    with pytest.raises(CertificateError, match=sentence):
        certificate.verify(planted)


def test_counts_add_up_additions_apart_from_readings_for_removals() -> None:
    counts = Counts().after(2, "none").after(0, "addition", added=30).after(1, "none").after(1, "addition", added=5)
    assert counts == Counts(removed=4, requests=4, since_read=0, additions=2, added=35)


def test_the_statement_of_all_versions_counts_the_version_that_an_addition_made(model: Path, new: Path) -> None:
    requests.request(model, ["p0"])
    before = apply(model).versions[0]
    (after,) = add(model, new).versions
    assert before.epsilon_all_published is not None
    assert after.epsilon_all_published is not None
    assert after.epsilon == pytest.approx(before.epsilon, rel=1e-9)
    # mu sqrt(3) in place of mu sqrt(2).
    assert after.epsilon_all_published > 1.2 * before.epsilon_all_published


def test_an_addition_alone_guarantees_nothing_yet(model: Path, new: Path, unlearn: Unlearn) -> None:
    add(model, new)
    printed = unlearn("status", model, "--no-quality").stdout
    assert "nothing was removed yet, so there is nothing to guarantee" in printed
    assert json.loads(unlearn("status", model, "--no-quality", "--json").stdout)["guarantee"] is None
    assert verify(model).current.meaning() is None


def test_every_version_has_noise_of_its_own(model: Path, new: Path) -> None:
    def noise() -> np.ndarray:
        secret = read_secret(ModelDirectory(model), requests.status(model).state.current)
        assert secret is not None
        return np.asarray(load_model(model).weights.ravel() - secret.arrays["weights"])

    first = noise()
    add(model, new)
    # Of 4 differences of normal numbers none is that small but with probability below 1e-7.
    assert np.abs(noise() - first).min() > 1e-8 * 0.03


# What comes in the new file.


@pytest.mark.parametrize("applied", [True, False])
def test_a_removed_persons_identifier_does_not_come_back(model: Path, new: Path, applied: bool) -> None:
    requests.request(model, ["p7"])
    if applied:
        apply(model)
    table = pd.read_csv(new)
    table.loc[3, "person"] = "p7"
    table.to_csv(new, index=False)
    how = "applied with version 2" if applied else "not applied yet"
    sentence = (
        rf"identifier 'p7' was to be removed \(.*; {how}\), and a removal is permanent: leave the rows out. Somebody "
        "who wants to come back needs an identifier that was never used; nothing was added"
    )
    refuse(model, new, sentence, ParameterError)


def test_another_spelling_of_a_removed_persons_identifier_is_asked_about(model: Path, new: Path) -> None:
    requests.request(model, ["p7"])
    apply(model)
    table = pd.read_csv(new)
    table.loc[3, "person"] = "P7"
    table.to_csv(new, index=False)
    sentence = (
        r"identifier 'P7' may be 'p7', which differs only in case; the latter was to be removed \(.*; applied with "
        r"version 2\): if both are one person, leave the rows out; otherwise, give --one-spelling; nothing was added"
    )
    refuse(model, new, sentence, ParameterError)
    add(model, new, one_spelling=True)
    verify(model)
    requests.request(model, ["P7"])


def test_another_spelling_of_somebodys_identifier_is_named_and_a_request_must_name_both(
    model: Path, new: Path, unlearn: Unlearn
) -> None:
    table = pd.read_csv(new)
    table.loc[3, "person"] = "P7"
    table.to_csv(new, index=False)
    warned = unlearn("add", model, "--data", new, "--no-quality").stderr
    assert "2 identifiers differ only in case, such as 'P7' and 'p7': they count as different people" in warned
    with pytest.raises(ParameterError, match="'p7' may be 'P7'"):
        requests.request(model, ["p7"])
    assert requests.request(model, ["p7", "P7"]).records == 3


def test_somebody_who_is_in_the_model_is_not_added_again(model: Path, new: Path, tmp_path: Path) -> None:
    write_new(tmp_path / "more.csv", 3, 320)
    add(model, new)
    add(model, tmp_path / "more.csv")
    before = everything_in(model)
    for file, sentence in (
        (
            new,
            r"identifier 'p300' \(and 19 more\) are in the model already \('p300' since version 2\): `add` accepts",
        ),
        (
            tmp_path / "one.csv",
            r"identifier 'p5' is in the model already \(since version 1\): `add` accepts only people who",
        ),
    ):
        if not file.exists():
            write_new(file, 1, 5)
        with pytest.raises(ParameterError, match=sentence):
            add(model, file)
    assert everything_in(model) == before


def test_the_same_file_again_says_which_requests_still_wait(model: Path, new: Path, unlearn: Unlearn) -> None:
    add(model, new)
    requests.request(model, ["p4"])
    printed = unlearn("add", model, "--data", new).stdout
    assert f"1 request still waits: `unlearn apply {model}` answers it" in printed
    assert requests.status(model).state.pending == 1


def test_advice_that_cannot_be_followed_any_more_is_not_given(model: Path, new: Path) -> None:
    for value in (None, "old"):
        pd.read_csv(new).astype({"age": object}).assign(age=value).to_csv(new, index=False)
        with pytest.raises(DataError) as refused:
            add(model, new)
        assert not re.search("declare|features|--regression", str(refused.value))


def test_a_number_that_is_too_large_is_shown_as_the_file_has_it(model: Path, new: Path) -> None:
    pd.read_csv(new).assign(age="1e400").to_csv(new, index=False)
    refuse(model, new, "row 1: age is 1e400, expected a finite number; nothing was added")


def test_nothing_is_said_to_cover_reactions_where_nothing_does(
    original: Original, tmp_path: Path, new: Path, unlearn: Unlearn
) -> None:
    table = Table(path=str(original.data), label="ill", identifier="person")
    initialise(tmp_path / "exact", table, mechanism="noisy-sgd", steps=20, batch_size=4, sigma=0.3)
    printed = unlearn("add", tmp_path / "exact", "--data", new, "--no-quality").stdout
    assert "such as offers that followed its predictions, are not covered." in printed
    assert "adaptive requests" not in printed


def test_the_same_file_again_adds_nothing_again(model: Path, new: Path, unlearn: Unlearn) -> None:
    add(model, new)
    before = requests.status(model).head
    printed = unlearn("add", model, "--data", new).stdout
    assert f"{new} was added with the current version; nothing was added again" in printed
    assert requests.status(model).head == before


def test_several_rows_with_one_identifier_are_one_persons_and_leave_together(model: Path, new: Path) -> None:
    add(model, new)
    assert requests.request(model, ["p301"]).records == 2
    apply(model)
    assert verify(model).state.records_removed == 2


def test_several_rows_of_one_person_are_pointed_out_where_everybody_had_one(
    original: Original, tmp_path: Path, new: Path, unlearn: Unlearn
) -> None:
    original.table.drop_duplicates("person").to_csv(tmp_path / "single.csv", index=False)
    make_refit(tmp_path / "model", tmp_path / "single.csv")
    warned = unlearn("add", tmp_path / "model", "--data", new, "--no-quality").stderr
    assert (
        "warning: several new rows have the identifier 'p301', and count as rows of one person; until now, each person "
        "had one row" in warned
    )


def test_pending_requests_are_answered_with_the_same_version(
    original: Original, model: Path, new: Path, unlearn: Unlearn
) -> None:
    requests.request(model, ["p3", "p4"])
    printed = unlearn("add", model, "--data", new, "--no-quality").stdout
    assert "2 pending requests are answered, too" in printed
    assert "added 30 records of 20 people and removed 3 records of 2 people by reading the data again" in printed
    verified = verify(model)
    assert (verified.state.pending, verified.state.current.version) == (0, 2)
    assert isinstance(verified.current, ResidualCertificate)
    assert (verified.current.removed, verified.current.releases) == (3, 2)
    assert distance_from_exact(model, [original.data, new], {"p3", "p4"}) < 1e-3
    assert requests.status(model).meaning is not None


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda table: table.drop(columns="age"), "has no column 'age'; it has 'height', 'weight', 'ill', 'person'"),
        (lambda table: table.drop(columns="ill"), "has no column 'ill'; it has"),
        (lambda table: table.drop(columns="person"), "has no column 'person'; it has"),
        (lambda table: table.rename(columns={"age": "Age"}), "has no column 'age'; did you mean 'Age'?"),
        (lambda table: table.assign(age=["old", *table["age"][1:]]), "row 1: age is 'old', expected a number"),
        (lambda table: table.assign(age=[None, *table["age"][1:]]), "row 1: age is missing"),
        (
            lambda table: table.assign(ill=[*table["ill"][:-1], "maybe"]),
            "row 30: ill is 'maybe', which is none of its classes 'no', 'yes'",
        ),
        (lambda table: table.assign(person=[None, *table["person"][1:]]), "row 1: person is missing"),
        (lambda table: table[:0], "holds no records"),
        (lambda table: table.assign(person="unknown"), "the identifier person is 'unknown' in 30 rows"),
    ],
)
def test_a_file_with_another_schema_is_refused(model: Path, new: Path, change: Any, sentence: str) -> None:
    change(pd.read_csv(new)).to_csv(new, index=False)
    refuse(model, new, f"{sentence}[^;]*(; did you mean 'Age'[?]|; leave these rows out, .*)?; {UNCHANGED}$")


def test_a_file_that_is_empty_or_missing_is_refused(model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").touch()
    refuse(model, tmp_path / "empty.csv", "empty.csv .*; nothing was added")
    refuse(model, tmp_path / "none.csv", "cannot read .*none.csv.*; nothing was added")


def test_columns_come_in_any_order_and_others_are_left_out(model: Path, new: Path, unlearn: Unlearn) -> None:
    table = pd.read_csv(new)
    table.assign(note="x")[["note", *reversed(table.columns)]].to_parquet(new.with_suffix(".parquet"))
    printed = unlearn("add", model, "--data", new.with_suffix(".parquet"), "--no-quality").stdout
    assert "left out: no rows; columns 'note'" in printed
    other = new.parent / "other"
    make_refit(other, verify(model).state.start.source)  # type: ignore[arg-type]
    add(other, new)
    assert ModelDirectory(other).features.read_bytes() == ModelDirectory(model).features.read_bytes()


def declared(path: Path, **more: Any) -> Table:
    return Table(path=str(path), label="left", identifier="who", classes=("no", "yes"), **more)


def test_a_category_never_seen_is_refused_and_numbers_beyond_a_range_count_as_its_ends(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"job": draw.choice(["clerk", "nurse"], 60), "age": draw.integers(20, 60, 60)})
    table["left"] = np.where(table["age"] > 40, "yes", "no")
    table["who"] = range(60)
    table.to_csv(tmp_path / "old.csv", index=False)
    more = {"categories": {"job": ("clerk", "nurse")}, "ranges": {"age": (0, 100)}}
    initialise(tmp_path / "model", declared(tmp_path / "old.csv", **more), epsilon=1.0, C=1.0, sigma=0.1)
    new = tmp_path / "new.csv"
    pd.DataFrame({"job": ["nurse", "pilot"], "age": [50, 30], "left": ["no", "no"], "who": [70, 71]}).to_csv(new)
    sentence = f"row 2: job is 'pilot', which is none of its declared categories 'clerk', 'nurse'; {UNCHANGED}"
    refuse(tmp_path / "model", new, sentence)
    pd.DataFrame({"job": ["nurse", "nurse"], "age": [100, 130], "left": ["no", "no"], "who": [70, 71]}).to_csv(new)
    add(tmp_path / "model", new)
    rows = np.fromfile(ModelDirectory(tmp_path / "model").features, np.float32).reshape(62, -1)
    assert (rows[60] == rows[61]).all()


# Mechanisms.


@pytest.mark.parametrize(
    ("mechanism", "asked", "why"),
    [
        (
            "langevin",
            {"epsilon": 1.0, "C": 0.1, "device": "cpu"},
            "its noise and its steps were planned for the records",
        ),
        ("certified-ensemble", {}, "its slices were drawn for the records"),
    ],
)
def test_mechanisms_whose_certificate_cannot_stand_additions_say_why(
    original: Original, tmp_path: Path, new: Path, mechanism: str, asked: dict[str, Any], why: str
) -> None:
    table = Table(path=str(original.data), label="ill", identifier="person", classes=("no", "yes"))
    initialise(tmp_path / "model", table, mechanism=mechanism, **asked)
    refuse(tmp_path / "model", new, f"no records can be added to a model of {mechanism}: {why}", ParameterError)


@pytest.mark.parametrize("mechanism", ["noisy-sgd", "accelerated-noisy-sgd", "quantized-sgd", "subsample-gd"])
def test_models_that_forget_exactly_take_records_in_by_the_same_edits(
    original: Original, tmp_path: Path, new: Path, mechanism: str, unlearn: Unlearn
) -> None:
    model = tmp_path / "model"
    table = Table(path=str(original.data), label="ill", identifier="person", classes=("no", "yes"))
    initialise(model, table, mechanism=mechanism, C=0.1, steps=20)
    requests.request(model, ["p0"])
    add(model, new)
    verify(model)
    requests.request(model, ["p301", "p5"])
    apply(model)
    current = verify(model).current
    assert isinstance(current, ExactCertificate)
    counts = (current.n_learned, current.deleted, current.inserted, current.requests, current.n)
    assert counts == (450, 5, 30, 2, 475)
    certificate.verify(current)
    assert "added 30 records of 20 people and removed 1 record of 1 person" in unlearn("status", model).stdout
    # Steps are made of the new records as well.
    secret = read_secret(ModelDirectory(model), requests.status(model).state.current)
    assert secret is not None
    assert (secret.arrays["batches"] >= 450).any()


def test_exact_additions_make_room_for_removals_that_a_batch_needs(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    frame = pd.DataFrame({"a": draw.uniform(-1, 1, 6), "b": draw.uniform(-1, 1, 6), "left": ["no", "yes"] * 3})
    frame.assign(who=range(6)).to_csv(tmp_path / "old.csv", index=False)
    frame.assign(who=range(10, 16)).to_csv(tmp_path / "new.csv", index=False)
    model = tmp_path / "model"
    initialise(model, declared(tmp_path / "old.csv"), mechanism="noisy-sgd", C=1.0, steps=5, batch_size=3)
    requests.request(model, ["0", "1", "2", "3"])
    with pytest.raises(InfeasibleError, match="cannot be removed from 6"):
        apply(model)
    verify(model)
    add(model, tmp_path / "new.csv")
    assert verify(model).state.records_removed == 4


def test_models_of_three_classes_are_fitted_again_with_the_new_records(tmp_path: Path, unlearn: Unlearn) -> None:
    draw = np.random.default_rng(2)

    def write(name: str, first: int, people: int) -> Path:
        frame = pd.DataFrame(draw.uniform(-1, 1, (people, 2)), columns=["a", "b"])
        frame["kind"] = draw.choice(["x", "y", "z"], people)
        frame.assign(who=range(first, first + people)).to_csv(tmp_path / name, index=False)
        return tmp_path / name

    table = Table(path=str(write("old.csv", 0, 90)), label="kind", identifier="who", classes=("x", "y", "z"))
    model = tmp_path / "model"
    initialise(model, table, epsilon=1.0, C=1.0, sigma=0.1)
    new = write("new.csv", 100, 10)
    add(model, new)
    requests.request(model, ["3", "104"])
    apply(model)
    verified = verify(model)
    assert isinstance(verified.current, ResidualCertificate)
    assert (verified.current.mechanism, verified.current.n, verified.current.removed) == ("certified-refit", 100, 2)
    assert quality_left(model).records == 98
    # The zero is a label, too: the rows of the removed are found by the ledger alone.
    again = tmp_path / "again"
    everyone = pd.concat([pd.read_csv(table.path), pd.read_csv(new)])
    everyone[~everyone["who"].isin([3, 104])].to_csv(tmp_path / "left.csv", index=False)
    initialise(again, table.model_copy(update={"path": str(tmp_path / "left.csv")}), epsilon=1.0, C=1.0, sigma=0.1)
    ours, theirs = (read_secret(ModelDirectory(each), requests.status(each).state.current) for each in (model, again))
    assert ours is not None
    assert theirs is not None
    assert np.abs(ours.arrays["weights"] - theirs.arrays["weights"]).max() < 1e-3


# What the other commands say.


def test_show_says_when_somebody_was_added_before_and_after_the_removal(
    model: Path, new: Path, unlearn: Unlearn
) -> None:
    add(model, new)
    time = requests.status(model).state.current.time
    moment = datetime.fromisoformat(time)
    day = f"{moment.day} {calendar.month_name[moment.month]} {moment.year} at {moment:%H:%M}"
    printed = unlearn("show", model, "--id", "p301").stdout
    assert f"The records had been added to the model on {day} UTC, with version 2." in printed
    assert "added to the model" not in unlearn("show", model, "--id", "p0").stdout
    requests.request(model, ["p301", "p0"])
    assert f"The records had been added to the model on {day} UTC" in unlearn("show", model, "--id", "p301").stdout
    apply(model)
    found = json.loads(unlearn("show", model, "--id", "p301", "--json").stdout)
    assert (found["added"], found["version"], found["records"]) == (time, 3, 2)
    text = json.dumps(found["sections"])
    assert f"The records had been added to the model on {day} UTC, with version 2." in text
    assert "and no new record was created because of something that the model had said" in text
    assert json.loads(unlearn("show", model, "--id", "p0", "--json").stdout)["added"] is None


def test_status_and_quality_count_the_new_records(model: Path, new: Path, unlearn: Unlearn) -> None:
    add(model, new)
    assert (
        "learned from 450 records of 300 people; added since: 30 records of 20 people"
        in unlearn("status", model).stdout
    )
    found = json.loads(unlearn("status", model, "--json").stdout)
    assert found["added"] == {"records": 30, "people": 20}
    assert [each["records_added"] for each in found["versions"]] == [0, 30]
    assert found["quality"]["records"] == 480
    trouble_left(model, quality_left(model))


def test_after_its_removal_no_file_has_a_feature_of_an_added_record(original: Original, model: Path, new: Path) -> None:
    def of(person: str) -> Iterator[bytes]:
        return traces(Original(original.path, new, pd.read_csv(new)), [person])

    add(model, new)
    assert found(model, of("p301")) == {"features.float32"}
    requests.request(model, ["p301"])
    apply(model)
    assert found(model, of("p301")) == set()
    assert found(model, of("p302")) == {"features.float32"}


def test_a_log_after_an_addition_begins_with_the_one_before(model: Path, new: Path) -> None:
    head = requests.status(model).head
    add(model, new)
    verify(model, head)


def test_changed_rows_of_added_records_are_found(model: Path, new: Path) -> None:
    add(model, new)
    features = ModelDirectory(model).features
    content = bytearray(features.read_bytes())
    content[-1] ^= 1
    features.write_bytes(content)
    with pytest.raises(LedgerError, match="was tampered with: the training copy is not what the ledger recorded"):
        verify(model)


def test_whose_an_added_row_is_cannot_be_changed(model: Path, new: Path) -> None:
    import sqlite3

    add(model, new)
    with sqlite3.connect(ModelDirectory(model).ledger) as connection:
        names = name_of(model, "p302"), name_of(model, "p300")
        connection.execute("UPDATE records SET identifier = ? WHERE identifier = ?", names)
        assert connection.total_changes == 1
    connection.close()
    with pytest.raises(LedgerError, match="the owner of a row is not what was recorded"):
        verify(model)


def test_a_file_that_changes_while_it_is_read_is_refused(
    model: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from certified_unlearning.ledger.adding import addition

    read = addition.read_new_records

    def changed(*given: Any, **named: Any) -> Any:
        found = read(*given, **named)
        new.write_text(new.read_text().replace("yes", "no"))
        return found

    monkeypatch.setattr(addition, "read_new_records", changed)
    refuse(model, new, "was changed while it was read; nothing was added, try again")
