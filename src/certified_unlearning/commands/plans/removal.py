"""The command `unlearn plan removal`: it shows the calibrations of all accountants as a table, JSON or a figure."""

import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from certified_unlearning.accounting import AccountantName, Adjacency, Problem
from certified_unlearning.accounting.core.checks import required_delta
from certified_unlearning.accounting.langevin.accountants import accountant_called
from certified_unlearning.accounting.langevin.calibration import (
    Calibration,
    Stream,
    calibrate,
    recuperation,
    steps_up_to,
)
from certified_unlearning.errors import AssumptionError, InfeasibleError, ParameterError
from certified_unlearning.text import capitalised, counted, rounded_up
from certified_unlearning.vocabulary import Delta

if TYPE_CHECKING:
    from certified_unlearning.commands.plans.known import KnownProblem

PLOT_POINTS = 60


@dataclass(frozen=True)
class ConstantFlags:
    """The problem's constants as the flags give them; ``step_size`` is a number or ``1/L``."""

    n: int
    strong_convexity: float
    smoothness: float
    lipschitz: float
    step_size: str
    adjacency: Adjacency
    delta: Delta


@dataclass(frozen=True)
class CalibrationFlags:
    """The flags of a calibration: all but one of ``records``, ``epsilon``, ``sigma`` and ``steps``, or a stream."""

    records: int | None
    epsilon: float | None
    sigma: float | None
    steps: int | None
    stream: str | None


def run(
    constants: ConstantFlags,
    accountants: Sequence[str],
    flags: CalibrationFlags,
    *,
    as_json: bool,
    plot: Path | None,
    known: "KnownProblem | None" = None,
) -> None:
    """Print every accountant's calibration, and draw the figure of epsilon against steps if it is requested.

    If the model is ``known``, also print the noise of a score and an estimate of the time.

    Raises:
        UnlearningError: A flag is invalid, or a target cannot be met; the message names the flags.
    """
    try:
        problem, delta = _problem(constants)
        stream = None if flags.stream is None else Stream.parse(flags.stream)
        names = [accountant_called(name).name for name in dict.fromkeys(accountants)]
        calibrations = _calibrations(problem, names, delta, flags, stream)
        if plot is not None:
            _draw(problem, calibrations, delta, plot)
    except (AssumptionError, InfeasibleError, ParameterError) as error:
        raise type(error)(_with_flags(str(error))) from error
    if as_json:
        used = {name: value for name, value in asdict(problem).items() if name != "rounding"}
        constants_used = {**used, "requests": 1 if stream is None else stream.requests}
        print(
            json.dumps(
                [each.as_dict() | constants_used | _facts(each, problem, known) for each in calibrations], indent=2
            )
        )
    else:
        _print_table(calibrations, problem, known)


def _facts(calibration: Calibration, problem: Problem, known: "KnownProblem | None") -> dict[str, float | None]:
    """Return what a calibration means for a known model. For a stream, the time is that of the longest request."""
    if known is None:
        return {}
    steps = calibration.steps if isinstance(calibration.steps, int) else max(calibration.steps)
    return {"C": known.C, **known.facts(problem, calibration.sigma, steps)}


def _calibrations(
    problem: Problem,
    accountants: Sequence[AccountantName],
    delta: float,
    flags: CalibrationFlags,
    stream: Stream | None,
) -> list[Calibration]:
    """Return the calibrations of all accountants whose assumptions hold; print why the other accountants have none."""
    calibrations, refusals = [], []
    for accountant in accountants:
        try:
            calibrations.append(_calibration(problem, accountant, delta, flags, stream))
        except AssumptionError as error:
            refusals.append(error)
    if not calibrations:
        raise refusals[0]
    for refusal in refusals:
        print(f"warning: {_with_flags(str(refusal))}", file=sys.stderr)
    return calibrations


def _calibration(
    problem: Problem, accountant: AccountantName, delta: float, flags: CalibrationFlags, stream: Stream | None
) -> Calibration:
    try:
        return calibrate(
            problem,
            accountant,
            delta=delta,
            records=flags.records,
            epsilon=flags.epsilon,
            sigma=flags.sigma,
            steps=flags.steps,
            stream=stream,
        )
    except AssumptionError as error:
        # A different accountant may succeed, because the accountants' assumptions differ.
        raise AssumptionError(f"accountant {accountant}: {error}") from error


def _problem(constants: ConstantFlags) -> tuple[Problem, float]:
    smoothness = constants.smoothness
    if constants.step_size == "1/L":
        if not smoothness > 0:
            raise ParameterError(f"smoothness must be a finite number above 0, got {smoothness}")
        step_size = 1 / smoothness
    else:
        step_size = _number("step_size", constants.step_size, "1/L")
    problem = Problem(
        n=constants.n,
        strong_convexity=constants.strong_convexity,
        smoothness=smoothness,
        lipschitz=constants.lipschitz,
        step_size=step_size,
        adjacency=constants.adjacency,
    )
    return problem, required_delta(constants.delta, problem.n)


