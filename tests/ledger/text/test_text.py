"""A column of text in the ledger: hashed, sparse from the file to the weights, gone when it is removed."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from safetensors.numpy import load_file
from scipy.sparse import csr_array, hstack
from sklearn.feature_extraction.text import HashingVectorizer

from certified_unlearning import CertifiedLogisticRegression, certificate
from certified_unlearning.audit.directories import audit_directory
from certified_unlearning.data.tables.declaration import Split, Table, Text, parse
from certified_unlearning.data.tables.declared import prepare_table
from certified_unlearning.data.tables.draft import marked
from certified_unlearning.data.tables.hashing import rows as hashing
from certified_unlearning.data.tables.table import feature_names, read_blocks, resolve
from certified_unlearning.errors import AssumptionError, DataError, ParameterError, UnlearningError
from certified_unlearning.ledger import load_model, requests
from certified_unlearning.ledger.adding.addition import add
from certified_unlearning.ledger.application import apply
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.initialisation import initialise
from certified_unlearning.ledger.mechanisms import MECHANISMS
from certified_unlearning.ledger.training.forms import copy_of
from certified_unlearning.ledger.training.sparse import SparseCopy
from certified_unlearning.ledger.verification import verify
from tests.ledger.conftest import Original, Unlearn
from tests.ledger.tables import RANGE, WIDTH, make_text, tickets, write_tickets

FEATURES = WIDTH + 2
LEAVING = ["p3", "p4"]


def due(table: pd.DataFrame, gone: list[str], width: int = WIDTH) -> np.ndarray[Any, Any]:
    """Return what the rows of such a table must be, by scikit-learn and by hand; those of some people are zeros."""
    words = HashingVectorizer(n_features=width).transform(table["said"].fillna("")).toarray()
    rows = np.column_stack([table["age"] / 60 - 1, words])
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(norms > 0, norms, 1)
    rows = np.column_stack([rows, np.ones(len(rows))]) / np.sqrt(2)
    rows[table["person"].isin(gone)] = 0
    return rows


def stored(model: Path, version: int, count: int) -> csr_array:
    return copy_of(ModelDirectory(model), FEATURES, version).stored(count)


def bits(path: Path) -> bytes:
    return b"".join(array.tobytes() for array in load_file(path).values())


def test_rows_are_what_scikit_learn_makes_of_the_words_beside_the_other_columns(spoken: Original) -> None:
    rows = stored(spoken.path, 1, len(spoken.table))
    assert np.allclose(rows.toarray(), due(spoken.table, []), atol=1e-7)
    assert rows.nnz < 15 * len(spoken.table)
    assert rows.dtype == np.float32


def test_a_removed_text_is_gone_and_so_is_how_many_words_it_had(spoken: Original, model: Path) -> None:
    directory = ModelDirectory(model)
    old = directory.sparse_rows(1)
    requests.request(model, LEAVING)
    gone = np.flatnonzero(spoken.table["person"].isin(LEAVING))
    before = stored(model, 1, len(spoken.table))
    trace = before[[gone[0]]].data.tobytes()
    assert trace in bits(old)
    apply(model)
    assert not old.exists()
    rows = stored(model, 2, len(spoken.table))
    assert np.allclose(rows.toarray(), due(spoken.table, LEAVING), atol=1e-7)
    assert not np.diff(rows.indptr)[gone].any()
    assert not any(trace in path.read_bytes() for path in model.rglob("*") if path.is_file())
    assert (copy_of(directory, FEATURES, 2).labels(len(spoken.table))[gone] == 0).all()
    assert verify(model).state.current.version == 2


def test_the_file_of_removed_rows_is_overwritten_before_it_is_deleted(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = ModelDirectory(model).sparse_rows(1).open("rb")
    requests.request(model, LEAVING)
    apply(model)
    with held:
        assert not any(held.read())


def test_weights_are_those_of_the_estimator_on_the_same_rows(spoken: Original, model: Path) -> None:
    """The noise of both has a standard deviation of 0.001; what each learned is within 0.00024 of the minimiser."""
    requests.request(model, LEAVING)
    apply(model)
    words = HashingVectorizer(n_features=WIDTH).transform(spoken.table["said"])
    X = hstack([csr_array(spoken.table[["age"]] / 60 - 1), words], format="csr")
    estimator = CertifiedLogisticRegression(normalize=True, random_state=0).fit(X, spoken.table["topic"])
    estimator.unlearn(np.flatnonzero(spoken.table["person"].isin(LEAVING)))
    (weights,) = load_model(model).weights
    other = np.append(estimator.coef_.ravel(), estimator.intercept_) * np.sqrt(2)
    assert np.abs(weights - other).max() < 0.001 * 2 * 6 * np.sqrt(2)
    scores = load_model(model).decision_function(load_model(model).rows(spoken.data))
    assert np.corrcoef(scores, estimator.decision_function(X))[0, 1] > 0.999


def test_certificates_state_the_width_and_refuse_a_wider_one(model: Path, spoken: Original, tmp_path: Path) -> None:
    path = ModelDirectory(model).certificate(1)
    stated = json.loads(path.read_text())
    assert stated["hashed"] == [{"width": WIDTH, "ngrams": [1, 1], "analyzer": "word"}]
    assert stated["sparse"]
    assert any("2,048 columns by scikit-learn's HashingVectorizer" in each["by"] for each in stated["assumptions"])
    wrong = tmp_path / "wider.json"
    wrong.write_text(json.dumps(stated | {"hashed": [stated["hashed"][0] | {"width": 4096}]}))
    with pytest.raises(UnlearningError, match="hashed"):
        certificate.verify(certificate.read_any(wrong))


def test_text_alone_and_two_columns_of_text_are_learned_from(spoken: Original, tmp_path: Path) -> None:
    table = spoken.table.assign(subject=spoken.table["said"].str.split().str[-1]).drop(columns="age")
    table.to_csv(tmp_path / "two.csv", index=False)
    text = {"said": Text(width=WIDTH), "subject": Text(width=512, ngrams=(2, 3), analyzer="char_wb")}
    declared = Table(path=str(tmp_path / "two.csv"), label="topic", identifier="person", text=text)
    names = feature_names(resolve(declared))
    assert (names[0], names[WIDTH - 1], names[-1]) == ("said#0", f"said#{WIDTH - 1}", "subject#511")
    initialise(tmp_path / "two", declared, epsilon=1.0)
    model = load_model(tmp_path / "two")
    assert model.score(model.rows(tmp_path / "two.csv"), table["topic"]) > 0.97
    alone = tickets(spoken.data).model_copy(update={"features": ("said",), "ranges": {}})
    initialise(tmp_path / "alone", alone, epsilon=1.0)
    assert load_model(tmp_path / "alone").weights.shape == (1, WIDTH + 1)


def test_few_columns_leave_by_newton_steps(spoken: Original, tmp_path: Path) -> None:
    path = tmp_path / "narrow"
    make_text(path, spoken.data, width=256, C=0.01, sigma=0.3, records_between_reads=20)
    requests.request(path, LEAVING)
    assert apply(path).versions[0].reading == "none"
    verify(path)
    requests.request(path, [f"p{person}" for person in range(10, 60)])
    assert apply(path).versions[0].reading == "scheduled"
    verify(path)


def test_numbers_are_predicted_from_text(tmp_path: Path) -> None:
    table = write_tickets(tmp_path / "tickets.csv", numbers=True)
    declared = tickets(tmp_path / "tickets.csv", label="income", classes=None, target_range=RANGE)
    initialise(tmp_path / "model", declared, epsilon=1.0)
    requests.request(tmp_path / "model", LEAVING)
    apply(tmp_path / "model")
    verify(tmp_path / "model")
    model = load_model(tmp_path / "model")
    assert model.score(model.rows(tmp_path / "tickets.csv"), table["income"]) > 0.5


def test_missing_and_empty_texts_have_no_words_and_are_counted(
    spoken: Original, tmp_path: Path, unlearn: Unlearn
) -> None:
    table = spoken.table.copy()
    table.loc[:2, "said"] = None
    table.loc[3, "said"] = " ... "
    table.to_csv(tmp_path / "gaps.csv", index=False)
    flags = ["--label", "topic", "--id", "person", "--text", f"said={WIDTH}", "--range", "age=0:120", "--epsilon", "1"]
    printed = unlearn("init", tmp_path / "model", "--data", tmp_path / "gaps.csv", *flags, "--no-quality").output
    assert "text: 'said', hashed into 2,048 columns; 4 records without words there\n" in printed
    assert np.allclose(stored(tmp_path / "model", 1, len(table)).toarray(), due(table, []), atol=1e-7)
    verify(tmp_path / "model")


def test_words_that_mean_missing_elsewhere_are_words_of_a_text(spoken: Original, tmp_path: Path) -> None:
    table = spoken.table.assign(said="none")
    table.to_csv(tmp_path / "none.csv", index=False)
    (block,) = read_blocks(tickets(tmp_path / "none.csv"))
    assert hashing.without_words(resolve(tickets(tmp_path / "none.csv")), block.features) == {"said": 0}


def test_cells_that_are_no_text_are_refused_with_a_sentence_that_names_their_type(
    spoken: Original, tmp_path: Path
) -> None:
    path = tmp_path / "numbers.parquet"
    pa.parquet.write_table(pa.Table.from_pandas(spoken.table.assign(said=7)), path)
    with pytest.raises(DataError, match=r"column said holds int64, expected text; leave it out of the text columns"):
        make_text(tmp_path / "model", path)
    assert not (tmp_path / "model").exists()


def test_parquet_with_categories_or_line_breaks_is_read_as_csv_is(spoken: Original, tmp_path: Path) -> None:
    path = tmp_path / "tickets.parquet"
    spoken.table.assign(said=spoken.table["said"].str.replace(" ", "\n").astype("category")).to_parquet(path)
    (block,) = read_blocks(tickets(path))
    (other,) = read_blocks(tickets(spoken.data))
    assert (block.features != other.features).nnz == 0


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if name != "newton-removal"])
def test_other_mechanisms_refuse_text_in_one_sentence(spoken: Original, tmp_path: Path, mechanism: str) -> None:
    asked = {"epsilon": 1.0} if mechanism == "langevin" else {}
    with pytest.raises(ParameterError, match=f"`text` does not apply to {mechanism}, .*--mechanism newton-removal"):
        initialise(tmp_path / "model", tickets(spoken.data), mechanism=mechanism, **asked)


def test_too_wide_a_text_is_refused_with_the_memory_it_needs_and_a_width_that_fits(
    spoken: Original, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing.os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 30}.__getitem__)
    with pytest.raises(ParameterError) as refused:
        make_text(tmp_path / "model", spoken.data)
    assert str(refused.value) == (
        "weights for 2,050 columns and 1 score per record need 0.0002 GB of memory, but this machine has 0.00012 GB; "
        "2^8 = 256 columns need 2.5e-05 GB: use --text said=256"
    )


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"text": {"said": {"width": 1}}}, "t: text.said.width: Input should be greater than or equal to 2"),
        ({"text": {"said": {"ngrams": [2, 1]}}}, "t.text.said.ngrams is [2, 1], but the lower number must come first"),
        ({"text": {"topic": {}}}, "t.text contains 'topic', which is the label, not a feature"),
        ({"text": {"other": {}}}, "t.text names 'other', which is not among the features"),
        (
            {"text": {"said": {}}, "missing": {"said": 0}},
            "t: 'said' is text, but is also named in missing; leave one of them out",
        ),
    ],
)
def test_declarations_of_text_that_contradict_themselves_are_refused(declared: dict[str, Any], sentence: str) -> None:
    whole = {"path": "t.csv", "label": "topic", "features": ["said"]} | declared
    with pytest.raises(ParameterError) as refused:
        parse(json.dumps(whole), "t")
    assert str(refused.value) == sentence


def test_the_pipeline_and_audits_say_that_they_take_no_text(spoken: Original, tmp_path: Path) -> None:
    declared = tickets(spoken.data, split=Split(test=0.2))
    with pytest.raises(ParameterError, match=r"tables\.mine\.text must be left out: the pipeline"):
        prepare_table("mine", declared, 0, tmp_path)
    with pytest.raises(AssumptionError, match="learned from text, and models that learned from text cannot be audit"):
        audit_directory(spoken.path)


def test_a_changed_bit_of_the_sparse_copy_is_found(model: Path) -> None:
    path = ModelDirectory(model).sparse_rows(1)
    content = bytearray(path.read_bytes())
    content[-600] ^= 1
    path.write_bytes(content)
    requests.request(model, LEAVING)
    for act in (verify, apply):
        with pytest.raises(UnlearningError, match=r"rows-1.safetensors (was tampered with|is damaged)"):
            act(model)


def test_added_records_are_the_same_as_if_they_had_been_there(spoken: Original, model: Path, tmp_path: Path) -> None:
    new = write_tickets(tmp_path / "new.csv", people=20, first=1000)
    requests.request(model, LEAVING)
    add(model, tmp_path / "new.csv")
    both = pd.concat([spoken.table, new])
    assert np.allclose(stored(model, 2, len(both)).toarray(), due(both, LEAVING), atol=1e-7)
    assert {path.name for path in model.glob("*rows*")} == {"rows-2.safetensors"}
    assert verify(model).state.rows == len(both)


def test_predict_show_status_and_evaluate_work_as_on_numbers(
    spoken: Original, model: Path, tmp_path: Path, unlearn: Unlearn
) -> None:
    requests.request(model, ["p3"])
    assert "removed 2 records of 1 person" in unlearn("apply", model).output
    assert "accuracy 0.9" in unlearn("status", model).output or "accuracy 1.0" in unlearn("status", model).output
    unlearn("predict", model, spoken.data, "--output", tmp_path / "predictions.csv")
    found = pd.read_csv(tmp_path / "predictions.csv")
    assert (found["prediction"] == spoken.table["topic"]).mean() > 0.95
    assert "accuracy" in unlearn("evaluate", model, spoken.data).output
    assert "the records were overwritten in this software" in unlearn("show", model, "--id", "p3").output


def test_without_wiping_apply_publishes_nothing(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = SparseCopy.changed
    monkeypatch.setattr(SparseCopy, "changed", lambda copy, version, gone, waiting: right(copy, version, [], waiting))
    requests.request(model, LEAVING)
    with pytest.raises(UnlearningError, match="does not contain what was written to it; nothing was published"):
        apply(model)
    assert requests.status(model).state.current.version == 1
    shutil.rmtree(model)


def with_paragraphs(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with several lines of as many commas as rows have in every text."""
    return table.assign(
        said='Dear, a, b, c,\nafter a week, no "parcel", yet\n' + table["said"] + ", so,\nbye, 5, billing"
    )


