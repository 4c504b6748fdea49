"""A phase of descent, described before it is run. It needs no PyTorch."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class DescentPhase:
    """A number of steps on one data set, and what is published at their end.

    Attributes:
        removed: Number of removals that have been carried out.
        steps: Number of steps of each trial.
        sigma: Noise scale of each trial; 0 for plain gradient descent.
        keys: Each trial's address for this phase's noise.
        publication_sigma: Standard deviation of the Gaussian noise added to what each trial publishes; empty for none.
        publication_keys: Addresses of the publication noise, needed if there is any: one for each publication,
            the same number of publications for each trial. Independent publications of one deterministic trial cost
            one trial.
        feeds_back: Whether the next phase starts from the published weights, not the noiseless ones.
        measure_at: Steps at which trials are measured, besides the end.
        place: The number of the first step in a cycle of mini-batches; None if every step uses all records.
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
