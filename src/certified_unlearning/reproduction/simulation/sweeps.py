"""The common part of sweeps over data sets of two classes; `held_out` loads these data sets."""

from pydantic import Field

from certified_unlearning.data.sets import built_in
from certified_unlearning.mechanisms.settings import Distinct
from certified_unlearning.reproduction.experiment import Sweep


class TwoClassSweep(Sweep):
    """A sweep over data sets of two classes."""

    data: Distinct[str] = Field(description="a list of distinct names of built-in data sets of two classes")

    def check(self) -> str | None:
        """Return a sentence about an invalid data set; None if all are valid."""
        for name in self.data:
            known = built_in(name)
            if known is None or known.classes != 2:
                return f"data contains {name!r}, but must name built-in data sets of two classes"
        return None
