"""Removal requests: the removed records and their replacements, drawn once, from the seed alone.

A stream of requests removes the first 1, 2, 3, ... of these records. Because they are never drawn again, the data sets
before and after a request differ only in the request's records.
"""

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.data.prepared import PreparedData, unit_rows
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import PipelineAdjacency


@dataclass(frozen=True, eq=False)
class Removals:
    """Records to remove, in the order of their removal.

    Attributes:
        indices: Rows of the training part, all different, shape ``(S,)``.
        features: Features of the records that replace the removed ones, float32, shape ``(S, d)``.
        labels: Labels of the records that replace the removed ones, int8, shape ``(S,)``.
        adjacency: How data sets before and after a removal are related.
    """

    indices: NDArray[np.int64]
    features: NDArray[np.float32]
    labels: NDArray[np.int8]
    adjacency: PipelineAdjacency

    def apply(
        self, features: NDArray[np.float32], labels: NDArray[np.int8], removed: int
    ) -> tuple[NDArray[np.float32], NDArray[np.int8]]:
        """Return copies of the training part with the first ``removed`` records replaced.

        Raises:
            ParameterError: ``removed`` is negative, or exceeds the number of drawn records.
        """
        if not 0 <= removed <= len(self.indices):
            raise ParameterError(f"{removed} records are to be removed, but only {len(self.indices)} were drawn")
        features, labels = features.copy(), labels.copy()
        features[self.indices[:removed]] = self.features[:removed]
        labels[self.indices[:removed]] = self.labels[:removed]
        return features, labels


def draw_removals(data: PreparedData, *, records: int, adjacency: PipelineAdjacency, seed: int) -> Removals:
    """Draw the records to remove, uniformly without replacement, and their replacements.

    The first ``r`` removals do not depend on ``records``.

    Args:
        data: The data set.
        records: Number of records to remove.
        adjacency: The kind of replacement. ``replace``: features from N(0, I) scaled to norm 1 and a uniform label (the
            experiments of Chien et al. 2024). ``zero-out``: zero features, so that the loss is constant; the label
            stays.
        seed: The only source of randomness. The choice, the features and the labels have separate streams.

    Raises:
        ParameterError: ``records`` is negative or exceeds the training records, or the adjacency is unknown.
    """
    known = get_args(PipelineAdjacency)
    if adjacency not in known:
        raise ParameterError(f"adjacency is {adjacency!r}, but must be one of {', '.join(known)}")
    if not 0 <= records <= data.n:
        raise ParameterError(f"{records} records are to be removed, but {data.name} has {data.n} training records")
    choice, gaussian, coin = (
        np.random.Generator(np.random.Philox(stream)) for stream in np.random.SeedSequence(seed).spawn(3)
    )
    indices = choice.permutation(data.n)[:records]
    if adjacency == "zero-out":
        features = np.zeros((records, data.d), np.float32)
        return Removals(indices, features, data.train_labels[indices], adjacency)
    features = unit_rows(gaussian.standard_normal((records, data.d)), "replacements")
    labels = np.array(data.label_values, np.int8)[coin.integers(len(data.label_values), size=records)]
    return Removals(indices, features, labels, adjacency)
