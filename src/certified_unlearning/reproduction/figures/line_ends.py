"""Labels at the ends of lines."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.text import Annotation
from scipy.optimize import isotonic_regression

_END = "end of a line"
"""Marker of the texts that `label` writes."""


def label(axes: Axes, point: tuple[float, float], text: str, color: Any, *, leader: bool = False) -> None:
    """Write a text to the right of a line's last point; `move_apart` separates the texts of one panel.

    Args:
        axes: Panel of the line.
        point: Last point of the line.
        text: Text to write.
        color: Colour of the line.
        leader: Whether a thin line connects the point and the text, which is then outside the panel.
    """
    thin = (
        {"arrowstyle": "-", "linewidth": 0.5, "color": color, "relpos": (0, 0.5), "shrinkA": 1, "shrinkB": 3}
        if leader
        else None
    )
    across = "axes fraction" if leader else "offset points"
    axes.annotate(
        text, point, xytext=(1.05 if leader else 4, 0), textcoords=(across, "offset points"), ha="left", va="center",
        fontsize="x-small", color=color, arrowprops=thin, annotation_clip=False, gid=_END,
    )  # fmt: skip


def move_apart(axes: Axes) -> None:
    """Separate the texts at the ends of a panel's lines by moving them as little as possible (least squares).

    Call this function after the layout of the page is final.
    """
    texts = [text for text in axes.texts if isinstance(text, Annotation) and text.get_gid() == _END]
    if not texts:
        return
    heights = np.array([axes.transData.transform(text.xy)[1] for text in texts])
    points_per_pixel = 72 / axes.get_figure(root=True).dpi  # type: ignore[union-attr]
    gap = 1.15 * float(texts[0].get_fontsize()) / points_per_pixel
    order, apart = np.argsort(heights, kind="stable"), gap * np.arange(len(texts))
    moved = isotonic_regression(heights[order] - apart).x + apart
    for place, height in zip(order, moved, strict=True):
        right, _ = texts[place].xyann
        texts[place].xyann = (right, (height - heights[place]) * points_per_pixel)
