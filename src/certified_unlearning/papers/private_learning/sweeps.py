"""The sweeps of the experiments on private learning, and their sections of `params.yaml`."""

from typing import Annotated, Literal

from pydantic import Field

from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.reproduction.experiment import Sweep
from certified_unlearning.reproduction.simulation.sweeps import TwoClassSweep

_Seed = Annotated[int, Field(ge=0, lt=2**32)]
_Delta = Annotated[float, Field(gt=0, lt=1)]
_Trials = Annotated[int, Field(ge=2)]
_Several = Annotated[list[PositiveInt], Field(min_length=2, json_schema_extra={"uniqueItems": True})]


class PrivateGradients(Sweep):
    """Gradients at private models, for several numbers of records and of columns. Some losses are not convex."""

    epsilon: PositiveFloat = Field(description="the epsilon of replace-one privacy, above 0")
    delta: _Delta = Field(description="the delta of privacy, strictly between 0 and 1")
    distinct: PositiveInt = Field(
        description="the number of distinct records in X7 and X10; all other records are copies of these"
    )
    spider_n: _Several = Field(
        description="numbers of records in X7 (SpiderBoost): at least two distinct multiples of `distinct`"
    )
    spider_features: PositiveInt = Field(description="the number of columns in X7, a whole number of at least 1")
    tree_n: _Several = Field(
        description="numbers of records in X8 (tree-based Spider): at least two distinct whole numbers"
    )
    tree_features: PositiveInt = Field(description="the number of columns in X8, a whole number of at least 1")
    recursive_n: _Several = Field(
        description="numbers of records in X9 (recursive regularisation): at least two distinct whole numbers"
    )
    linear_time_n: _Several = Field(
        description="numbers of records in X14 (linear-time recursive regularisation): at least two distinct whole "
        "numbers"
    )
    reduction_n: _Several = Field(
        description="numbers of records in X16: at least two distinct whole numbers, of which X15 uses the smallest"
    )
    reduction_columns: _Several = Field(
        description="numbers of columns of X15's embeddings: at least two distinct whole numbers, of which X16 uses "
        "the smallest"
    )
    reduction_features: _Several = Field(
        description="numbers of columns in X15 without an embedding: at least two distinct whole numbers, each "
        "at least 10"
    )
    embedding_n: PositiveInt = Field(description="the number of records in X10, a multiple of `distinct`")
    columns: _Several = Field(description="numbers of columns of X10's embeddings: at least two distinct whole numbers")
    full_features: _Several = Field(
        description="numbers of columns in X10 without an embedding: at least two distinct whole numbers, each "
        "at least 10"
    )
    trials: _Trials = Field(description="the number of independent runs of each setting, at least 2")
    seed: _Seed = Field(description="a whole number from 0 to 2^32 - 1")

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        for name, counts in (("spider_n", self.spider_n), ("embedding_n", [self.embedding_n])):
            odd = [each for each in counts if each % self.distinct]
            if odd:
                return f"{name} contains {odd[0]}, which is not a multiple of `distinct`, {self.distinct}"
        wide = {"full_features": (self.full_features, "X10"), "reduction_features": (self.reduction_features, "X15")}
        for name, (features, part) in wide.items():
            if min(features) < 10:
                return (
                    f"{name} contains {min(features)}, but 10 columns of {part} are not zero, so at least 10 columns "
                    "are needed"
                )
        return None


