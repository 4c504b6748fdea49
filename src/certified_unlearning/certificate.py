"""What is guaranteed, from which constants, under which assumptions; anyone can recompute it."""

import math
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from certified_unlearning import accounting, assumptions
from certified_unlearning.assumptions import Assumption
from certified_unlearning.errors import UnlearningError
from certified_unlearning.experiments.model import Accountant, Guarantee, Mechanism, Plan, Run
from certified_unlearning.files import read_model, write_model
from certified_unlearning.mechanisms.learning_start import extra_delta
from certified_unlearning.parameters import Adjacency, Dataset, DType, Smoothness
from certified_unlearning.version import code_version

TOLERANCE = 1e-9
"""Relative difference up to which a recomputed epsilon counts as equal: the minimisation's own accuracy."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Certificate(_Model):
    """An (epsilon, delta + extra_delta) unlearning statement and everything needed to recompute it.

    Attributes are named as in `experiments.model.Run` and `Constants`; ``epsilon`` is the largest over all requests.
    """

    run_key: str
    mechanism: Mechanism
    variant: str
    accountant: Accountant
    guarantee: Guarantee
    comparator: str
    adjacency: Adjacency
    epsilon: float
    delta: float
    extra_delta: float
    n: int
    d: int
    strong_convexity: float
    smoothness: Smoothness
    smoothness_constant: float
    lipschitz: float
    step_size: float
    sigma: float
    learning_steps: int
    unlearning_steps: tuple[int, ...] = Field(min_length=1)
    records_per_request: int
    radius: float | None
    start: float
    assumptions: tuple[Assumption, ...]
    dtype: DType
    dataset: Dataset
    data_sha256: str
    code_version: str


def certify(plan: Plan, run: Run) -> Certificate:
    """Return the certificate of a Langevin or Descent-to-Delete run."""
    constants, settings = plan.constants, plan.settings
    langevin = run.mechanism == "langevin"
    return Certificate(
        run_key=plan.key(run),
        mechanism=run.mechanism,
        variant=run.variant,
        accountant=run.accountant,
        guarantee=run.guarantee,
        comparator=assumptions.comparator(run.mechanism),
        adjacency=settings.adjacency,
        epsilon=max(request.epsilon for request in run.requests),
        delta=constants.delta,
        extra_delta=run.extra_delta,
        n=constants.n,
        d=constants.d,
        strong_convexity=constants.strong_convexity,
        smoothness=settings.smoothness,
        smoothness_constant=constants.smoothness_constant,
        lipschitz=constants.lipschitz,
        step_size=run.step_size,
        sigma=run.sigma,
        learning_steps=run.learning_steps,
        unlearning_steps=tuple(request.unlearning_steps for request in run.requests),
        records_per_request=run.records_per_request,
        radius=run.radius,
        start=settings.start if langevin else 0.0,
        assumptions=assumptions.assumptions(run.mechanism, settings.smoothness, settings.dtype, settings.dataset),
        dtype=settings.dtype,
        dataset=settings.dataset,
        data_sha256=constants.data_sha256,
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


class CertificateError(UnlearningError):
    """A certificate states what its constants do not give."""


def verify(certificate: Certificate) -> None:
    """Recompute what a certificate states, in numbers and in words.

    Where the numbers come from (data set digest, run key, code version) is taken as stated.

    Raises:
        CertificateError: The recomputed epsilon or extra delta differs (the message has both numbers), or the
            guarantee, the comparator or the assumptions are not those of the mechanism.
        AssumptionError: A theorem's assumption does not hold for the certificate's constants.
    """
    _verify_words(certificate)
    epsilon, extra_delta = _RECOMPUTE[certificate.accountant](certificate)
    for name, stated, computed in (
        ("epsilon", certificate.epsilon, epsilon),
        ("extra_delta", certificate.extra_delta, extra_delta),
    ):
        if not math.isclose(stated, computed, rel_tol=TOLERANCE):
            raise CertificateError(
                f"the certificate of run {certificate.run_key[:12]} states {name} = {stated!r}, "
                f"but its constants give {computed!r}"
            )


def _verify_words(certificate: Certificate) -> None:
    """Check the words: they follow from the mechanism, the accountant, the smoothness rule and the data set."""
    mechanism, smoothness = certificate.mechanism, certificate.smoothness
    accountants = {"langevin": ("lsi",), "descent-to-delete": ("descent-to-delete N.1", "descent-to-delete N.2")}
    if certificate.accountant not in accountants.get(mechanism, ()):
        raise CertificateError(f"the accountant {certificate.accountant!r} says nothing of the mechanism {mechanism!r}")
    needed = 0.25 + certificate.strong_convexity
    if smoothness == "bound" and certificate.smoothness_constant < needed * (1 - TOLERANCE):
        raise CertificateError(
            f"the certificate of run {certificate.run_key[:12]} states smoothness_constant = "
            f"{certificate.smoothness_constant!r} by the rule 'bound', but 1/4 + strong_convexity is {needed!r}"
        )
    stated = (certificate.guarantee, certificate.comparator, certificate.assumptions)
    due = (
        assumptions.guarantee(mechanism, smoothness),
        assumptions.comparator(mechanism),
        assumptions.assumptions(mechanism, smoothness, certificate.dtype, certificate.dataset),
    )
    for name, said, right in zip(("guarantee", "comparator", "assumptions"), stated, due, strict=True):
        if said != right:
            raise CertificateError(
                f"the certificate of run {certificate.run_key[:12]} states other {name} than its mechanism and "
                f"smoothness give: {said!r} instead of {right!r}"
            )


def _problem(certificate: Certificate) -> accounting.Problem:
    return accounting.Problem(
        n=certificate.n,
        strong_convexity=certificate.strong_convexity,
        smoothness=certificate.smoothness_constant,
        lipschitz=certificate.lipschitz,
        step_size=certificate.step_size,
        adjacency=certificate.adjacency,
    )


def _recompute_langevin(certificate: Certificate) -> tuple[float, float]:
    problem = _problem(certificate)
    steps = certificate.unlearning_steps
    epsilon = max(
        accounting.sequential_epsilon(
            problem,
            sigma=certificate.sigma,
            delta=certificate.delta,
            records_per_request=certificate.records_per_request,
            steps=steps[: number + 1],
        )
        for number in range(len(steps))
    )
    extra = extra_delta(
        problem,
        sigma=certificate.sigma,
        dimension=certificate.d,
        start=certificate.start,
        learning_steps=certificate.learning_steps,
        epsilon=epsilon,
    )
    return epsilon, extra


def _recompute_secret_state(certificate: Certificate) -> tuple[float, float]:
    problem = _problem(certificate)
    steps = min(certificate.unlearning_steps)
    epsilon = accounting.secret_state_epsilon(problem, sigma=certificate.sigma, delta=certificate.delta, steps=steps)
    _require_learning_steps(certificate, problem, steps)
    return epsilon, 0.0


def _recompute_published_state(certificate: Certificate) -> tuple[float, float]:
    problem = _problem(certificate)
    epsilon = accounting.published_state_epsilon(
        problem,
        sigma=certificate.sigma,
        delta=certificate.delta,
        dimension=certificate.d,
        steps_per_request=certificate.unlearning_steps,
    )
    _require_learning_steps(certificate, problem, min(certificate.unlearning_steps))
    return epsilon, 0.0


def _require_learning_steps(certificate: Certificate, problem: accounting.Problem, steps: int) -> None:
    if certificate.radius is None:
        raise CertificateError("Descent-to-Delete's theorems need a ball, but the certificate states no radius")
    needed = accounting.least_learning_steps(problem, radius=certificate.radius, steps=steps)
    if certificate.learning_steps < needed:
        raise CertificateError(
            f"the certificate of run {certificate.run_key[:12]} states {certificate.learning_steps} learning "
            f"steps, but the theorem needs {needed}"
        )


_RECOMPUTE: dict[Accountant, Callable[[Certificate], tuple[float, float]]] = {
    "lsi": _recompute_langevin,
    "descent-to-delete N.1": _recompute_secret_state,
    "descent-to-delete N.2": _recompute_published_state,
}
