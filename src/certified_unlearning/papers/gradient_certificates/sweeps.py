"""The sweeps of the experiments on certified predictions, and their sections of `params.yaml`."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.papers.gradient_certificates.names import FILE_ENDINGS, KNOWN, is_file
from certified_unlearning.reproduction.experiment import Sweep

Mode = Literal["unlearning", "privacy"]
_NonNegative = Annotated[float, Field(ge=0)]
Trials = Annotated[int, Field(ge=2)]
DATA_IN_WORDS = (
    "near, far (clouds of two classes), the name of a built-in data set, or a features file (.npz, .parquet)"
)
"""The allowed values of ``data``, in words."""
Seed = Annotated[int, Field(ge=0, lt=2**31)]
_FILES = {"type": "string", "pattern": rf"({'|'.join(re.escape(each) for each in FILE_ENDINGS)})$"}
Data = Annotated[str, Field(json_schema_extra={"anyOf": [{"enum": [*KNOWN]}, _FILES]})]
Digits = Annotated[str, Field(json_schema_extra={"anyOf": [{"enum": ["digits", "mnist-10"]}, _FILES]})]


class Recipe(BaseModel):
    """The training recipe of a network, without its length."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hidden: list[PositiveInt] = Field(description="units of the hidden layers, a list of whole numbers, may be empty")
    batch_size: PositiveInt = Field(description="records of a batch, a whole number, at least 1")
    step_size: PositiveFloat = Field(
        description="alpha, a number above 0; update n has the step size alpha / (1 + decay n)"
    )
    decay: _NonNegative = Field(description="eta, a number of at least 0")
    weight_decay: _NonNegative = Field(description="lambda, a number of at least 0")


class Training(Recipe):
    """The training recipe of a network."""

    epochs: PositiveInt = Field(description="passes over the batches, a whole number, at least 1")


class Case(Training):
    """A network on one data set, and the numbers of records whose absence or presence is certified."""

    name: str = Field(description="the name of the case in rows, figures and claims; distinct", min_length=1)
    data: Data = Field(description=DATA_IN_WORDS)
    pooled: PositiveInt = Field(
        description="side of the squares of pixels that images are averaged over, at least 1; 1 means no averaging"
    )
    mode: Mode = Field(description="unlearning (removals) or privacy (additions and removals)")
    gamma: Distinct[PositiveFloat] = Field(
        description="levels to which entries of gradients are clamped, distinct numbers above 0"
    )
    k: Distinct[PositiveInt] = Field(description="records of every batch, distinct whole numbers, at least 1, rising")
    bounds: Distinct[Literal["tighter", "published"]] = Field(
        description="tighter (exact products, differences, lines) or published (midpoints and radii, single logits)"
    )


class Regions(Sweep, Training):
    """The radius of predictions on the plane, for blobs of two classes, several clipping levels and both modes."""

    data: Distinct[Literal["near", "far"]] = Field(description="near, far, or both: clouds of two classes")
    gamma: Distinct[PositiveFloat] = Field(
        description="levels to which entries of gradients are clamped, distinct numbers above 0"
    )
    k: Distinct[PositiveInt] = Field(description="records of every batch, distinct whole numbers, at least 1, rising")
    side: Annotated[int, Field(ge=2)] = Field(description="points of the grid in each direction, at least 2")
    reach: PositiveFloat = Field(description="the grid extends from minus this number to this number, above 0")
    seed: Seed = Field(description="a whole number from 0 to 2^31 - 1")

    def check(self) -> str | None:
        """Return the error of values that do not fit together, or None."""
        return rising("k", self.k, self.batch_size, "unlearning")


class Batches(Sweep):
    """Certified shares by batch size, for one epoch, networks of several depths and both modes."""

    data: Data = Field(description=DATA_IN_WORDS)
    batch_size: Distinct[PositiveInt] = Field(description="records of a batch, distinct whole numbers, at least 1")
    depth: Distinct[Annotated[int, Field(ge=0)]] = Field(description="hidden layers, distinct whole numbers")
    units: PositiveInt = Field(description="units of a hidden layer, a whole number, at least 1")
    step_size: PositiveFloat = Field(
        description="alpha, a number above 0; update n has the step size alpha / (1 + decay n)"
    )
    decay: _NonNegative = Field(description="eta, a number of at least 0")
    gamma: PositiveFloat = Field(description="the level to which entries of gradients are clamped, above 0")
    k: PositiveInt = Field(description="records of every batch, a whole number, at least 1")
    wanted: Annotated[float, Field(gt=0, le=1)] = Field(
        description="the share of certified predictions that a batch must give, above 0 and at most 1"
    )
    trials: Trials = Field(description="independent starts and batches of each size, at least 2")
    seed: Seed = Field(description="a whole number from 0 to 2^31 - 1")

    @property
    def files(self) -> tuple[str, ...]:
        """The features files that the sweep reads."""
        return files_of((self.data,))

    def check(self) -> str | None:
        """Return the error of values that do not fit together, or None."""
        if wrong := unknown_data("data is", self.data):
            return wrong
        return rising("batch_size", [self.k], min(self.batch_size), "unlearning")


