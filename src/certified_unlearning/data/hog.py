"""Features ``hog``: histograms of oriented gradients and colour moments. They need no download and no training."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.features import Extractor, import_extra

CELL = 8
"""Height and width in pixels of the cells, for both kinds of features."""

HISTOGRAMS = {
    "orientations": 9,
    "pixels_per_cell": (CELL, CELL),
    "cells_per_block": (2, 2),
    "block_norm": "L2-Hys",
}
"""The settings of Dalal and Triggs (CVPR 2005), as scikit-image names them."""


def load(raw_root: Path) -> Extractor:
    """Return the feature function: 420 features for images of 32 x 32 pixels.

    Args:
        raw_root: Not used, because there are no weights.

    Raises:
        ParameterError: scikit-image is not installed.
    """
    skimage = import_extra("skimage", "images", "features 'hog' need scikit-image")
    hog = import_extra("skimage.feature", "images", "features 'hog' need scikit-image").hog

    def apply(images: NDArray[np.uint8]) -> NDArray[np.float64]:
        histograms = np.stack([hog(image, channel_axis=-1, **HISTOGRAMS) for image in images])
        return np.hstack([histograms, colour_moments(images)])

    return Extractor(
        name="hog",
        title="HOG and colour moments",
        privacy="a fixed function of one image: nothing is learned from any data, so the features cost no privacy",
        identity={
            "histograms": HISTOGRAMS,
            "moments": "mean and standard deviation by cell and channel",
            "scikit-image": skimage.__version__,
        },
        apply=apply,
    )


def colour_moments(images: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return mean and standard deviation of each channel of ``pixels / 255 - 0.5`` in each cell.

    Args:
        images: Shape ``(count, height, width, 3)``; both sizes are multiples of `CELL`.

    Returns:
        Shape ``(count, 6 cells)``: all means, then all standard deviations, each ordered by row, column and channel.
    """
    count, height, width, channels = images.shape
    cells = (images / 255 - 0.5).reshape(count, height // CELL, CELL, width // CELL, CELL, channels)
    return np.hstack([cells.mean(axis=(2, 4)).reshape(count, -1), cells.std(axis=(2, 4)).reshape(count, -1)])
