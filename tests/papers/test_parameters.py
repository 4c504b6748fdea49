"""`params.yaml`: the committed one is valid, and every wrong value is named with what would be right."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from certified_unlearning import accounting
from certified_unlearning.commands.schema import schema
from certified_unlearning.data.sets import DATA_SETS
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.mechanisms.settings import Settings
from certified_unlearning.papers import parameters
from certified_unlearning.papers.langevin_unlearning.sweeps import Figure3c
from certified_unlearning.reproduction.parsing import parse

ROOT = Path(__file__).parents[2]
CONTENT = yaml.safe_load((ROOT / "params.yaml").read_text())
LANGEVIN = "presets.smoke.papers.langevin_unlearning"
FORGET = "presets.smoke.papers.forget_unlearning"
OTHERS = "tests.papers.papers_of_others"


@pytest.fixture
def content() -> dict[str, Any]:
    return copy.deepcopy(CONTENT)


def change(content: Any, key: str, value: Any) -> None:
    """Set a key such as ``presets.smoke.trials``, or remove it with ``...``."""
    *parents, last = key.split(".")
    for part in parents:
        content = content.setdefault(part, {})
    if value is ...:
        del content[last]
    else:
        content[last] = value


def leaves(content: Any, prefix: str = "") -> dict[str, Any]:
    """Every key that holds a value and not more keys."""
    if not isinstance(content, dict):
        return {prefix.removesuffix("."): content}
    return {leaf: own for key, value in content.items() for leaf, own in leaves(value, f"{prefix}{key}.").items()}


def differences(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the values that a preset states for its experiments."""
    return leaves({key: value for key, value in content["presets"][name].items() if key not in ("extends", "shows")})


