"""The sweep of the experiment `audit`, which is a section of `params.yaml`."""

from typing import Annotated

from pydantic import Field

from certified_unlearning.mechanisms.settings import Distinct, PositiveFloat, PositiveInt
from certified_unlearning.papers.cheaper_than_retraining.sweeps import LEAST_RECORDS, Asked

LEAST_TRIALS = 100
"""The smallest number of trials for each of the two distributions."""
_Size = Annotated[int, Field(ge=LEAST_RECORDS)]


class Audits(Asked):
    """One-run audits of every system in the experiment `cost`, and audits that compare two distributions."""

    uncertified: Distinct[_Size] = Field(
        description=f"a list of distinct whole numbers of at least {LEAST_RECORDS}: the numbers of remaining records "
        "for systems without a certificate"
    )
    certified: Distinct[_Size] = Field(
        description=f"a list of distinct whole numbers of at least {LEAST_RECORDS}: the numbers of remaining records "
        "for exact and certified systems; each system is audited at the first number at which it can run"
    )
    features: Annotated[int, Field(ge=2)] = Field(
        description="the number of columns of a synthetic row: a whole number, at least 2"
    )
    canaries: Annotated[int, Field(ge=14)] = Field(
        description="the number of canaries of an audit in one run, at least 14; half of them are learned and removed"
    )
    copies: PositiveInt = Field(
        description="the number of copies of each canary for exact and certified systems: a whole number, at least 1; "
        "noise may hide a single copy"
    )
    steps: PositiveInt = Field(
        description="the number of steps of fine-tuning and of gradient ascent: a whole number, at least 1"
    )
    targets: Distinct[PositiveFloat] = Field(
        description="the certified epsilons in audits that compare two distributions: distinct numbers above 0"
    )
    records: Annotated[int, Field(ge=20)] = Field(
        description="number of records in audits that compare two distributions, at least 20"
    )
    trials: Annotated[int, Field(ge=LEAST_TRIALS)] = Field(
        description=f"the number of models of each law: a whole number, at least {LEAST_TRIALS}"
    )
    alpha: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="the largest probability that one verdict is a false alarm, strictly between 0 and 1"
    )
