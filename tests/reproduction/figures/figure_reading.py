"""Reading figures back: what is drawn, and what the records say should be drawn."""

from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.figure_style import FigureStyle
from certified_unlearning.reproduction.summaries import summarise
from tests.support.planning import experiment_called

FIGURES = ("fig3a", "fig3b", "fig3c", "fig4", "fig5a")
"""Experiments whose runs are simulated and drawn."""
BOUND_FIGURES = ("recuperation", "dynamics1", "dynamics2")
"""Experiments that draw what accounting alone says."""
ACCOUNTANTS = ("lsi", "lsi-tight", "shifted")
FORMS = {
    "printed": ("descent-to-delete N.1", "descent-to-delete N.2"),
    "tightened": ("descent-to-delete shifted",),
}
REFITS = ("scikit-learn, from zero", "scikit-learn, warm start")
BOUNDS = {
    "lsi": "paper’s bound",
    "lsi-tight": "paper’s bound without slack",
    "shifted": "our bound",
    "printed": "its theorem",
    "tightened": "our bound",
}
"""Whose bound an accountant's is, by its form in the labels of rows."""
NOISELESS = ("Retraining, noiseless", *REFITS)
"""Lines that do not depend on noise, in the order in which they are drawn."""
Curve = tuple[np.ndarray, np.ndarray]


def draw(experiment: str, rows: pd.DataFrame, style: FigureStyle) -> Figure:
    """The figure, as it is before it is written."""
    drawing = declared.function(experiment_called(experiment).draw)
    return drawing(summarise(rows, experiment) if experiment in FIGURES else rows, style)


def legend(figure: Figure) -> dict[str, Line2D]:
    """The lines of the legend: without those that only fill columns, and without what says what bands are."""
    (found,) = figure.legends
    texts = [text.get_text() for text in found.get_texts()]
    entries = zip(texts, found.legend_handles, strict=True)
    return {text: line for text, line in entries if text and isinstance(line, Line2D)}


def bands_of_legend(figure: Figure) -> list[str]:
    """What the legend says that bands are."""
    (found,) = figure.legends
    entries = zip(found.get_texts(), found.legend_handles, strict=True)
    return [text.get_text() for text, patch in entries if isinstance(patch, Patch)]


def in_legend(label: str) -> str:
    """What the legend calls the method of a line."""
    method, _, form = label.split(", ")[0].removesuffix(")").partition(" (")
    bound = BOUNDS.get(form)
    return f"{method}, {bound} ({form})" if bound else label.split(", ")[0]


def lines(axes: Axes) -> dict[str, Curve]:
    found = {line.get_label(): tuple(np.asarray(v, float) for v in line.get_data()) for line in axes.get_lines()}
    assert len(found) == len(axes.get_lines()), "a label was drawn twice"
    found.pop("majority", None)
    return found


def means(records: pd.DataFrame, x: str, y: str) -> Curve:
    """Positions and means straight from the records, without `summaries`."""
    positions = np.sort(records[x].unique())
    return positions, np.array([np.mean(records.loc[records[x] == value, y]) for value in positions])


def rows_of(records: pd.DataFrame, experiment: str, mechanism: str, **columns: object) -> pd.DataFrame:
    chosen = {"experiment": experiment, "mechanism": mechanism, **columns}
    matches = [
        records[name].isin(value) if isinstance(value, tuple) else records[name] == value
        for name, value in chosen.items()
    ]
    return records[np.logical_and.reduce(matches)]


def langevin(records: pd.DataFrame, experiment: str, sizes: tuple[int, ...]) -> dict[str, pd.DataFrame]:
    return {
        f"Langevin ({accountant}), S = {size}": rows_of(
            records, experiment, "langevin", accountant=accountant, records_per_request=size
        )
        for accountant in ACCOUNTANTS
        for size in sizes
    }


