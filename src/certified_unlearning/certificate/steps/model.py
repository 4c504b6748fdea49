"""The certificate of noisy steps: how it is made from a run and recomputed from its constants."""

import math
from typing import Any, Self

from certified_unlearning import accounting
from certified_unlearning.accounting import assumptions
from certified_unlearning.accounting.accountants import ACCOUNTANTS
from certified_unlearning.accounting.guaranteed import Guaranteed
from certified_unlearning.accounting.guarantees import epsilon_all_published, guarantee_of
from certified_unlearning.accounting.streams import Stream
from certified_unlearning.certificate.base import TOLERANCE, CertificateError, Stated
from certified_unlearning.certificate.guesses import Share, so_many_of_1000_are_right
from certified_unlearning.certificate.ledger import Scope
from certified_unlearning.certificate.lost import NOTHING_OF_LOST_RELEASES, OBLIVIOUS_RESTORE
from certified_unlearning.certificate.preprocessing import preprocessing
from certified_unlearning.certificate.steps.constants import StepsConstants
from certified_unlearning.certificate.steps.limits import limits_of
from certified_unlearning.errors import UnlearningError
from certified_unlearning.mechanisms.run import Run
from certified_unlearning.text import counted, rounded_up
from certified_unlearning.vocabulary import NoiseSource, Reading

WORTH_SAYING = 0.01
"""If rounding increases epsilon by more than this share, certificates also state the value without rounding."""
NEGLIGIBLE = 0.01
"""Largest share by which rounding may increase epsilon in a certificate that does not include rounding."""


