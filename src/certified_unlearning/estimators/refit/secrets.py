"""The secret state in a file: the state of one model, or of one model for each class against the rest."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.mechanisms.certified_refit import Fitted
from certified_unlearning.mechanisms.newton.one_vs_rest import ClassModels
from certified_unlearning.mechanisms.newton.state import Curvature, Model, left_of
from certified_unlearning.mechanisms.refit_plan import RefitPlan
from certified_unlearning.mechanisms.refits import requests as refits


def parts(model: Any, plan: RefitPlan) -> Sequence[Any]:
    """Return the models of the classes against the rest, or, if there is only one model, a list with this model."""
    return model.of_class if plan.one_vs_rest else [model]


def stored(model: Any, plan: RefitPlan) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
    """Return the header and the arrays that a file stores for a model."""
    if not plan.one_vs_rest:
        return _stored(model, plan)
    headers, arrays = zip(*(_stored(each, plan) for each in model.of_class), strict=True)
    named = {_of_class(name, number): array for number, own in enumerate(arrays) for name, array in own.items()}
    return {"of_class": list(headers)}, named


def restored(plan: RefitPlan, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return the model that a file stores.

    Raises:
        KeyError: The file does not contain the secret state.
    """
    if not plan.one_vs_rest:
        return _restored(plan, header, arrays)
    names = ("secret", "at", "matrix", "factor") if plan.removes_by_newton else ("secret",)
    return ClassModels(
        [
            _restored(plan, own, {name: arrays[_of_class(name, number)] for name in names})
            for number, own in enumerate(header["of_class"])
        ]
    )


def _of_class(name: str, number: int) -> str:
    return f"{name}_of_class_{number}"


def _stored(model: Any, plan: RefitPlan) -> tuple[dict[str, Any], dict[str, NDArray[Any] | None]]:
    header: dict[str, Any] = {"residual": model.residual}
    arrays: dict[str, NDArray[Any] | None] = {"secret": model.weights}
    if plan.removes_by_newton:
        curvature = model.curvature
        header["curvature"] = [curvature.error, curvature.not_downdated, curvature.usable]
        if plan.by_passes:
            header["left"] = vars(model.left)
        arrays |= {"at": curvature.at, "matrix": curvature.matrix, "factor": curvature.factor}
    else:
        arrays |= refits.packed(model)
    return header, arrays


def _restored(plan: RefitPlan, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Model | Fitted:
    if not plan.removes_by_newton:
        return refits.unpacked(header, arrays, arrays["secret"])
    left = left_of(header, strong_convexity=plan.strong_convexity)
    matrix, factor = np.asfortranarray(arrays["matrix"]), np.asfortranarray(arrays["factor"])
    return Model(arrays["secret"], left, Curvature(arrays["at"], matrix, factor, *header["curvature"]))
