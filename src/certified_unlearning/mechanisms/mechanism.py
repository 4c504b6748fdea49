"""Declarations of mechanisms: how their runs become phases of descent, or fits by another library."""

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
    """A mechanism that runs many trials of many runs at once.

    Runs that use the same data sets form one batch.

    Attributes:
        name: Name in rows and paths.
        title: Name in labels.
        states: The variants that keep a state, each with a description for labels.
        starting_weights: Function that returns the start of a batch of runs. Its arguments are the batch, which has not
            learned before, and a tensor ``(anything, d)`` with the type and device of the weights.
        phases: Function that returns the phases of a batch of runs. Its second argument lists, for each request, the
            steps at which trials are measured; phases without requests use the first list.
        learning: Function that returns the phase that learns once for all runs of one noise scale, in a separate job;
            None if `phases` begins with learning.
        parts: Names for the two parts of a learning curve: before and after the learning steps.
        answers: Number of phases before the first phase that answers a request.
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
        """Return the mechanism's name for labels that also name an accountant, such as ``Langevin (lsi)``."""
        return f"{self.title} ({accountant_form})"

    def line(self, method: str, member: str, variant: str) -> str:
        """Return the name of a line: the method, the part that distinguishes the line, and the kept state."""
        return ", ".join(part for part in (method, member, self.states.get(variant, "")) if part)

    def carried_out(self, descend: "Callable[[Mechanism], None]", fit_again: "Callable[[Refit], None]") -> None:
        """Run a job of a mechanism that descends: call ``descend``."""
        descend(self)


class Refitted(NamedTuple):
    """The results of answers to successive requests.

    Attributes:
        judged: `engine.quality.MEASURES` on the test part after each request; each is an array with one row.
        seconds: Duration of the requests in seconds, without the time of learning before them.
    """

    judged: "list[NDArray[np.float64]]"
    seconds: float


@dataclass(frozen=True)
class Refit:
    """A mechanism that refits with another library's solver, without noise and without steps of its own.

    Attributes:
        name: Name in rows and paths.
        title: Name in labels.
        answer: Function that answers requests, given the data set, the removed records and their replacements, the
            number of removed records after each request, scikit-learn's ``C``, and a run's variant.
    """

    name: str
    title: str
    answer: Callable[["PreparedData", "Removals", Sequence[int], float, str], Refitted]
    learning: ClassVar[None] = None
    """Always None, because no separate job learns for all runs."""

    def carried_out(self, descend: Callable[[Mechanism], None], fit_again: "Callable[[Refit], None]") -> None:
        """Run a job of a mechanism that refits: call ``fit_again``."""
        fit_again(self)