class StepsCertificate(StepsConstants):
    """An (epsilon, delta + extra_delta) unlearning statement of noisy steps.

    `StepsConstants` defines its fields.
    """

    takes_noisy_steps = True

    @property
    def is_empty(self) -> bool:
        """Whether the certificate guarantees nothing yet, because no record was removed yet."""
        return not self.unlearning_steps

    @property
    def title(self) -> str:
        """The certificate's name in messages."""
        return f"the certificate of run {self.run_key[:12]}"

    @property
    def not_promised(self) -> tuple[str, ...]:
        """What the certificate does not promise."""
        return (
            "the guarantee does not cover requests that were made because of what a model said",
            "the guarantee does not protect the people whose records remain",
            *((NOTHING_OF_LOST_RELEASES,) if self.lost_releases else ()),
        )

    @property
    def lost(self) -> int:
        """Number of releases that were published and lost."""
        return self.lost_releases

    def of_one_release(self) -> Self:
        """Return a copy that states no epsilon for all releases together."""
        return self.model_copy(update={"epsilon_all_published": None})

    @property
    def epsilon_without_rounding(self) -> float | None:
        """``epsilon_in_exact_arithmetic``; None if the relative increase by rounding is at most `WORTH_SAYING`."""
        exact = self.epsilon_in_exact_arithmetic
        return exact if exact is not None and self.epsilon > exact * (1 + WORTH_SAYING) else None

    def stated(self) -> Stated:
        """Return the certificate's numbers."""
        return Stated(
            self.epsilon,
            self.delta,
            self.extra_delta,
            self.epsilon_all_published,
            self.adjacency,
            self.accountant,
            self.mu,
        )

    def details(self) -> str:
        """Return the whole statement, in technical terms."""
        if self.is_empty:
            return "nothing was removed yet, so nothing is guaranteed"
        exact = self.epsilon_without_rounding
        rounding = "" if exact is None else f" ({rounded_up(exact)} in exact arithmetic)"
        return (
            f"epsilon = {rounded_up(self.epsilon)}{rounding} at delta = {rounded_up(self.delta + self.extra_delta)} "
            f"under {self.adjacency} ({self.guarantee} by {self.accountant}; {self.not_checked})"
        )

    @classmethod
    def scope(cls, stated: Stated, release: str) -> Scope:
        """Return the scope: requests do not depend on releases.

        Observers may have all releases if an epsilon covers all releases together.
        """
        return Scope(
            compared_with="learning anew with the same noisy steps",
            adaptive=False,
            sentence=stated.in_words(release),
        )

    @classmethod
    def removed_by(cls, steps: int, reading: Reading | None) -> str:
        """Return how records were removed from a version."""
        return f"K = {counted(steps, 'step')}"

    def done(self, steps: int, reading: Reading | None) -> str:
        """Return sentences about the request: steps on the remaining records reduced the removed records' influence."""
        return (
            f"The model was not trained again from the beginning. {counted(steps, 'training step')} on the remaining "
            "records, each with random numbers (noise) added to it, were taken to reduce the influence of what was "
            "removed. The result below says how far the steps reduced this influence."
        )

    def all_shares(self) -> tuple[Share, ...]:
        """Return the shares of right guesses, including the share for an observer of all versions if it is bounded."""
        with_earlier = self.share_with_earlier_versions()
        return super().all_shares() if with_earlier is None else (*super().all_shares(), with_earlier)

    def share_with_earlier_versions(self) -> Share | None:
        """Return the largest share of right guesses by an observer of all versions; None if no bound is stated."""
        every = self.epsilon_all_published
        return None if every is None else Share.of_epsilon(every, self.delta)

    def with_earlier_versions(self) -> str:
        """Return the bound on right guesses by an observer of all versions, as a plain sentence."""
        share = self.share_with_earlier_versions()
        if share is None:
            return super().with_earlier_versions()
        often = so_many_of_1000_are_right(share)
        return (
            "Someone has all versions, including those from before the removal, and guesses whether the removed "
            f"records were used. Under the same conditions, {often}."
        )

    def with_known_number(self) -> str:
        """Return sentences that say that the comparator has the same normaliser and the same number of steps."""
        return (
            "The number of removed records is assumed to be known, so the guesses are not about this number. The model "
            "used for comparison divides by a number that includes the removed records, and takes the same number of "
            "steps. It uses no other information about the removed records."
        )

    def limits(self) -> dict[str, tuple[bool, str]]:
        """Return, for each field, whether its value is possible, and the possible values; see `limits_of`."""
        return limits_of(self)

    def words(self) -> dict[str, Any]:
        """Return the fields whose text follows from the mechanism, accountant, smoothness rule and data set."""
        return {
            "guarantee": assumptions.guarantee(self.accountant, self.smoothness),
            "comparator": assumptions.comparator(self.accountant, self.variant),
            "assumptions": (
                *assumptions.assumptions(
                    self.accountant,
                    self.smoothness,
                    self.dtype,
                    preprocessing(self.dataset, self.features),
                    self.classes,
                    self.noise_source,
                    self.adjacency,
                    self.arithmetic,
                    self.class_weights,
                ),
                *((OBLIVIOUS_RESTORE,) if self.lost_releases else ()),
            ),
        }

    def recomputed(self) -> dict[str, float | None]:
        """Return the numbers that follow from the constants.

        Raises:
            CertificateError: The published theorems of Descent-to-Delete need more learning steps.
            AssumptionError: A theorem's assumption does not hold for the constants.
        """
        if ACCOUNTANTS[self.accountant].as_published:
            self._require_learning_steps()
        due: dict[str, float | None] = self._guaranteed(self.problem)._asdict()
        if self.lost_releases:
            due["epsilon_all_published"] = None
        elif self.epsilon_all_published is not None or self._models_are_published:
            due["epsilon_all_published"] = epsilon_all_published(self.problem, self.schedule, delta=self.delta)
        return due

    def check(self) -> None:
        """Compare the statement with what follows from the constants; see `Certificate.check`.

        Values that only the data can show are taken as stated: the number of records, the largest eigenvalue (within
        the bounds for rows of norm 1), the data set's digest, and the places of removed records in the mini-batches.
        The run key and the code version are also taken as stated.

        Raises:
            CertificateError: A number or text differs, or the accountant does not cover the statement.
            AssumptionError: A theorem's assumption does not hold for the constants.
        """
        try:
            self.require(self.limits(), must=f"but by {self.accountant} on {self.dataset} it must be")
            self._require_bounds_of_the_loss()
            self.require_words(self.words(), source="accountant and smoothness")
            self.require_numbers(self.recomputed())
            if self.arithmetic is None and self.unlearning_steps:
                self._require_negligible_rounding()
        except (OverflowError, ZeroDivisionError) as error:
            raise CertificateError(f"{self.title} states constants of impossible sizes: {error}") from error

    def _require_bounds_of_the_loss(self) -> None:
        """Raise `CertificateError` if the loss allows larger gradients or curvatures than the certificate states."""
        needed = self.least_constants
        if self.lipschitz < needed.lipschitz * (1 - TOLERANCE):
            raise CertificateError(
                f"{self.title} states lipschitz = {self.lipschitz!r}, but the gradients of records of norm 1 are only "
                f"known to be bounded by {needed.lipschitz!r}"
            )
        if self.smoothness_constant < needed.smoothness * (1 - TOLERANCE):
            raise CertificateError(
                f"{self.title} states smoothness_constant = {self.smoothness_constant!r}, but the rule "
                f"{self.smoothness!r} needs at least {needed.smoothness!r}"
            )

    def _require_learning_steps(self) -> None:
        """Raise `CertificateError` if the published theorems cannot be used.

        The theorems of Descent-to-Delete need a ball and a minimum number of learning steps.
        """
        if self.radius is None:
            raise CertificateError("Descent-to-Delete's theorems need a ball, but the certificate states no radius")
        if not self.unlearning_steps:
            return
        steps = min(self.unlearning_steps)
        needed = accounting.least_learning_steps(self.exact_problem, radius=self.radius, steps=steps)
        if self.learning_steps < needed:
            raise CertificateError(
                f"{self.title} states {self.learning_steps} learning steps, but the theorem needs {needed}"
            )

    def _require_negligible_rounding(self) -> None:
        """Raise `CertificateError` if uncounted rounding could increase a stated epsilon by more than `NEGLIGIBLE`."""
        problem = self.computed_problem
        try:
            guaranteed = self._guaranteed(problem)
            rounded, extra_delta = guaranteed.epsilon, guaranteed.extra_delta
            all_published = epsilon_all_published(problem, self.schedule, delta=self.delta)
        except UnlearningError:
            rounded = extra_delta = all_published = math.inf
        stated = self.epsilon_all_published
        negligible = (
            rounded <= self.epsilon * (1 + NEGLIGIBLE)
            and extra_delta <= self.extra_delta + NEGLIGIBLE * self.delta
            and (stated is None or (all_published is not None and all_published <= stated * (1 + NEGLIGIBLE)))
        )
        if not negligible:
            raise CertificateError(
                f"{self.title} states epsilon = {self.epsilon!r}, but assumes exact arithmetic: with the rounding of "
                f"{self.dtype} its constants give {rounded:.6g}; learn again"
            )

    @property
    def _models_are_published(self) -> bool:
        """Whether every step has noise, and an estimator or a ledger made the certificate.

        Such a certificate also covers all models of the estimator or ledger together.
        """
        return self.has_noise_in_every_step and (self.features == "given" or self.noise_source == "system entropy")

    def _guaranteed(self, problem: accounting.Problem) -> Guaranteed:
        return guarantee_of(
            problem,
            self.schedule,
            accountant=self.accountant,
            variant=self.variant,
            delta=self.delta,
            dimension=self.d,
            start=self.start,
        )


