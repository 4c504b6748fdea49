"""Plans of Langevin unlearning, Descent-to-Delete and retraining: everything that is fixed before the first step."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from certified_unlearning import accounting
from certified_unlearning.accounting import assumptions
from certified_unlearning.accounting.accountants import ACCOUNTANTS, NO_ACCOUNTANT
from certified_unlearning.accounting.core.search import least_whole
from certified_unlearning.accounting.descent import shifted as descent_shifted
from certified_unlearning.accounting.guarantees import as_computed, guarantee_of
from certified_unlearning.accounting.langevin import accountants as langevin_accountants
from certified_unlearning.accounting.langevin import lsi
from certified_unlearning.accounting.langevin.learning_start import learned_steps
from certified_unlearning.accounting.shifted.arithmetic import (
    FloorOf,
    chosen_arithmetic,
    descent_floor,
    langevin_floor,
    triangle_floor,
)
from certified_unlearning.data.sets import built_in
from certified_unlearning.mechanisms.descent_to_delete import DESCENT_TO_DELETE
from certified_unlearning.mechanisms.langevin import LANGEVIN
from certified_unlearning.mechanisms.mechanism import Mechanism
from certified_unlearning.mechanisms.retraining import RETRAINING
from certified_unlearning.mechanisms.run import ProblemConstants, Request, Run
from certified_unlearning.mechanisms.scikit_learn import FROM_ZERO, SCIKIT_LEARN, WARM_START
from certified_unlearning.mechanisms.settings import Settings
from certified_unlearning.vocabulary import DType


@dataclass(frozen=True)
class Planner:
    """A planner for the runs of one experiment.

    The runs of a job form one batch in one floating-point type. This is the settings' type, or float64 if rounding
    would increase epsilon too much in any run. Runs share their learning phase, whatever their epsilon. The learning
    phase is as long as the largest epsilon requires.

    Attributes:
        settings: Settings that the preset's experiments share.
        experiment: Name of the experiment.
        constants: Constants of the problem.
        exact: The problem in exact arithmetic.
        epsilons: All requested epsilons.
        langevin_noise: Pairs of a noise scale and an epsilon. The noise scale is the one for Langevin unlearning in
            exact arithmetic.
        descent_variant: The variant of Descent-to-Delete that the experiment runs; empty if it runs none.
        descent_noise: Pairs of a noise scale and an epsilon. The noise scale is the one for the published weights of
            Descent-to-Delete in exact arithmetic.
        exact_arithmetic: Whether rounding is ignored, as in the papers; only for plans that are not run.
    """

    settings: Settings
    experiment: str
    constants: ProblemConstants
    exact: accounting.Problem
    epsilons: Sequence[float]
    langevin_noise: Sequence[tuple[float, float]]
    descent_variant: str = ""
    descent_noise: Sequence[tuple[float, float]] = ()
    exact_arithmetic: bool = False

    @property
    def accountants(self) -> Sequence[str]:
        """The accountants of Langevin unlearning that are compared."""
        return self.settings.accountants

    @cached_property
    def told(self) -> ProblemConstants:
        """The constants in the form that certificates state."""
        if built_in(self.constants.dataset) is not None:
            return self.constants
        # For a user's own table, a digest or an eigenvalue would allow guessing a removed record from the other
        # records.
        eigenvalue = None if self.constants.smoothness == "bound" else self.constants.largest_eigenvalue
        return self.constants.model_copy(update={"largest_eigenvalue": eigenvalue, "data_sha256": None})

    @cached_property
    def langevin_problem(self) -> accounting.Problem:
        """The problem, including the rounding errors of Langevin unlearning's floating-point type."""
        return self._computed(self.exact, "least-sigma", self.langevin_dtype)

    @cached_property
    def langevin_dtype(self) -> DType:
        """The floating-point type in which rounding increases epsilon only a little, for every target."""
        known = [langevin_accountants.ACCOUNTANTS[name] for name in self.accountants]
        if any(each.stationary for each in known):
            for sigma, _ in self.langevin_noise:
                lsi.check_assumptions(self.exact, sigma)
        through_exact = not all(each.counts_rounding for each in known)
        floor_of = triangle_floor(langevin_floor) if through_exact else langevin_floor
        return self._finest(self.exact, floor_of, "least-sigma", self.langevin_noise)

    @cached_property
    def descent(self) -> tuple[accounting.Problem, DType]:
        """Problem and floating-point type of the experiment's variant of Descent-to-Delete.

        The problem includes the rounding of this type, except with ``exact_arithmetic``.
        """
        exact, variant = accounting.descent_problem(self.exact), self.descent_variant
        floor_of = triangle_floor(descent_floor) if variant == "published-state" else descent_floor
        dtype = self._finest(exact, floor_of, variant, self.descent_noise)
        return self._computed(exact, variant, dtype), dtype

    def _finest(
        self,
        exact: accounting.Problem,
        floor_of: FloorOf,
        variant: str,
        noise: Sequence[tuple[float, float]],
    ) -> DType:
        """Return the floating-point type that suffices for all pairs of sigma and epsilon."""
        candidates = {
            dtype: self._computed(exact, variant, dtype)
            for dtype in get_args(DType)
            if dtype == "float64" or self.settings.dtype == "float32"
        }
        chosen = {
            chosen_arithmetic(
                candidates, floor_of, sigma=sigma, may_rise=False, epsilon=epsilon, delta=self.constants.delta
            )
            for sigma, epsilon in noise
        }
        return "float64" if "float64" in chosen else "float32"

    def _computed(self, exact: accounting.Problem, variant: str, dtype: DType) -> accounting.Problem:
        if self.exact_arithmetic:
            return exact
        descent = variant.endswith("-state")
        return as_computed(
            exact,
            dimension=self.constants.d,
            classes=self.constants.classes,
            dtype=dtype,
            variant=variant,
            start=0.0 if descent else self.settings.start,
            projects=descent or self.settings.radius is not None,
        )

    def least_sigma(self, accountant: str, epsilon: float, steps: int) -> Run:
        """Plan the removal of one record by a number of steps, with the smallest noise that meets the target."""
        sigma = least_sigma(self.langevin_problem, self.constants.delta, accountant, epsilon, steps)
        return self._langevin(accountant, "least-sigma", sigma, epsilon, 1, [steps], member=f"K = {steps}")

    def least_steps(
        self, accountant: str, sigma: float, epsilon: float, records: int, *, member: str | None = None
    ) -> Run:
        """Plan the removal of several records in one request, with the fewest steps that meet the target."""
        steps = accounting.least_steps(
            self.langevin_problem,
            sigma=sigma,
            epsilon=epsilon,
            delta=self.constants.delta,
            records=records,
            minimum_steps=self.settings.minimum_steps,
            accountant=accountant,
        )
        member = f"S = {records}" if member is None else member
        return self._langevin(accountant, "least-steps", sigma, epsilon, records, [steps], member=member)

    def stream(self, accountant: str, sigma: float, epsilon: float, size: int, requests: int) -> Run:
        """Plan successive requests of one size, each with the fewest steps that meet the target."""
        planned = accounting.least_stream_steps(
            self.langevin_problem,
            sigma=sigma,
            epsilon=epsilon,
            delta=self.constants.delta,
            records_per_request=size,
            requests=requests,
            minimum_steps=self.settings.minimum_steps,
            accountant=accountant,
        )
        steps = [each.steps for each in planned]
        return self._langevin(accountant, "least-steps", sigma, epsilon, size, steps, member=f"S = {size}")

    def _langevin(
        self,
        accountant: str,
        variant: str,
        sigma: float,
        epsilon: float,
        size: int,
        steps: list[int],
        *,
        member: str,
    ) -> Run:
        learning_steps = self._learning_steps(sigma)
        schedule = accounting.Schedule(
            sigma=sigma, records_per_request=size, steps=tuple(steps), learning_steps=learning_steps
        )
        certified = accounting.stream_guarantees(
            self.langevin_problem, schedule, delta=self.constants.delta, accountant=accountant
        )
        requests = [
            Request(
                records_removed=size * (number + 1),
                unlearning_steps=steps[number],
                epsilon=after.epsilon,
                mu=after.mu,
            )
            for number, after in enumerate(certified)
        ]
        initial = accounting.initial_epsilon(
            self.langevin_problem,
            sigma=sigma,
            delta=self.constants.delta,
            records=requests[-1].records_removed,
            accountant=accountant,
        )
        run = Run(
            experiment=self.experiment,
            mechanism=LANGEVIN.name,
            variant=variant,
            accountant=accountant,
            guarantee=assumptions.guarantee(accountant, self.settings.smoothness),
            constants=self.told,
            epsilon_target=epsilon,
            initial_epsilon=initial,
            sigma=sigma,
            step_size=self.langevin_problem.step_size,
            learning_steps=learning_steps,
            radius=self.settings.radius,
            start=self.settings.start,
            records_per_request=size,
            dtype=self.langevin_dtype,
            requests=tuple(requests),
        )
        return self._named(self._guaranteed(run, self.langevin_problem), LANGEVIN, member)

    def _guaranteed(self, run: Run, problem: accounting.Problem) -> Run:
        """Return a run that includes the addition to delta and the rounding error that the run's certificate states."""
        guaranteed = guarantee_of(
            problem,
            run.schedule,
            accountant=run.accountant,
            variant=run.variant,
            delta=self.constants.delta,
            dimension=self.constants.d,
            start=run.start,
        )
        return run.model_copy(
            update={"extra_delta": guaranteed.extra_delta, "rounding_error": guaranteed.rounding_error}
        )

    def _named(self, run: Run, mechanism: Mechanism, member: str) -> Run:
        method = mechanism.method(ACCOUNTANTS[run.accountant].form)
        line = mechanism.line(method, member, run.variant)
        return run.model_copy(update={"method": method, "member": member, "line": line, "point": line})

    def _learning_steps(self, sigma: float) -> int:
        steps = self.settings.learning_steps
        if steps != "learned":
            return steps
        return learned_steps(
            self.langevin_problem,
            sigma=sigma,
            dimension=self.constants.d,
            start=self.settings.start,
            epsilon=max(self.epsilons),
            delta=self.constants.delta,
        )

    def secret_state(self, epsilon: float, steps: int) -> Run:
        """Plan Descent-to-Delete as published: one record is removed, with the noise of Theorem N.1."""
        problem, _ = self.descent
        sigma = accounting.secret_state_sigma(problem, epsilon=epsilon, delta=self.constants.delta, steps=steps)
        request = Request(records_removed=1, unlearning_steps=steps, epsilon=epsilon, mu=None)
        return self._descent("descent-to-delete N.1", sigma, epsilon, [request], member=f"I = {steps}")

    def tightened_secret_state(self, epsilon: float, steps: int) -> Run:
        """Plan Descent-to-Delete with a secret state.

        The noise is the least that suffices for the distance between models after one request.
        """
        mu = accounting.mu_from_epsilon(epsilon, self.constants.delta)
        problem, _ = self.descent
        sigma = descent_shifted.secret_state_sigma(problem, mu=mu, steps=steps)
        certified = accounting.epsilon_from_mu(mu, self.constants.delta)
        request = Request(records_removed=1, unlearning_steps=steps, epsilon=certified, mu=mu)
        return self._descent("descent-to-delete shifted", sigma, epsilon, [request], member=f"I = {steps}")

    def published_state(self, printed: accounting.PublishedStatePlan, epsilon: float) -> Run:
        """Plan Descent-to-Delete without a secret state: one record per request, with the steps of Theorem N.2."""
        certified = accounting.published_state_epsilon(
            self.descent[0],
            sigma=printed.sigma,
            delta=self.constants.delta,
            dimension=self.constants.d,
            steps_per_request=printed.steps_per_request,
        )
        requests = [
            Request(records_removed=number + 1, unlearning_steps=steps, epsilon=certified, mu=None)
            for number, steps in enumerate(printed.steps_per_request)
        ]
        return self._descent("descent-to-delete N.2", printed.sigma, epsilon, requests, member="S = 1")

    def tightened_published_state(self, printed: accounting.PublishedStatePlan, epsilon: float, requested: int) -> Run:
        """Plan Descent-to-Delete without a secret state, with Theorem N.2's noise and the fewest sufficient steps."""
        delta = self.constants.delta
        target = accounting.mu_from_epsilon(epsilon, delta)
        problem, _ = self.descent

        def after_each_request(steps: int) -> list[float]:
            return [
                descent_shifted.published_state_curve(
                    problem, sigma=printed.sigma, steps_per_request=[steps] * request
                ).mu
                for request in range(1, requested + 1)
            ]

        steps = least_whole(printed.bound_on_steps, lambda count: max(after_each_request(count)) <= target, minimum=1)
        requests = [
            Request(
                records_removed=number + 1,
                unlearning_steps=steps,
                epsilon=accounting.epsilon_from_mu(mu, delta),
                mu=mu,
            )
            for number, mu in enumerate(after_each_request(steps))
        ]
        return self._descent("descent-to-delete shifted", printed.sigma, epsilon, requests, member="S = 1")

    def _descent(self, accountant: str, sigma: float, epsilon: float, requests: list[Request], *, member: str) -> Run:
        # Every optimum is within M/m of the origin, where learning starts.
        radius = self.settings.radius or self.constants.lipschitz / self.constants.strong_convexity
        steps = min(request.unlearning_steps for request in requests)
        problem, dtype = self.descent
        run = Run(
            experiment=self.experiment,
            mechanism=DESCENT_TO_DELETE.name,
            variant=self.descent_variant,
            accountant=accountant,
            guarantee=assumptions.guarantee(accountant, self.settings.smoothness),
            constants=self.told,
            epsilon_target=epsilon,
            sigma=sigma,
            step_size=problem.step_size,
            learning_steps=accounting.least_learning_steps(problem, radius=radius, steps=steps),
            radius=radius,
            start=0.0,
            records_per_request=1,
            dtype=dtype,
            requests=tuple(requests),
        )
        return self._named(self._guaranteed(run, problem), DESCENT_TO_DELETE, member)

    def retraining(self, langevin: Sequence[Run]) -> Iterable[Run]:
        """Plan retraining with each noise scale of the runs, and once without noise."""
        first = {run.sigma: run for run in reversed(langevin)}
        for sigma in sorted(first):
            yield self._retrained(first[sigma], "noisy", NO_ACCOUNTANT, sigma, first[sigma].learning_steps)
        yield self.noiseless_retraining(langevin)

    def retraining_of_each(self, langevin: Sequence[Run]) -> Iterable[Run]:
        """Plan retraining with each run's noise, which differs between accountants, and once without noise."""
        for run in langevin:
            yield self._retrained(run, "noisy", run.accountant, run.sigma, run.learning_steps)
        yield self.noiseless_retraining(langevin)

    def noiseless_retraining(self, langevin: Sequence[Run]) -> Run:
        """Plan retraining without noise, with as many steps as the longest run."""
        longest = max(run.learning_steps for run in langevin)
        largest = max(run.epsilon_target for run in langevin)
        retrained = self._retrained(langevin[0], "noiseless", NO_ACCOUNTANT, 0.0, longest)
        return retrained.model_copy(update={"epsilon_target": largest})

    def scikit_learn(self, langevin: Sequence[Run]) -> Iterable[Run]:
        """Plan the fits that a user would make with scikit-learn: from zero (retraining) and from the old weights."""
        for variant in (FROM_ZERO, WARM_START):
            run = self.noiseless_retraining(langevin)
            method = f"{SCIKIT_LEARN.title}, {variant}"
            exact = variant == FROM_ZERO
            epsilon = 0.0 if exact else None
            requests = [request.model_copy(update={"epsilon": epsilon, "mu": epsilon}) for request in run.requests]
            yield run.model_copy(
                update={
                    "mechanism": SCIKIT_LEARN.name,
                    "variant": variant,
                    "guarantee": run.guarantee if exact else "none",
                    "method": method,
                    "line": method,
                    "point": method,
                    "learning_steps": 0,
                    "requests": tuple(requests),
                }
            )

    def _retrained(self, like: Run, variant: str, accountant: str, sigma: float, steps: int) -> Run:
        removed = like.requests[-1].records_removed
        method = f"{RETRAINING.title}, {variant}"
        if accountant != NO_ACCOUNTANT:
            method += f" ({ACCOUNTANTS[accountant].form})"
        return like.model_copy(
            update={
                "mechanism": RETRAINING.name,
                "variant": variant,
                "accountant": accountant,
                "guarantee": assumptions.guarantee(NO_ACCOUNTANT, self.settings.smoothness),
                "method": method,
                "member": "",
                "line": method,
                "point": method,
                "initial_epsilon": None,
                "sigma": sigma,
                "learning_steps": steps,
                "extra_delta": 0.0,
                "rounding_error": None,
                "records_per_request": removed,
                "requests": (Request(records_removed=removed, unlearning_steps=0, epsilon=0.0, mu=0.0),),
            }
        )


def at(run: Run, swept: str) -> Run:
    """Return the run with a new ``point``, which consists of the run's line and the experiment's swept value."""
    return run.model_copy(update={"point": f"{run.line}, {swept}"})


def least_sigma(problem: accounting.Problem, delta: float, accountant: str, epsilon: float, steps: int) -> float:
    """Return the smallest noise with which the given number of steps removes one record."""
    return accounting.least_sigma(problem, steps=steps, epsilon=epsilon, delta=delta, records=1, accountant=accountant)


def published_state_plan(
    problem: accounting.Problem, constants: ProblemConstants, epsilon: float, requests: int
) -> accounting.PublishedStatePlan:
    """Return the plan of Theorem N.2."""
    return accounting.published_state_plan(
        problem, epsilon=epsilon, delta=constants.delta, dimension=constants.d, request_count=requests
    )
