"""`params.yaml`: the committed one is valid, and every wrong value is named with what would be right."""

import copy
import json
import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from certified_unlearning import accounting, data, parameters
from certified_unlearning.errors import DataError, ParameterError

ROOT = Path(__file__).parents[1]
CONTENT = yaml.safe_load((ROOT / "params.yaml").read_text())


@pytest.fixture
def content() -> dict[str, Any]:
    return copy.deepcopy(CONTENT)


def change(content: Any, key: str, value: Any) -> None:
    """Set a key such as ``presets.smoke.trials``, or remove it with ``...``."""
    *parents, last = key.split(".")
    for part in parents:
        content = content[part]
    if value is ...:
        del content[last]
    else:
        content[last] = value


def leaves(content: Any, prefix: str = "") -> list[str]:
    """Every key that holds a value and not more keys."""
    if not isinstance(content, dict):
        return [prefix.removesuffix(".")]
    return [leaf for key, value in content.items() for leaf in leaves(value, f"{prefix}{key}.")]


def test_the_committed_parameters_are_valid() -> None:
    loaded = parameters.load(ROOT / "params.yaml")
    assert loaded.preset == "digits"
    assert {"digits", "smoke", "mnist"} <= loaded.presets.keys()
    assert loaded.model_dump(mode="json") == CONTENT


def test_the_committed_schema_is_that_of_the_models() -> None:
    committed = json.loads((ROOT / "workflow/schemas/params.schema.json").read_text())
    assert committed == parameters.schema()


def test_every_key_is_explained_in_the_schema() -> None:
    definitions = parameters.schema()["$defs"]
    for name, model in definitions.items():
        for key, described in model["properties"].items():
            assert "description" in described or "$ref" in described, f"{name}.{key}"


WRONG = (float("nan"), float("inf"), "nonsense", -1, [], {}, True, ...)
ALLOWED = (
    ("presets.smoke.start", -1),
    ("figures.palette", "nonsense"),
    ("collections.paper", ...),
    ("collections.laptop", ...),
)
KEYS = [key for key in leaves(CONTENT) if not key.startswith("presets.") or key.startswith("presets.smoke.")]


