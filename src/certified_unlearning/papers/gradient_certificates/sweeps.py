"""Sweeps of the experiments on certified predictions: their sections of `params.yaml`."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.papers.gradient_certificates.names import KNOWN
from certified_unlearning.reproduction.experiment import Sweep

Mode = Literal["unlearning", "privacy"]
_NonNegative = Annotated[float, Field(ge=0)]
Trials = Annotated[int, Field(ge=2)]
Seed = Annotated[int, Field(ge=0, lt=2**31)]
Data = Annotated[str, Field(json_schema_extra={"enum": [*KNOWN]})]


class Training(BaseModel):
    """How a network is trained."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hidden: list[PositiveInt] = Field(description="units of the hidden layers, a list of whole numbers, may be empty")
    batch_size: PositiveInt = Field(description="records of a batch, a whole number, at least 1")
    epochs: PositiveInt = Field(description="passes over the batches, a whole number, at least 1")
    step_size: PositiveFloat = Field(description="alpha, a number above 0; update n has alpha / (1 + decay n)")
    decay: _NonNegative = Field(description="eta, a number of at least 0")
    weight_decay: _NonNegative = Field(description="lambda, a number of at least 0")


class Case(Training):
    """One network on one data set, and the numbers of records whose absence or presence is certified."""

    name: str = Field(description="what rows, figures and claims call the case; distinct", min_length=1)
    data: Data = Field(description="near, far (clouds of two classes) or the name of a built-in data set")
    pooled: PositiveInt = Field(
        description="side of the squares of pixels that images are averaged over, at least 1; 1: none"
    )
    mode: Mode = Field(description="unlearning (removals) or privacy (additions and removals)")
    gamma: Distinct[PositiveFloat] = Field(
        description="what entries of gradients are clamped to, distinct numbers above 0"
    )
    k: Distinct[PositiveInt] = Field(description="records of every batch, distinct whole numbers, at least 1, rising")
    bounds: Distinct[Literal["tighter", "published"]] = Field(
        description="tighter (exact products, differences of logits) or published (midpoints and radii, single logits)"
    )


class Shares(Sweep):
    """The share of certified test predictions against k, of several networks."""

    cases: list[Case] = Field(description="networks and data sets, a list of sections", min_length=1)
    trials: Trials = Field(description="independent starts, batches and clouds of each case, at least 2")
    seed: Seed = Field(description="a whole number from 0 to 2^31 - 1")

    def check(self) -> str | None:
        """Return what is wrong with the values together."""
        names = [each.name for each in self.cases]
        if len({*names}) < len(names):
            return f"cases has the names {', '.join(names)}, but they must be distinct"
        for case in self.cases:
            if case.data not in KNOWN:
                return f"cases has the data {case.data!r}, but must name some of {', '.join(KNOWN)}"
            if wrong := rising("cases", case.k, case.batch_size, case.mode):
                return wrong
        return None


def rising(key: str, k: list[int], batch_size: int, mode: str) -> str | None:
    """Return what is wrong with numbers of records, in a sentence that begins with the key; None if nothing is."""
    if k != sorted(k):
        return f"{key} has k = {k}, but they must rise"
    if mode == "unlearning" and k[-1] >= batch_size:
        return f"{key} has k = {k[-1]} removals, but batches of {batch_size}, which k must be below"
    return None
