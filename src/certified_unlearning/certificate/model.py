"""A certificate: what is stated, and everything needed to recompute it; how a plan's run gets one."""

from pathlib import Path
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning import accounting, assumptions
from certified_unlearning.accounting import Adjacency
from certified_unlearning.assumptions import Arithmetic, Assumption, CertifiedFeatures, NoiseSource
from certified_unlearning.experiments.model import Accountant, Guarantee, Mechanism, Plan, Run
from certified_unlearning.files import read_model, write_model
from certified_unlearning.guarantees import arithmetic_of, as_computed, guarantee_of
from certified_unlearning.parameters import CLASSES, DType, Smoothness
from certified_unlearning.version import code_version

Variant = Literal["least-sigma", "least-steps", "secret-state", "published-state"]
WORTH_SAYING = 0.01
"""Share of epsilon from which on what rounding adds is said."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Certificate(_Model):
    """An (epsilon, delta + extra_delta) unlearning statement and everything needed to recompute it.

    Attributes are named as in `experiments.model.Run` and `Constants`; ``epsilon`` is the
    largest over all requests, and ``mu`` the same as Gaussian differential privacy, where the accountant gives one.
    Both speak of the model published last; ``epsilon_all_published``, where it is stated, of all models that were
    published, the learned one included: what somebody who kept them can tell (at delta alone, by shifted
    interpolation). Without any request nothing was removed, and both are 0.

    What is computed is rounded: ``epsilon`` counts that a step may end ``rounding_error`` away from the exact one, and
    ``epsilon_in_exact_arithmetic`` is what it would be otherwise; ``noise_delta``, a part of ``extra_delta``, pays for
    random norms that are larger than supposed, and differences of the published weights below ``noise_resolution`` are
    outside the statement (`accounting.rounding`). All four are None in certificates of before this was counted.
    """

    run_key: str
    mechanism: Mechanism
    variant: Variant
    accountant: Accountant
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
    classes: int = Field(ge=2)
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
    radius: float | None = Field(gt=0)
    start: float = Field(allow_inf_nan=False)
    assumptions: tuple[Assumption, ...]
    dtype: DType
    dataset: str
    features: CertifiedFeatures | None
    noise_source: NoiseSource
    data_sha256: str | None
    code_version: str

    @property
    def schedule(self) -> accounting.Schedule:
        """The steps that the certificate speaks of, and their noise; Descent-to-Delete's is that of publication."""
        return accounting.Schedule(
            sigma=self.sigma,
            records_per_request=self.records_per_request if self.unlearning_steps else (),
            steps=self.unlearning_steps,
            learning_steps=self.learning_steps,
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


def certify(plan: Plan, run: Run) -> Certificate:
    """Return the certificate of a Langevin or Descent-to-Delete run."""
    constants, settings = plan.constants, plan.settings
    own = settings.dataset not in CLASSES
    features: CertifiedFeatures | None = "declared" if own else settings.features
    start = settings.start if run.mechanism == "langevin" else 0.0
    problem = as_computed(
        accounting.Problem(
            n=constants.n,
            strong_convexity=constants.strong_convexity,
            smoothness=constants.smoothness_constant,
            lipschitz=constants.lipschitz,
            step_size=run.step_size,
            adjacency=settings.adjacency,
        ),
        dimension=constants.d,
        classes=constants.classes,
        dtype=run.dtype,
        variant=run.variant,
        start=start,
        projects=run.radius is not None,
    )
    schedule = accounting.Schedule(
        sigma=run.sigma,
        records_per_request=run.records_per_request,
        steps=tuple(request.unlearning_steps for request in run.requests),
        learning_steps=run.learning_steps,
    )
    guaranteed = guarantee_of(
        problem,
        schedule,
        accountant=run.accountant,
        variant=run.variant,
        delta=constants.delta,
        dimension=constants.d,
        start=start,
    )
    return Certificate(
        run_key=plan.key(run),
        mechanism=run.mechanism,
        variant=cast(Variant, run.variant),
        accountant=run.accountant,
        guarantee=run.guarantee,
        comparator=assumptions.comparator(run.accountant, run.variant),
        adjacency=settings.adjacency,
        **guaranteed._asdict(),
        delta=constants.delta,
        n=constants.n,
        d=constants.d,
        classes=constants.classes,
        # Of a table of one's own a digest or an eigenvalue would let whoever has the other records guess a removed one.
        largest_eigenvalue=None if own and settings.smoothness == "bound" else constants.largest_eigenvalue,
        strong_convexity=constants.strong_convexity,
        smoothness=settings.smoothness,
        smoothness_constant=constants.smoothness_constant,
        lipschitz=constants.lipschitz,
        step_size=run.step_size,
        sigma=run.sigma,
        learning_steps=run.learning_steps,
        unlearning_steps=schedule.steps,
        records_per_request=run.records_per_request,
        radius=run.radius,
        start=start,
        assumptions=assumptions.assumptions(
            run.accountant,
            settings.smoothness,
            run.dtype,
            settings.dataset,
            features,
            constants.classes,
            "seed",
            settings.adjacency,
            arithmetic_of(guaranteed),
        ),
        dtype=run.dtype,
        dataset=settings.dataset,
        features=features,
        noise_source="seed",
        data_sha256=None if own else constants.data_sha256,
        code_version=code_version(),
    )


def write(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate as JSON, atomically."""
    write_model(path, certificate)


def read(path: str | Path) -> Certificate:
    """Read a certificate.

    Raises:
        DataError: The file is missing or is no certificate.
    """
    return read_model(path, Certificate, "a certificate")
