"""The sweeps of the experiments of Forget Unlearning, and their sections of `params.yaml`."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning.mechanisms.settings import PositiveFloat, PositiveInt
from certified_unlearning.reproduction.experiment import Sweep


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class DeletionProblem(_Model):
    """One-dimensional linear losses, which mechanisms minimise by gradient descent, and the promised guarantees."""

    n: Annotated[int, Field(ge=2)] = Field(description="a whole number of records, at least 2")
    lipschitz: PositiveFloat = Field(description="the largest size L of a record, a number above 0")
    strong_convexity: PositiveFloat = Field(description="the weight lambda of the regulariser, a number above 0")
    smoothness: PositiveFloat = Field(description="lambda + beta, a number that is at least strong_convexity")
    alpha: Annotated[float, Field(gt=1)] = Field(description="the Rényi order, a number above 1")
    epsilon_dp: PositiveFloat = Field(description="the target epsilon for present records, a number above 0")
    epsilon_dd: PositiveFloat = Field(
        description="the target epsilon for deleted records, a number above 0 and at most epsilon_dp"
    )


class DeletionMedian(_Model):
    """The attack on medians."""

    n: Annotated[int, Field(ge=3)] = Field(description="an odd number of records, at least 3")
    request: Annotated[int, Field(ge=4)] = Field(
        description="the number of the request that deletes the median, a whole number from 4 to n + 1"
    )


class DeletionCounting(_Model):
    """The attacks on counting with a secret state."""

    epsilon: PositiveFloat = Field(description="the epsilon of every release, a number above 0")
    releases: PositiveInt = Field(
        description="the number of releases of the printed construction, a whole number of at least 1"
    )
    exposures: PositiveInt = Field(
        description="how often the repaired construction exposes the deleted bit, a whole number of at least 1"
    )


class DeletionStream(_Model):
    """The counterexample to Theorem 4.1 as a statement about all releases after the deletion."""

    epsilon: PositiveFloat = Field(description="the epsilon of every response, a number above 0")
    releases: PositiveInt = Field(
        description="the number of releases from the deletion on, a whole number of at least 1"
    )


class DeletionKey(_Model):
    """The counterexample to the printed Theorem 4.3."""

    epsilon: PositiveFloat = Field(description="the epsilon of every call, a number above 0")
    length: PositiveInt = Field(description="the number of bits of the key, a whole number of at least 1")


class Deletion(Sweep):
    """Attacks on deletion. They do not depend on any data set."""

    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(description="a whole number from 0 to 2^32 - 1")
    interactions: PositiveInt = Field(
        description="the number of interactions of each attack under each hypothesis, a whole number of at least 1"
    )
    problem: DeletionProblem
    # This key of params.yaml keeps its name; elsewhere in Python, it is observed_releases.
    looks: PositiveInt = Field(
        description="the number of releases that the second requester of encode-then-delete sees, a whole number of "
        "at least 1"
    )
    later_releases: PositiveInt = Field(
        description="the number of later releases that an averaging adversary adds to the first, a whole number of "
        "at least 1"
    )
    median: DeletionMedian
    counting: DeletionCounting
    stream: DeletionStream
    key: DeletionKey

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        problem, median = self.problem, self.median
        if median.n % 2 == 0:
            return f"median.n is {median.n}, but must be odd"
        if median.request > median.n + 1:
            return f"median.request is {median.request}, but must be at most median.n + 1, {median.n + 1}"
        if problem.smoothness < problem.strong_convexity:
            return (
                f"problem.smoothness is {problem.smoothness:g}, but must be at least problem.strong_convexity, "
                f"{problem.strong_convexity:g}"
            )
        return _targets("problem.", problem.epsilon_dp, problem.epsilon_dd)


class DeletionRisk(Sweep):
    """Excess risk along a stream of deletions, for logistic regression on scikit-learn's digits."""

    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(description="a whole number from 0 to 2^32 - 1")
    trials: Annotated[int, Field(ge=30)] = Field(description="a whole number of trials, at least 30")
    requests: PositiveInt = Field(description="a whole number of requests, at least 1")
    records: PositiveInt = Field(
        description="the number of records that each request replaces, a whole number of at least 1"
    )
    strong_convexity: PositiveFloat = Field(description="the weight lambda of the regulariser, a number above 0")
    alpha: Annotated[float, Field(gt=1)] = Field(description="the Rényi order, a number above 1")
    epsilon_dp: PositiveFloat = Field(description="the target epsilon for present records, a number above 0")
    epsilon_dd: PositiveFloat = Field(
        description="the target epsilon for deleted records, a number above 0 and at most epsilon_dp"
    )

    def check(self) -> str | None:
        """Return a sentence about values that do not fit together; None if all values fit."""
        return _targets("", self.epsilon_dp, self.epsilon_dd)


def _targets(prefix: str, epsilon_dp: float, epsilon_dd: float) -> str | None:
    if epsilon_dd <= epsilon_dp:
        return None
    return f"{prefix}epsilon_dd is {epsilon_dd:g}, but must be at most {prefix}epsilon_dp, {epsilon_dp:g}"
