"""The fields of a certificate of noisy steps, and the problem that its constants describe."""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator

from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.accountants import ACCOUNTANTS
from certified_unlearning.accounting.assumptions import Arithmetic
from certified_unlearning.accounting.core.curves import Cycle, Places, Schedule
from certified_unlearning.accounting.core.losses import LossConstants, loss_constants
from certified_unlearning.accounting.core.problem import Problem
from certified_unlearning.accounting.cyclic.accountants import ACCOUNTANTS as CYCLIC_ACCOUNTANTS
from certified_unlearning.accounting.guarantees import as_computed
from certified_unlearning.certificate.ledger import LedgerCertificate
from certified_unlearning.vocabulary import Adjacency, DType, Guarantee, NoiseSource, Smoothness


def _one_of(names: Iterable[str]) -> AfterValidator:
    known = list(dict.fromkeys(names))

    def check(value: str) -> str:
        if value not in known:
            raise ValueError(f"must be one of {', '.join(known)}, not {value!r}")
        return value

    return AfterValidator(check)


def _unless_checked(places: Any, check: ValidatorFunctionWrapHandler, given: ValidationInfo) -> Any:
    """Return checked places.

    If the places are those of the schedule that `of` certifies, they were checked before, and are not checked again.
    """
    return places if given.context is not None and places is given.context.places else check(places)