def _number(name: str, text: str, word: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ParameterError(f"{name} must be a number or {word}, got {text!r}") from error


# Names in `_NAMES` are always flags. Those in `_WORDS` are English words, too: they are flags only before these signs.
_NAMES = "accountant|adjacency|delta|epsilon|lipschitz|plot|sigma|smoothness|step_size|strong_convexity"
_WORDS = r"(?:n|records|steps|stream)(?= must| =| and| or| says| are missing|[,:]|$)"


def _with_flags(message: str) -> str:
    """Replace parameters in a message by the flags that set them."""
    message = re.sub(r"records_per_request|records\[0\]", "records", message).replace("steps[0]", "steps")
    return re.sub(rf"(?<![/'])\b(?:{_NAMES}|{_WORDS})\b", lambda match: "--" + match[0].replace("_", "-"), message)


def _print_table(calibrations: Sequence[Calibration], problem: Problem, known: "KnownProblem | None") -> None:
    """Print one line for each accountant, with numbers rounded in the direction that promises less."""
    table = Table()
    for name in ("accountant", "records", "steps K", "sigma", "epsilon", "delta", "mu"):
        table.add_column(name, justify="left" if name == "accountant" else "right", no_wrap=name != "steps K")
    facts = [_facts(each, problem, known) for each in calibrations]
    timed = any(fact.get("seconds_estimated") is not None for fact in facts)
    for name in [*(["score noise"] if known else []), *(["est. time"] if timed else [])]:
        table.add_column(name, justify="right", no_wrap=True)
    for each, fact in zip(calibrations, facts, strict=True):
        steps = each.steps if isinstance(each.steps, list) else [each.steps]
        shown = f"{steps[0]:,}" if len(steps) == 1 else f"{' '.join(map(str, steps))} ({sum(steps):,} in all)"
        table.add_row(
            each.accountant,
            f"{each.records:,}" if len(steps) == 1 else f"{len(steps)} x {each.records:,}",
            shown,
            rounded_up(each.sigma),
            rounded_up(each.epsilon),
            rounded_up(each.delta),
            "" if each.mu is None else rounded_up(each.mu),
            *_shown(fact, timed),
        )
    console = Console()
    needed = console.measure(table, options=console.options.update(max_width=1000)).maximum if known else 80
    console.width = max(console.width, needed)  # A narrower console would cut the numbers off.
    console.print(table)
    console.print(
        f"Adjacency {problem.adjacency}. After every request, each epsilon is an upper bound for the model published "
        "last, if requests are fixed in advance. The bounds of lsi and lsi-tight hold after learning to "
        "stationarity; the bound of shifted compares with retraining for the same total number of steps. A step's "
        "noise is "
        f"sqrt(2 step_size) = {math.sqrt(2 * problem.step_size):.4g} times sigma in every coordinate."
    )
    if known is not None:
        _print_scale(console, problem, known, facts, timed)


def _shown(fact: dict[str, float | None], timed: bool) -> list[str]:
    from certified_unlearning.commands.plans.known import in_words

    noise, seconds = fact.get("score_noise"), fact.get("seconds_estimated")
    shown = [] if noise is None else [rounded_up(noise, 3)]
    return [*shown, "" if seconds is None else in_words(seconds)] if timed else shown


def _print_scale(
    console: Console, problem: Problem, known: "KnownProblem", facts: Sequence[dict[str, float | None]], timed: bool
) -> None:
    """Print which model this is, what its noise means, and what the estimate of the time is based on."""
    bound = facts[0]["score_bound"]
    time = (
        " The time is an estimate for the steps of one request, each of which reads all records, at the rate measured "
        "on this machine's processor. It leaves out the time to start and to read files. Expect a factor of four "
        "either way, or more on a busy machine."
        if timed
        else " With --features, the time is estimated, too."
    )
    classes = "logistic regression" if known.classes == 2 else f"softmax regression of {known.classes} classes"
    console.print(
        f"{capitalised(classes)} of {counted(problem.n, 'record')}, C = {known.C:.4g}, "
        f"C n = {known.C * problem.n:,.0f}, {'with' if known.intercept else 'without'} intercept: "
        f"m = {problem.strong_convexity:.4g}, L = {problem.smoothness:.4g}. Score noise: an upper bound on the "
        "standard deviation of the noise in the score of a record of norm 1. Without noise, such a score is at most "
        f"{bound:.3g} (a bound on the weights' norm; most scores are far smaller).{time}"
    )


def _draw(problem: Problem, calibrations: Sequence[Calibration], delta: float, plot: Path) -> None:
    """Draw the certified epsilon against the number of steps, for the first calibration's noise and records."""
    if len({each.sigma for each in calibrations}) > 1 or len({each.records for each in calibrations}) > 1:
        raise ParameterError("plot compares accountants at one value of sigma and one of records: give both")
    if isinstance(calibrations[0].steps, list):
        raise ParameterError("plot shows a single request: leave out stream")
    import pandas as pd

    from certified_unlearning.papers.langevin_unlearning.bounds.recuperation import RECUPERATION
    from certified_unlearning.reproduction.figure_style import FigureStyle
    from certified_unlearning.reproduction.figures.drawing import render

    most = max(50, *(each.steps for each in calibrations if not isinstance(each.steps, list)))
    rows = recuperation(
        problem,
        [each.accountant for each in calibrations],
        sigma=calibrations[0].sigma,
        records=calibrations[0].records,
        delta=delta,
        steps=steps_up_to(1.25 * most, points=PLOT_POINTS),
    )
    style = FigureStyle(context="paper", palette="colorblind", width_inches=3.4, height_inches=2.7, dots_per_inch=300)
    render(
        RECUPERATION,
        pd.DataFrame(rows),
        style,
        plot.with_suffix("") if plot.suffix in (".png", ".pdf", ".svg") else plot,
    )
