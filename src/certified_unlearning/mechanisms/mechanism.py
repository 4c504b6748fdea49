"""What a mechanism is: how its runs become phases of descent, or another library's fits; declared in its module."""

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
        name: Its name, as rows and paths have it.
        title: What labels call it.
        states: Its variants that keep a state, each with what labels say of that.
        starting_weights: Where a batch of runs starts that has not learned before: from the batch, and a tensor
            ``(anything, d)`` whose type and device the weights take.
        phases: What a batch of runs passes through, and the steps at which trials are measured (a list for each
            request; of phases without requests the first).
        learning: The phase that learns once for all runs of one noise scale, in a job of its own; None where `phases`
            begins with learning.
        parts: Names for the parts of a learning curve: the part before, and the part after, the learning steps.
        answers: How many phases come before the first that answers a request.
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
        """Return what labels call it beside an accountant, such as ``Langevin (lsi)``."""
        return f"{self.title} ({accountant_form})"

    def line(self, method: str, member: str, variant: str) -> str:
        """Return the name of a line: the method, what tells apart its lines, and what is kept."""
        return ", ".join(part for part in (method, member, self.states.get(variant, "")) if part)

    def carried_out(self, descend: "Callable[[Mechanism], None]", fit_again: "Callable[[Refit], None]") -> None:
        """Do the job that is meant for mechanisms that descend."""
        descend(self)


class Refitted(NamedTuple):
    """Answers to requests, one after another.

    Attributes:
        judged: What `engine.quality.MEASURES` are on the test part, after each: an array of one row.
        seconds: What the requests took, without what was learned before them.
    """

    judged: "list[NDArray[np.float64]]"
    seconds: float


@dataclass(frozen=True)
class Refit:
    """A mechanism that fits again with another library's solver: no noise, no steps of ours.

    Attributes:
        name: Its name, as rows and paths have it.
        title: What labels call it.
        answer: Answers requests: of the data set, the records that go and what replaces them, how many are gone after
            each request, scikit-learn's ``C``, and a run's variant.
    """

    name: str
    title: str
    answer: Callable[["PreparedData", "Removals", Sequence[int], float, str], Refitted]
    learning: ClassVar[None] = None
    """There is no job that learns for all runs."""

    def carried_out(self, descend: Callable[[Mechanism], None], fit_again: "Callable[[Refit], None]") -> None:
        """Do the job that is meant for mechanisms that fit again."""
        fit_again(self)
