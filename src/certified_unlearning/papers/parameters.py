"""The models of `params.yaml`: settings, a section for every experiment, and presets that change some of these values.

`workflow/schemas/params.schema.json`, for editors, is generated from these models.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, create_model

from certified_unlearning.accounting.core.scale import QUICK_CONDITION
from certified_unlearning.data.tables import declaration
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.engine.row_cut import MOST_BLOCKS
from certified_unlearning.errors import ParameterError
from certified_unlearning.files import read_yaml
from certified_unlearning.mechanisms.settings import Distinct, PositiveInt, Settings
from certified_unlearning.papers.all import data_sets, papers
from certified_unlearning.reproduction.experiment import Experiment, NoSweep, Sweep
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.paper import Paper
from certified_unlearning.reproduction.parsing import validate

FITTED = {
    "regularisation": f"{1 / QUICK_CONDITION:g} / n",
    "trials": "{trials}, fewer if there are many records",
}
"""Settings that are fitted to the data's size if nobody chose them (`Settings.fitted`), and what they become."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PresetSettings(Settings):
    """The settings of a preset, and the settings of its jobs."""

    threads: PositiveInt = Field(
        description="the number of CPU threads of one simulation job: a whole number, at least 1"
    )
    processes: Annotated[int, Field(ge=1, le=MOST_BLOCKS)] = Field(
        default=1,
        description="the number of processes that share the rows of one simulation job, a whole number from 1 to "
        f"{MOST_BLOCKS}; each has one thread or one GPU; a number above 1 turns on row_shards, with which results "
        "have the same bits for every number of processes",
    )


@dataclass(frozen=True, eq=False)
class Preset:
    """Everything that one reproduction needs.

    It is merged from the preset, the presets that it extends, and the common sections.

    Attributes:
        settings: The settings that all its experiments share.
        threads: The number of CPU threads of one simulation job.
        processes: The number of processes that share the rows of one simulation job.
        shows: The papers, or experiments, that the preset runs.
        papers: The sections of the papers: paper -> experiment -> its sweep.
        chosen: The keys whose values were chosen for the user's own data, as ``papers.paper.experiment.key``: keys that
            this preset sets, or that it inherits from a preset on the same data. None for other data, for which every
            value counts as chosen.
    """

    settings: Settings
    threads: int
    shows: tuple[str, ...]
    papers: Mapping[str, Mapping[str, Any]]
    chosen: frozenset[str] | None = None
    processes: int = 1

    def defaults(self, paper: str, experiment: str) -> tuple[str, ...]:
        """Return the keys of `FITTED` and of an experiment's sweep for which nobody chose a value for the data."""
        if self.chosen is None:
            return ()
        keys = {key: key for key in FITTED}
        keys |= {key: f"papers.{paper}.{experiment}.{key}" for key in type(self.papers[paper][experiment]).model_fields}
        return tuple(key for key, whole in keys.items() if whole not in self.chosen)


@dataclass(frozen=True, eq=False)
class Parameters:
    """The whole of `params.yaml`, checked and merged.

    Attributes:
        preset: The preset or collection that runs.
        presets: The presets by name.
        collections: Lists of presets that are run and reported together, by the name of the collection.
        own_data: The user's own tables; the keys are the names that ``dataset`` accepts.
        figures: The style of all figures.
        known: The papers, including those that users add.
    """

    preset: str
    presets: dict[str, Preset]
    collections: dict[str, list[str]]
    own_data: dict[str, Table]
    figures: FigureStyle
    known: tuple[Paper, ...]

    def members(self, name: str) -> tuple[str, ...]:
        """Return the presets that a collection runs; a preset's only member is itself."""
        return (name,) if name in self.presets else tuple(self.collections[name])

    def shown(self, preset: str) -> tuple[tuple[Paper, Experiment], ...]:
        """Return the experiments that a preset runs, with their papers, in the order of the report."""
        shows = self.presets[preset].shows
        return tuple(
            (paper, experiment)
            for paper in self.known
            for experiment in paper.experiments
            if _is_shown(shows, paper.name, experiment.name)
        )

    def papers_of(self, name: str) -> tuple[Paper, ...]:
        """Return the papers whose experiments a preset or a collection runs."""
        shown = {paper.name for member in self.members(name) for paper, _ in self.shown(member)}
        return tuple(paper for paper in self.known if paper.name in shown)