def test_texts_of_several_lines_with_many_commas_are_read_from_csv(spoken: Original, tmp_path: Path) -> None:
    table = with_paragraphs(spoken.table)
    table.to_csv(tmp_path / "long.csv", index=False)
    table.to_parquet(tmp_path / "long.parquet")
    declared = tickets(tmp_path / "long.csv", classes=None)
    (block,) = read_blocks(declared)
    (other,) = read_blocks(tickets(tmp_path / "long.parquet"))
    assert (block.features != other.features).nnz == 0
    assert block.identifiers == table["person"].tolist()


@pytest.mark.parametrize(
    "swallowing",
    [
        # Whole rows between two stray quotes, and two rows of which one begins in the other.
        'p0,"good,20,billing\np1,fine,30,billing\np2,5",40,delivery\n',
        'p0,"good,20,billing\np1,5",30,delivery\n',
    ],
)
def test_a_quote_that_swallows_people_is_still_found_in_a_text(tmp_path: Path, swallowing: str) -> None:
    path = tmp_path / "swallowed.csv"
    path.write_text("person,said,age,topic\n" + swallowing + 'p7,"a\nb",50,billing\n')
    with pytest.raises(
        DataError, match=r"row 1 \(line 2\): a quoted value runs on to line [34], and its lines have as"
    ):
        list(read_blocks(tickets(path)))
    path.write_text('person,said,age,topic\np7,"a,\nb, c",50,billing\np8,"d",20,delivery\n')
    assert [block.identifiers for block in read_blocks(tickets(path))] == [["p7", "p8"]]


