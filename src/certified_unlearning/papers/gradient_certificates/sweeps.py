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
    "near or far (clouds of two classes), the name of a built-in data set, or a features file (.npz, .parquet)"
)
"""A description of the allowed values of ``data``."""
Seed = Annotated[int, Field(ge=0, lt=2**31)]
_FILES = {"type": "string", "pattern": rf"({'|'.join(re.escape(each) for each in FILE_ENDINGS)})$"}
Data = Annotated[str, Field(json_schema_extra={"anyOf": [{"enum": [*KNOWN]}, _FILES]})]
Digits = Annotated[str, Field(json_schema_extra={"anyOf": [{"enum": ["digits", "mnist-10"]}, _FILES]})]


class Recipe(BaseModel):
    """The training recipe of a network, without its length."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hidden: list[PositiveInt] = Field(
        description="the number of units of each hidden layer, a list of whole numbers, which may be empty"
    )
    batch_size: PositiveInt = Field(description="the number of records in a batch, a whole number of at least 1")
    step_size: PositiveFloat = Field(
        description="alpha, a number above 0; the step size of update number n is alpha / (1 + decay n)"
    )
    decay: _NonNegative = Field(description="eta, a number that is at least 0")
    weight_decay: _NonNegative = Field(description="lambda, a number that is at least 0")


class Training(Recipe):
    """The training recipe of a network."""

    epochs: PositiveInt = Field(description="the number of passes over the batches, a whole number of at least 1")


class Case(Training):
    """A network on one data set, and the numbers of records whose absence or presence is certified."""

    name: str = Field(
        description="the name of the case in rows, figures and claims; no other case may have this name", min_length=1
    )
    data: Data = Field(description=DATA_IN_WORDS)
    pooled: PositiveInt = Field(
        description="the side of the squares of pixels over which images are averaged, at least 1 (1 for no averaging)"
    )
    mode: Mode = Field(description="unlearning (removals) or privacy (additions and removals)")
    gamma: Distinct[PositiveFloat] = Field(
        description="the levels to which entries of gradients are clamped, distinct numbers above 0"
    )
    k: Distinct[PositiveInt] = Field(
        description="numbers of records that may change in every batch: distinct whole numbers of at least 1, in "
        "increasing order"
    )
    bounds: Distinct[Literal["tighter", "published"]] = Field(
        description="tighter (exact products, differences of logits, linear bounds) or published (midpoints and radii, "
        "single logits)"
    )


class Regions(Sweep, Training):
    """The radius of predictions on the plane, for blobs of two classes, several clipping levels and both modes."""

    data: Distinct[Literal["near", "far"]] = Field(
        description="a list of near, far or both names; each name stands for a pair of Gaussian clouds, one cloud for "
        "each class"
    )
    gamma: Distinct[PositiveFloat] = Field(
        description="the levels to which entries of gradients are clamped, distinct numbers above 0"
    )
    k: Distinct[PositiveInt] = Field(
        description="numbers of records that may change in every batch: distinct whole numbers of at least 1, in "
        "increasing order"
    )
    side: Annotated[int, Field(ge=2)] = Field(
        description="the number of points of the grid in each direction, at least 2"
    )
    reach: PositiveFloat = Field(
        description="the largest coordinate of the grid, above 0; the smallest is minus this number"
    )
    seed: Seed = Field(description="a whole number from 0 to 2^31 - 1")

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        return rising("k", self.k, self.batch_size, "unlearning")


class Batches(Sweep):
    """Certified shares by batch size, for one epoch, networks of several depths and both modes."""

    data: Data = Field(description=DATA_IN_WORDS)
    batch_size: Distinct[PositiveInt] = Field(description="batch sizes: distinct whole numbers of at least 1")
    depth: Distinct[Annotated[int, Field(ge=0)]] = Field(description="numbers of hidden layers: distinct whole numbers")
    units: PositiveInt = Field(description="the number of units in a hidden layer, a whole number of at least 1")
    step_size: PositiveFloat = Field(
        description="alpha, a number above 0; the step size of update number n is alpha / (1 + decay n)"
    )
    decay: _NonNegative = Field(description="eta, a number that is at least 0")
    gamma: PositiveFloat = Field(description="the level to which entries of gradients are clamped, above 0")
    k: PositiveInt = Field(
        description="the number of records that may change in every batch, a whole number of at least 1"
    )
    wanted: Annotated[float, Field(gt=0, le=1)] = Field(
        description="the share of predictions that must be certified, above 0 and at most 1"
    )
    trials: Trials = Field(
        description="the number of independent runs of each batch size, with their own starts and batches, at least 2"
    )
    seed: Seed = Field(description="a whole number from 0 to 2^31 - 1")

    @property
    def files(self) -> tuple[str, ...]:
        """The features files that the sweep reads."""
        return files_of((self.data,))

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
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
        description="the digit that pre-training does not see, 0 to 9; unused for a features file, which says which "
        "records are new"
    )
    channels: Annotated[list[PositiveInt], Field(min_length=2, max_length=2)] = Field(
        description="the numbers of channels of the two convolutions, each at least 1; unused for a features file "
        "whose rows are not images"
    )
    kernel: PositiveInt = Field(description="the side of the convolutions' kernels, a whole number of at least 1")
    stride: PositiveInt = Field(description="the stride of the first convolution, a whole number of at least 1")
    units: PositiveInt = Field(
        description="the number of units in the dense hidden layer, a whole number of at least 1"
    )
    pretraining_epochs: PositiveInt = Field(
        description="the number of passes of pre-training, a whole number of at least 1"
    )
    private: PositiveInt = Field(
        description="the number of removable records (of the new class) in a batch, at least 1"
    )
    public: PositiveInt = Field(
        description="the number of permanent records (of the other classes) in a batch, at least 1"
    )
    epochs: PositiveInt = Field(description="the number of passes over the new class, a whole number of at least 1")
    step_size: PositiveFloat = Field(
        description="alpha, a number above 0; the step size of update number n is alpha / (1 + decay n)"
    )
    decay: _NonNegative = Field(description="eta, a number that is at least 0")
    gamma: Distinct[PositiveFloat] = Field(
        description="the levels to which entries of gradients are clamped, distinct numbers above 0"
    )
    k: Distinct[PositiveInt] = Field(
        description="numbers of records that may change in every batch: distinct whole numbers of at least 1, in "
        "increasing order"
    )
    trials: Trials = Field(
        description="the number of independent runs, with their own pre-training and batches, at least 2"
    )
    seed: Seed = Field(description="a whole number from 0 to 2^31 - 1")

    @property
    def files(self) -> tuple[str, ...]:
        """The features files that the sweep reads."""
        return files_of((self.data,))

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        return rising("k", self.k, self.private, "unlearning")


class Head(Sweep, Recipe):
    """A head on fixed features: certified shares and bounds of accuracy during training, for both modes."""

    data: Data = Field(
        description="the name of a built-in data set, whose features are fixed, or a features file (.npz, .parquet)"
    )
    scale: PositiveFloat = Field(description="the public factor by which features are multiplied, a number above 0")
    epochs: Distinct[PositiveInt] = Field(
        description="numbers of passes after which the head is measured: distinct whole numbers, in increasing order"
    )
    gamma: PositiveFloat = Field(description="the level to which entries of gradients are clamped, above 0")
    k: Distinct[PositiveInt] = Field(
        description="numbers of records that may change in every batch: distinct whole numbers of at least 1, in "
        "increasing order"
    )
    trials: Trials = Field(description="the number of independent runs, with their own starts and batches, at least 2")
    seed: Seed = Field(description="a whole number from 0 to 2^31 - 1")

    @property
    def files(self) -> tuple[str, ...]:
        """The features files that the sweep reads."""
        return files_of((self.data,))

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        if wrong := unknown_data("data is", self.data):
            return wrong
        if self.epochs != sorted(self.epochs):
            return f"epochs is {self.epochs}, but these numbers must be in increasing order"
        return rising("k", self.k, self.batch_size, "unlearning")


class Shares(Sweep):
    """The share of certified test predictions against k, for several networks."""

    cases: list[Case] = Field(description="a list of sections, each with a network and a data set", min_length=1)
    trials: Trials = Field(
        description="the number of independent runs of each case, with their own starts, batches and clouds, at least 2"
    )
    seed: Seed = Field(description="a whole number from 0 to 2^31 - 1")

    @property
    def files(self) -> tuple[str, ...]:
        """The features files that the sweep reads."""
        return files_of(each.data for each in self.cases)

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        names = [each.name for each in self.cases]
        if len({*names}) < len(names):
            return f"cases has the names {', '.join(names)}, but the names must be distinct"
        for case in self.cases:
            if wrong := unknown_data("cases has the data", case.data):
                return wrong
            if wrong := rising("cases", case.k, case.batch_size, case.mode):
                return wrong
        return None


def unknown_data(said: str, data: str) -> str | None:
    """Return a sentence that begins with ``said`` and reports an unknown data set; None if the data set is known."""
    if data in KNOWN or is_file(data):
        return None
    return (
        f"{said} {data!r}, but must be one of {', '.join(KNOWN)}, or a features file whose name ends in "
        f"{' or '.join(FILE_ENDINGS)}"
    )


def files_of(data: Iterable[str]) -> tuple[str, ...]:
    """Return those of the given data that are features files, each once."""
    return tuple(dict.fromkeys(each for each in data if is_file(each)))


def rising(key: str, k: list[int], batch_size: int, mode: str) -> str | None:
    """Return a sentence that begins with the key and reports wrong values of k; None if all values are right."""
    if k != sorted(k):
        return f"{key} has k = {k}, but the values of k must be in increasing order"
    if mode == "unlearning" and k[-1] >= batch_size:
        return f"{key} has k = {k[-1]} removals in batches of {batch_size} records, but k must be below the batch size"
    return None
