"""From settings to runs: everything that can be computed before a single step is taken."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args

from certified_unlearning import accounting
from certified_unlearning.accounting import descent_shifted, lsi
from certified_unlearning.accounting.accountants import AccountantName
from certified_unlearning.accounting.arithmetic import (
    FloorOf,
    chosen_arithmetic,
    descent_floor,
    langevin_floor,
    triangle_floor,
)
from certified_unlearning.accounting.search import least_whole
from certified_unlearning.assumptions import guarantee
from certified_unlearning.experiments.model import Accountant, Constants, Experiment, Plan, Request, Run
from certified_unlearning.guarantees import as_computed, guarantee_of
from certified_unlearning.mechanisms.learning_start import learned_steps
from certified_unlearning.objectives.constants import loss_constants, scores_per_record
from certified_unlearning.parameters import Common, DType, Figure3a, Figure3b, Figure3c, Figure4, Sweep


def make_plan(
    preset: str,
    settings: Common,
    experiment: Experiment,
    sweep: Sweep,
    data: Mapping[str, Any],
    *,
    exact_arithmetic: bool = False,
) -> Plan:
    """Plan one experiment.

    Args:
        preset: The preset's name, for the records.
        settings: What the preset's experiments share.
        experiment: Its name.
        sweep: What it sweeps over.
        data: Summary of the prepared data set (`data.prepared.PreparedData.summary`).
        exact_arithmetic: Whether rounding counts for nothing, as in the papers: for plans that are not carried out.

    Returns:
        All runs with their certified epsilon.

    Raises:
        ParameterError: More removals than records, or another value that makes no sense.
        AssumptionError: A theorem's assumption does not hold.
        InfeasibleError: A target cannot be met.
    """
    planner = _Planner.of(settings, experiment, data, sweep, exact_arithmetic)
    match sweep:
        case Figure3a():
            runs = planner.figure_3a(sweep)
        case Figure3b():
            runs = planner.figure_3b(sweep)
        case Figure3c():
            runs = planner.figure_3c(sweep)
        case Figure4():
            runs = planner.figure_4(sweep)
    return Plan(
        preset=preset,
        settings=settings,
        features=data["features"],
        constants=planner.constants,
        runs=tuple(runs),
    )


def constants_and_problem(
    settings: Common, data: Mapping[str, Any], *, records: int
) -> tuple[Constants, accounting.Problem]:
    """Return a preset's constants and, for the accountants of Langevin unlearning, its problem.

    Args:
        settings: What the preset's experiments share.
        data: Summary of the prepared data set (`data.prepared.PreparedData.summary`).
        records: The most records that are removed (smoothness ``spectral-with-margin`` makes room for them).
    """
    n = int(data["n"])
    classes = len(data["classes"]["train"])
    loss = loss_constants(
        classes=classes,
        n=n,
        regularisation=settings.regularisation,
        smoothness=settings.smoothness,
        largest_eigenvalue=data["largest_eigenvalue"],
        records=records,
    )
    constants = Constants(
        n=n,
        d=int(data["d"]) * scores_per_record(classes),
        classes=classes,
        largest_eigenvalue=float(data["largest_eigenvalue"]),
        strong_convexity=loss.strong_convexity,
        smoothness_constant=loss.smoothness,
        lipschitz=loss.lipschitz,
        delta=1 / n if settings.delta == "1/n" else settings.delta,
        data_sha256=data["sha256"],
    )
    problem = accounting.Problem(
        n=n,
        strong_convexity=loss.strong_convexity,
        smoothness=loss.smoothness,
        lipschitz=loss.lipschitz,
        step_size=1 / loss.smoothness if settings.step_size == "1/L" else settings.step_size,
        adjacency=settings.adjacency,
    )
    return constants, problem


def _most_records(sweep: Sweep) -> int:
    match sweep:
        case Figure3a():
            return 1
        case Figure4():
            return max(sweep.records)
        case _:
            return sweep.records


@dataclass(frozen=True)
class _Planner:
    """Plans the runs of one experiment.

    A job's runs are one batch in one type: the settings' type, or float64 where in any of the runs rounding would take
    too much of epsilon. Learning serves all runs alike, so it is as long as the largest epsilon asks for.
    """

    settings: Common
    experiment: Experiment
    constants: Constants
    exact: accounting.Problem
    sweep: Sweep
    exact_arithmetic: bool

    @classmethod
    def of(
        cls,
        settings: Common,
        experiment: Experiment,
        data: Mapping[str, Any],
        sweep: Sweep,
        exact_arithmetic: bool,
    ) -> "_Planner":
        constants, problem = constants_and_problem(settings, data, records=_most_records(sweep))
        return cls(settings, experiment, constants, problem, sweep, exact_arithmetic)

    @property
    def targets(self) -> list[float]:
        """Every epsilon that is asked for."""
        epsilon = self.sweep.epsilon
        return list(epsilon) if isinstance(epsilon, Sequence) else [epsilon]

    @cached_property
    def langevin_problem(self) -> accounting.Problem:
        """The problem as Langevin unlearning computes it."""
        return self._computed(self.exact, "least-sigma", self.langevin_dtype)

    @cached_property
    def langevin_dtype(self) -> DType:
        """The type in which rounding takes little of every target."""
        match self.sweep:
            case Figure3a():
                noise = [
                    (self._least_sigma_in(self.exact, accountant, epsilon, self.sweep.unlearning_steps), epsilon)
                    for accountant in self.sweep.accountants
                    for epsilon in self.sweep.epsilon
                ]
            case Figure3c():
                noise = [(sigma, self.sweep.epsilon) for sigma in self.sweep.sigma]
            case _:
                noise = [(self.sweep.sigma, epsilon) for epsilon in self.targets]
        exact_analyses = set(self.sweep.accountants) - {"shifted"}
        for sigma, _ in noise if exact_analyses else ():
            lsi.check_assumptions(self.exact, sigma)
        floor_of = triangle_floor(langevin_floor) if exact_analyses else langevin_floor
        return self._finest(self.exact, floor_of, "least-sigma", noise)

    @cached_property
    def descent(self) -> tuple[accounting.Problem, DType]:
        """The problem as the sweep's variant of Descent-to-Delete computes it, and in which type."""
        exact = accounting.descent_problem(self.exact)
        match self.sweep:
            case Figure3a():
                variant = "secret-state"
                noise = [
                    (sigma, epsilon)
                    for epsilon in self.sweep.epsilon
                    for steps in self.sweep.descent_steps
                    for sigma in (
                        accounting.secret_state_sigma(exact, epsilon=epsilon, delta=self.constants.delta, steps=steps),
                        descent_shifted.secret_state_sigma(
                            exact, mu=accounting.mu_from_epsilon(epsilon, self.constants.delta), steps=steps
                        ),
                    )
                ]
            case Figure3b():
                variant = "published-state"
                noise = [(self._printed(exact, self.sweep).sigma, self.sweep.epsilon)]
            case _:
                raise AssertionError(f"{self.experiment} has no Descent-to-Delete")
        floor_of = triangle_floor(descent_floor) if variant == "published-state" else descent_floor
        dtype = self._finest(exact, floor_of, variant, noise)
        return self._computed(exact, variant, dtype), dtype

    def _finest(
        self,
        exact: accounting.Problem,
        floor_of: FloorOf,
        variant: str,
        noise: Sequence[tuple[float, float]],
    ) -> DType:
        """Return the one type for all pairs of sigma and epsilon."""
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

    def figure_3a(self, sweep: Figure3a) -> Iterable[Run]:
        """One record removed: Langevin with K fixed and the least sigma, Descent-to-Delete, retraining."""
        langevin = [
            self._least_sigma(accountant, epsilon, sweep.unlearning_steps)
            for accountant in sweep.accountants
            for epsilon in sweep.epsilon
        ]
        yield from langevin
        for steps in sweep.descent_steps:
            for epsilon in sweep.epsilon:
                yield self._secret_state(epsilon, steps)
                yield self._tightened_secret_state(epsilon, steps)
        yield from self._retraining(langevin, for_each_accountant=True)

    def figure_3b(self, sweep: Figure3b) -> Iterable[Run]:
        """Requests one after another until all records are removed."""
        langevin = [
            self._stream(accountant, sweep, size)
            for accountant in sweep.accountants
            for size in sweep.records_per_request
        ]
        yield from langevin
        printed = self._printed(self.descent[0], sweep)
        yield self._published_state(printed, sweep.epsilon)
        yield self._tightened_published_state(printed, sweep)
        yield from self._retraining(langevin)

    def figure_3c(self, sweep: Figure3c) -> Iterable[Run]:
        """A group removed at once, for several sigma."""
        langevin = [
            self._least_steps(accountant, sigma, sweep.epsilon, sweep.records)
            for accountant in sweep.accountants
            for sigma in sweep.sigma
        ]
        yield from langevin
        yield from self._retraining(langevin)

    def figure_4(self, sweep: Figure4) -> Iterable[Run]:
        """Groups of several sizes removed at once, for several epsilon."""
        for records in sweep.records:
            langevin = [
                self._least_steps(accountant, sweep.sigma, epsilon, records)
                for accountant in sweep.accountants
                for epsilon in sweep.epsilon
            ]
            yield from langevin
            yield from self._retraining(langevin)

    def _printed(self, problem: accounting.Problem, sweep: Figure3b) -> accounting.PublishedStatePlan:
        """Return Theorem N.2's plan."""
        return accounting.published_state_plan(
            problem,
            epsilon=sweep.epsilon,
            delta=self.constants.delta,
            dimension=self.constants.d,
            request_count=sweep.records,
        )

    def _least_sigma(self, accountant: AccountantName, epsilon: float, steps: int) -> Run:
        sigma = self._least_sigma_in(self.langevin_problem, accountant, epsilon, steps)
        return self._langevin(accountant, "least-sigma", sigma, epsilon, 1, [steps])

    def _least_sigma_in(
        self, problem: accounting.Problem, accountant: AccountantName, epsilon: float, steps: int
    ) -> float:
        return accounting.least_sigma(
            problem,
            steps=steps,
            epsilon=epsilon,
            delta=self.constants.delta,
            records=1,
            accountant=accountant,
        )

    def _least_steps(self, accountant: AccountantName, sigma: float, epsilon: float, records: int) -> Run:
        steps = accounting.least_steps(
            self.langevin_problem,
            sigma=sigma,
            epsilon=epsilon,
            delta=self.constants.delta,
            records=records,
            minimum_steps=self.settings.minimum_steps,
            accountant=accountant,
        )
        return self._langevin(accountant, "least-steps", sigma, epsilon, records, [steps])

    def _stream(self, accountant: AccountantName, sweep: Figure3b, size: int) -> Run:
        planned = accounting.least_stream_steps(
            self.langevin_problem,
            sigma=sweep.sigma,
            epsilon=sweep.epsilon,
            delta=self.constants.delta,
            records_per_request=size,
            requests=sweep.records // size,
            minimum_steps=self.settings.minimum_steps,
            accountant=accountant,
        )
        steps = [each.steps for each in planned]
        return self._langevin(accountant, "least-steps", sweep.sigma, sweep.epsilon, size, steps)

    def _langevin(
        self, accountant: AccountantName, variant: str, sigma: float, epsilon: float, size: int, steps: list[int]
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
        guaranteed = guarantee_of(
            self.langevin_problem,
            schedule,
            accountant=accountant,
            variant=variant,
            delta=self.constants.delta,
            dimension=self.constants.d,
            start=self.settings.start,
        )
        initial = accounting.initial_epsilon(
            self.langevin_problem,
            sigma=sigma,
            delta=self.constants.delta,
            records=requests[-1].records_removed,
            accountant=accountant,
        )
        return Run(
            experiment=self.experiment,
            mechanism="langevin",
            variant=variant,
            accountant=accountant,
            guarantee=guarantee(accountant, self.settings.smoothness),
            epsilon_target=epsilon,
            initial_epsilon=initial,
            sigma=sigma,
            step_size=self.langevin_problem.step_size,
            learning_steps=learning_steps,
            radius=self.settings.radius,
            extra_delta=guaranteed.extra_delta,
            rounding_error=guaranteed.rounding_error,
            records_per_request=size,
            dtype=self.langevin_dtype,
            requests=tuple(requests),
        )

    def _learning_steps(self, sigma: float) -> int:
        steps = self.settings.learning_steps
        if steps != "learned":
            return steps
        return learned_steps(
            self.langevin_problem,
            sigma=sigma,
            dimension=self.constants.d,
            start=self.settings.start,
            epsilon=max(self.targets),
            delta=self.constants.delta,
        )

    def _secret_state(self, epsilon: float, steps: int) -> Run:
        problem, _ = self.descent
        sigma = accounting.secret_state_sigma(problem, epsilon=epsilon, delta=self.constants.delta, steps=steps)
        request = Request(records_removed=1, unlearning_steps=steps, epsilon=epsilon, mu=None)
        return self._descent("secret-state", "descent-to-delete N.1", sigma, epsilon, [request])

    def _tightened_secret_state(self, epsilon: float, steps: int) -> Run:
        """The same mechanism with the least noise that its distance after one request needs."""
        mu = accounting.mu_from_epsilon(epsilon, self.constants.delta)
        problem, _ = self.descent
        sigma = descent_shifted.secret_state_sigma(problem, mu=mu, steps=steps)
        certified = accounting.epsilon_from_mu(mu, self.constants.delta)
        request = Request(records_removed=1, unlearning_steps=steps, epsilon=certified, mu=mu)
        return self._descent("secret-state", "descent-to-delete shifted", sigma, epsilon, [request])

    def _published_state(self, printed: accounting.PublishedStatePlan, epsilon: float) -> Run:
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
        return self._descent("published-state", "descent-to-delete N.2", printed.sigma, epsilon, requests)

    def _tightened_published_state(self, printed: accounting.PublishedStatePlan, sweep: Figure3b) -> Run:
        """The same mechanism with the published theorem's noise and the least steps a request that it really needs."""
        delta = self.constants.delta
        target = accounting.mu_from_epsilon(sweep.epsilon, delta)
        problem, _ = self.descent

        def after_each_request(steps: int) -> list[float]:
            return [
                descent_shifted.published_state_curve(
                    problem, sigma=printed.sigma, steps_per_request=[steps] * request
                ).mu
                for request in range(1, sweep.records + 1)
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
        return self._descent("published-state", "descent-to-delete shifted", printed.sigma, sweep.epsilon, requests)

    def _descent(
        self,
        variant: str,
        accountant: Accountant,
        sigma: float,
        epsilon: float,
        requests: list[Request],
    ) -> Run:
        # Every optimum lies within M/m of the origin, where learning starts.
        radius = self.settings.radius or self.constants.lipschitz / self.constants.strong_convexity
        steps = min(request.unlearning_steps for request in requests)
        problem, dtype = self.descent
        learning_steps = accounting.least_learning_steps(problem, radius=radius, steps=steps)
        schedule = accounting.Schedule(
            sigma=sigma,
            records_per_request=1,
            steps=tuple(request.unlearning_steps for request in requests),
            learning_steps=learning_steps,
        )
        guaranteed = guarantee_of(
            problem,
            schedule,
            accountant=accountant,
            variant=variant,
            delta=self.constants.delta,
            dimension=self.constants.d,
            start=0.0,
        )
        return Run(
            experiment=self.experiment,
            mechanism="descent-to-delete",
            variant=variant,
            accountant=accountant,
            guarantee=guarantee(accountant, self.settings.smoothness),
            epsilon_target=epsilon,
            initial_epsilon=None,
            sigma=sigma,
            step_size=problem.step_size,
            learning_steps=learning_steps,
            radius=radius,
            extra_delta=guaranteed.extra_delta,
            rounding_error=guaranteed.rounding_error,
            records_per_request=1,
            dtype=dtype,
            requests=tuple(requests),
        )

    def _retraining(self, langevin: list[Run], *, for_each_accountant: bool = False) -> Iterable[Run]:
        """Retrain with the noise of each run, and once without noise."""
        if for_each_accountant:
            for run in langevin:
                yield self._retrained(run, "noisy", run.accountant, run.sigma, run.epsilon_target, run.learning_steps)
        else:
            first = {run.sigma: run for run in reversed(langevin)}
            for sigma in sorted(first):
                run = first[sigma]
                yield self._retrained(run, "noisy", "none", sigma, run.epsilon_target, run.learning_steps)
        longest = max(run.learning_steps for run in langevin)
        largest = max(run.epsilon_target for run in langevin)
        yield self._retrained(langevin[0], "noiseless", "none", 0.0, largest, longest)

    def _retrained(
        self, like: Run, variant: str, accountant: Accountant, sigma: float, epsilon: float, steps: int
    ) -> Run:
        removed = like.requests[-1].records_removed
        return like.model_copy(
            update={
                "mechanism": "retraining",
                "variant": variant,
                "accountant": accountant,
                "guarantee": guarantee("none", self.settings.smoothness),
                "epsilon_target": epsilon,
                "initial_epsilon": None,
                "sigma": sigma,
                "learning_steps": steps,
                "extra_delta": 0.0,
                "rounding_error": None,
                "records_per_request": removed,
                "requests": (Request(records_removed=removed, unlearning_steps=0, epsilon=0.0, mu=0.0),),
            }
        )
