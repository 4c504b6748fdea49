"""The description of a phase of descent, which exists before the phase runs.

This module needs no PyTorch.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class DescentPhase:
    """A number of steps on one data set, and what is published after them.

    Attributes:
        removed: Number of removals that were carried out before the phase.
        steps: Number of steps of each trial.
        sigma: Noise scale of each trial; 0 for plain gradient descent.
        keys: Address of this phase's noise for each trial.
        publication_sigma: Standard deviation of the Gaussian noise added to what each trial publishes; empty for none.
        publication_keys: Addresses of the publication noise, needed if there is any. There is one address for each
            publication, and every trial has the same number of publications. So one run of a deterministic trial can
            give several independent publications.
        feeds_back: Whether the next phase starts from the published weights; otherwise, it starts from the weights
            without publication noise.
        measure_at: Steps after which trials are measured, in addition to the end of the phase.
        place: Number of the first step in a cycle of mini-batches; None if every step uses all records.
    """

    removed: int
    steps: Sequence[int]
    sigma: Sequence[float]
    keys: Sequence[int]
    publication_sigma: Sequence[float] = ()
    publication_keys: Sequence[int] = ()
    feeds_back: bool = False
    measure_at: Sequence[int] = ()
    place: int | None = None
