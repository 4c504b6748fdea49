"""A small picture of how the results of a run's trials are distributed."""

import io
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator


class Histogram:
    """Draws histograms on one figure that is created only once, because creation takes longer than drawing."""

    def __init__(self) -> None:
        self._figure = Figure(figsize=(4, 3))
        self._axes = self._figure.add_axes((0.15, 0.16, 0.81, 0.74))  # Automatic layout would draw twice.

    def png(self, accuracies: Sequence[float], title: str) -> bytes:
        """Return the histogram of test accuracies as PNG."""
        margin = 0.001  # All trials may have the same accuracy.
        self._axes.clear()
        self._axes.hist(accuracies, bins=20, range=(min(accuracies) - margin, max(accuracies) + margin))
        self._axes.set(title=title, xlabel="test accuracy", ylabel="trials")
        self._axes.title.set_fontsize("small")
        self._axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        buffer = io.BytesIO()
        self._figure.savefig(buffer, format="png")
        return buffer.getvalue()
