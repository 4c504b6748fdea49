"""From settings to runs: everything that can be computed before a single step is taken."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from certified_unlearning import accounting
from certified_unlearning.assumptions import guarantee
from certified_unlearning.errors import AssumptionError
from certified_unlearning.experiments.model import Accountant, Constants, Experiment, Plan, Request, Run
from certified_unlearning.mechanisms.learning_start import extra_delta, learned_steps
from certified_unlearning.objectives.constants import LossConstants, logistic_constants
from certified_unlearning.parameters import Common, Figure3a, Figure3b, Figure3c, Figure4, Sweep

EPSILON_OF = {"float32": 2.0**-23, "float64": 2.0**-52}
"""Relative spacing of the numbers that weights are kept in."""
NOISE_TO_ROUNDING = 16
"""How many times larger than that spacing the noise of one step must be."""


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
    planner = _Planner.of(settings, experiment, data)
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


@dataclass(frozen=True)
class _Planner:
    settings: Common
    experiment: Experiment
    constants: Constants
    langevin_problem: accounting.Problem
    descent_problem: accounting.Problem

    @classmethod
    def of(cls, settings: Common, experiment: Experiment, data: Mapping[str, Any]) -> "_Planner":
        n, d = int(data["n"]), int(data["d"])
        loss = logistic_constants(
            n=n,
            regularisation=settings.regularisation,
            smoothness=settings.smoothness,
            largest_eigenvalue=data["largest_eigenvalue"],
        )
        constants = Constants(
            n=n,
            d=d,
            strong_convexity=loss.strong_convexity,
            smoothness_constant=loss.smoothness,
            lipschitz=loss.lipschitz,
            delta=1 / n if settings.delta == "1/n" else settings.delta,
            data_sha256=data["sha256"],
        )
        step_size = 1 / loss.smoothness if settings.step_size == "1/L" else settings.step_size
        descent_step_size = accounting.descent_step_size(
            strong_convexity=loss.strong_convexity, smoothness=loss.smoothness
        )
        return cls(
            settings=settings,
            experiment=experiment,
            constants=constants,
            langevin_problem=_problem(settings, n, loss, step_size),
            descent_problem=_problem(settings, n, loss, descent_step_size),
        )

    def figure_3a(self, sweep: Figure3a) -> Iterable[Run]:
        """One record removed: Langevin with K fixed and the least sigma, Descent-to-Delete, retraining."""
        langevin = []
        for epsilon in sweep.epsilon:
            sigma = accounting.least_sigma(
                self.langevin_problem,
                steps=sweep.unlearning_steps,
                epsilon=epsilon,
                delta=self.constants.delta,
                records=1,
            )
            langevin.append(self._langevin("least-sigma", sigma, epsilon, 1, sweep.unlearning_steps))
        yield from langevin
        for steps in sweep.descent_steps:
            for epsilon in sweep.epsilon:
                yield self._secret_state(epsilon, steps)
        yield from self._retraining(langevin)

    def figure_3b(self, sweep: Figure3b) -> Iterable[Run]:
        """Requests one after another until all records are removed."""
        langevin = [self._stream(sweep, size) for size in sweep.records_per_request]
        yield from langevin
        yield self._published_state(sweep.epsilon, sweep.records)
        yield from self._retraining(langevin[:1])

    def figure_3c(self, sweep: Figure3c) -> Iterable[Run]:
        """A group removed at once, for several sigma."""
        langevin = [self._least_steps(sigma, sweep.epsilon, sweep.records) for sigma in sweep.sigma]
        yield from langevin
        yield from self._retraining(langevin)

    def figure_4(self, sweep: Figure4) -> Iterable[Run]:
        """Groups of several sizes removed at once, for several epsilon."""
        for records in sweep.records:
            langevin = [self._least_steps(sweep.sigma, epsilon, records) for epsilon in sweep.epsilon]
            yield from langevin
            yield from self._retraining(langevin[:1])

    def _least_steps(self, sigma: float, epsilon: float, records: int) -> Run:
        steps = accounting.least_steps(
            self.langevin_problem,
            sigma=sigma,
            epsilon=epsilon,
            delta=self.constants.delta,
            records=records,
            minimum_steps=self.settings.minimum_steps,
        )
        return self._langevin("least-steps", sigma, epsilon, records, steps)

    def _langevin(self, variant: str, sigma: float, epsilon: float, records: int, steps: int) -> Run:
        certified = accounting.epsilon(
            self.langevin_problem, sigma=sigma, delta=self.constants.delta, records=records, steps=steps
        )
        request = Request(records_removed=records, unlearning_steps=steps, epsilon=certified)
        return self._langevin_run(variant, sigma, epsilon, records, [request])

    def _stream(self, sweep: Figure3b, size: int) -> Run:
        planned = accounting.least_stream_steps(
            self.langevin_problem,
            sigma=sweep.sigma,
            epsilon=sweep.epsilon,
            delta=self.constants.delta,
            records_per_request=size,
            requests=sweep.records // size,
            minimum_steps=self.settings.minimum_steps,
        )
        requests = [
            Request(records_removed=size * (number + 1), unlearning_steps=each.steps, epsilon=each.epsilon)
            for number, each in enumerate(planned)
        ]
        return self._langevin_run("least-steps", sweep.sigma, sweep.epsilon, size, requests)

    def _langevin_run(self, variant: str, sigma: float, epsilon: float, size: int, requests: list[Request]) -> Run:
        self._check_precision(sigma)
        learning_steps, extra_delta = self._learning(sigma, max(request.epsilon for request in requests))
        initial = accounting.initial_epsilon(
            self.langevin_problem,
            sigma=sigma,
            delta=self.constants.delta,
            records=requests[-1].records_removed,
        )
        return Run(
            experiment=self.experiment,
            mechanism="langevin",
            variant=variant,
            accountant="lsi",
            guarantee=guarantee("langevin", self.settings.smoothness),
            epsilon_target=epsilon,
            initial_epsilon=initial,
            sigma=sigma,
            step_size=self.langevin_problem.step_size,
            learning_steps=learning_steps,
            radius=self.settings.radius,
            extra_delta=extra_delta,
            records_per_request=size,
            requests=tuple(requests),
        )

    def _learning(self, sigma: float, epsilon: float) -> tuple[int, float]:
        """Return T and what is added to delta because T is finite."""
        problem, dimension, start = self.langevin_problem, self.constants.d, self.settings.start
        steps = self.settings.learning_steps
        if steps == "learned":
            steps = learned_steps(
                problem,
                sigma=sigma,
                dimension=dimension,
                start=start,
                mu_tolerance=self.settings.stationarity,
            )
        extra = extra_delta(
            problem, sigma=sigma, dimension=dimension, start=start, learning_steps=steps, epsilon=epsilon
        )
        if extra > self.constants.delta:
            raise AssumptionError(
                f"after {steps} learning steps at sigma = {sigma:.6g} the model is so far from its stationary law "
                f"that {extra:.2g} would be added to delta = {self.constants.delta:.2g} at epsilon = {epsilon:.6g}; "
                "use learning_steps: learned, more steps, or a smaller stationarity"
            )
        return steps, extra

    def _check_precision(self, sigma: float) -> None:
        """Refuse noise that rounding would swallow: every optimum lies within M/m of the origin."""
        problem, dtype = self.langevin_problem, self.settings.dtype
        noise = math.sqrt(2 * problem.step_size) * sigma
        rounding = EPSILON_OF[dtype] * problem.lipschitz / problem.strong_convexity
        if noise < NOISE_TO_ROUNDING * rounding:
            raise AssumptionError(
                f"sigma = {sigma:.6g} gives noise of {noise:.2g} a step, too close to what {dtype} rounds away near "
                f"weights of {problem.lipschitz / problem.strong_convexity:.2g} ({rounding:.2g}); "
                "raise sigma, or use dtype: float64"
            )

    def _secret_state(self, epsilon: float, steps: int) -> Run:
        sigma = accounting.secret_state_sigma(
            self.descent_problem, epsilon=epsilon, delta=self.constants.delta, steps=steps
        )
        request = Request(records_removed=1, unlearning_steps=steps, epsilon=epsilon)
        return self._descent("secret-state", "descent-to-delete N.1", sigma, epsilon, steps, [request])

    def _published_state(self, epsilon: float, records: int) -> Run:
        plan = accounting.published_state_plan(
            self.descent_problem,
            epsilon=epsilon,
            delta=self.constants.delta,
            dimension=self.constants.d,
            request_count=records,
        )
        requests = [
            Request(records_removed=number + 1, unlearning_steps=steps, epsilon=epsilon)
            for number, steps in enumerate(plan.steps_per_request)
        ]
        return self._descent(
            "published-state", "descent-to-delete N.2", plan.sigma, epsilon, min(plan.steps_per_request), requests
        )

    def _descent(
        self,
        variant: str,
        accountant: Accountant,
        sigma: float,
        epsilon: float,
        steps: int,
        requests: list[Request],
    ) -> Run:
        # Every optimum lies within M/m of the origin, where learning starts.
        radius = self.settings.radius or self.constants.lipschitz / self.constants.strong_convexity
        return Run(
            experiment=self.experiment,
            mechanism="descent-to-delete",
            variant=variant,
            accountant=accountant,
            guarantee=guarantee("descent-to-delete", self.settings.smoothness),
            epsilon_target=epsilon,
            initial_epsilon=None,
            sigma=sigma,
            step_size=self.descent_problem.step_size,
            learning_steps=accounting.least_learning_steps(self.descent_problem, radius=radius, steps=steps),
            radius=radius,
            extra_delta=0.0,
            records_per_request=1,
            requests=tuple(requests),
        )

    def _retraining(self, langevin: list[Run]) -> Iterable[Run]:
        """Retrain for each run with its noise, and once without noise."""
        for run in langevin:
            yield self._retrained(run, "noisy", run.sigma, run.epsilon_target, run.learning_steps)
        longest = max(run.learning_steps for run in langevin)
        largest = max(run.epsilon_target for run in langevin)
        yield self._retrained(langevin[0], "noiseless", 0.0, largest, longest)

    def _retrained(self, like: Run, variant: str, sigma: float, epsilon: float, steps: int) -> Run:
        removed = like.requests[-1].records_removed
        return like.model_copy(
            update={
                "mechanism": "retraining",
                "variant": variant,
                "accountant": "none",
                "guarantee": guarantee("retraining", self.settings.smoothness),
                "epsilon_target": epsilon,
                "initial_epsilon": None,
                "sigma": sigma,
                "learning_steps": steps,
                "extra_delta": 0.0,
                "records_per_request": removed,
                "requests": (Request(records_removed=removed, unlearning_steps=0, epsilon=0.0),),
            }
        )


def _problem(settings: Common, n: int, loss: LossConstants, step_size: float) -> accounting.Problem:
    return accounting.Problem(
        n=n,
        strong_convexity=loss.strong_convexity,
        smoothness=loss.smoothness,
        lipschitz=loss.lipschitz,
        step_size=step_size,
        adjacency=settings.adjacency,
    )
