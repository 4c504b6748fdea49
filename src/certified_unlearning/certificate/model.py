"""A certificate: what is stated, and everything needed to recompute it; how a run gets one."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from certified_unlearning import accounting
from certified_unlearning.accounting import assumptions
from certified_unlearning.accounting.accountant import Assumption
from certified_unlearning.accounting.accountants import ACCOUNTANTS
from certified_unlearning.accounting.assumptions import Arithmetic
from certified_unlearning.accounting.core.curves import Cycle, Places
from certified_unlearning.accounting.guarantees import arithmetic_of, epsilon_all_published
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.certificate.preprocessing import preprocessing
from certified_unlearning.files import read_model
from certified_unlearning.mechanisms.run import Run
from certified_unlearning.version import code_version
from certified_unlearning.vocabulary import Adjacency, DType, Guarantee, NoiseSource, Smoothness

WORTH_SAYING = 0.01
"""Share of epsilon from which on what rounding adds is said."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _one_of(names: Iterable[str]) -> AfterValidator:
    known = list(dict.fromkeys(names))

    def check(value: str) -> str:
        if value not in known:
            raise ValueError(f"must be one of {', '.join(known)}, not {value!r}")
        return value

    return AfterValidator(check)


def _unless_checked(places: Any, check: ValidatorFunctionWrapHandler, given: ValidationInfo) -> Any:
    """Return checked places: as they are where they are those of the schedule that `of` states something about."""
    return places if given.context is not None and places is given.context.places else check(places)


class Certificate(_Model):
    """An (epsilon, delta + extra_delta) unlearning statement and everything needed to recompute it.

    Attributes are named as in `mechanisms.run.Run` and `Constants`; ``epsilon`` is the
    largest over all requests, and ``mu`` the same as Gaussian differential privacy, where the accountant gives one.
    Both speak of the model published last; ``epsilon_all_published``, where it is stated, of all models that were
    published, the learned one included: what somebody who kept them can tell (at delta alone, by shifted
    interpolation). Without any request nothing was removed, and both are 0.

    What is computed is rounded: ``epsilon`` counts that a step may end ``rounding_error`` away from the exact one, and
    ``epsilon_in_exact_arithmetic`` is what it would be otherwise; ``noise_delta``, a part of ``extra_delta``, pays for
    random norms that are larger than supposed, and differences of the published weights below ``noise_resolution`` are
    outside the statement (`accounting.core.rounding`). All four are None in certificates of before this was counted.

    Of mini-batches ``cycle`` states how many there are and how large they are, with the rows of zeros that fill the
    last one, and ``places`` which batches the removed records were in; without it they may have been in any.
    ``class_weights``, of at most 1 each, are what the losses of each class' records were multiplied by.

    Of ridge regression ``loss`` states that it is squared, ``classes`` is 1 and ``target_range`` what targets were
    clipped to before that range was mapped into [-1, 1]. The gradients' bound rests on ``radius``: ``lipschitz`` is
    ``radius + 1``. Where there are classes, whose number tells the loss, both are left out.
    """

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
    code_version: str

    @property
    def schedule(self) -> accounting.Schedule:
        """The steps that the certificate speaks of, and their noise; Descent-to-Delete's is that of publication."""
        return accounting.Schedule(
            sigma=self.sigma,
            records_per_request=self.records_per_request if self.unlearning_steps else (),
            steps=self.unlearning_steps,
            learning_steps=self.learning_steps,
            cycle=self.cycle,
            places=self.places,
        )

    @property
    def arithmetic(self) -> Arithmetic | None:
        """How exact the run was; None where the certificate does not say."""
        if self.rounding_error is None or self.noise_delta is None or self.noise_resolution is None:
            return None
        return Arithmetic(self.rounding_error, self.noise_delta, self.noise_resolution)

    @property
    def epsilon_without_rounding(self) -> float | None:
        """``epsilon_in_exact_arithmetic`` where rounding matters: where it is more than `WORTH_SAYING` of epsilon."""
        exact = self.epsilon_in_exact_arithmetic
        return exact if exact is not None and self.epsilon > exact * (1 + WORTH_SAYING) else None


def of(
    run: Run,
    *,
    key: str,
    noise_source: NoiseSource,
    all_published: bool = False,
    stream: Stream | None = None,
) -> Certificate:
    """Return what is guaranteed of a run that unlearns, after all its requests.

    Args:
        run: What was run.
        key: Its content key.
        noise_source: Where its noise came from.
        all_published: Whether to state epsilon for who kept every published model, too.
        stream: The run's requests and what they came to, where that was kept; it is not compared with the run.

    Raises:
        AssumptionError: More than delta would be added to delta.
    """
    constants, schedule = run.constants, run.schedule if stream is None else stream.schedule
    problem = run.computed_problem if stream is None else stream.problem
    guaranteed = run.guaranteed(stream)
    joint = epsilon_all_published(problem, schedule, delta=constants.delta, stream=stream) if all_published else None
    stated = dict(
        run_key=key,
        mechanism=run.mechanism,
        variant=run.variant,
        accountant=run.accountant,
        guarantee=run.guarantee,
        comparator=assumptions.comparator(run.accountant, run.variant),
        **guaranteed._asdict(),
        epsilon_all_published=joint,
        **dict(constants),
        loss="squared" if constants.classes == 1 else None,
        step_size=run.step_size,
        sigma=run.sigma,
        learning_steps=run.learning_steps,
        unlearning_steps=schedule.steps,
        records_per_request=run.records_per_request,
        cycle=run.cycle,
        places=schedule.places,
        radius=run.radius,
        start=run.start,
        assumptions=assumptions.assumptions(
            run.accountant,
            constants.smoothness,
            run.dtype,
            preprocessing(constants.dataset, constants.features),
            constants.classes,
            noise_source,
            constants.adjacency,
            arithmetic_of(guaranteed),
            constants.class_weights,
        ),
        dtype=run.dtype,
        noise_source=noise_source,
        code_version=code_version(),
    )
    return Certificate.model_validate(stated, context=schedule)


def read(path: str | Path) -> Certificate:
    """Read a certificate.

    Raises:
        DataError: The file is missing or is no certificate.
    """
    return read_model(path, Certificate, "a certificate")