def of(
    run: Run,
    *,
    key: str,
    noise_source: NoiseSource,
    all_published: bool = False,
    lost_releases: int = 0,
    stream: Stream | None = None,
) -> StepsCertificate:
    """Return the certificate of a run after all its requests.

    Args:
        run: The run.
        key: Content key of the run.
        noise_source: Source of the run's noise.
        all_published: Whether to also state an epsilon for all published models together.
        lost_releases: Number of published models that are not in the run because a restore lost them. If this number is
            above 0, no epsilon is stated for all models together.
        stream: The run's requests and their effect, if they were stored. The caller ensures that they belong to this
            run.

    Raises:
        AssumptionError: The addition to delta would be more than delta.
    """
    constants, schedule = run.constants, run.schedule if stream is None else stream.schedule
    problem = run.computed_problem if stream is None else stream.problem
    guaranteed = run.guaranteed(stream)
    is_known = all_published and not lost_releases
    joint = epsilon_all_published(problem, schedule, delta=constants.delta, stream=stream) if is_known else None
    return StepsCertificate.made(
        numbers={**guaranteed._asdict(), "epsilon_all_published": joint},
        context=schedule,
        run_key=key,
        mechanism=run.mechanism,
        variant=run.variant,
        accountant=run.accountant,
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
        dtype=run.dtype,
        noise_source=noise_source,
        lost_releases=lost_releases,
    )