def expected(records: pd.DataFrame, experiment: str) -> list[dict[str, Curve]]:
    """Return the curves that each panel of a figure has to show, by the expected label; levels have no positions."""

    def show(curves: dict[str, pd.DataFrame], x: str, y: str) -> dict[str, Curve]:
        return {label: means(rows, x, y) for label, rows in curves.items()}

    def anew(*lines: str, **columns: object) -> dict[str, pd.DataFrame]:
        told = {line: line.lower().split(", ") for line in lines}
        return {
            line: rows_of(records, experiment, mechanism, variant=variant, **columns)
            for line, (mechanism, variant) in told.items()
        }

    def levels(*lines: str, **columns: object) -> dict[str, Curve]:
        return {
            line: (np.array([0.0, 1.0]), np.full(2, rows["accuracy"].mean()))
            for line, rows in anew(*lines, **columns).items()
        }

    match experiment:
        case "fig3a":
            sweep = ("epsilon_target", "accuracy")
            one_step = {
                f"Langevin ({a}), K = 1": rows_of(records, "fig3a", "langevin", accountant=a) for a in ACCOUNTANTS
            }
            retrained = {
                f"Retraining, noisy ({a})": rows_of(records, "fig3a", "retraining", accountant=a) for a in ACCOUNTANTS
            }
            reference = {"Langevin (shifted), K = 1": one_step["Langevin (shifted), K = 1"]}
            descents = [
                {
                    f"Descent-to-Delete ({form}), I = {steps}, secret state": rows_of(
                        records, "fig3a", "descent-to-delete", accountant=accountants, unlearning_steps=steps
                    )
                    for steps in (1, 2, 5)
                }
                for form, accountants in FORMS.items()
            ]
            panels = [one_step | retrained, *(descent | reference for descent in descents)]
            return [show(curves, *sweep) | levels(*NOISELESS) for curves in panels]
        case "fig3b":
            descent = {
                f"Descent-to-Delete ({form}), S = 1, state published": rows_of(
                    records, "fig3b", "descent-to-delete", accountant=accountants
                )
                for form, accountants in FORMS.items()
            }
            panels = [descent, *(langevin(records, "fig3b", (size,)) for size in (5, 10, 20))]
            return [
                # Descent-to-Delete is repeated beside the others.
                *(show(descent | curves, "records_removed", "accumulated_steps") for curves in panels),
                *(
                    show(curves, "records_removed", "accuracy") | levels("Retraining, noisy", *NOISELESS)
                    for curves in panels
                ),
            ]
        case "fig3c":
            group = langevin(records, "fig3c", (100,))
            retrained = anew("Retraining, noisy")
            return [
                show(group, "sigma", "unlearning_steps"),
                show(group, "sigma", "initial_epsilon"),
                show(group | retrained, "sigma", "accuracy") | levels(*NOISELESS),
            ]
        case "fig5a":
            retrained = anew("Retraining, noisy", *NOISELESS)
            panels = [
                {
                    f"Langevin ({a}), epsilon = {epsilon}": rows_of(
                        records, "fig5a", "langevin", accountant=a, epsilon_target=epsilon
                    )
                    for a in ACCOUNTANTS
                }
                for epsilon in (0.5, 1, 2, 5)
            ]
            return [show(curves | retrained, "records_removed", "accuracy") for curves in panels]
    groups = (1, 50, 100)
    return [
        *(show(langevin(records, "fig4", (size,)), "epsilon_target", "unlearning_steps") for size in groups),
        *(
            show(langevin(records, "fig4", (size,)), "epsilon_target", "accuracy")
            | levels("Retraining, noisy", *NOISELESS, records_removed=size)
            for size in groups
        ),
    ]


def check_layout(figure: Figure) -> None:
    """Nothing overlaps, nothing is cut off, every tick label can be read."""
    figure.draw_without_rendering()
    title = figure._suptitle.get_window_extent()
    keys = [legend.get_window_extent() for legend in figure.legends]
    boxes = [title, *keys, *(axes.get_tightbbox() for axes in figure.axes)]
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)
    for box in boxes:
        assert min(box.x0, box.y0) >= -1  # one pixel of rounding
        assert box.x1 <= figure.bbox.width + 1
        assert box.y1 <= figure.bbox.height + 1
    for axes in figure.axes:
        texts = [text.get_window_extent() for text in axes.texts if text.get_text()]
        assert not any(one.overlaps(other) for one, other in combinations(texts, 2))
        for axis, edge in ((axes.xaxis, axes.bbox.intervalx), (axes.yaxis, axes.bbox.intervaly)):
            labels = [label for label in axis.get_ticklabels() if label.get_visible() and label.get_text()]
            extents = [label.get_window_extent() for label in labels]
            middles = [np.mean((box.intervalx, box.intervaly)[axis is axes.yaxis]) for box in extents]
            inside = [box for box, middle in zip(extents, middles, strict=True) if edge[0] - 1 <= middle <= edge[1] + 1]
            assert not any(one.overlaps(other) for one, other in combinations(inside, 2))
