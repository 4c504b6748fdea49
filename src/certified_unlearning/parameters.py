"""What `params.yaml` may contain. `workflow/schemas/params.schema.json` is generated from these models."""

import difflib
import json
import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import jsonschema
from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.data import declaration
from certified_unlearning.data.declaration import Table
from certified_unlearning.deletion.parameters import Deletion
from certified_unlearning.errors import ParameterError
from certified_unlearning.files import read_yaml

Dataset = Literal["digits", "mnist-3-vs-8", "adult", "cifar10-cat-vs-ship", "cifar10"]
CLASSES: dict[Dataset, int] = {name: 10 if name == "cifar10" else 2 for name in get_args(Dataset)}
"""The number of classes of each built-in data set."""
Features = Literal["hog", "resnet18"]
IMAGES: tuple[Dataset, ...] = ("cifar10-cat-vs-ship", "cifar10")
"""The data sets whose features can be chosen."""
Adjacency = Literal["replace", "zero-out"]
# As in `accounting`, which is not imported: a change of the accounting must not redraw figures.
AccountantName = Literal["lsi", "lsi-tight", "shifted"]
Smoothness = Literal["bound", "spectral", "spectral-with-margin"]
DType = Literal["float32", "float64"]

PositiveFloat = Annotated[float, Field(gt=0)]
PositiveInt = Annotated[int, Field(ge=1)]
Value = TypeVar("Value")
Distinct = Annotated[list[Value], Field(min_length=1, json_schema_extra={"uniqueItems": True})]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Sweep(_Model):
    accountants: Distinct[AccountantName] = Field(
        description="a list of distinct accountants of Langevin unlearning: lsi (the paper), lsi-tight, shifted"
    )


class Figure3a(_Sweep):
    """Accuracy against epsilon, one record removed."""

    epsilon: Distinct[PositiveFloat] = Field(description="a list of distinct numbers above 0")
    unlearning_steps: PositiveInt = Field(description="Langevin's K, a whole number, at least 1")
    descent_steps: Distinct[PositiveInt] = Field(
        description="Descent-to-Delete's I, a list of distinct whole numbers, each at least 1"
    )


class Figure3b(_Sweep):
    """Accumulated unlearning steps against records removed, one request after another."""

    epsilon: PositiveFloat = Field(description="a number above 0")
    sigma: PositiveFloat = Field(description="Langevin's noise scale, a number above 0")
    records: PositiveInt = Field(description="a whole number of removed records, at least 1")
    records_per_request: Distinct[PositiveInt] = Field(
        description="a list of distinct whole numbers, each a divisor of `records`"
    )


class Figure3c(_Sweep):
    """Unlearning steps, initial epsilon and accuracy against sigma."""

    epsilon: PositiveFloat = Field(description="a number above 0")
    sigma: Distinct[PositiveFloat] = Field(description="a list of distinct numbers above 0")
    records: PositiveInt = Field(description="a whole number of removed records, at least 1")


class Figure4(_Sweep):
    """Unlearning steps against epsilon for groups of records removed at once."""

    epsilon: Distinct[PositiveFloat] = Field(description="a list of distinct numbers above 0")
    sigma: PositiveFloat = Field(description="Langevin's noise scale, a number above 0")
    records: Distinct[PositiveInt] = Field(description="a list of distinct whole numbers, each at least 1")


class Figure5a(Figure4):
    """Accuracy against the number of records removed at once."""


Sweep = Figure3a | Figure3b | Figure3c | Figure4 | Figure5a


class Experiments(_Model):
    """The experiments of a preset, named after the paper's figures."""

    fig3a: Figure3a
    fig3b: Figure3b
    fig3c: Figure3c
    fig4: Figure4
    fig5a: Figure5a


class Recuperation(_Sweep):
    """Certified epsilon against unlearning steps: accounting only, nothing is simulated."""

    sigma: PositiveFloat = Field(description="Langevin's noise scale, a number above 0")
    records: PositiveInt = Field(description="a whole number of removed records, at least 1")
    steps: PositiveInt = Field(description="the most unlearning steps, a whole number, at least 1")


class Bounds(_Model):
    """What a preset shows of accounting alone."""

    recuperation: Recuperation


class Dynamics(_Model):
    """Differential Privacy Dynamics, Figs. 1 and 2: Rényi divergence against steps of noisy gradient descent."""

    alpha: Distinct[Annotated[float, Field(gt=1)]] = Field(description="a list of distinct Rényi orders above 1")
    strong_convexity: Distinct[PositiveFloat] = Field(
        description="a list of distinct numbers above 0; the first is drawn for every alpha, all for the least alpha"
    )
    smoothness: PositiveFloat = Field(description="a number above 0")
    gradient_sensitivity: PositiveFloat = Field(description="of the sum of gradients, a number above 0")
    n: PositiveInt = Field(description="a whole number of records, at least 1")
    step_size: PositiveFloat = Field(description="a number above 0 and below 1 / smoothness")
    sigma: PositiveFloat = Field(description="the noise scale, a number above 0")
    steps: PositiveInt = Field(description="the most steps, a whole number, at least 1")


