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
    """Return checked places; those of the schedule that `of` is making a statement about are returned unchanged."""
    return places if given.context is not None and places is given.context.places else check(places)


class StepsConstants(LedgerCertificate):
    """An (epsilon, delta + extra_delta) unlearning statement and everything needed to recompute it.

    Attributes are named as in `mechanisms.run.Run` and `ProblemConstants`; ``epsilon`` is the largest over all
    requests, and ``mu`` the same as Gaussian differential privacy, where the accountant gives one. Both cover the last
    published model. ``epsilon_all_published``, if stated, covers all published models together, including the learned
    one (at delta alone, by shifted interpolation). Without any request nothing was removed, and both are 0.

    Computation rounds: ``epsilon`` counts that a step may end ``rounding_error`` away from the exact one, and
    ``epsilon_in_exact_arithmetic`` is the value without rounding. ``noise_delta``, a part of ``extra_delta``, covers
    random norms larger than assumed. Differences of the published weights below ``noise_resolution`` are outside the
    statement (`accounting.core.rounding`). All four are None in certificates made before this was counted.

    For mini-batches, ``cycle`` states their number and size, including the rows of zeros that fill the last one.
    ``places`` states the batches of the removed records; without it they may have been in any. ``lost_releases``,
    omitted if 0, are releases that were published and lost, because the directory was restored from a backup without
    them; then ``epsilon_all_published`` is None.

    ``class_weights``, at most 1 each, are factors on the losses of each class' records.

    For ridge regression, ``loss`` is squared, ``classes`` is 1, and ``target_range`` is the range that targets were
    clipped to before it was mapped into [-1, 1]. The gradients' bound depends on ``radius``: ``lipschitz`` is
    ``radius + 1``. For classes, whose number determines the loss, ``loss`` and ``target_range`` are omitted.
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
        """The steps that the certificate covers, and their noise; for Descent-to-Delete, the noise of publication."""
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
        """Precision of the run; None if the certificate does not state it."""
        if self.rounding_error is None or self.noise_delta is None or self.noise_resolution is None:
            return None
        return Arithmetic(self.rounding_error, self.noise_delta, self.noise_resolution)

    @property
    def is_cyclic(self) -> bool:
        """Whether its steps go through mini-batches."""
        return self.accountant in CYCLIC_ACCOUNTANTS

    @property
    def has_noise_in_every_step(self) -> bool:
        """Whether every step is noisy, including those of learning; Descent-to-Delete adds noise on publication."""
        return self.is_cyclic or ACCOUNTANTS[self.accountant].noise_in_every_step

    @property
    def caveat(self) -> str | None:
        """What its comparator is not, where a misunderstanding is likely."""
        if (self.accountant, self.variant) != ("descent-to-delete shifted", "published-state"):
            return None
        return (
            "That is no statement about a model that is retrained and noised once, from which this one may be told "
            "apart far better: accountant='conditional' speaks of that."
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
        """The problem with the rounding of its type of numbers."""
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
        """The problem that its numbers refer to; before rounding was counted, one in exact arithmetic."""
        return self.exact_problem if self.arithmetic is None else self.computed_problem

    @property
    def least_constants(self) -> LossConstants:
        """The least constants that the loss and the rule for L allow for its removals."""
        return loss_constants(
            classes=self.classes,
            n=self.n,
            regularisation=self.strong_convexity / self.n,
            smoothness=self.smoothness,
            largest_eigenvalue=self.largest_eigenvalue,
            records=sum(self.schedule.records),
            bounds="tight",
        )