class PrivateRisk(Sweep):
    """Excess risk of private linear models, compared with lower bounds, as records, columns and unknown norms vary."""

    epsilon: PositiveFloat = Field(description="the epsilon of replace-one privacy, above 0")
    delta: _Delta = Field(description="the delta of privacy, strictly between 0 and 1")
    output_perturbation_n: _Several = Field(
        description="numbers of records in X1 (output perturbation): at least two distinct whole numbers"
    )
    descent_n: _Several = Field(
        description="numbers of records in X2 (noisy descent): at least two distinct whole numbers"
    )
    features: _Several = Field(
        description="numbers of columns in X3: at least two distinct whole numbers, each at least 50, because 50 "
        "columns are not zero"
    )
    features_n: PositiveInt = Field(description="the number of records in X3, a whole number of at least 1")
    embedding_columns: PositiveInt = Field(description="the largest number of columns of X3's embedding, at least 1")
    absolute_n: _Several = Field(
        description="numbers of records in X4 (absolute loss): at least two distinct whole numbers"
    )
    absolute_epsilon: Distinct[PositiveFloat] = Field(description="values of epsilon in X4: distinct numbers above 0")
    scales: Distinct[Annotated[float, Field(gt=0, le=1)]] = Field(
        description="lengths of the rows in X5: distinct numbers above 0 and at most 1"
    )
    search_n: Annotated[int, Field(ge=2)] = Field(
        description="the number of records in X5 (search for the radius), at least 2"
    )
    candidates: PositiveInt = Field(
        description="the number of radii in X5, at least 1; the radii are powers of 2, starting at 2"
    )
    boosting_n: Annotated[int, Field(ge=10)] = Field(description="the number of records in X6 (boosting), at least 10")
    boosting_trials: _Trials = Field(description="the number of independent draws of noise in X6, at least 2")
    lower_bound_n: _Several = Field(
        description="numbers of records in X11 (lower bounds): at least two distinct whole numbers"
    )
    fingerprint_n: PositiveInt = Field(
        description="the number of records in X13 (lower bound for Lipschitz losses), at least 1"
    )
    fingerprint_epsilon: Annotated[list[Annotated[float, Field(gt=0, le=1.2)]], Field(min_length=2)] = Field(
        description="values of epsilon in X13: at least two numbers above 0 and at most 1.2"
    )
    trials: _Trials = Field(description="the number of independent data sets for each setting, at least 2")
    seed: _Seed = Field(description="a whole number from 0 to 2^32 - 1")

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        if min(self.features) < 50:
            return (
                f"features contains {min(self.features)}, but 50 columns of X3 are not zero, so at least 50 columns "
                "are needed"
            )
        return None


class GroupPrivacy(TwoClassSweep):
    """Deletions that a private model covers without any work, compared with systems that unlearn them."""

    epsilon: Distinct[PositiveFloat] = Field(
        description="values of epsilon that must hold after all deletions: distinct numbers above 0"
    )
    delta: _Delta = Field(description="the delta of the targets, strictly between 0 and 1")
    deletions: Distinct[PositiveInt] = Field(
        description="numbers of records that a request deletes: distinct whole numbers; those above n / 2 are left out"
    )
    radius: Distinct[PositiveFloat] = Field(description="radii of private models: distinct numbers above 0")
    steps: Distinct[Annotated[int, Field(ge=2)]] = Field(
        description="numbers of steps of private noisy descent: distinct whole numbers, each at least 2"
    )
    sgd_steps: Distinct[PositiveInt] = Field(
        description="numbers of steps of both plain and noisy SGD: distinct whole numbers"
    )
    batch_size: Distinct[PositiveInt] = Field(description="batch sizes of SGD: distinct whole numbers")
    step_size: Distinct[PositiveFloat] = Field(description="step sizes of SGD: distinct numbers above 0")
    sigma: Distinct[PositiveFloat] = Field(description="noise scales of exact noisy SGD: distinct numbers above 0")
    strength: PositiveFloat = Field(description="C times n for Langevin unlearning and Descent-to-Delete, above 0")
    trials: _Trials = Field(description="the number of independent runs of each setting, at least 2")
    seed: _Seed = Field(description="a whole number from 0 to 2^32 - 1")


class PrivateAudits(Sweep):
    """Audits of every private mechanism, and of mechanisms with planted faults."""

    epsilon: PositiveFloat = Field(
        description="the epsilon of mechanisms without sampling, above 0 (with a large epsilon, few runs are enough)"
    )
    sampled_epsilon: PositiveFloat = Field(description="the epsilon of mechanisms on Poisson batches, above 0")
    sampling: Literal["audited", "left out"] = Field(
        description="whether mechanisms on Poisson batches are audited (needs the extra `private`) or left out"
    )
    runs: PositiveInt = Field(description="the number of runs of a mechanism on each of two data sets, at least 1")
    seed: _Seed = Field(description="a whole number from 0 to 2^32 - 1")
