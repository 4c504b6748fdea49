"""Features files: the paper's own data come to figures 2 to 4; what cannot be used is refused in a sentence."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from certified_unlearning.errors import DataError, ParameterError, UnlearningError
from certified_unlearning.papers import parameters
from certified_unlearning.papers.gradient_certificates import features_file, setting
from certified_unlearning.papers.gradient_certificates.measures import brought
from certified_unlearning.papers.gradient_certificates.tables.fine_tuning import fine_tuning_table
from certified_unlearning.papers.gradient_certificates.tables.head import head_table
from certified_unlearning.papers.gradient_certificates.tasks import task_of
from certified_unlearning.reproduction.claims.evidence import MissingEvidence
from certified_unlearning.reproduction.report.exhibits import _caption
from certified_unlearning.reproduction.rows import write_table
from tests.docs.code_blocks import blocks
from tests.papers.gradient_certificates.test_claims import Tables
from tests.support.planning import ROOT, experiment_called, make, paper_of, settings_of, sweep_of

RECORDS = 120


def content(images: bool = False, seed: int = 0) -> dict[str, Any]:
    """Two clouds in four columns, or images of 6 x 6 pixels; every third record is new, the last 40 are the test."""
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(RECORDS) % 2)
    shape = (RECORDS, 6, 6) if images else (RECORDS, 4)
    centre = (2 * labels - 1).reshape(-1, *(1,) * (len(shape) - 1))
    rows = centre + 0.3 * generator.standard_normal(shape)
    split = np.where(np.arange(RECORDS) < 80, "train", "test")
    return {"rows": rows, "labels": labels, "split": split, "new": np.arange(RECORDS) % 3 == 0}


def npz(path: Path, **arrays: Any) -> str:
    np.savez(path, **arrays)
    return str(path)


def parquet(path: Path, *, lists: bool, **arrays: Any) -> str:
    frame = pd.DataFrame({"labels": arrays["labels"], "split": arrays["split"], "new": arrays["new"]})
    if lists:
        frame["rows"] = [each.tolist() for each in arrays["rows"]]
    else:
        frame = frame.join(pd.DataFrame(arrays["rows"], columns=[f"pixel {each}" for each in range(4)]))
    frame.to_parquet(path, index=False)
    return str(path)


@pytest.fixture
def written(tmp_path: Path) -> str:
    return npz(tmp_path / "clouds.npz", **content())


def test_all_forms_of_a_file_hold_the_same(tmp_path: Path, written: str) -> None:
    first = features_file.read(written)
    for path in (parquet(tmp_path / f"{lists}.parquet", lists=lists, **content()) for lists in (True, False)):
        other = features_file.read(path)
        for name in ("rows", "labels", "test", "new"):
            assert np.array_equal(getattr(first, name), getattr(other, name)), name
    assert (first.classes, int(first.test.sum())) == (2, 40)


def test_a_file_that_was_changed_is_read_again(written: str) -> None:
    before = features_file.read(written)
    assert features_file.read(written) is before
    npz(Path(written), **content(seed=1))
    assert not np.array_equal(features_file.read(written).rows, before.rows)


def test_the_split_of_the_file_is_kept(written: str) -> None:
    task, held = task_of(written, seed=1), content()
    assert np.array_equal(task.rows.numpy(), held["rows"][:80])
    assert np.array_equal(task.test_labels.numpy(), held["labels"][80:])


def without(name: str) -> dict[str, Any]:
    return {key: each for key, each in content().items() if key != name}


def changed(name: str, place: Any, value: Any, dtype: Any = None) -> dict[str, Any]:
    values = content()[name].copy() if dtype is None else content()[name].astype(dtype)
    values[place] = value
    return content() | {name: values}


WRONG = {
    "no rows": (
        without("rows"),
        "has no `rows`: it must have .*, `labels` and `split`, but has `labels`, `split`, `new`",
    ),
    "no split": (without("split"), "has no `split`"),
    "another array": (
        content() | {"weights": np.zeros(3)},
        "has `weights`, which is none of `rows`, `labels`, .*`new`",
    ),
    "one label too few": (content() | {"labels": np.zeros(119)}, r"`labels` must have shape \(120,\), .* got \(119,\)"),
    "columns of labels": (content() | {"labels": np.zeros((120, 1))}, r"`labels` must have shape \(120,\)"),
    "words for numbers": (content() | {"rows": np.full((120, 2), "a")}, "`rows` must hold numbers, got <U1"),
    "one number a record": (content() | {"rows": np.zeros(120)}, r"`rows` must have the shape .* got \(120,\)"),
    "no number": (changed("rows", (7, 2), np.nan), "row 7 of `rows` holds a number that is not finite"),
    "half a class": (
        changed("labels", 5, 0.5, float),
        r"`labels` must be whole numbers .*, got .*0\.5.* at index 5",
    ),
    "a class below 0": (
        changed("labels", 5, -1),
        "`labels` must be whole numbers of at least 0, got .*-1.* at index 5",
    ),
    "a class that is left out": (changed("labels", 5, 3), "no training record has the label 2"),
    "one class": (
        content() | {"labels": np.zeros(120, dtype=int)},
        "all `labels` are 0, but at least two classes are needed",
    ),
    "a huge class": (
        changed("labels", 5, 10**9),
        "`labels` must be below the number of records, 120, got 1000000000",
    ),
    "another part": (
        changed("split", 3, "valid"),
        "`split` must be train or test .*, got 'valid' at index 3",
    ),
    "no test": (content() | {"split": np.full(120, "train")}, "`split` must be test for at least one record"),
    "new as numbers": (content() | {"new": np.zeros(120)}, "`new` must hold booleans, got float64"),
    "nothing new": (
        content() | {"new": np.zeros(120, bool)},
        "`new` must be true for some train records and false",
    ),
    "Python objects": (content() | {"split": content()["split"].astype(object)}, "`split` holds Python objects"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_sentence_that_names_the_file(name: str, tmp_path: Path) -> None:
    arrays, said = WRONG[name]
    path = npz(tmp_path / "wrong.npz", **arrays)
    with pytest.raises(DataError, match=said) as raised:
        features_file.read(path)
    assert path in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("ending", [".npz", ".parquet"])
@pytest.mark.parametrize(("text", "said"), [(b"nothing of the kind", "cannot be read as"), (b"", "cannot be read as")])
def test_what_is_no_such_file_is_one_sentence(ending: str, text: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / f"wrong{ending}"
    path.write_bytes(text)
    with pytest.raises(DataError, match=said):
        features_file.read(str(path))
    with pytest.raises(DataError, match=f"cannot read .*gone{re.escape(ending)}: No such file"):
        features_file.read(str(tmp_path / f"gone{ending}"))


def test_an_array_alone_and_truncated_files_are_refused(tmp_path: Path, written: str) -> None:
    np.save(tmp_path / "alone.npy", np.zeros(3))
    (tmp_path / "alone.npy").rename(tmp_path / "alone.npz")
    with pytest.raises(DataError, match=r"is a single array, not an .npz file"):
        features_file.read(str(tmp_path / "alone.npz"))
    whole = Path(written).read_bytes()
    Path(written).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"cannot be read as an .npz file"):
        features_file.read(written)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"labels": [0, 1], "split": ["train", None], "a": [1.0, 2.0]}, "`split` has 1 missing values"),
        (
            {"labels": [0, 1], "split": ["train", "test"], "a": ["x", "y"]},
            "`a` holds .*string, but every column ",
        ),
        ({"labels": [0, 1], "split": ["train", "test"], "rows": [[1.0], [1.0, 2.0]]}, "got lists of 1 to 2 numbers"),
        ({"labels": [0, 1], "split": ["train", "test"]}, "has no `rows`"),
        ({"labels": [0, 1], "split": ["train", "test"], "rows": [1.0, 2.0]}, "must hold lists of numbers, got double"),
        ({"labels": [0, 1], "split": ["train", "test"], "rows": [["a"], ["b"]]}, "lists of numbers, got lists of str"),
        ({"labels": [0, 1], "split": ["train", "test"], "rows": [[1.0], [None]]}, "row 1 of `rows` .* not finite"),
        (
            {"labels": [0, 1], "split": ["train", "test"], "rows": [[], []]},
            r"none of them 0, got \(2, 0\)|lists of null",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(columns: dict[str, Any], said: str, tmp_path: Path) -> None:
    pd.DataFrame(columns).to_parquet(tmp_path / "wrong.parquet", index=False)
    with pytest.raises(DataError, match=said):
        features_file.read(str(tmp_path / "wrong.parquet"))


# --- In experiments --------------------------------------------------------------------------------------------------

HEAD = {"scale": 1.0, "gamma": 1.0, "step_size": 2.0, "hidden": [4], "batch_size": 40, "epochs": [1, 2], "k": [1, 3]}
TUNED = {"private": 10, "public": 15, "k": [1, 2], "units": 4, "pretraining_epochs": 3, "held_back": 0}


def test_a_head_learns_from_a_file(written: str) -> None:
    rows = head_table(sweep_of("smoke", "head", data=written, **HEAD))
    assert {*rows["data"]} == {written}
    assert {*rows["n"]} == {80}
    assert rows["accuracy"].min() > 0.9
    said = setting.setting_of_head(rows)
    assert said == (
        "Here: clouds.npz (n = 80), hidden layers of 4 units, batches of 40, γ = 1, 1 and 2 epochs, k = 1 and 3."
    )


@pytest.mark.parametrize("images", [True, False])
def test_fine_tuning_takes_images_or_fixed_features_from_a_file(images: bool, tmp_path: Path) -> None:
    path = npz(tmp_path / "scans.npz", **content(images))
    rows = fine_tuning_table(sweep_of("smoke", "fine_tuning", data=path, **TUNED))
    assert {*rows["new_class"]} == {"the new class"}
    assert {*rows["channels"]} == ({"2-4"} if images else {""})
    assert {*rows["updates"]} == {27 // 10}
    said = setting.setting_of_fine_tuning(rows)
    assert "Here: scans.npz, 27 training records of the new class, " in said
    assert ("convolutions of 2 and 4 channels" if images else "fixed features") in said
    assert said.endswith("batches of 10 private and 15 public records, 1 epoch, k = 1 and 2.")


@pytest.mark.parametrize("name", ["batches", "shares", "service"])
def test_other_sweeps_take_a_file_too(name: str, written: str) -> None:
    small = {
        "batches": {"data": written, "batch_size": [40, 80], "k": 1},
        "shares": {
            "cases": [
                sweep_of("smoke", "shares").cases[0].model_dump()
                | {"data": written, "batch_size": 80, "k": [1, 2], "hidden": [4]}
            ]
        },
        "service": {"data": written, "queries": 20, "requests": 6, "budgets": [1]},
    }[name]
    sweep = sweep_of("smoke", name, **small)
    assert sweep.files == (written,)
    assert {*make(name, settings_of("smoke"), sweep, {})["data"]} == {written}


def test_a_file_that_names_nothing_new_cannot_be_fine_tuned_on(tmp_path: Path) -> None:
    path = npz(tmp_path / "old.npz", **without("new"))
    with pytest.raises(
        DataError, match=r"old.npz has no array or column `new`, which must say which records are of the new class"
    ):
        fine_tuning_table(sweep_of("smoke", "fine_tuning", data=path, **TUNED))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"private": 28}, "`private` must be at most the number of training records of the new class, 27, got 28"),
        ({"kernel": 5}, "`kernel` must be small enough for two convolutions of 6 x 6 pixels, got 5 with stride 1"),
    ],
)
def test_what_a_file_is_too_small_for_is_refused(changes: dict[str, int], said: str, tmp_path: Path) -> None:
    path = npz(tmp_path / "scans.npz", **content(images=True))
    with pytest.raises(ParameterError, match=said):
        fine_tuning_table(sweep_of("smoke", "fine_tuning", data=path, **TUNED | changes))


def test_a_parameter_file_names_a_features_file_or_something_known(tmp_path: Path) -> None:
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    begins = text.index("    head:\n      data: digits")
    for data, accepted in (("data/tables/imdb.parquet", True), ("data/tables/imdb.csv", False), ("nowhere", False)):
        path = tmp_path / "params.yaml"
        path.write_text(text[:begins] + text[begins:].replace("data: digits", f"data: {data}", 1), encoding="utf-8")
        if accepted:
            head = parameters.load(path).presets["digits"].papers["gradient_certificates"]["head"]
            assert head.files == (data,)
        else:
            with pytest.raises(UnlearningError, match=rf"head.data is '{data}', but must be the name of a built-in"):
                parameters.load(path)


def test_the_report_says_below_a_figure_what_it_was_drawn_from(tmp_path: Path, written: str) -> None:
    from certified_unlearning.reproduction.layout import Layout

    experiment, layout = experiment_called("head"), Layout(tmp_path, "mine")
    rows = head_table(sweep_of("smoke", "head", data=written, **HEAD))
    path = layout.rows(paper_of("head").name, "head")
    path.parent.mkdir(parents=True)
    write_table(path, rows, experiment.rows)
    said = _caption(layout, paper_of("head"), experiment).text
    assert said.startswith(experiment.caption.text)
    assert "GPT-2" in said
    assert "Here: clouds.npz (n = 80)" in said


# --- Claims of data that are not here --------------------------------------------------------------------------------


def test_claims_of_the_papers_data_are_decided_where_a_file_of_that_name_was_brought(tmp_path: Path) -> None:
    path = npz(tmp_path / "imdb-gpt2.npz", **content())
    rows = head_table(sweep_of("smoke", "head", data=path, **HEAD))
    last = rows[(rows["epochs"] == 2) & (rows["mode"] == "privacy")].set_index("k")
    evidence = [Tables(head=rows.assign(data="digits")), Tables(head=rows)]
    found = brought.shares_on_imdb(evidence, k=[1, 3], mode="privacy", epochs=2)
    assert [each.value for each in found] == last.loc[[1, 3], "share"].tolist()
    assert brought.accuracy_on_imdb(evidence, epochs=2)[0].value == last.loc[1, "accuracy"]
    for other in ("other.npz", "digits", "imdb-gpt2"):
        with pytest.raises(MissingEvidence, match=r"write them to imdb-gpt2.npz or imdb-gpt2.parquet"):
            brought.accuracy_on_imdb([Tables(head=rows.assign(data=other))], epochs=2)
    with pytest.raises(MissingEvidence, match="not run on imdb-gpt2 for k = 7"):
        brought.shares_on_imdb(evidence, k=[7], mode="privacy", epochs=2)
    with pytest.raises(MissingEvidence, match="not run on imdb-gpt2 for 125 epochs, the number in the paper"):
        brought.accuracy_on_imdb(evidence, epochs=125)


def test_claims_of_cards_and_of_scans_read_their_rows() -> None:
    tuned = pd.DataFrame(
        [
            {
                "data": "in/oct-mnist.npz",
                "mode": "unlearning",
                "gamma": gamma,
                "k": k,
                "share": share,
                "accuracy": gamma,
            }
            for gamma, k, share in ((0.1, 1, 0.9), (0.1, 2, 0.8), (0.5, 1, 0.7), (0.5, 2, 0.9))
        ]
    )
    evidence = [Tables(fine_tuning=tuned)]
    assert [each.value for each in brought.accuracies_on_oct(evidence)] == [0.1, 0.5]
    assert [each.value for each in brought.clipping_on_oct(evidence)] == pytest.approx([-0.2, 0.1])
    assert [each.value for each in brought.shares_on_oct(evidence, k=2)] == [0.8, 0.9]
    for of_levels in (brought.accuracies_on_oct, brought.clipping_on_oct):
        with pytest.raises(MissingEvidence, match="with only one clipping level"):
            of_levels([Tables(fine_tuning=tuned[tuned["gamma"] == 0.1])])
    cards = pd.DataFrame(
        [
            {"data": "amex.parquet", "mode": "unlearning", "depth": 4, "k": 50, "wanted": 0.95, "batch_size": size}
            | {"share": share}
            for size, share in ((100, 0.1), (200, 0.96), (400, 0.97))
        ]
    )
    asked = {"depth": 4, "k": 50, "wanted": 0.95, "beyond": 100}
    assert brought.least_batch_on_amex([Tables(batches=cards)], **asked)[0].value == 200
    none = cards.assign(share=0.1)
    assert brought.least_batch_on_amex([Tables(batches=none)], **asked)[0].value == 400
    for beyond, tried in ((150, cards), (400, none), (50, cards[cards["share"] > 0.9])):
        with pytest.raises(MissingEvidence, match=f"do not decide the claim; add {beyond} and a larger number"):
            brought.least_batch_on_amex([Tables(batches=tried)], **asked | {"beyond": beyond})
    assert brought.least_batch_on_amex([Tables(batches=cards)], **asked | {"beyond": 200})[0].value == 200
    with pytest.raises(MissingEvidence, match="not run on amex for 3 layers"):
        brought.least_batch_on_amex([Tables(batches=cards)], **asked | {"depth": 3})


def test_the_preset_on_the_page_runs_on_the_file_that_the_page_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {block.language: block.text for block in blocks(ROOT / "docs" / "howto" / "features-files.md")}
    known = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    known["presets"] |= yaml.safe_load(shown["yaml"])["presets"]
    preset = parameters.check(known).presets["own-features"]
    monkeypatch.chdir(tmp_path)
    Path("data/tables").mkdir(parents=True)
    exec(shown["python"].replace("features.npz", "data/tables/features.npz"), {})
    sections = preset.papers["gradient_certificates"]
    for name in preset.shows:
        rows = make(name, preset.settings, sections[name], {})
        assert {*rows["data"]} == {"data/tables/features.npz"}
        assert rows["accuracy"].mean() > 0.5


def test_a_flipped_bit_is_one_sentence(written: str) -> None:
    content = bytearray(Path(written).read_bytes())
    content[600] ^= 1
    Path(written).write_bytes(content)
    with pytest.raises(DataError, match="`rows` cannot be read: Bad CRC-32"):
        features_file.read(written)


def test_a_table_without_records_or_with_a_column_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wrong.parquet"
    empty = {"labels": pa.array([], pa.int64()), "split": pa.array([], pa.string())}
    pq.write_table(pa.table(empty | {"rows": pa.array([], pa.list_(pa.float32()))}), path)
    with pytest.raises(DataError, match="`rows` must have the shape"):
        features_file.read(str(path))
    pq.write_table(pa.Table.from_arrays([pa.array([1.0])] * 2, names=["a", "a"]), path)
    with pytest.raises(DataError, match=r"cannot be read as Parquet: Multiple matches for FieldRef.Name\(a\)"):
        features_file.read(str(path))
