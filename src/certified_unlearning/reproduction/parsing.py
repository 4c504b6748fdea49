"""Checks of parts of the parameters: a mistake becomes one sentence that names the key."""

import difflib
import json
import math
from typing import Any, TypeVar

import jsonschema
from pydantic import BaseModel

from certified_unlearning.errors import ParameterError

ModelType = TypeVar("ModelType", bound=BaseModel)


def parse(model: type[ModelType], text: str, *, source: str) -> ModelType:
    """Read one part of the parameters from JSON.

    Raises:
        ParameterError: The text is not JSON, or does not fit the model; the message names ``source`` and the key.
    """
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ParameterError(f"{source} is not valid JSON: {error}") from error
    validate(content, model.model_json_schema(), source)
    return model.model_validate(content)


def _is_finite_number(checker: jsonschema.TypeChecker, value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return bool(jsonschema.Draft202012Validator.TYPE_CHECKER.is_type(value, "number"))


# YAML and Python's JSON accept NaN, which would pass every bound, because it is neither above 0 nor at most 0.
_Validator = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine("number", _is_finite_number),
)


def validate(content: Any, json_schema: dict[str, Any], source: str, *, separator: str = ": ") -> None:
    """Check content against a JSON schema.

    Raises:
        ParameterError: The content does not fit the schema. The message joins ``source`` and the key with the
            separator.
    """
    errors = list(_Validator(json_schema).iter_errors(content))
    if errors:
        deepest = max(errors, key=lambda error: len(error.absolute_path))
        raise ParameterError(f"{source}{separator}{_sentence(deepest, json_schema)}")


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
    """Return the nearest description above the failing part of the schema (list items have none)."""
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
