"""From settings to runs: everything that can be computed before a single step is taken."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from certified_unlearning import accounting
from certified_unlearning.accounting import descent_shifted
from certified_unlearning.accounting.accountants import AccountantName
from certified_unlearning.accounting.search import least_whole
from certified_unlearning.assumptions import (
    guarantee,
    publication_above_rounding,
    require_noise_above_rounding,
    require_publication_above_rounding,
)
from certified_unlearning.errors import AssumptionError
from certified_unlearning.experiments.model import Accountant, Constants, Experiment, Plan, Request, Run
from certified_unlearning.mechanisms.learning_start import extra_delta, learned_steps
from certified_unlearning.objectives.constants import loss_constants, scores_per_record
from certified_unlearning.parameters import Common, Figure3a, Figure3b, Figure3c, Figure4, Sweep


def make_plan(preset: str, settings: Common, experiment: Experiment, sweep: Sweep, data: Mapping[str, Any]) -> Plan:
    """Plan one experiment.

    Args:
        preset: The preset's name, for the records.
        settings: What the preset's experiments share.
        experiment: Its name.
        sweep: What it sweeps over.
        data: Summary of the prepared data set (`data.prepared.PreparedData.summary`).

    Returns:
        All runs with their certified epsilon.

    Raises:
        ParameterError: More removals than records, or another value that makes no sense.
        AssumptionError: A theorem's assumption does not hold.
        InfeasibleError: A target cannot be met.
    """
    planner = _Planner.of(settings, experiment, data, records=_most_records(sweep))
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
        runs=planner.in_one_type(runs),
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
    settings: Common
    experiment: Experiment
    constants: Constants
    langevin_problem: accounting.Problem
    descent_problem: accounting.Problem

    @classmethod
    def of(cls, settings: Common, experiment: Experiment, data: Mapping[str, Any], *, records: int) -> "_Planner":
        constants, problem = constants_and_problem(settings, data, records=records)
        return cls(
            settings=settings,
            experiment=experiment,
            constants=constants,
            langevin_problem=problem,
            descent_problem=accounting.descent_problem(problem),
        )

    def in_one_type(self, runs: Iterable[Run]) -> tuple[Run, ...]:
        """Raise Descent-to-Delete's runs, which are one job, to float64 where float32 would swallow their noise.

        Raises:
            AssumptionError: So would float64.
        """
        runs = tuple(runs)
        least = min((run.sigma for run in runs if run.mechanism == "descent-to-delete"), default=math.inf)
        if least >= publication_above_rounding(self.descent_problem, dtype=self.settings.dtype):
            return runs
        require_publication_above_rounding(self.descent_problem, sigma=least, dtype="float64")
        return tuple(
            run.model_copy(update={"dtype": "float64"}) if run.mechanism == "descent-to-delete" else run for run in runs
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
        printed = accounting.published_state_plan(
            self.descent_problem,
            epsilon=sweep.epsilon,
            delta=self.constants.delta,
            dimension=self.constants.d,
            request_count=sweep.records,
        )
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

    def _least_sigma(self, accountant: AccountantName, epsilon: float, steps: int) -> Run:
        sigma = accounting.least_sigma(
            self.langevin_problem,
            steps=steps,
            epsilon=epsilon,
            delta=self.constants.delta,
            records=1,
            accountant=accountant,
        )
        return self._langevin(accountant, "least-sigma", sigma, epsilon, 1, [steps])

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
        require_noise_above_rounding(self.langevin_problem, sigma=sigma, dtype=self.settings.dtype)
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
        largest = max(request.epsilon for request in requests)
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
            extra_delta=self._extra_delta(accountant, sigma, learning_steps, largest),
            records_per_request=size,
            dtype=self.settings.dtype,
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
            mu_tolerance=self.settings.stationarity,
        )

    def _extra_delta(self, accountant: AccountantName, sigma: float, learning_steps: int, epsilon: float) -> float:
        """Return what is added to delta because an accountant speaks of stationarity and learning is finite."""
        if accountant == "shifted":
            return 0.0
        extra = extra_delta(
            self.langevin_problem,
            sigma=sigma,
            dimension=self.constants.d,
            start=self.settings.start,
            learning_steps=learning_steps,
            epsilon=epsilon,
        )
        if extra > self.constants.delta:
            raise AssumptionError(
                f"after {learning_steps} learning steps at sigma = {sigma:.6g} the model is so far from its stationary "
                f"law that {extra:.2g} would be added to delta = {self.constants.delta:.2g} at epsilon = "
                f"{epsilon:.6g}; use learning_steps: learned, more steps, a smaller stationarity, or the accountant "
                "shifted, which needs no stationarity"
            )
        return extra

    def _secret_state(self, epsilon: float, steps: int) -> Run:
        sigma = accounting.secret_state_sigma(
            self.descent_problem, epsilon=epsilon, delta=self.constants.delta, steps=steps
        )
        request = Request(records_removed=1, unlearning_steps=steps, epsilon=epsilon, mu=None)
        return self._descent("secret-state", "descent-to-delete N.1", sigma, epsilon, [request])

    def _tightened_secret_state(self, epsilon: float, steps: int) -> Run:
        """The same mechanism with the least noise that its distance after one request needs."""
        mu = accounting.mu_from_epsilon(epsilon, self.constants.delta)
        sigma = descent_shifted.secret_state_sigma(self.descent_problem, mu=mu, steps=steps)
        certified = accounting.epsilon_from_mu(mu, self.constants.delta)
        request = Request(records_removed=1, unlearning_steps=steps, epsilon=certified, mu=mu)
        return self._descent("secret-state", "descent-to-delete shifted", sigma, epsilon, [request])

    def _published_state(self, printed: accounting.PublishedStatePlan, epsilon: float) -> Run:
        requests = [
            Request(records_removed=number + 1, unlearning_steps=steps, epsilon=epsilon, mu=None)
            for number, steps in enumerate(printed.steps_per_request)
        ]
        return self._descent("published-state", "descent-to-delete N.2", printed.sigma, epsilon, requests)

    def _tightened_published_state(self, printed: accounting.PublishedStatePlan, sweep: Figure3b) -> Run:
        """The same mechanism with the published theorem's noise and the least steps a request that it really needs."""
        delta = self.constants.delta
        target = accounting.mu_from_epsilon(sweep.epsilon, delta)

        def after_each_request(steps: int) -> list[float]:
            return [
                descent_shifted.published_state_curve(
                    self.descent_problem, sigma=printed.sigma, steps_per_request=[steps] * request
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
        return Run(
            experiment=self.experiment,
            mechanism="descent-to-delete",
            variant=variant,
            accountant=accountant,
            guarantee=guarantee(accountant, self.settings.smoothness),
            epsilon_target=epsilon,
            initial_epsilon=None,
            sigma=sigma,
            step_size=self.descent_problem.step_size,
            learning_steps=accounting.least_learning_steps(self.descent_problem, radius=radius, steps=steps),
            radius=radius,
            extra_delta=0.0,
            records_per_request=1,
            dtype=self.settings.dtype,
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
                "records_per_request": removed,
                "requests": (Request(records_removed=removed, unlearning_steps=0, epsilon=0.0, mu=0.0),),
            }
        )