@pytest.mark.parametrize(("key", "value"), [pair for pair in product(KEYS, WRONG) if pair not in ALLOWED])
def test_a_wrong_value_of_any_key_is_named(content: dict[str, Any], key: str, value: Any) -> None:
    change(content, key, value)
    with pytest.raises(ParameterError) as refused:
        parameters.check(content)
    sentence = str(refused.value)
    assert re.match(rf"params\.yaml: {re.escape(key)} (is|contains) ", sentence), sentence
    assert "\n" not in sentence
    wanted = "is missing" if value is ... else f"{key} is {value!r}, but must be "
    assert wanted in sentence


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("preset", "smokey", "preset is 'smokey', but must be one of digits, smoke, mnist"),
        ("presets.smoke.delta", 1, 'presets.smoke.delta is 1, but must be "1/n" or a number strictly between 0 and 1'),
        ("presets.smoke.delta", 0.0, 'presets.smoke.delta is 0.0, but must be "1/n" or a number strictly between'),
        ("presets.smoke.delta", "1/m", "presets.smoke.delta is '1/m', but must be \"1/n\" or a number strictly"),
        ("presets.smoke.trials", 2.5, "presets.smoke.trials is 2.5, but must be a whole number"),
        ("presets.smoke.seed", 2**32, "seed is 4294967296, but must be a whole number from 0 to 2^32 - 1"),
        ("presets.smoke.learning_steps", 0, "learning_steps is 0, but must be \"learned\" (the least T"),
        ("presets.smoke.radius", 0, "presets.smoke.radius is 0, but must be null (no projection) or the radius"),
        (
            "presets.smoke.experiments.fig3a.epsilon",
            [0.5, 0],
            "presets.smoke.experiments.fig3a.epsilon contains 0, but must be a list of distinct numbers above 0",
        ),
        (
            "presets.smoke.experiments.fig3a.epsilon",
            [0.5, 0.5],
            "presets.smoke.experiments.fig3a.epsilon is [0.5, 0.5], but must be a list of distinct numbers above 0",
        ),
        (
            "presets.smoke.experiments.fig3c.sigma",
            ["1e-3"],
            "presets.smoke.experiments.fig3c.sigma contains '1e-3', but must be a list of distinct numbers above 0",
        ),
        (
            "presets.smoke.experiments.fig3b.records_per_request",
            [5, 3],
            "presets.smoke.experiments.fig3b.records_per_request contains 3, which does not divide records = 10",
        ),
        ("presets.smoke.trails", 5, "presets.smoke.trails is not a known key; did you mean trials?"),
        ("presets.smoke.experiments.fig3c.epsilom", 1, "fig3c.epsilom is not a known key; did you mean epsilon?"),
        ("colour", "red", "colour is not a known key; known are preset, presets, collections"),
        ("collections.paper", ["smoke", "mnits"], "collections.paper contains 'mnits', but must list some of digits, "),
        ("collections.smoke", ["digits"], "smoke is the name of a preset and of a collection; rename one"),
        ("presets.smoke.features", "hog", "presets.smoke.features is hog, but must be null: digits offers no choice"),
        ("presets.smoke.features", "pixels", "presets.smoke.features is 'pixels', but must be of images: hog or"),
        ("presets.smoke.experiments.fig4", ..., "presets.smoke.experiments.fig4 is missing"),
        ("presets.smoke", None, "presets.smoke is None, but must be a mapping of keys to values"),
        ("presets", [], "presets is [], but must be a mapping of keys to values"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_sentence(content: dict[str, Any], key: str, value: Any, sentence: str) -> None:
    change(content, key, value)
    with pytest.raises(ParameterError, match=rf"^params\.yaml: .*{re.escape(sentence)}"):
        parameters.check(content)


@pytest.mark.parametrize("name", ["../up", "", ".", ".*", "a/b", "smoke|mnist", "two words"])
@pytest.mark.parametrize("group", ["presets", "collections"])
def test_a_name_that_is_no_directory_below_results_is_refused(content: dict[str, Any], group: str, name: str) -> None:
    content[group][name] = content["presets"]["smoke"] if group == "presets" else ["smoke"]
    with pytest.raises(ParameterError, match=re.escape(f"{name!r} is the name of a preset or collection, but must")):
        parameters.check(content)


def test_the_choice_of_features_is_the_one_that_the_data_sets_offer() -> None:
    offered = {name: each.features for name, each in data._DATA_SETS.items() if each.features}
    assert offered == dict.fromkeys(parameters.IMAGES, get_args(parameters.Features))
    assert data._DATA_SETS.keys() == set(get_args(parameters.Dataset))


LOANS = {"path": "data/tables/loans.csv", "label": "repaid", "split": {"test": 0.2}}


def test_a_preset_may_be_about_a_declared_table(content: dict[str, Any]) -> None:
    content["tables"]["loans"] = LOANS | {"categories": {"job": ["nurse", None]}, "ranges": {"age": [18, 100]}}
    change(content, "presets.smoke.dataset", "loans")
    checked = parameters.check(content)
    assert checked.tables["loans"].path == "data/tables/loans.csv"
    assert parameters.check(checked.model_dump(mode="json")) == checked


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("presets.smoke.dataset", "lones", "presets.smoke.dataset is 'lones', but must be one of digits, mnist-3-vs-8, "
         "adult, cifar10-cat-vs-ship, cifar10, or declared in tables (loans)"),
        ("presets.smoke.features", "hog", "presets.smoke.features is hog, but must be null: loans offers no choice"),
        ("tables.loans.split", None, "tables.loans.split is missing, but presets.smoke needs test records: "),
        ("tables.loans.split", ..., "tables.loans.split is missing, but presets.smoke needs test records: "),
        ("tables.loans.split", 0.2, "tables.loans.split is 0.2, but must be {test: 0.2} (drawn), {column: "),
        ("tables.loans.split", {"test": 2}, "split.test is 2, but without a column it must be the fraction"),
        ("tables.loans.label", ..., "tables.loans.label is missing"),
        ("tables.loans.lable", "repaid", "tables.loans.lable is not a known key; did you mean label?"),
        ("tables.loans.path", 5, "tables.loans.path is 5, but must be a .csv, .csv.gz or .parquet file"),
        ("tables.loans.classes", "yes", "tables.loans.classes is 'yes', but must be the label's values, at least two"),
        ("tables.loans.features", ["age", "repaid"], "tables.loans.features contains 'repaid', which is the label"),
        ("tables.loans.norm", "l2", "tables.loans.norm is 'l2', but must be unit (each row is divided"),
        ("tables.loans.categories", {"job": "nurse"}, "categories.job is 'nurse', but must be a list of "),
        ("tables.loans.categories", {"job": []}, "tables.loans.categories.job is [], but must be a list of"),
        ("tables.loans.ranges", {"age": [1]}, "ranges.age is [1], but must be [lowest, highest] for"),
        ("tables.loans.ranges", {"age": [1, "x"]}, "ranges.age contains 'x', but must be [lowest, "),
        ("tables.loans.ranges", {"age": [1, float("nan")]}, "ranges.age contains nan, but must be [lowest, "),
        ("tables.digits", LOANS, "tables.digits has the name of a built-in data set; give it another"),
        ("tables.my loans", LOANS, "'my loans' is the name of a table, but must consist of letters, digits"),
        ("tables", ..., "tables is missing"),
    ],
)  # fmt: skip
def test_a_wrong_declaration_of_a_table_is_named(content: dict[str, Any], key: str, value: Any, sentence: str) -> None:
    content["tables"]["loans"] = copy.deepcopy(LOANS)
    change(content, "presets.smoke.dataset", "loans")
    change(content, key, value)
    with pytest.raises(ParameterError, match=rf"^params\.yaml: .*{re.escape(sentence)}") as refused:
        parameters.check(content)
    assert "\n" not in str(refused.value)