def schema(known: Sequence[Paper] | None = None) -> dict[str, Any]:
    """Return the JSON schema of `params.yaml`, before presets are merged."""
    return _schema(papers() if known is None else tuple(known))


def load(path: str | Path = "params.yaml") -> Parameters:
    """Read and check a parameter file.

    Raises:
        DataError: The file is missing, is not YAML, or contains a key twice.
        ParameterError: A key is unknown or missing, or a value is wrong; the message names the key.
    """
    return check(read_yaml(path), source=str(path))


def check(content: Any, *, source: str = "params.yaml") -> Parameters:
    """Check the content of a parameter file, and merge into every preset the presets that it extends.

    Raises:
        ParameterError: A key is unknown or missing, or a value is wrong; the message names the key.
    """
    modules = _modules(content, source)
    try:
        known = papers(modules)
    except ParameterError as error:
        if not modules:
            raise  # The error is in an installed package, not in a key.
        raise ParameterError(f"{source}: papers_of_others: {error}") from error
    validate(content, _schema(known), source)
    _check_names(content, source)
    presets = {name: _preset(content, name, known, source) for name in content["presets"]}
    parameters = Parameters(
        preset=content["preset"],
        presets=presets,
        collections=content["collections"],
        own_data={name: Table.model_validate(table) for name, table in content["own_data"].items()},
        figures=FigureStyle.model_validate(content["figures"]),
        known=known,
    )
    _check_own_data(parameters, source)
    for name, members in parameters.collections.items():
        for member in members:
            if member not in presets:
                raise ParameterError(
                    f"{source}: collections.{name} contains {member!r}, but may contain only {', '.join(presets)}"
                )
    active = [*presets, *parameters.collections]
    if parameters.preset not in active:
        raise ParameterError(f"{source}: preset is {parameters.preset!r}, but must be one of {', '.join(active)}")
    return parameters


def _is_shown(shows: Sequence[str], paper: str, experiment: str) -> bool:
    return paper in shows or experiment in shows


def as_written(preset: Preset) -> dict[str, Any]:
    """Return the merged parameters with which a preset runs, in the form of `params.yaml`.

    Some parameters are fitted to the data's size, which is unknown before data are read. For these, the result states
    how they are fitted.
    """
    settings = preset.settings.model_dump(mode="json")
    unchosen = () if preset.chosen is None else settings.keys() - preset.chosen
    settings |= {key: how.format_map(settings) for key, how in FITTED.items() if key in unchosen}
    sections = {
        paper: {
            name: _section_as_written(sweep, preset.defaults(paper, name))
            for name, sweep in experiments.items()
            if type(sweep) is not NoSweep and _is_shown(preset.shows, paper, name)
        }
        for paper, experiments in preset.papers.items()
    }
    sections = {paper: experiments for paper, experiments in sections.items() if experiments}
    return {**settings, "threads": preset.threads, "processes": preset.processes, "papers": sections}


