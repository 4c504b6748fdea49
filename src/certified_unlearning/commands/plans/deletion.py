"""The command `unlearn plan deletion`: it plans the steps of Forget Unlearning.

A plan has steps for learning, and steps for each deletion in a stream.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.accounting.deletion.planning import (
    DeletionForm,
    DeletionPlan,
    adaptive_deletion_curve,
    plan_deletion,
)
from certified_unlearning.accounting.deletion.soundness import largest_advantage
from certified_unlearning.accounting.langevin.calibration import Stream
from certified_unlearning.errors import ParameterError
from certified_unlearning.text import counted, rounded_up

FORMS: tuple[DeletionForm, ...] = ("simplified", "tight", "doubled", "shifted")


@dataclass(frozen=True, kw_only=True)
class DeletionFlags:
    """The flags of a plan of deletions; a flag that was left out is None."""

    n: int
    strong_convexity: float
    smoothness: float
    lipschitz: float
    dimension: int | None
    alpha: float | None
    epsilon_dp: float | None
    epsilon_dd: float | None
    records: int | None
    stream: str | None


@dataclass(frozen=True)
class DeletionCalibration:
    """Steps and noise for one form of the deletion bound, and what they certify.

    Attributes:
        form: The form of the bound that plans the deletion steps.
        requests: The number of requests.
        records: The number of records that each request replaces.
        learning_steps: The number of learning steps, ``K_A``.
        privacy_steps: The number of steps per request with which deletion is certified.
        epsilon_dd: The epsilon that these steps reach for requests that are fixed in advance.
        epsilon_dd_adaptive: The epsilon for the last request if all requests depend on the learned model, and both the
            learned model and the model after the last request are seen.
        advantage: Upper bound on the advantage of any test of the model after a request that is fixed in advance.
        risk_steps: The number of steps per request with which both deletion and the excess risk are certified.
        risk_bound: A bound on the excess risk of every model of the stream.
        gradients_saved: The number of per-record gradients that ``risk_steps`` save compared with retraining, in the
            whole stream.
        sigma: The noise scale.
        step_size: The step size, ``eta``.
        start_variance: The variance of the Gaussian start of learning.
    """

    form: DeletionForm
    requests: int
    records: int
    learning_steps: int
    privacy_steps: int
    epsilon_dd: float
    epsilon_dd_adaptive: float
    advantage: float
    risk_steps: int
    risk_bound: float
    gradients_saved: int
    sigma: float
    step_size: float
    start_variance: float


def run(flags: DeletionFlags, *, as_json: bool) -> None:
    """Print the steps and noise that each form of the bound needs.

    Raises:
        UnlearningError: A flag is missing or invalid; the message names it.
    """
    calibrations = deletion_calibrations(flags)
    if as_json:
        print(json.dumps([asdict(calibration) for calibration in calibrations], indent=2))
    else:
        _print(calibrations, flags)


def deletion_calibrations(flags: DeletionFlags) -> list[DeletionCalibration]:
    """Return the calibrations, one for each form of the bound in `FORMS`.

    Raises:
        ParameterError: A flag is missing or invalid.
        AssumptionError: A theorem's assumption does not hold.
    """
    stream = _stream(flags)
    needed = {"dimension": flags.dimension, "alpha": flags.alpha, "epsilon-dp": flags.epsilon_dp}
    needed["epsilon-dd"] = flags.epsilon_dd
    missing = [f"--{name}" for name, value in needed.items() if value is None]
    if missing:
        raise ParameterError(f"give {', '.join(missing)}")
    assert flags.dimension is not None
    require_count(least=1, **{"--dimension": flags.dimension})
    return [_calibration(flags, stream, form) for form in FORMS]


def _stream(flags: DeletionFlags) -> Stream:
    if (flags.stream is None) == (flags.records is None):
        raise ParameterError("give either --stream, such as 5x20, or --records, the number for a single request")
    return Stream(1, flags.records) if flags.records is not None else Stream.parse(str(flags.stream))


def _calibration(flags: DeletionFlags, stream: Stream, form: DeletionForm) -> DeletionCalibration:
    common: dict[str, Any] = {
        "n": flags.n,
        "dimension": flags.dimension,
        "lipschitz": flags.lipschitz,
        "strong_convexity": flags.strong_convexity,
        "smoothness": flags.smoothness,
        "alpha": flags.alpha,
        "epsilon_dp": flags.epsilon_dp,
        "epsilon_dd": flags.epsilon_dd,
        "records": stream.records,
        "form": form,
        "dtype": "float64",  # `mechanisms.noisy_gradient_deletion` computes in this type.
    }
    private = plan_deletion(**common, certify_risk=False)
    useful = plan_deletion(**common)
    assert useful.risk_bound is not None
    calibration = DeletionCalibration(
        form=form,
        requests=stream.requests,
        records=stream.records,
        learning_steps=private.learning_steps,
        privacy_steps=private.deletion_steps,
        epsilon_dd=private.epsilon_dd,
        epsilon_dd_adaptive=_adaptive(private, stream.requests, form),
        advantage=largest_advantage(private.epsilon_dd, alpha=private.alpha),
        risk_steps=useful.deletion_steps,
        risk_bound=useful.risk_bound,
        gradients_saved=stream.requests * useful.gradients_saved,
        sigma=private.sigma,
        step_size=private.step_size,
        start_variance=private.start_variance,
    )
    for name, value in asdict(calibration).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ParameterError(
                f"{name} would be {value}: floating point cannot combine lipschitz = {flags.lipschitz}, "
                f"strong_convexity = {flags.strong_convexity} and these targets"
            )
    return calibration


def _adaptive(plan: DeletionPlan, requests: int, form: DeletionForm) -> float:
    curve = adaptive_deletion_curve(
        plan.problem,
        sigma=plan.sigma,
        learning_steps=plan.learning_steps,
        request_steps=[plan.deletion_steps] * requests,
        observed=[0],
        form=form,
    )
    return float(curve(np.array([plan.alpha]))[0])


def _print(calibrations: Sequence[DeletionCalibration], flags: DeletionFlags) -> None:
    table = Table()
    for name in ("bound", "K", "epsilon_dd", "adaptive", "advantage", "K, risk", "saved"):
        table.add_column(name, justify="left" if name == "bound" else "right", no_wrap=True)
    for calibration in calibrations:
        table.add_row(
            "Theorem 5.1" if calibration.form == "simplified" else calibration.form,
            f"{calibration.privacy_steps:,}",
            rounded_up(calibration.epsilon_dd),
            rounded_up(calibration.epsilon_dd_adaptive),
            rounded_up(calibration.advantage),
            f"{calibration.risk_steps:,}",
            f"{calibration.gradients_saved:,}",
        )
    console = Console()
    # A narrower console would cut the numbers off.
    console.width = max(console.width, console.measure(table, options=console.options.update(max_width=1000)).maximum)
    console.print(table)
    first = calibrations[0]
    saving = "" if first.gradients_saved > 0 else " Retraining is cheaper."
    console.print(
        f"{counted(first.requests, 'request')} of {counted(first.records, 'record')}. "
        f"Learn with K_A = {counted(first.learning_steps, 'step')} of size {first.step_size:.6g} and sigma = "
        f"{first.sigma:.6g}, "
        f"from a Gaussian start of variance {first.start_variance:.6g}; answer every request with K steps. "
        f"epsilon_dd is a Rényi divergence of order {flags.alpha:g} for one deleted record, if requests are fixed in "
        "advance. Adaptive is the same divergence for requests that depend on the learned model. Advantage is an upper "
        "bound, by Theorem 4.1, on the advantage of any test of the model after the deletion, for requests fixed in "
        'advance. "K, risk" is the number of steps for which, in addition, each model\'s excess risk is at most '
        f"{rounded_up(first.risk_bound)}. Saved is the number of per-record gradients that these steps save over "
        f"retraining, in the whole stream.{saving}"
    )