def test_rows_with_longer_sums_than_float64_can_bear_are_refused_before_they_are_added(
    spoken: Original, tmp_path: Path
) -> None:
    enough = 1e-10
    for _ in range(2):  # By counts alone, and when the rows are known.
        with pytest.raises(AssumptionError) as refused:
            make_text(tmp_path / "none", spoken.data, sigma=enough)
        enough = 1.01 * float(re.findall(r"sigma = ([\d.e-]+) is enough", str(refused.value))[0])
    make_text(tmp_path / "model", spoken.data, sigma=enough)
    new = write_tickets(tmp_path / "new.csv", people=2000, first=1000)
    new.assign(said="the same words " + new["said"]).to_csv(tmp_path / "new.csv", index=False)
    with pytest.raises(AssumptionError, match="but rounding in float64 may be"):
        add(tmp_path / "model", tmp_path / "new.csv")
    assert verify(tmp_path / "model").state.rows == len(spoken.table)


def test_a_draft_says_how_sentences_become_text_and_init_takes_the_draft(
    spoken: Original, tmp_path: Path, unlearn: Unlearn
) -> None:
    file, draft = tmp_path / "tickets.csv", tmp_path / "draft.yaml"
    spoken.table.assign(code=spoken.table["said"].str.split().str[0]).to_csv(file, index=False)
    flags = ["declare", file, "--label", "topic", "--id", "person", "--text", "code"]
    assert "identifiers, or text? (to learn from its words: --text said)" in unlearn(*flags).output
    unlearn(*flags, "--text", "said", "--output", draft)
    text = draft.read_text()
    assert "  said: {width: 65536}\n  code: {width: 65536}\n" in text
    assert "treated as text: its words are hashed into 65,536 columns" in text
    assert marked(text) == ["ranges"]
    draft.write_text(re.sub("# check: .*", "", text).replace("65536", "1024"))
    assert "version 1 learned" in unlearn("init", tmp_path / "model", "--table", draft, "--epsilon", "1").output
    assert (
        "text: 'code', hashed into 1,024 columns, without a vocabulary" in unlearn("verify", tmp_path / "model").output
    )