class Common(_Model):
    """What all experiments of a preset share."""

    dataset: str = Field(description=f"one of {', '.join(get_args(Dataset))}, or of the names in `tables`")
    features: Features | None = Field(
        description="of images: hog or resnet18; null: the usual ones (hog), or the only ones"
    )
    trials: PositiveInt = Field(description="a whole number of independent trials, at least 1")
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(description="a whole number from 0 to 2^32 - 1")
    regularisation: PositiveFloat = Field(
        description="lambda / n, where (lambda / 2) ||w||^2 is the regulariser: a number above 0 (the paper: 1.0e-6)"
    )
    delta: Literal["1/n"] | Annotated[float, Field(gt=0, lt=1)] = Field(
        description='"1/n" or a number strictly between 0 and 1'
    )
    adjacency: Adjacency = Field(description="replace (the papers) or zero-out")
    smoothness: Smoothness = Field(
        description="bound (1/4 + lambda, always valid; 1 + lambda for more than two classes), spectral (from the "
        "data: no guarantee) or spectral-with-margin (from the data, valid for the records that a plan removes)"
    )
    step_size: Literal["1/L"] | PositiveFloat = Field(description='"1/L" or a number above 0 and at most 1/L')
    radius: PositiveFloat | None = Field(
        description="null (no projection) or the radius of the ball that every step projects on, a number above 0"
    )
    start: float = Field(description="the mean of every coordinate of the starting point (the paper: 1000)")
    learning_steps: Literal["learned"] | PositiveInt = Field(
        description='"learned" (the least T after which stopping adds little to delta) or a whole number, at least 1'
    )
    minimum_steps: Annotated[int, Field(ge=0)] = Field(
        description="the least K that a plan may have, a whole number: 1 as in the paper, or 0 (nothing to do where "
        "learning alone meets the target)"
    )
    dtype: DType = Field(description="float32 (float64 is taken where rounding would dominate epsilon) or float64")
    device: Literal["auto", "cpu", "cuda"] = Field(description="auto, cpu or cuda")


class Preset(Common):
    """Everything one reproduction needs."""

    threads: PositiveInt = Field(description="CPU threads of one simulation job, at least 1")
    interactions: PositiveInt = Field(
        description="interactions of each attack on deletion under either hypothesis, a whole number, at least 1"
    )
    experiments: Experiments
    bounds: Bounds


class FigureStyle(_Model):
    """How every figure looks."""

    context: Literal["paper", "notebook", "talk", "poster"] = Field(description="a seaborn context")
    palette: str = Field(description="a seaborn palette, colour-blind safe please")
    width_inches: PositiveFloat = Field(
        description="width of one column of the page, a number above 0; figures of several panels span two"
    )
    height_inches: PositiveFloat = Field(description="height without the legend, a number above 0")
    dots_per_inch: PositiveInt = Field(description="resolution of the PNG, a whole number")


class Parameters(_Model):
    """The whole of `params.yaml`."""

    preset: str = Field(description="the name of one of `presets` or `collections`")
    presets: dict[str, Preset]
    collections: dict[str, Distinct[str]] = Field(
        description="names of presets that are run and reported together, by the collection's name"
    )
    tables: dict[str, Table] = Field(
        description="data of your own, by a name for `dataset`: how a CSV or Parquet file becomes labelled records"
    )
    dynamics: Dynamics
    deletion: Deletion
    figures: FigureStyle

    def members(self, name: str) -> tuple[str, ...]:
        """Return the presets that a collection runs; a preset's only member is itself."""
        return (name,) if name in self.presets else tuple(self.collections[name])