class FineTuning(Sweep):
    """Fine-tuning of dense layers on a class that pre-training did not see; batches also contain public records."""

    data: Digits = Field(
        description="digits (8 x 8 pixels, embedded), mnist-10, or a features file (.npz, .parquet) that says which "
        "records are new"
    )
    held_back: Annotated[int, Field(ge=0, le=9)] = Field(
        description="the digit that pre-training does not see, 0 to 9; a features file says which records are new"
    )
    channels: Annotated[list[PositiveInt], Field(min_length=2, max_length=2)] = Field(
        description="channels of the two convolutions, which fine-tuning does not change, at least 1 each; unused for "
        "a features file whose rows are not images"
    )
    kernel: PositiveInt = Field(description="side of the convolutions' kernels, a whole number, at least 1")
    stride: PositiveInt = Field(description="stride of the first convolution, a whole number, at least 1")
    units: PositiveInt = Field(description="units of the dense hidden layer, a whole number, at least 1")
    pretraining_epochs: PositiveInt = Field(description="passes of pre-training, a whole number, at least 1")
    private: PositiveInt = Field(description="number of removable records (of the new class) in a batch, at least 1")
    public: PositiveInt = Field(description="number of permanent records (of the other classes) in a batch, at least 1")
    epochs: PositiveInt = Field(description="passes over the new class, a whole number, at least 1")
    step_size: PositiveFloat = Field(
        description="alpha, a number above 0; update n has the step size alpha / (1 + decay n)"
    )
    decay: _NonNegative = Field(description="eta, a number of at least 0")
    gamma: Distinct[PositiveFloat] = Field(
        description="levels to which entries of gradients are clamped, distinct numbers above 0"
    )
    k: Distinct[PositiveInt] = Field(description="records of every batch, distinct whole numbers, at least 1, rising")
    trials: Trials = Field(description="independent pre-trainings and batches, at least 2")
    seed: Seed = Field(description="a whole number from 0 to 2^31 - 1")

    @property
    def files(self) -> tuple[str, ...]:
        """The features files that the sweep reads."""
        return files_of((self.data,))

    def check(self) -> str | None:
        """Return the error of values that do not fit together, or None."""
        return rising("k", self.k, self.private, "unlearning")


class Head(Sweep, Recipe):
    """A head on fixed features: certified shares and bounds of accuracy during training, for both modes."""

    data: Data = Field(
        description="the name of a built-in data set, whose features are fixed, or a features file (.npz, .parquet)"
    )
    scale: PositiveFloat = Field(description="the factor by which features are multiplied, a public number above 0")
    epochs: Distinct[PositiveInt] = Field(
        description="passes after which the head is measured, distinct whole numbers, rising"
    )
    gamma: PositiveFloat = Field(description="the level to which entries of gradients are clamped, above 0")
    k: Distinct[PositiveInt] = Field(description="records of every batch, distinct whole numbers, at least 1, rising")
    trials: Trials = Field(description="independent starts and batches, at least 2")
    seed: Seed = Field(description="a whole number from 0 to 2^31 - 1")

    @property
    def files(self) -> tuple[str, ...]:
        """The features files that the sweep reads."""
        return files_of((self.data,))

    def check(self) -> str | None:
        """Return the error of values that do not fit together, or None."""
        if wrong := unknown_data("data is", self.data):
            return wrong
        if self.epochs != sorted(self.epochs):
            return f"epochs is {self.epochs}, but must rise"
        return rising("k", self.k, self.batch_size, "unlearning")


class Shares(Sweep):
    """The share of certified test predictions against k, for several networks."""

    cases: list[Case] = Field(description="networks and data sets, a list of sections", min_length=1)
    trials: Trials = Field(
        description="number of independent runs of each case, with their own starts, batches and clouds, at least 2"
    )
    seed: Seed = Field(description="a whole number from 0 to 2^31 - 1")

    @property
    def files(self) -> tuple[str, ...]:
        """The features files that the sweep reads."""
        return files_of(each.data for each in self.cases)

    def check(self) -> str | None:
        """Return the error of values that do not fit together, or None."""
        names = [each.name for each in self.cases]
        if len({*names}) < len(names):
            return f"cases has the names {', '.join(names)}, but they must be distinct"
        for case in self.cases:
            if wrong := unknown_data("cases has the data", case.data):
                return wrong
            if wrong := rising("cases", case.k, case.batch_size, case.mode):
                return wrong
        return None


def unknown_data(said: str, data: str) -> str | None:
    """Return a sentence, beginning with ``said``, about an unknown name of data, or None if the name is known."""
    if data in KNOWN or is_file(data):
        return None
    return (
        f"{said} {data!r}, but must name one of {', '.join(KNOWN)}, or a features file that ends in "
        f"{' or '.join(FILE_ENDINGS)}"
    )


def files_of(data: Iterable[str]) -> tuple[str, ...]:
    """Return the features files among names of data."""
    return tuple(dict.fromkeys(each for each in data if is_file(each)))


def rising(key: str, k: list[int], batch_size: int, mode: str) -> str | None:
    """Return a sentence, beginning with the key, about wrong numbers of records, or None if they are right."""
    if k != sorted(k):
        return f"{key} has k = {k}, but these numbers must rise"
    if mode == "unlearning" and k[-1] >= batch_size:
        return f"{key} has k = {k[-1]} removals, but batches of {batch_size}; k must be below the batch size"
    return None
