"""Tables 1, 2 and 3 of Langevin unlearning, recomputed for one data set under every rule for the smoothness L."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, get_args

import pandas as pd

from certified_unlearning.experiments.model import Mechanism, Plan
from certified_unlearning.experiments.plan import constants_and_problem
from certified_unlearning.experiments.smoothness_streams import plans_by_smoothness
from certified_unlearning.markdown import table_lines
from certified_unlearning.parameters import Common, Experiments, Figure3a, Smoothness
from certified_unlearning.rounding import rounded_up


def paper_tables(settings: Common, experiments: Experiments, data: Mapping[str, Any]) -> dict[str, pd.DataFrame]:
    """Return the three tables by name: ``table1``, ``table2``, ``table3``.

    Args:
        settings: The preset's settings; their own smoothness and step size do not matter.
        experiments: The preset's experiments. Table 1 has the margin that each of them needs; Tables 2 and 3 belong to
            ``fig3a``.
        data: Summary of the prepared data set (`data.prepared.PreparedData.summary`).

    Raises:
        ParameterError: More removals than records, or another value that makes no sense.
        AssumptionError: A theorem's assumption does not hold.
        InfeasibleError: A target cannot be met.
    """
    most_removed = {
        1,
        experiments.fig3b.records,
        experiments.fig3c.records,
        max(experiments.fig4.records),
        max(experiments.fig5a.records),
    }
    return {
        "table1": table1(settings, data, records=most_removed),
        "table2": table2(settings, experiments.fig3a, data),
        "table3": table3(settings, experiments.fig3a, data),
    }


def table1(settings: Common, data: Mapping[str, Any], *, records: Collection[int]) -> pd.DataFrame:
    """Return the data set's constants, one row for each rule for ``L``, and for each margin of the rule that has one.

    Args:
        settings: The preset's settings.
        data: Summary of the prepared data set.
        records: Numbers of removed records that ``spectral-with-margin`` makes room for.

    Returns:
        ``records`` is empty where the rule does not depend on it; ``d`` is the number of parameters.
    """
    margins: dict[Smoothness, Collection[int | None]] = dict.fromkeys(get_args(Smoothness), (None,))
    margins["spectral-with-margin"] = sorted(records)
    return pd.DataFrame(
        [_constants(settings, data, rule, count) for rule, counts in margins.items() for count in counts]
    ).astype({"records": "Int64"})


def table2(settings: Common, sweep: Figure3a, data: Mapping[str, Any]) -> pd.DataFrame:
    """Return the noise of Descent-to-Delete with secret state, by rule for ``L``, accountant, steps ``I`` and epsilon.

    ``descent-to-delete N.1`` is the paper's Table 2, ``descent-to-delete shifted`` the least noise that the
    distance after one request needs.

    Args:
        settings: The preset's settings.
        sweep: The sweep of ``fig3a``.
        data: Summary of the prepared data set.

    Raises:
        AssumptionError: A theorem's assumption does not hold.
        InfeasibleError: A target cannot be met.
    """
    return _noise(settings, sweep, data, "descent-to-delete")


def table3(settings: Common, sweep: Figure3a, data: Mapping[str, Any]) -> pd.DataFrame:
    """Return the least sigma of Langevin unlearning for the sweep's ``K``, by rule for ``L``, accountant and epsilon.

    Arguments and errors as in `table2`.
    """
    return _noise(settings, sweep, data, "langevin")


def markdown(tables: Mapping[str, pd.DataFrame]) -> str:
    """Return the tables of `paper_tables` as one page of Markdown.

    Noise is rounded up: with less of it the guarantee would not hold.
    """
    return "\n".join([_first_page(tables["table1"]), _noise_page(tables["table2"]), _noise_page(tables["table3"])])


def _constants(settings: Common, data: Mapping[str, Any], rule: Smoothness, records: int | None) -> dict[str, Any]:
    changed = settings.model_copy(update={"smoothness": rule, "step_size": "1/L"})
    constants, problem = constants_and_problem(changed, data, records=records or 0)
    return {
        "dataset": settings.dataset,
        "features": data["features"],
        "n": constants.n,
        "n_test": int(data["n_test"]),
        "d": constants.d,
        "classes": constants.classes,
        "largest_eigenvalue": constants.largest_eigenvalue,
        "strong_convexity": constants.strong_convexity,
        "lipschitz": constants.lipschitz,
        "delta": constants.delta,
        "smoothness": rule,
        "records": records,
        "smoothness_constant": constants.smoothness_constant,
        "step_size": problem.step_size,
    }


def _noise(settings: Common, sweep: Figure3a, data: Mapping[str, Any], mechanism: Mechanism) -> pd.DataFrame:
    plans = plans_by_smoothness(settings, "fig3a", sweep, data)
    return pd.DataFrame([row for plan in plans for row in _noise_rows(plan, mechanism)])


def _noise_rows(plan: Plan, mechanism: Mechanism) -> Iterator[dict[str, Any]]:
    for run in sorted(plan.of(mechanism), key=lambda run: run.accountant):
        (request,) = run.requests
        yield {
            "dataset": plan.settings.dataset,
            "features": plan.features,
            "mechanism": mechanism,
            "smoothness": plan.settings.smoothness,
            "smoothness_constant": plan.constants.smoothness_constant,
            "accountant": run.accountant,
            "guarantee": run.guarantee,
            "unlearning_steps": request.unlearning_steps,
            "epsilon_target": run.epsilon_target,
            "delta": plan.constants.delta,
            "sigma": run.sigma,
        }


def _first_page(table: pd.DataFrame) -> str:
    row = table.iloc[0]
    lines = [
        f"## Table 1: {row['dataset']}, features {row['features']}\n",
        f"n = {row['n']:,} ({row['n_test']:,} for testing), d = {row['d']:,} parameters, {row['classes']} classes, "
        f"m = {row['strong_convexity']:.6g}, M = {row['lipschitz']:g}, delta = {row['delta']:.5g}; largest eigenvalue "
        f"of X'X / n: {row['largest_eigenvalue']:.10g}.\n",
        *table_lines(
            ["smoothness", "records removed", "L", "step size 1/L"],
            [
                [each["smoothness"], _removed(each), f"{each['smoothness_constant']:.10g}", f"{each['step_size']:.10g}"]
                for _, each in table.iterrows()
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


def _removed(row: "pd.Series[Any]") -> str:
    match row["smoothness"]:
        case "bound":
            return "any number"
        case "spectral":
            return "none: no guarantee"
    return f"{row['records']:,}"


def _noise_page(table: pd.DataFrame) -> str:
    row = table.iloc[0]
    number, what, letter = _TITLES[row["mechanism"]]
    epsilons = list(dict.fromkeys(table["epsilon_target"]))
    groups = table.groupby(["smoothness", "accountant", "unlearning_steps"], sort=False)
    lines = [
        f"## Table {number}: {what}\n",
        f"One record removed, delta = {row['delta']:.5g}; columns are epsilons. Noise is rounded up.\n",
        *table_lines(
            ["smoothness", "accountant", "guarantee", letter, *(f"{epsilon:g}" for epsilon in epsilons)],
            [
                [rule, accountant, rows["guarantee"].iloc[0], str(steps)]
                + [rounded_up(sigma, 7) for sigma in rows.set_index("epsilon_target").loc[epsilons, "sigma"]]
                for (rule, accountant, steps), rows in groups
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


_TITLES = {
    "descent-to-delete": (2, "noise of Descent-to-Delete, secret state", "I"),
    "langevin": (3, "least sigma of Langevin unlearning", "K"),
}
