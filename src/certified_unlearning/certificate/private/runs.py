"""The constants of one run of a private learner, by mechanism.

They are what privacy follows from, and nothing else of a plan: a number that changes nothing could be edited unseen. So
the step size of SpiderBoost and of DP-SGD, where a tree stops, and a radius that plays no part are not among them.
"""

from pydantic import BaseModel, ConfigDict, Field


class RunConstants(BaseModel):
    """Numbers of a run; frozen, and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PrivateRun(RunConstants):
    """The constants of one run of noisy gradient descent or output perturbation; a search has several.

    Attributes:
        radius: Of the ball that weights are projected on, or a minimiser lies in.
        sigma: Standard deviation of the noise per coordinate: on each mean gradient, or on the minimiser.
        steps: Iterates of noisy gradient descent, the start included; one noisy gradient less.
        step_size: Of noisy gradient descent.
        strong_convexity: Of output perturbation.
        inexactness: Of output perturbation: how far the computed minimiser may be from the exact one.
    """

    radius: float = Field(gt=0)
    sigma: float = Field(gt=0)
    steps: int | None = Field(default=None, ge=2)
    step_size: float | None = Field(default=None, gt=0)
    strong_convexity: float | None = Field(default=None, gt=0)
    inexactness: float | None = Field(default=None, gt=0)


class SpiderConstants(RunConstants):
    """The constants of SpiderBoost, whose gradients are all of all records.

    Attributes:
        gradients: Noisy mean gradients.
        differences: Noisy mean differences of gradients.
        batch: Expected size of a Poisson batch of differences; None where they are of all records.
        sigma_gradient: Standard deviation of a gradient's noise, per coordinate.
        sigma_difference: That of a difference's, in units of the distance between its points.
    """

    gradients: int = Field(ge=1)
    differences: int = Field(ge=0)
    batch: int | None = Field(default=None, ge=1)
    sigma_gradient: float = Field(gt=0)
    sigma_difference: float = Field(gt=0)


class TreeConstants(RunConstants):
    """The constants of the tree-based Spider.

    Attributes:
        batch: Records of a root.
        depth: Levels below it.
        rounds: Trees.
        multiplier: Noise of every release, in units of how far one record moves it.
    """

    batch: int = Field(ge=1)
    depth: int = Field(ge=1)
    rounds: int = Field(ge=1)
    multiplier: float = Field(gt=0)


class Stage(RunConstants):
    """The constants of a stage of recursive regularisation: noisy descent on a chunk of the records.

    Attributes:
        radius: Of the ball that weights are projected on.
        steps: Iterates, the start included; one noisy gradient less.
        step_size: Of descent.
        sigma: Standard deviation of the noise per coordinate, on each mean gradient.
        regulariser: Curvature of what is added to the loss around public weights.
        mu: Of the stage alone, as Gaussian differential privacy.
    """

    radius: float = Field(gt=0)
    steps: int = Field(ge=2)
    step_size: float = Field(gt=0)
    sigma: float = Field(gt=0)
    regulariser: float = Field(gt=0)
    mu: float = Field(gt=0)


class Phase(RunConstants):
    """The constants of a phase of phased descent: one pass over a block of the records.

    Attributes:
        records: Of the block.
        radius: Of the ball that weights are projected on.
        step_size: Of descent.
        sigma: Standard deviation of the noise per coordinate, on the mean of the iterates.
        mu: Of the phase alone, as Gaussian differential privacy.
    """

    records: int = Field(ge=1)
    radius: float = Field(gt=0)
    step_size: float = Field(gt=0)
    sigma: float = Field(gt=0)
    mu: float = Field(gt=0)


class SampledSteps(RunConstants):
    """The constants of DP-SGD.

    Attributes:
        steps: Batches.
        share: The probability of a record in a batch.
        clip: What gradients of records are clipped to.
        sigma: Standard deviation of the noise per coordinate, on a batch's sum divided by its expected size.
    """

    steps: int = Field(ge=1)
    share: float = Field(gt=0, le=1)
    clip: float = Field(gt=0)
    sigma: float = Field(gt=0)


Run = PrivateRun | SpiderConstants | TreeConstants | Stage | Phase | SampledSteps