def test_a_number_is_no_name(content: dict[str, Any]) -> None:
    content["collections"][2024] = ["smoke"]
    with pytest.raises(ParameterError, match="collections has the name 2024, which must be text: write '2024'"):
        parameters.check(content)


def test_a_collection_runs_its_presets_and_a_preset_itself(content: dict[str, Any]) -> None:
    change(content, "preset", "laptop")
    checked = parameters.check(content)
    assert checked.members(checked.preset) == ("mnist", "adult", "cifar10-cat-vs-ship", "cifar10")
    assert checked.members("smoke") == ("smoke",)


def test_numbers_may_be_whole_where_any_number_may_be(content: dict[str, Any]) -> None:
    change(content, "presets.smoke.experiments.fig3b.epsilon", 2)
    change(content, "presets.smoke.trials", 5.0)
    checked = parameters.check(content).presets["smoke"]
    assert (checked.experiments.fig3b.epsilon, checked.trials) == (2.0, 5)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda path: None, "^cannot read .*: No such file or directory$"),
        (lambda path: path.write_text("preset: [smoke"), "is not valid YAML: "),
        (
            lambda path: path.write_text((ROOT / "params.yaml").read_text() + "\ntables: {}\n"),
            r"is not valid YAML: the key 'tables' stands in lines \d+ and \d+$",
        ),
        (
            lambda path: path.write_text("preset: smoke\npresets:\n  smoke: {trials: 1, seed: 2, trials: 3}\n"),
            "is not valid YAML: the key 'trials' stands in lines 3 and 3$",
        ),
        (lambda path: path.write_text(""), "the content is None, but must be a mapping of keys to values"),
        (lambda path: path.write_text("- 1"), r"the content is \[1\], but must be a mapping of keys to values"),
    ],
)
def test_a_file_that_holds_no_parameters_is_refused(
    tmp_path: Path, write: Callable[[Path], object], sentence: str
) -> None:
    write(tmp_path / "params.yaml")
    with pytest.raises((DataError, ParameterError), match=sentence) as refused:
        parameters.load(tmp_path / "params.yaml")
    assert f"{tmp_path}/params.yaml" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_part_as_json_comes_back_as_it_was() -> None:
    preset = parameters.load(ROOT / "params.yaml").presets["mnist"]
    assert parameters.parse(parameters.Preset, preset.model_dump_json(), source="--values") == preset


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "--sweep is not valid JSON: "),
        ("[]", "--sweep: the content is [], but must be a mapping"),
        ("{}", "--sweep: "),
    ],
)
def test_a_part_that_does_not_fit_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ParameterError, match=f"^{re.escape(sentence)}"):
        parameters.parse(parameters.Figure3c, text, source="--sweep")


def test_parameters_cannot_be_changed_after_the_check() -> None:
    preset = parameters.load(ROOT / "params.yaml").presets["smoke"]
    with pytest.raises(ValueError, match="frozen"):
        preset.trials = 7  # type: ignore[misc]


def test_the_accountants_of_the_parameters_are_those_of_the_accounting() -> None:
    assert get_args(parameters.AccountantName) == tuple(accounting.ACCOUNTANTS)