def test_a_draft_of_texts_of_several_lines_needs_to_be_told_which_they_are(
    spoken: Original, tmp_path: Path, unlearn: Unlearn
) -> None:
    with_paragraphs(spoken.table).to_csv(tmp_path / "long.csv", index=False)
    flags = ["declare", tmp_path / "long.csv", "--label", "topic", "--id", "person"]
    with pytest.raises(DataError, match="declare its column as text"):
        unlearn(*flags)
    assert "  said: {width: 65536}\n" in unlearn(*flags, "--text", "said").output


def test_wide_rows_never_become_dense(
    spoken: Original, tmp_path: Path, unlearn: Unlearn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a dense copy")

    for name in ("toarray", "todense"):
        monkeypatch.setattr(csr_array, name, refuse)
    write_tickets(tmp_path / "new.csv", people=20, first=1000)
    path = tmp_path / "model"
    make_text(path, spoken.data)
    requests.request(path, LEAVING)
    unlearn("apply", path)
    add(path, tmp_path / "new.csv")
    verify(path)
    assert "accuracy" in unlearn("evaluate", path, spoken.data).output


def test_a_copy_that_kept_how_many_words_a_removed_text_had_would_be_found(
    spoken: Original, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(rows: csr_array, gone: np.ndarray[Any, Any]) -> csr_array:
        entries = rows.data.copy()
        entries[np.isin(np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), gone)] = 0
        return csr_array((entries, rows.indices, rows.indptr), shape=rows.shape)

    monkeypatch.setattr("certified_unlearning.ledger.training.sparse.sparse.wiped", careless)
    requests.request(model, LEAVING)
    apply(model)
    gone = np.flatnonzero(spoken.table["person"].isin(LEAVING))
    assert np.diff(stored(model, 2, len(spoken.table)).indptr)[gone].all()
    with pytest.raises(UnlearningError, match=r"row \d+ of the training copy belongs to nobody, but is not empty"):
        verify(model)


def test_a_data_frame_has_the_same_rows_as_its_file(spoken: Original) -> None:
    model = load_model(spoken.path)
    frame = spoken.table.drop(columns=["topic", "person"])
    assert (model.rows(frame) != model.rows(spoken.data)).nnz == 0
    frame.loc[:5, "said"] = np.nan
    assert np.diff(model.rows(frame).indptr)[:6].max() == 1
    with pytest.raises(ParameterError, match=r"rows must have shape \(n, 2049\), got \(300, 3\)"):
        model.predict(model.rows(frame)[:, :3])