def inherited(content: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the values that a preset would have if it stated none."""
    base = content["presets"][name].get("extends")
    if base is None:
        return leaves(content["settings"]) | leaves({"papers": content["papers"]})
    return inherited(content, base) | differences(content, base)


def written_out(content: dict[str, Any]) -> dict[str, Any]:
    """The same with all that `smoke` has written below it."""
    smoke = parameters.check(content).presets["smoke"]
    presets = content["presets"] | {
        "smoke": {"extends": "digits", "shows": list(smoke.shows), **parameters.as_written(smoke)}
    }
    return content | {"presets": presets}


def test_the_committed_parameters_are_valid() -> None:
    loaded = parameters.load(ROOT / "params.yaml")
    assert loaded.preset == "digits"
    assert {"digits", "smoke", "mnist"} <= loaded.presets.keys()
    assert loaded.presets.keys() == CONTENT["presets"].keys()
    assert loaded.collections == CONTENT["collections"]
    assert loaded.own_data == CONTENT["own_data"]
    assert loaded.figures.model_dump(mode="json") == CONTENT["figures"]


def values(preset: parameters.Preset) -> dict[str, Any]:
    """Return a preset's values for every experiment, whether it shows it or not."""
    sections = {
        paper: {name: sweep.model_dump(mode="json") for name, sweep in experiments.items()}
        for paper, experiments in preset.papers.items()
    }
    return leaves(
        {
            **preset.settings.model_dump(mode="json"),
            "threads": preset.threads,
            "processes": preset.processes,
            "papers": sections,
        }
    )


@pytest.mark.parametrize("name", CONTENT["presets"])
def test_a_preset_has_every_value_that_it_inherits_with_its_own_in_place(name: str) -> None:
    preset = parameters.load(ROOT / "params.yaml").presets[name]
    assert values(preset) == inherited(CONTENT, name) | differences(CONTENT, name)


@pytest.mark.parametrize("name", CONTENT["presets"])
def test_a_preset_is_written_with_the_values_of_what_it_shows(name: str) -> None:
    loaded = parameters.load(ROOT / "params.yaml")
    shown = tuple(f"papers.{paper.name}.{experiment.name}." for paper, experiment in loaded.shown(name))
    written = leaves(parameters.as_written(loaded.presets[name]))
    assert written == {
        key: value
        for key, value in values(loaded.presets[name]).items()
        if key.startswith(shown) or not key.startswith("papers.")
    }


@pytest.mark.parametrize("name", CONTENT["presets"])
def test_a_committed_preset_says_only_what_differs(name: str) -> None:
    below = inherited(CONTENT, name)
    assert not [key for key, value in differences(CONTENT, name).items() if below[key] == value]


def test_the_schema_for_editors_is_that_of_the_models(tmp_path: Path) -> None:
    schema(tmp_path / "params.schema.json")
    assert json.loads((tmp_path / "params.schema.json").read_text(encoding="utf-8")) == parameters.schema()


def test_the_schema_is_built_once() -> None:
    assert parameters.schema() is parameters.schema()


def described(properties: dict[str, Any], name: str) -> Iterator[tuple[str, bool]]:
    for key, each in properties.items():
        yield f"{name}.{key}", bool({"description", "$ref", "properties"} & each.keys())
        yield from described(each.get("properties", {}), f"{name}.{key}")


def test_every_key_is_explained_in_the_schema() -> None:
    for name, model in parameters.schema()["$defs"].items():
        for key, explained in described(model["properties"], name):
            assert explained, key


WRONG = (float("nan"), float("inf"), "nonsense", -1, [], {}, True, ...)
ALLOWED = (
    ("settings.start", -1),
    ("presets.smoke.start", -1),
    ("figures.palette", "nonsense"),
    ("collections.paper", ...),
    ("collections.laptop", ...),
    ("papers_of_others", []),
    ("papers_of_others", ...),
    ("settings.processes", ...),
    # A network without hidden layers.
    *(
        (f"{place}papers.gradient_certificates.{name}.hidden", [])
        for place in ("", "presets.smoke.")
        for name in ("regions", "head")
    ),
)
WHOLE = written_out(CONTENT)
OF_SMOKE = "presets.smoke."
KEYS = [key for key in leaves(WHOLE) if not key.startswith("presets.") or key.startswith(OF_SMOKE)]
SAID_OF_A_PRESET = {
    ("settings.dataset", "nonsense"): "presets.digits.dataset",
    ("settings.features", "nonsense"): "presets.digits.features",
}


SECTIONS = sorted({key.rpartition(".")[0] or key for key in KEYS})


def with_value(content: Any, key: str, value: Any) -> dict[str, Any]:
    """Return the content with another value of a key, or without the key with ``...``; it shares all the rest."""
    first, _, rest = key.partition(".")
    if rest:
        return {**content, first: with_value(content[first], rest, value)}
    return {name: own for name, own in content.items() if name != first} | ({} if value is ... else {first: value})


def wrong_values(section: str) -> list[tuple[str, Any]]:
    """Return the keys of a section, each with all values that are wrong for it."""
    return [
        (key, value)
        for key, value in product(KEYS, WRONG)
        if section == (key.rpartition(".")[0] or key)
        and (key, value) not in ALLOWED
        and not (value is ... and key.startswith(OF_SMOKE))
    ]


def require_named(key: str, value: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        parameters.check(with_value(WHOLE, key, value))
    sentence = str(refused.value)
    said = key
    if isinstance(value, str):
        said = SAID_OF_A_PRESET.get((key, value), key)
    assert re.match(rf"params\.yaml: {re.escape(said)} (is|contains) ", sentence), sentence
    assert "\n" not in sentence
    wanted = "is missing" if value is ... else f"{said} is {value!r}, but must be "
    assert wanted in sentence


@pytest.mark.parametrize("section", SECTIONS)
def test_a_wrong_value_of_any_key_is_named(section: str) -> None:
    """One value of each key, another kind for the next key: about one in seven of all pairs."""
    of_key: dict[str, list[Any]] = {}
    for key, value in wrong_values(section):
        of_key.setdefault(key, []).append(value)
    for number, (key, values) in enumerate(of_key.items()):
        require_named(key, values[(number + len(section)) % len(values)])


@pytest.mark.exhaustive
@pytest.mark.parametrize("section", SECTIONS)
def test_every_wrong_value_of_any_key_is_named(section: str) -> None:
    for key, value in wrong_values(section):
        require_named(key, value)


@pytest.mark.sampled
@pytest.mark.parametrize("section", [section for section in SECTIONS if f"{section}.".startswith(OF_SMOKE)])
def test_a_preset_may_leave_out_any_key(section: str) -> None:
    # Other presets would be merged and checked each time, too.
    alone = {"digits": CONTENT["presets"]["digits"], "smoke": WHOLE["presets"]["smoke"]}
    whole = with_value(WHOLE | {"presets": alone, "collections": {}}, f"{LANGEVIN}.fig3b.records", 100)
    for key in KEYS:
        if key.rpartition(".")[0] == section:
            parameters.check(with_value(whole, key, ...))


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
        ("presets.smoke.accountants", ["lsi", "lsy"], "presets.smoke.accountants contains 'lsy', but must be a list of "
         "distinct accountants of Langevin unlearning, chosen from lsi, lsi-tight, shifted"),
        ("presets.smoke.shows", ["risk", "risk"], "shows is ['risk', 'risk'], but must be a list of distinct names "),
        (f"{FORGET}.deletion.median", {"n": 100, "request": 4}, "median.n is 100, but must be odd"),
        (f"{FORGET}.deletion.median", {"n": 3, "request": 5}, "median.request is 5, but must be at most median.n + 1,"),
        (f"{FORGET}.deletion.problem.epsilon_dd", 70, "problem.epsilon_dd is 70, but must be at most problem.epsilon"),
        (f"{FORGET}.deletion.problem.strong_convexity", 9, "smoothness is 0.3, but must be at least problem.strong"),
        ("presets.smoke.papers.private_learning.private_risk.scales", [0.5, 1.5], "scales contains 1.5, but must be"),
        (f"{FORGET}.risk.epsilon_dd", 2, "epsilon_dd is 2, but must be at most epsilon_dp"),
        (
            f"{LANGEVIN}.fig3a.epsilon",
            [0.5, 0],
            f"{LANGEVIN}.fig3a.epsilon contains 0, but must be a list of distinct numbers above 0",
        ),
        (
            f"{LANGEVIN}.fig3a.epsilon",
            [0.5, 0.5],
            f"{LANGEVIN}.fig3a.epsilon is [0.5, 0.5], but must be a list of distinct numbers above 0",
        ),
        (
            f"{LANGEVIN}.fig3c.sigma",
            ["1e-3"],
            f"{LANGEVIN}.fig3c.sigma contains '1e-3', but must be a list of distinct numbers above 0",
        ),
        (
            f"{LANGEVIN}.fig3b.records_per_request",
            [5, 3],
            f"{LANGEVIN}.fig3b.records_per_request contains 3, which does not divide records = 10",
        ),
        (
            f"{LANGEVIN}.fig3b.records",
            12,
            f"{LANGEVIN}.fig3b.records_per_request contains 5, which does not divide records = 12",
        ),
        (
            "papers.langevin_unlearning.fig3b.records_per_request",
            [7],
            "presets.digits.papers.langevin_unlearning.fig3b.records_per_request contains 7, which does not divide "
            "records = 100",
        ),
        (
            "presets.smoke.papers.forget_unlearning.deletion.problem.n",
            1,
            "presets.smoke.papers.forget_unlearning.deletion.problem.n is 1, but must be a whole number of records, at",
        ),
        ("presets.smoke.trails", 5, "presets.smoke.trails is not a known key; did you mean trials?"),
        (f"{LANGEVIN}.fig3c.epsilom", 1, f"{LANGEVIN}.fig3c.epsilom is not a known key; did you mean epsilon?"),
        (f"{LANGEVIN}.fig3", {}, f"{LANGEVIN}.fig3 is not a known key; did you mean fig3"),
        (f"{LANGEVIN}.table1", {}, f"{LANGEVIN}.table1 is not a known key; known are fig3a, fig3b, fig3c, fig4, "),
        ("presets.smoke.papers.langevin_unlearned", {}, "presets.smoke.papers.langevin_unlearned is not a known key; "
         "did you mean langevin_unlearning?"),
        ("papers.langevin_unlearning.fig3c.epsilom", 1, "fig3c.epsilom is not a known key; did you mean epsilon?"),
        ("settings.trails", 5, "settings.trails is not a known key; did you mean trials?"),
        ("colour", "red", "colour is not a known key; known are preset, settings, papers, presets, collections"),
        ("collections.paper", ["smoke", "mnits"], "collections.paper contains 'mnits', but may contain only digits, "),
        ("collections.smoke", ["digits"], "smoke is the name of a preset and of a collection; rename one"),
        ("presets.smoke.features", "hog", "presets.smoke.features is 'hog', but must be null: digits offers no choice"),
        ("presets.smoke.features", 5, "presets.smoke.features is 5, but must be hog or resnet18 for images"),
        ("presets.cifar10.features", "pixels", "presets.cifar10.features is 'pixels', but must be one of hog, "
         "resnet18, or null"),
        ("papers.langevin_unlearning.fig4", ..., "papers.langevin_unlearning.fig4 is missing"),
        ("papers.langevin_unlearning", ..., "papers.langevin_unlearning is missing"),
        ("settings", ..., "settings is missing"),
        ("presets.smoke", None, "presets.smoke is None, but must be a mapping of keys to values"),
        (f"{LANGEVIN}.fig3c", [0.1], f"{LANGEVIN}.fig3c is [0.1], but must be a mapping of keys to values"),
        ("presets", [], "presets is [], but must be a mapping of keys to values"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_sentence(content: dict[str, Any], key: str, value: Any, sentence: str) -> None:
    change(content, key, value)
    with pytest.raises(ParameterError, match=rf"^params\.yaml: .*{re.escape(sentence)}"):
        parameters.check(content)


def test_a_preset_extends_another_deeply(content: dict[str, Any]) -> None:
    change(content, "presets.smoke.shows", ["langevin_unlearning", "forget_unlearning"])
    change(content, "presets.shorter", {"extends": "smoke", "trials": 3})
    change(content, "presets.shorter.papers.langevin_unlearning.fig4.sigma", 0.5)
    change(content, "presets.shorter.papers.forget_unlearning.deletion.problem.n", 30)
    presets = parameters.check(content).presets
    shorter, smoke = presets["shorter"], presets["smoke"]
    assert shorter.settings == smoke.settings.model_copy(update={"trials": 3})
    fig4, deletion = shorter.papers["langevin_unlearning"]["fig4"], shorter.papers["forget_unlearning"]["deletion"]
    assert (fig4.sigma, fig4.records, fig4.epsilon) == (0.5, [1, 10], [1.0, 5.0])
    assert (deletion.problem.n, deletion.problem.lipschitz, deletion.interactions) == (30, 1.0, 2000)
    changed = {"papers.langevin_unlearning.fig4.sigma", "papers.forget_unlearning.deletion.problem.n", "trials"}
    both = leaves(parameters.as_written(shorter)), leaves(parameters.as_written(smoke))
    assert {key for key in both[0].keys() | both[1].keys() if both[0][key] != both[1][key]} == changed


def test_a_list_of_a_preset_takes_the_place_of_the_one_below(content: dict[str, Any]) -> None:
    change(content, f"{LANGEVIN}.fig3c.sigma", [0.7])
    change(content, "presets.smoke.accountants", ["shifted"])
    smoke = parameters.check(content).presets["smoke"]
    assert smoke.papers["langevin_unlearning"]["fig3c"].sigma == [0.7]
    assert smoke.settings.accountants == ["shifted"]


def test_null_of_a_preset_takes_the_place_of_a_value_below(content: dict[str, Any]) -> None:
    change(content, "presets.paper-cifar10.features", None)
    change(content, "settings.radius", 3.0)
    change(content, "presets.smoke.radius", None)
    presets = parameters.check(content).presets
    assert (presets["cifar10"].settings.features, presets["paper-cifar10"].settings.features) == ("hog", None)
    assert (presets["digits"].settings.radius, presets["smoke"].settings.radius) == (3.0, None)


def test_a_preset_may_say_nothing(content: dict[str, Any]) -> None:
    content["presets"]["plain"] = {}
    plain = parameters.as_written(parameters.check(content).presets["plain"])
    assert plain == {**content["settings"], "papers": content["papers"]}


def test_a_preset_written_out_is_the_same_preset() -> None:
    short, whole = (parameters.check(each).presets["digits"] for each in (CONTENT, WHOLE))
    assert (whole.settings, whole.threads, whole.shows) == (short.settings, short.threads, short.shows)
    assert whole.papers == short.papers


@pytest.mark.parametrize(
    ("extends", "sentence"),
    [
        ({"smoke": "digit"}, "presets.smoke.extends is 'digit', but must be one of digits, mnist, adult, "),
        ({"smoke": "laptop"}, "presets.smoke.extends is 'laptop', but must be one of digits, mnist, adult, "),
        ({"digits": "digits"}, "presets.digits.extends is circular: digits -> digits"),
        ({"digits": "smoke"}, "presets.smoke.extends is circular: digits -> smoke -> digits"),
        (
            {"digits": "cifar10", "mnist": "smoke"},
            "presets.smoke.extends is circular: digits -> cifar10 -> adult -> mnist -> smoke -> digits",
        ),
    ],
)
def test_a_base_that_is_not_there_or_leads_back_is_refused(
    content: dict[str, Any], extends: dict[str, str], sentence: str
) -> None:
    for name, base in extends.items():
        content["presets"][name]["extends"] = base
    with pytest.raises(ParameterError, match=rf"^params\.yaml: {re.escape(sentence)}"):
        parameters.check(content)


def test_a_circle_below_a_preset_is_refused(content: dict[str, Any]) -> None:
    content["presets"] = {
        "top": {"extends": "one"},
        "one": {"extends": "two"},
        "two": {"extends": "one"},
        **content["presets"],
    }
    with pytest.raises(ParameterError, match=r"presets\.two\.extends is circular: top -> one -> two -> one$"):
        parameters.check(content)


def shown(checked: parameters.Parameters, preset: str) -> list[tuple[str, str]]:
    return [(paper.name, experiment.name) for paper, experiment in checked.shown(preset)]


def test_a_preset_shows_everything_unless_it_says_what() -> None:
    checked = parameters.check(CONTENT)
    everything = [(paper.name, each.name) for paper in checked.known for each in paper.experiments]
    assert shown(checked, "digits") == shown(checked, "paper-mnist") == everything
    assert (
        {paper for paper, _ in everything}
        == {paper for paper, _ in shown(checked, "smoke")}
        == {
            "langevin_unlearning",
            "privacy_dynamics",
            "noisy_sgd",
            "forget_unlearning",
            "tv_stability",
            "private_learning",
            "gradient_certificates",
            "cheaper_than_retraining",
        }
    )


def test_what_a_preset_shows_is_inherited() -> None:
    checked = parameters.check(CONTENT)
    of_langevin = [pair for pair in shown(checked, "mnist") if pair[0] == "langevin_unlearning"]
    for name in ("adult", "cifar10", "paper-cifar10-cat-vs-ship"):
        assert shown(checked, name) == of_langevin
    assert [paper.name for paper in checked.papers_of("adult")] == ["langevin_unlearning"]
    assert [paper.name for paper in checked.papers_of("laptop")] == [paper.name for paper in checked.known]


def test_a_preset_may_show_papers_and_single_experiments(content: dict[str, Any]) -> None:
    change(content, "presets.smoke.shows", ["risk", "privacy_dynamics", "fig3c"])
    checked = parameters.check(content)
    assert shown(checked, "smoke") == [
        ("langevin_unlearning", "fig3c"),
        ("privacy_dynamics", "dynamics1"),
        ("privacy_dynamics", "dynamics2"),
        ("privacy_dynamics", "measured"),
        ("forget_unlearning", "risk"),
    ]


@pytest.mark.parametrize(
    ("shows", "sentence"),
    [
        (
            ["fig3d"],
            "presets.smoke.shows contains 'fig3d', but may contain only accountants, audit, batch_sizes, ",
        ),
        (["langevin"], "presets.smoke.shows contains 'langevin', but may contain only "),
        (["table2"], "presets.smoke.shows contains table2, which needs fig3a: add it"),
        (["table1", "fig3b", "fig3c", "fig5a"], "presets.smoke.shows contains table1, which needs fig4: add it"),
        (["fig3a", "accountants", "privacy_dynamics"], "shows contains accountants, which needs fig3b: add it"),
    ],
)
def test_what_cannot_be_shown_is_refused(content: dict[str, Any], shows: list[str], sentence: str) -> None:
    change(content, "presets.smoke.shows", shows)
    with pytest.raises(ParameterError, match=rf"^params\.yaml: .*{re.escape(sentence)}"):
        parameters.check(content)


def test_an_experiment_is_shown_with_those_that_it_uses(content: dict[str, Any]) -> None:
    change(content, "presets.smoke.shows", ["table2", "fig3a"])
    assert [name for _, name in shown(parameters.check(content), "smoke")] == ["fig3a", "table2"]
    change(content, "presets.smoke.shows", ["langevin_unlearning", "table2"])
    parameters.check(content)


@pytest.fixture
def with_another_paper(content: dict[str, Any]) -> dict[str, Any]:
    content["papers_of_others"] = [f"{OTHERS}:PAPER"]
    content["papers"]["paper_of_others"] = {"squares": {"base": 2.0}}
    return content


def test_a_paper_of_others_joins_with_its_section_and_its_data(with_another_paper: dict[str, Any]) -> None:
    change(with_another_paper, "presets.smoke.papers.paper_of_others.squares.base", 3.0)
    change(with_another_paper, "presets.smoke.dataset", "circles")
    checked = parameters.check(with_another_paper)
    assert [paper.name for paper in checked.known][-1] == "paper_of_others"
    assert {name: each.papers["paper_of_others"]["squares"].base for name, each in checked.presets.items()} == {
        **dict.fromkeys(checked.presets, 2.0),
        "smoke": 3.0,
    }
    assert shown(checked, "digits")[-1] == ("paper_of_others", "squares")
    assert "paper_of_others" not in parameters.schema()["$defs"]["Papers"]["properties"]
    assert "paper_of_others" in parameters.schema(checked.known)["$defs"]["Papers"]["properties"]


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("papers_of_others", f"{OTHERS}:PAPER", f"papers_of_others is '{OTHERS}:PAPER', but must be a list of "),
        ("papers_of_others", [7], "papers_of_others is [7], but must be a list of references to other people's papers"),
        ("papers_of_others", [], "papers.paper_of_others is not a known key; known are langevin_unlearning, "),
        ("papers_of_others", ["no_such_package.paper:PAPER"], "no_such_package.paper:PAPER names nothing: there is no "
         "module no_such_package.paper"),
        ("papers_of_others", ["tests.papers.no_such:PAPER"], "there is no module tests.papers.no_such"),
        ("papers_of_others", [":PAPER"], ":PAPER names nothing: write it as package.module:name"),
        ("papers_of_others", [".paper:PAPER"], ".paper:PAPER names nothing: write it as "),
        ("papers_of_others", [OTHERS], f"{OTHERS} names nothing: write it as package.module:name"),
        ("papers_of_others", [f"{OTHERS}:NONE"], f"{OTHERS}:NONE names nothing: the module {OTHERS} has no NONE"),
        ("papers_of_others", [f"{OTHERS}:SQUARES"], f"{OTHERS}:SQUARES must be a Paper, but is of type Experiment"),
        ("papers_of_others", [f"{OTHERS}:NAMESAKE"], "two papers are called langevin_unlearning; rename one"),
        ("papers_of_others", [f"{OTHERS}:SAME_EXPERIMENT"], "two experiments are called fig3a; rename one"),
        ("papers_of_others", [f"{OTHERS}:SAME_DATA_SET"], "two data sets are called digits; rename one"),
        ("papers_of_others", [f"{OTHERS}:MADE_ELSEWHERE"], "certified_unlearning.papers.langevin_unlearning.tables:"
         "elsewhere names nothing: the module declares only table1, table2, table3 of type Experiment"),
        ("papers.paper_of_others", ..., "params.yaml: papers.paper_of_others is missing"),
        ("papers.paper_of_others.squares.base", "two", "papers.paper_of_others.squares.base is 'two', but must be a "),
        ("presets.smoke.papers.paper_of_others.squares.base", "two", "params.yaml: presets.smoke.papers."
         "paper_of_others.squares.base is 'two', but must be a number"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_paper_of_others_is_said(
    with_another_paper: dict[str, Any], key: str, value: Any, sentence: str
) -> None:
    change(with_another_paper, key, value)
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        parameters.check(with_another_paper)


@pytest.mark.parametrize("name", ["../up", "", ".", ".*", "a/b", "smoke|mnist", "two words"])
@pytest.mark.parametrize("group", ["presets", "collections"])
def test_a_name_that_is_no_directory_below_results_is_refused(content: dict[str, Any], group: str, name: str) -> None:
    content[group][name] = content["presets"]["smoke"] if group == "presets" else ["smoke"]
    with pytest.raises(
        ParameterError, match=re.escape(f"{name!r} is the name of a preset or collection, but such a name must")
    ):
        parameters.check(content)


@pytest.mark.parametrize("data_set", DATA_SETS, ids=lambda each: each.name)
def test_the_choice_of_features_is_the_one_that_the_data_sets_offer(content: dict[str, Any], data_set: Any) -> None:
    images = ("cifar10-cat-vs-ship", "cifar10")
    assert data_set.features == (("hog", "resnet18") if data_set.name in images else ())
    change(content, "presets.smoke.dataset", data_set.name)
    for features in (None, "hog", "resnet18"):
        change(content, "presets.smoke.features", features)
        if features is None or features in data_set.features:
            assert parameters.check(content).presets["smoke"].settings.features == features
        else:
            with pytest.raises(ParameterError, match=f"{data_set.name} offers no choice$"):
                parameters.check(content)


LOANS = {"path": "data/tables/loans.csv", "label": "repaid", "split": {"test": 0.2}}


def test_a_preset_may_be_about_a_declared_table(content: dict[str, Any]) -> None:
    content["own_data"]["loans"] = LOANS | {"categories": {"job": ["nurse", None]}, "ranges": {"age": [18, 100]}}
    change(content, "presets.smoke.dataset", "loans")
    checked = parameters.check(content)
    assert checked.own_data["loans"].path == "data/tables/loans.csv"
    assert checked.presets["smoke"].settings.dataset == "loans"
    content["own_data"]["loans"] = checked.own_data["loans"].model_dump(mode="json")
    assert parameters.check(content).own_data == checked.own_data


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("presets.smoke.dataset", "lones", "presets.smoke.dataset is 'lones', but must be one of "
         f"{', '.join(each.name for each in DATA_SETS)}, or declared in own_data (loans)"),
        ("presets.smoke.features", "hog", "presets.smoke.features is 'hog', but must be null: loans offers no choice"),
        ("own_data.loans.split", None, "own_data.loans.split is missing, but presets.smoke needs test records: "),
        ("own_data.loans.split", ..., "own_data.loans.split is missing, but presets.smoke needs test records: "),
        ("own_data.loans.split", 0.2, "own_data.loans.split is 0.2, but must be {test: 0.2} (drawn), {column: "),
        ("own_data.loans.class_weight", {"yes": 2}, "own_data.loans.class_weight must be left out: the "),
        ("own_data.loans.split", {"test": 2}, "split.test is 2, but without a column it must be the fraction"),
        ("own_data.loans.label", ..., "own_data.loans.label is missing"),
        ("own_data.loans.lable", "repaid", "own_data.loans.lable is not a known key; did you mean label?"),
        ("own_data.loans.path", 5, "own_data.loans.path is 5, but must be a .csv, .csv.gz or .parquet file"),
        ("own_data.loans.classes", "yes", "own_data.loans.classes is 'yes', but must be the label's values, at least "
         "two"),
        ("own_data.loans.features", ["age", "repaid"], "own_data.loans.features contains 'repaid', which is the label"),
        ("own_data.loans.norm", "l2", "own_data.loans.norm is 'l2', but must be unit (each row is divided"),
        ("own_data.loans.categories", {"job": "nurse"}, "categories.job is 'nurse', but must be a list of "),
        ("own_data.loans.categories", {"job": []}, "own_data.loans.categories.job is [], but must be a list of"),
        ("own_data.loans.ranges", {"age": [1]}, "ranges.age is [1], but must be [lowest, highest]: two"),
        ("own_data.loans.ranges", {"age": [1, "x"]}, "ranges.age contains 'x', but must be [lowest, "),
        ("own_data.loans.ranges", {"age": [1, float("nan")]}, "ranges.age contains nan, but must be [lowest, "),
        ("own_data.digits", LOANS, "own_data.digits has the name of another data set; give it another name"),
        ("own_data.my loans", LOANS, "'my loans' is the name of a table, but such a name must consist of letters"),
        ("own_data", ..., "own_data is missing"),
    ],
)  # fmt: skip
def test_a_wrong_declaration_of_a_table_is_named(content: dict[str, Any], key: str, value: Any, sentence: str) -> None:
    content["own_data"]["loans"] = copy.deepcopy(LOANS)
    change(content, "presets.smoke.dataset", "loans")
    change(content, key, value)
    with pytest.raises(ParameterError, match=rf"^params\.yaml: .*{re.escape(sentence)}") as refused:
        parameters.check(content)
    assert "\n" not in str(refused.value)


def test_a_data_set_that_is_nowhere_is_named_where_there_are_no_tables(content: dict[str, Any]) -> None:
    change(content, "presets.smoke.dataset", "loans")
    with pytest.raises(ParameterError, match=r"is 'loans', .*, or declared in own_data \(where there are none\)$"):
        parameters.check(content)


def test_a_number_is_no_name(content: dict[str, Any]) -> None:
    content["collections"][2024] = ["smoke"]
    with pytest.raises(
        ParameterError, match="collections contains the name 2024, but names must be text: write '2024'"
    ):
        parameters.check(content)


def test_a_collection_runs_its_presets_and_a_preset_itself(content: dict[str, Any]) -> None:
    change(content, "preset", "laptop")
    checked = parameters.check(content)
    assert checked.members(checked.preset) == ("mnist", "adult", "cifar10-cat-vs-ship", "cifar10")
    assert checked.members("smoke") == ("smoke",)


def test_numbers_may_be_whole_where_any_number_may_be(content: dict[str, Any]) -> None:
    change(content, f"{LANGEVIN}.fig3b.epsilon", 2)
    change(content, "presets.smoke.trials", 5.0)
    checked = parameters.check(content).presets["smoke"]
    assert (checked.papers["langevin_unlearning"]["fig3b"].epsilon, checked.settings.trials) == (2.0, 5)


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (lambda path: None, "^cannot read .*: No such file or directory$"),
        (lambda path: path.write_text("preset: [smoke"), "is not valid YAML: "),
        (
            lambda path: path.write_text((ROOT / "params.yaml").read_text() + "\nown_data: {}\n"),
            r"is not valid YAML: the key 'own_data' occurs in lines \d+ and \d+$",
        ),
        (
            lambda path: path.write_text("preset: smoke\npresets:\n  smoke: {trials: 1, seed: 2, trials: 3}\n"),
            "is not valid YAML: the key 'trials' occurs in lines 3 and 3$",
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
    assert parse(Settings, preset.settings.model_dump_json(), source="--settings") == preset.settings
    for experiments in preset.papers.values():
        for sweep in experiments.values():
            assert parse(type(sweep), sweep.model_dump_json(), source="--sweep") == sweep


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
        parse(Figure3c, text, source="--sweep")


def test_parameters_cannot_be_changed_after_the_check() -> None:
    loaded = parameters.load(ROOT / "params.yaml")
    smoke = loaded.presets["smoke"]
    parts = (
        (smoke.settings, "trials"),
        (smoke.papers["langevin_unlearning"]["fig4"], "sigma"),
        (loaded.figures, "palette"),
    )
    for part, key in parts:
        with pytest.raises(ValueError, match="frozen"):
            setattr(part, key, 7)
    for whole, key in ((smoke, "threads"), (loaded, "preset")):
        with pytest.raises(AttributeError, match="cannot assign"):
            setattr(whole, key, 7)


def test_the_accountants_of_the_parameters_are_those_of_the_accounting() -> None:
    items = parameters.schema()["$defs"]["PresetSettings"]["properties"]["accountants"]["items"]
    assert items["enum"] == list(accounting.ACCOUNTANTS)