def schema() -> dict[str, Any]:
    """Return the JSON schema of `params.yaml`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Parameters.model_json_schema()}


def load(path: str | Path = "params.yaml") -> Parameters:
    """Read and check a parameter file.

    Raises:
        DataError: The file is missing, is no YAML, or has a key twice.
        ParameterError: A key is unknown or missing, or a value is wrong; the message names the key.
    """
    return check(read_yaml(path), source=str(path))


def check(content: Any, *, source: str = "params.yaml") -> Parameters:
    """Check the content of a parameter file against the JSON schema.

    Raises:
        ParameterError: A key is unknown or missing, or a value is wrong; the message names the key.
    """
    _validate(content, schema(), source)
    for group in ("presets", "collections", "tables"):
        for name in content[group]:
            if not isinstance(name, str):
                raise ParameterError(f"{source}: {group} has the name {name!r}, which must be text: write '{name}'")
    parameters = Parameters.model_validate(content)
    known = [*parameters.presets, *parameters.collections]
    # They name directories below results/, and stand on command lines.
    for kind, names in (("preset or collection", known), ("table", parameters.tables)):
        for name in names:
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
                raise ParameterError(
                    f"{source}: {name!r} is the name of a {kind}, but must consist of letters, digits, dots, hyphens "
                    "and underscores, a letter or digit first"
                )
    _check_tables(parameters, source)
    for name, members in parameters.collections.items():
        if name in parameters.presets:
            raise ParameterError(f"{source}: {name} is the name of a preset and of a collection; rename one")
        for member in members:
            if member not in parameters.presets:
                raise ParameterError(
                    f"{source}: collections.{name} contains {member!r}, but must list some of "
                    f"{', '.join(parameters.presets)}"
                )
    if parameters.preset not in known:
        raise ParameterError(f"{source}: preset is {parameters.preset!r}, but must be one of {', '.join(known)}")
    for name, preset in parameters.presets.items():
        if preset.features is not None and preset.dataset not in IMAGES:
            raise ParameterError(
                f"{source}: presets.{name}.features is {preset.features}, but must be null: "
                f"{preset.dataset} offers no choice"
            )
        stream = preset.experiments.fig3b
        for size in stream.records_per_request:
            if stream.records % size:
                raise ParameterError(
                    f"{source}: presets.{name}.experiments.fig3b.records_per_request contains {size}, "
                    f"which does not divide records = {stream.records}"
                )
    return parameters


def _check_tables(parameters: Parameters, source: str) -> None:
    """Check the declarations of tables, and that every preset's data set is a built-in one or one of them."""
    built_in = get_args(Dataset)
    for name, table in parameters.tables.items():
        if name in built_in:
            raise ParameterError(f"{source}: tables.{name} has the name of a built-in data set; give it another")
        declaration.check(table, f"{source}: tables.{name}")
    for name, preset in parameters.presets.items():
        if preset.dataset not in (*built_in, *parameters.tables):
            tables = f"declared in tables ({', '.join(parameters.tables) or 'where there are none'})"
            raise ParameterError(
                f"{source}: presets.{name}.dataset is {preset.dataset!r}, but must be one of {', '.join(built_in)}, "
                f"or {tables}"
            )
        if preset.dataset in parameters.tables and parameters.tables[preset.dataset].split is None:
            raise ParameterError(
                f"{source}: tables.{preset.dataset}.split is missing, but presets.{name} needs test records: "
                "{test: 0.2} draws a fifth"
            )


ModelType = TypeVar("ModelType", bound=BaseModel)


def parse(model: type[ModelType], text: str, *, source: str) -> ModelType:
    """Read one part of the parameters from JSON.

    Raises:
        ParameterError: The text is no JSON or does not fit; the message names ``source`` and the key.
    """
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ParameterError(f"{source} is not valid JSON: {error}") from error
    _validate(content, model.model_json_schema(), source)
    return model.model_validate(content)


def _is_finite_number(checker: jsonschema.TypeChecker, value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return bool(jsonschema.Draft202012Validator.TYPE_CHECKER.is_type(value, "number"))


# YAML and Python's JSON know NaN, which is neither above 0 nor at most 0 and so would pass every bound.
_Validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("number", _is_finite_number),
)


def _validate(content: Any, json_schema: dict[str, Any], source: str) -> None:
    errors = list(_Validator(json_schema).iter_errors(content))
    if errors:
        deepest = max(errors, key=lambda error: len(error.absolute_path))
        raise ParameterError(f"{source}: {_sentence(deepest, json_schema)}")


def _sentence(error: jsonschema.ValidationError, json_schema: dict[str, Any]) -> str:
    key = ".".join(str(part) for part in error.absolute_path)
    subschema = error.schema if isinstance(error.schema, dict) else {}
    prefix = f"{key}." if key else ""
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = list(subschema.get("properties", {}))
        unknown = next(name for name in error.instance if name not in known)
        close = difflib.get_close_matches(str(unknown), known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
        return f"{prefix}{unknown} is not a known key; {hint}"
    if error.validator == "required" and isinstance(error.instance, dict):
        missing = next(name for name in subschema["required"] if name not in error.instance)
        return f"{prefix}{missing} is missing"
    if error.validator == "type" and error.validator_value == "object":
        return f"{key or 'the content'} is {error.instance!r}, but must be a mapping of keys to values"
    description = subschema.get("description") or _described(error, json_schema) or error.message
    if error.absolute_path and isinstance(error.absolute_path[-1], int):
        return f"{key.rpartition('.')[0]} contains {error.instance!r}, but must be {description}"
    return f"{key} is {error.instance!r}, but must be {description}"


def _described(error: jsonschema.ValidationError, json_schema: dict[str, Any]) -> str | None:
    """Return the description nearest above the failing part of the schema (list items have none)."""
    node: Any = json_schema
    description = None
    definitions = json_schema.get("$defs", {})
    for part in error.absolute_path:
        while isinstance(node, dict) and "$ref" in node:
            node = definitions[node["$ref"].rsplit("/", 1)[1]]
        if isinstance(part, int):
            node = node.get("items", {})
        else:
            node = node.get("properties", {}).get(part) or node.get("additionalProperties", {})
        description = node.get("description", description)
    return description