def _section_as_written(sweep: Any, defaults: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = sweep.model_dump(mode="json")
    return values | {
        key: f"{values[key]}, at most half of the records" for key in sweep.counts_records if key in defaults
    }


def _modules(content: Any, source: str) -> list[str]:
    modules = content.get("papers_of_others", []) if isinstance(content, dict) else []
    if not isinstance(modules, list) or not all(isinstance(each, str) for each in modules):
        raise ParameterError(f"{source}: papers_of_others is {modules!r}, but must be {_OTHERS}")
    return modules


_OTHERS = "a list of references to other people's papers, such as my_package.my_paper:PAPER"


@cache
def _schema(known: tuple[Paper, ...]) -> dict[str, Any]:
    """Build the schema once.

    Presets may leave out values that the common sections give, so no value of a preset is required here. The merged
    preset is checked for missing values.
    """
    sections: dict[str, Any] = {
        paper.name: (
            create_model(
                f"{paper.name}: experiments",
                __base__=_Model,
                **cast(Any, {each.name: (each.sweep, ...) for each in paper.experiments if each.sweep is not NoSweep}),
            ),
            ...,
        )
        for paper in known
    }
    whole = create_model(
        "Params",
        __base__=_Model,
        preset=(str, Field(description="the name of one of `presets` or `collections`")),
        settings=(PresetSettings, ...),
        papers=(create_model("Papers", __base__=_Model, **sections), ...),
        presets=(dict[str, Any], ...),
        collections=(
            dict[str, Distinct[str]],
            Field(description="for each name of a collection, a list of names of presets"),
        ),
        own_data=(
            dict[str, Table],
            Field(description="your data sets: for each name in `dataset`, how a CSV or Parquet file becomes records"),
        ),
        figures=(FigureStyle, ...),
        papers_of_others=(list[str], Field(default=[], description=_OTHERS)),
    )
    made = whole.model_json_schema()
    made["$defs"]["Preset"] = _preset_schema(made)
    made["properties"]["presets"]["additionalProperties"] = {"$ref": "#/$defs/Preset"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _preset_schema(made: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a preset: settings, the preset that it extends, the papers that it shows, and changes."""
    partial = _optional(made["$defs"], "Papers")
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "extends": {"type": "string", "description": "the name of the preset from which this preset differs"},
            "shows": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "uniqueItems": True,
                "description": "a list of distinct names of papers or experiments, at least one",
            },
            **made["$defs"]["PresetSettings"]["properties"],
            "papers": partial,
        },
    }


def _optional(definitions: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a definition without required keys; the objects that it refers to have no required keys, either."""
    definition = {key: value for key, value in definitions[name].items() if key != "required"}
    properties = {}
    for key, value in definition.get("properties", {}).items():
        reference = value.get("$ref", "").rsplit("/", 1)[-1]
        properties[key] = _optional(definitions, reference) if reference else value
    return {**definition, "properties": properties}


def _preset(content: dict[str, Any], name: str, known: Sequence[Paper], source: str) -> Preset:
    """Return a checked preset, after merging it with the common sections and with the presets that it extends."""
    said = _extended(content, name, (), source)
    merged = _merged(_merged(content["settings"], {"papers": content["papers"]}), said)
    where = f"{source}: presets.{name}"
    own = merged.get("dataset") in content["own_data"]
    merged.pop("extends", None)
    settings = {key: value for key, value in merged.items() if key in PresetSettings.model_fields}
    parsed = _parse(PresetSettings, settings, where)
    default = [each.name for paper in known for each in paper.experiments if each.needs_data] if own else None
    shows = tuple(merged.get("shows", default or [paper.name for paper in known]))
    names = {paper.name for paper in known} | {each.name for paper in known for each in paper.experiments}
    for shown in shows:
        if shown not in names:
            raise ParameterError(f"{where}.shows contains {shown!r}, but may contain only {', '.join(sorted(names))}")
    _check_uses(known, shows, where)
    sections = {
        paper.name: {each.name: _sweep(each, merged, paper, where) for each in paper.experiments} for paper in known
    }
    own_settings = parsed.model_dump(include=set(Settings.model_fields))
    if parsed.processes > 1:
        own_settings["row_shards"] = True
    return Preset(
        settings=Settings.model_validate(own_settings),
        threads=parsed.threads,
        shows=shows,
        papers=sections,
        chosen=_chosen(content, name) if own else None,
        processes=parsed.processes,
    )


def _chosen(content: dict[str, Any], name: str) -> frozenset[str]:
    """Return the keys that are set by a preset or by the presets that it extends, directly or indirectly.

    The search through the extended presets stops before the first preset whose data set is not that of the given
    preset.
    """
    presets = content["presets"]
    dataset = _dataset(content, name)
    keys: set[str] = set()
    each: str | None = name
    while each is not None and _dataset(content, each) == dataset:
        keys |= _leaves(presets[each])
        each = presets[each].get("extends")
    return frozenset(keys)


def _dataset(content: dict[str, Any], name: str) -> Any:
    """Return the data set that a preset sets or inherits; all presets that the preset extends must exist."""
    preset = content["presets"][name]
    if "dataset" in preset:
        return preset["dataset"]
    return _dataset(content, preset["extends"]) if preset.get("extends") else content["settings"]["dataset"]


def _leaves(section: Mapping[str, Any], above: str = "") -> set[str]:
    """Return the keys of all values of a section; a nested key is preceded by the outer key and a dot."""
    keys = set()
    for key, value in section.items():
        keys |= _leaves(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}"}
    return keys


def _check_uses(known: Sequence[Paper], shows: Sequence[str], where: str) -> None:
    for paper in known:
        for each in paper.experiments:
            if paper.name in shows or each.name not in shows:
                continue
            for used in each.uses:
                if used not in shows:
                    raise ParameterError(f"{where}.shows contains {each.name}, which needs {used}: add it")


def _sweep(experiment: Experiment, merged: Mapping[str, Any], paper: Paper, where: str) -> Sweep:
    if experiment.sweep is NoSweep:
        return NoSweep()
    key = f"{where}.papers.{paper.name}.{experiment.name}"
    parsed: Sweep = _parse(experiment.sweep, merged["papers"][paper.name][experiment.name], key)
    wrong = parsed.check()
    if wrong is not None:
        raise ParameterError(f"{key}.{wrong}")
    return parsed


def _parse(model: type[Any], content: Any, where: str) -> Any:
    validate(content, _schema_of(cast(Hashable, model)), where, separator=".")
    return model.model_validate(content)


@cache
def _schema_of(model: Any) -> dict[str, Any]:
    return cast(dict[str, Any], model.model_json_schema())


def _extended(content: dict[str, Any], name: str, above: tuple[str, ...], source: str) -> dict[str, Any]:
    """Return a preset merged over all presets that it extends."""
    own = content["presets"][name]
    base = own.get("extends")
    if base is None:
        return cast(dict[str, Any], own)
    if base not in content["presets"]:
        known = ", ".join(each for each in content["presets"] if each != name)
        raise ParameterError(f"{source}: presets.{name}.extends is {base!r}, but must be one of {known}")
    if base in (*above, name):
        circle = " -> ".join((*above, name, base))
        raise ParameterError(f"{source}: presets.{name}.extends is circular: {circle}")
    return _merged(_extended(content, base, (*above, name), source), own)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``below`` with the values of ``above`` in place of its own; nested mappings are merged in the same way."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _check_names(content: dict[str, Any], source: str) -> None:
    """Check the freely chosen names, which are directories in results/ and arguments on command lines."""
    kinds = {"presets": "preset or collection", "collections": "preset or collection", "own_data": "table"}
    for group, kind in kinds.items():
        for name in content[group]:
            if not isinstance(name, str):
                raise ParameterError(
                    f"{source}: {group} contains the name {name!r}, but names must be text: write '{name}'"
                )
            if not _NAME.fullmatch(name):
                raise ParameterError(
                    f"{source}: {name!r} is the name of a {kind}, but such a name must consist of letters, digits, "
                    "dots, hyphens and underscores, and must begin with a letter or digit"
                )
    for name in content["collections"]:
        if name in content["presets"]:
            raise ParameterError(f"{source}: {name} is the name of a preset and of a collection; rename one")


def _check_own_data(parameters: Parameters, source: str) -> None:
    """Check the declarations of tables, and check that every preset's data set exists."""
    known = {each.name: each for each in data_sets(parameters.known)}
    for name, table in parameters.own_data.items():
        if name in known:
            raise ParameterError(f"{source}: own_data.{name} has the name of another data set; give it another name")
        declaration.check(table, f"{source}: own_data.{name}")
        if table.class_weight is not None:
            raise ParameterError(
                f"{source}: own_data.{name}.class_weight must be left out: the experiments weigh all classes alike, "
                "and only `unlearn init` takes weights"
            )
    for name, preset in parameters.presets.items():
        dataset, features = preset.settings.dataset, preset.settings.features
        if dataset not in (*known, *parameters.own_data):
            tables = f"declared in own_data ({', '.join(parameters.own_data) or 'where there are none'})"
            raise ParameterError(
                f"{source}: presets.{name}.dataset is {dataset!r}, but must be one of {', '.join(known)}, or {tables}"
            )
        if dataset in parameters.own_data and parameters.own_data[dataset].split is None:
            raise ParameterError(
                f"{source}: own_data.{dataset}.split is missing, but presets.{name} needs test records: "
                "{test: 0.2} draws a fifth"
            )
        choice = known[dataset].features if dataset in known else ()
        if features is not None and features not in choice:
            right = f"one of {', '.join(choice)}, or null" if choice else f"null: {dataset} offers no choice"
            raise ParameterError(f"{source}: presets.{name}.features is {features!r}, but must be {right}")
