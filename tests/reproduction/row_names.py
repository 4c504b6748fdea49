"""The names that plans give to runs of Langevin unlearning, for rows that no plan made."""

import pandas as pd

from tests.support.planning import ANEW

FORMS = {
    "descent-to-delete N.1": "printed",
    "descent-to-delete N.2": "printed",
    "descent-to-delete shifted": "tightened",
}
MECHANISMS = ("langevin", "descent-to-delete", "retraining", "scikit-learn")
_TOLD_BY = (
    "experiment", "mechanism", "variant", "accountant", "epsilon_target", "sigma", "unlearning_steps",
    "records_per_request", "records_removed",
)  # fmt: skip


def names_of(row) -> dict[str, str]:
    """A run's method, member, line and point, from its row's other columns."""
    form = FORMS.get(row["accountant"], row["accountant"])
    epsilon, size = f"epsilon = {row['epsilon_target']:g}", f"S = {row['records_per_request']}"
    removed, sigma = f"S = {row['records_removed']}", f"sigma = {row['sigma']:g}"
    match row["mechanism"], row["variant"]:
        case "langevin", "least-sigma":
            method, member, state = f"Langevin ({form})", f"K = {row['unlearning_steps']}", ""
        case "langevin", _:
            method, member, state = f"Langevin ({form})", epsilon if row["experiment"] == "fig5a" else size, ""
        case _, "secret-state":
            method, member, state = f"Descent-to-Delete ({form})", f"I = {row['unlearning_steps']}", "secret state"
        case _, "published-state":
            method, member, state = f"Descent-to-Delete ({form})", size, "state published"
        case "scikit-learn", variant:
            method, member, state = f"scikit-learn, {variant}", "", ""
        case _, variant:
            method, member, state = f"Retraining, {variant}" + (f" ({form})" if form != "none" else ""), "", ""
    line = ", ".join(filter(None, (method, member, state)))
    anew = row["mechanism"] in ANEW
    once = anew and row["sigma"] == 0
    swept = {
        "fig3a": "" if once else epsilon,
        "fig3c": "" if once else sigma,
        "fig4": removed if anew else epsilon,
        "fig5a": removed,
    }.get(row["experiment"], "")
    return {"method": method, "member": member, "line": line, "point": ", ".join(filter(None, (line, swept)))}


def named(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with the names that follow from their other columns, one mechanism after another as jobs' rows are."""
    kinds = rows[[*_TOLD_BY]].drop_duplicates()
    names = pd.DataFrame([names_of(row) for _, row in kinds.iterrows()], index=pd.MultiIndex.from_frame(kinds))
    of_each = names.loc[pd.MultiIndex.from_frame(rows[[*_TOLD_BY]])].set_axis(rows.index)
    return rows.assign(**of_each).sort_values(
        "mechanism", key=lambda column: column.map(MECHANISMS.index), kind="stable"
    )
