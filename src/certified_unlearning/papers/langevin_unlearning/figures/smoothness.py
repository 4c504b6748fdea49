"""The steps of Fig. 3b under every rule for the smoothness L, computed by accounting alone, without simulation."""

import pandas as pd
from matplotlib.figure import Figure

from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.figures import style as shared
from certified_unlearning.reproduction.figures.looks import key, looks
from certified_unlearning.reproduction.figures.wording import fixed, number


def draw(streams: pd.DataFrame, style: FigureStyle) -> Figure:
    """Draw streams of requests (see `smoothness.ROWS`), with a column for each rule and a row for each request size.

    Descent-to-Delete, which removes one record per request, is in every panel. The axes of steps are linear, as in the
    paper: a difference of 25 % would hardly be visible on a logarithmic axis.
    """
    with shared.theme(style):
        streams = streams.rename(columns={"line": "label"})
        look = looks(streams, style, dashed=False)
        langevin = streams["mechanism"] == "langevin"
        rules = streams.drop_duplicates("smoothness")
        sizes = sorted(streams.loc[langevin, "records_per_request"].unique())
        figure = shared.new_figure(style, columns=2)
        figure.set_figheight((0.5 + 0.45 * len(sizes)) * style.height_inches)
        grid = figure.subplots(len(sizes), len(rules), sharex=True, sharey="row", squeeze=False)
        for row, size in zip(grid, sizes, strict=True):
            of_size = streams[~langevin | (streams["records_per_request"] == size)]
            for axes, rule in zip(row, rules["smoothness"], strict=True):
                own = of_size[of_size["smoothness"] == rule]
                shared.draw_lines(axes, own, look, x="records_removed", y="accumulated_steps")
                axes.set(xlabel="Records removed", ylabel=f"Steps, S = {size}")
            most = of_size["accumulated_steps"].max()
            row[0].set_ylim(-0.05 * most, 1.05 * most)
        for axes, (_, rule) in zip(grid[0], rules.iterrows(), strict=True):
            of_rule = streams[streams["smoothness"] == rule["smoothness"]]
            axes.set_title(f"{rule['smoothness']}: L = {fixed(rule['smoothness_constant'], 4)}\n{_standing(of_rule)}")
        shared.label_outer(list(grid.ravel()))
        first = streams[langevin].iloc[0]
        removed = shared.records(streams["records_removed"].max())
        constants = f"ε = {number(first['epsilon_target'])}, σ = {number(first['sigma'])}"
        title = f"Accumulated steps: removing {removed}, S at a time, {constants}"
        shared.finish(figure, shared.about(streams, title), *key(streams, style, dashed=False))
    return figure


def _standing(rows: pd.DataFrame) -> str:
    """Return the status of a rule's L: whether it is an upper bound."""
    return "heuristic, no guarantee" if "heuristic" in set(rows["guarantee"]) else "holds after every removal"
