"""Class weights: public constants, as in scikit-learn's parameter of that name."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

from numpy.typing import NDArray
from sklearn.utils import compute_class_weight

from certified_unlearning.accounting.core.losses import ClassWeights
from certified_unlearning.errors import ParameterError

LARGEST_WEIGHT = 1e100
"""Largest class weight. Its inverse is the smallest weight above 0. Weights outside these limits count as mistakes, and
may overflow.
"""


def class_weights(class_weight: Any, classes: NDArray[Any]) -> ClassWeights:
    """Return the weights of the given classes.

    Args:
        class_weight: Dictionary from classes to numbers, in which unnamed classes have weight 1; or None.
        classes: Classes, sorted.

    Raises:
        ParameterError: ``class_weight`` is neither None nor a dictionary (``"balanced"`` is not allowed), or a weight
            is invalid.
    """
    if class_weight is None:
        return ClassWeights()
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise ParameterError(
            'class_weight="balanced" is computed from the labels, so it depends on records that are removed later, and '
            "no guarantee would cover it; give a dict {label: weight} of constants chosen without these records"
        )
    if not isinstance(class_weight, Mapping):
        raise ParameterError(f"class_weight must be None or a dict {{label: weight}}, got {class_weight!r}")
    for label, weight in class_weight.items():
        number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not number or not 0 <= weight <= LARGEST_WEIGHT or 0 < weight < 1 / LARGEST_WEIGHT:
            raise ParameterError(
                f"weights in class_weight must be 0, or from {1 / LARGEST_WEIGHT:g} to {LARGEST_WEIGHT:g}, got "
                f"{_short(weight)} for {label!r}"
            )
    try:
        weights = compute_class_weight(dict(class_weight), classes=classes, y=classes)
    except ValueError as error:
        unknown = [label for label in class_weight if label not in classes.tolist()]
        raise ParameterError(f"class_weight names {unknown}, but the classes of y are {classes.tolist()}") from error
    if weights.max() == 0:
        raise ParameterError(
            "class_weight must be above 0 for at least one class, got 0 for all: nothing would be learned"
        )
    return ClassWeights.divided(weights.tolist())


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
