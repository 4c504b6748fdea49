"""Parts of the experiments on private learning, as figures call them: what is on their axes, and what theory says."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Part:
    """A panel.

    Attributes:
        title: Of it.
        x: The column that is swept.
        across: What the x axis is called.
        up: What the y axis is called.
        slopes: Of lines whose slope theory states, by method: what it is by.
    """

    title: str
    x: str
    across: str
    up: str
    slopes: Mapping[str, float] = field(default_factory=dict)


_RISK = "Excess risk"
_RECORDS = ("n", "Records n")
PARTS = {
    "X1": Part("X1: output perturbation", *_RECORDS, _RISK, {"printed strength": -2 / 3, "least cost": -2 / 3}),
    "X2": Part("X2: noisy descent", *_RECORDS, _RISK, {"noisy descent": -1.0}),
    "X3": Part("X3: columns of zeros", "features", "Columns d", _RISK),
    "X4": Part("X4: absolute loss", *_RECORDS, _RISK, {"printed strength": -0.5, "least cost": -0.5}),
}
"""By the names that rows have."""
RISK_PARTS = ("X1", "X2", "X3", "X4")
"""Those of the experiment `private_risk`."""
