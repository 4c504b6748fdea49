"""The declaration of a mechanism: how its runs become phases of descent, or another library's fits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from certified_unlearning.engine.phase import DescentPhase

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from certified_unlearning.data.prepared import PreparedData
    from certified_unlearning.data.requests import Removals
    from certified_unlearning.mechanisms.batch import TrialBatch


@dataclass(frozen=True)
class Mechanism:
    """A mechanism for many trials of many runs at once: all runs that pass through the same data sets are one batch.

    Attributes:
        name: Name in rows and paths.
        title: Name in labels.
        states: Its variants that keep a state, each with a description for labels.
        starting_weights: Returns the start of a batch of runs that has not learned before, from the batch and a tensor
            ``(anything, d)`` with the type and device of the weights.
        phases: Returns the phases of a batch of runs, from the batch and the steps at which trials are measured (a list
            for each request; for phases without requests the first).
        learning: The phase that learns once for all runs of one noise scale, in a separate job; None if `phases` begins
            with learning.
        parts: Names for the parts of a learning curve: before and after the learning steps.
        answers: Number of phases before the first that answers a request.
    """

    name: str
    title: str
    starting_weights: "Callable[[TrialBatch, Tensor], Tensor]"
    phases: Callable[["TrialBatch", Sequence[Sequence[int]]], list[DescentPhase]]
    learning: Callable[["TrialBatch", Sequence[int]], DescentPhase] | None = None
    parts: tuple[str, str] = ("learning", "unlearning")
    answers: int = 0
    states: Mapping[str, str] = field(default_factory=dict)

    def method(self, accountant_form: str) -> str:
        """Return its name in labels with an accountant, such as ``Langevin (lsi)``."""
        return f"{self.title} ({accountant_form})"

    def line(self, method: str, member: str, variant: str) -> str:
        """Return the name of a line: the method, what distinguishes its lines, and what is kept."""
        return ", ".join(part for part in (method, member, self.states.get(variant, "")) if part)

    def carried_out(self, descend: "Callable[[Mechanism], None]", fit_again: "Callable[[Refit], None]") -> None:
        """Run the job for mechanisms that descend."""
        descend(self)


class Refitted(NamedTuple):
    """Answers to successive requests.

    Attributes:
        judged: `engine.quality.MEASURES` on the test part, after each request: an array of one row.
        seconds: Time of the requests, without that of learning before them.
    """

    judged: "list[NDArray[np.float64]]"
    seconds: float


@dataclass(frozen=True)
class Refit:
    """A mechanism that fits again with another library's solver, without noise or own steps.

    Attributes:
        name: Name in rows and paths.
        title: Name in labels.
        answer: Answers requests, given the data set, the removed records and their replacements, the numbers of removed
            records after each request, scikit-learn's ``C``, and a run's variant.
    """

    name: str
    title: str
    answer: Callable[["PreparedData", "Removals", Sequence[int], float, str], Refitted]
    learning: ClassVar[None] = None
    """There is no job that learns for all runs."""

    def carried_out(self, descend: Callable[[Mechanism], None], fit_again: "Callable[[Refit], None]") -> None:
        """Run the job for mechanisms that fit again."""
        fit_again(self)
