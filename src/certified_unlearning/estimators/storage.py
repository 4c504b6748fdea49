"""Estimators as files: safetensors with JSON in the header, written atomically, read without running any code."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import safetensors
from pydantic import ValidationError
from safetensors.numpy import save as serialised

from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.files import atomic_path
from certified_unlearning.learner import Removal

if TYPE_CHECKING:
    from certified_unlearning.estimators.base import UnlearningClassifier

Estimator = TypeVar("Estimator", bound="UnlearningClassifier")


def save(estimator: "UnlearningClassifier", path: str | Path, *, training_data: bool) -> None:
    """Write a fitted estimator; see `UnlearningClassifier.save`."""
    parameters = estimator.get_params(deep=False)
    if not training_data:
        parameters["random_state"] = None
    if not isinstance(parameters["random_state"], int | np.integer | None):
        raise ParameterError("an estimator whose random_state is a generator cannot be saved; give a number or None")
    header = {
        "class": type(estimator).__name__,
        "parameters": parameters,
        "classes": [estimator.classes_.dtype.str, estimator.classes_.tolist()],
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": getattr(estimator, "feature_names_in_", np.array([])).tolist(),
        "learner": estimator._learner.model_dump(mode="json"),
        "removals": estimator.removals_,
        "data_digest": estimator._data_digest,
        "noise_source": estimator._noise_source,
    }
    names = estimator._NEEDED_TO_UNLEARN if training_data else ()
    arrays = {name: getattr(estimator, name) for name in ("_weights", *names)}
    content = serialised(
        {name: np.ascontiguousarray(array) for name, array in arrays.items() if array is not None},
        {"estimator": json.dumps(header, default=_plain_number)},
    )
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def load(kind: type[Estimator], path: str | Path) -> Estimator:
    """Read a fitted estimator; see `UnlearningClassifier.load`."""
    try:
        with safetensors.safe_open(str(path), framework="numpy") as file:
            header = json.loads((file.metadata() or {})["estimator"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if header["class"] != kind.__name__:
            raise DataError(f"{path} holds a {header['class']}, not a {kind.__name__}")
        estimator = kind(**header["parameters"])
        dtype, classes = header["classes"]
        estimator.classes_ = np.array(classes, dtype=dtype)
        estimator.n_features_in_ = header["n_features_in"]
        if header["feature_names_in"]:
            estimator.feature_names_in_ = np.array(header["feature_names_in"], dtype=object)
        estimator._learner = kind._LEARNER.model_validate(header["learner"])
        estimator.removals_ = [Removal(*removal) for removal in header["removals"]]
        estimator._known_digest = header["data_digest"]
        estimator._noise_source = header["noise_source"]
        estimator._weights = arrays["_weights"]
        for name in kind._NEEDED_TO_UNLEARN:
            setattr(estimator, name, arrays.get(name))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except safetensors.SafetensorError as error:
        raise DataError(f"{path} is damaged or no safetensors file: {error}") from error
    except (KeyError, TypeError, ValidationError, json.JSONDecodeError) as error:
        raise DataError(f"{path} holds no estimator of this package: {error}") from error
    return estimator


def _plain_number(value: Any) -> Any:
    """Return a NumPy number, as parameter searches set them, as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} cannot be written as JSON")