class StepsConstants(LedgerCertificate):
    """An (epsilon, delta + extra_delta) unlearning statement with everything that is needed to recompute it.

    The attributes have the same names as in `mechanisms.run.Run` and `ProblemConstants`. ``epsilon`` is the largest
    epsilon over all requests. ``mu`` states this guarantee as Gaussian differential privacy, if the accountant computes
    it. Both numbers cover the last published model. ``epsilon_all_published``, if it is stated, covers all published
    models together, including the first one. It is computed by shifted interpolation, at ``delta`` without
    ``extra_delta``. Before the first request nothing was removed, and ``epsilon`` and ``mu`` are 0.

    ``epsilon`` includes rounding: it assumes that a step may end ``rounding_error`` away from the exact result.
    ``epsilon_in_exact_arithmetic`` is the value without rounding. ``noise_delta``, a part of ``extra_delta``, covers
    random norms larger than assumed. Differences of the published weights below ``noise_resolution`` are outside the
    statement (`accounting.core.rounding`). In certificates that were made before rounding was counted, ``epsilon`` does
    not include rounding, and the other four fields are None.

    For mini-batches, ``cycle`` states the number of batches and their size, including the rows of zeros that fill the
    last batch. ``places`` states the batches of the removed records; without ``places``, these records may have been in
    any batch. ``lost_releases``, left out if 0, is the number of releases that were published and then lost when the
    directory was restored from a backup without them. If ``lost_releases`` is above 0, ``epsilon_all_published`` is
    None.

    ``class_weights``, at most 1 each, are factors on the losses of the records of each class.

    For ridge regression, ``loss`` is squared, ``classes`` is 1, and ``target_range`` is the range to which targets were
    clipped before the range was mapped to [-1, 1]. The gradients' bound depends on ``radius``: ``lipschitz`` is
    ``radius + 1``. If the model predicts classes, their number determines the loss, so ``loss`` and ``target_range``
    are left out.
    """

    kind: ClassVar[str] = "steps"

    run_key: str
    mechanism: Annotated[str, _one_of(each.mechanism for each in ACCOUNTANTS.values())]
    variant: Annotated[str, _one_of(name for each in ACCOUNTANTS.values() for name in each.variants)]
    accountant: Annotated[str, _one_of(ACCOUNTANTS)]
    guarantee: Guarantee
    comparator: str
    adjacency: Adjacency
    epsilon: float
    mu: float | None
    epsilon_all_published: float | None = None
    epsilon_in_exact_arithmetic: float | None = None
    rounding_error: float | None = None
    noise_delta: float | None = None
    noise_resolution: float | None = None
    delta: float
    extra_delta: float
    n: int = Field(ge=1)
    d: int = Field(ge=1)
    classes: int = Field(ge=1)
    loss: Literal["squared"] | None = Field(default=None, exclude_if=lambda loss: loss is None)
    target_range: tuple[float, float] | None = Field(default=None, exclude_if=lambda range_: range_ is None)
    largest_eigenvalue: float | None = Field(gt=0)
    strong_convexity: float = Field(gt=0)
    smoothness: Smoothness
    smoothness_constant: float
    lipschitz: float
    step_size: float
    sigma: float
    learning_steps: int
    unlearning_steps: tuple[int, ...]
    records_per_request: int | tuple[int, ...]
    cycle: Cycle | None = Field(default=None, exclude_if=lambda cycle: cycle is None)
    places: Annotated[tuple[Places, ...] | None, WrapValidator(_unless_checked)] = Field(
        default=None, exclude_if=lambda places: places is None
    )
    radius: float | None = Field(gt=0)
    start: float = Field(allow_inf_nan=False)
    assumptions: tuple[Assumption, ...]
    dtype: DType
    dataset: str
    features: str | None
    noise_source: NoiseSource
    data_sha256: str | None
    class_weights: tuple[float, ...] | None = Field(default=None, exclude_if=lambda weights: weights is None)
    lost_releases: int = Field(default=0, ge=0, exclude_if=lambda releases: releases == 0)
    code_version: str

    @property
    def schedule(self) -> Schedule:
        """The steps that the certificate covers, and their noise; for Descent-to-Delete, the noise on publication."""
        return Schedule(
            sigma=self.sigma,
            records_per_request=self.records_per_request if self.unlearning_steps else (),
            steps=self.unlearning_steps,
            learning_steps=self.learning_steps,
            cycle=self.cycle,
            places=self.places,
        )

    @property
    def arithmetic(self) -> Arithmetic | None:
        """The precision of the run's arithmetic; None if the certificate does not state it."""
        if self.rounding_error is None or self.noise_delta is None or self.noise_resolution is None:
            return None
        return Arithmetic(self.rounding_error, self.noise_delta, self.noise_resolution)

    @property
    def is_cyclic(self) -> bool:
        """Whether the steps go through mini-batches in cycles."""
        return self.accountant in CYCLIC_ACCOUNTANTS

    @property
    def has_noise_in_every_step(self) -> bool:
        """Whether every step is noisy, including the steps of learning.

        Descent-to-Delete adds noise only on publication.
        """
        return self.is_cyclic or ACCOUNTANTS[self.accountant].noise_in_every_step

    @property
    def caveat(self) -> str | None:
        """A sentence that prevents a misunderstanding of the comparator; None if no misunderstanding is likely."""
        if (self.accountant, self.variant) != ("descent-to-delete shifted", "published-state"):
            return None
        return (
            "This says nothing about a model that is retrained and noised once. Such a model may be far easier to "
            "tell from this model; accountant='conditional' covers that comparison."
        )

    @property
    def exact_problem(self) -> Problem:
        """The problem in exact arithmetic."""
        return Problem(
            n=self.n if self.cycle is None else self.cycle.batch_size,
            strong_convexity=self.strong_convexity,
            smoothness=self.smoothness_constant,
            lipschitz=self.lipschitz,
            step_size=self.step_size,
            adjacency=self.adjacency,
        )

    @property
    def computed_problem(self) -> Problem:
        """The problem, including the rounding errors of the run's floating-point type."""
        return as_computed(
            self.exact_problem,
            dimension=self.d,
            classes=self.classes,
            dtype=self.dtype,
            variant=self.variant,
            start=self.start,
            projects=self.radius is not None,
        )

    @property
    def problem(self) -> Problem:
        """The problem to which the certificate's numbers refer.

        If the numbers do not include rounding, the problem is that of exact arithmetic.
        """
        return self.exact_problem if self.arithmetic is None else self.computed_problem

    @property
    def least_constants(self) -> LossConstants:
        """The smallest constants that are valid for the loss, the rule for ``L`` and the certificate's removals."""
        return loss_constants(
            classes=self.classes,
            n=self.n,
            regularisation=self.strong_convexity / self.n,
            smoothness=self.smoothness,
            largest_eigenvalue=self.largest_eigenvalue,
            records=sum(self.schedule.records),
            bounds="tight",
        )
