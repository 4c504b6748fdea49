"""Print the section `plots` of dvc.yaml, from the declarations of the experiments of all papers in params.yaml."""

from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from certified_unlearning.papers import parameters
from certified_unlearning.reproduction.paper import Paper

RESULTS = "results/${preset}"
WORDS = {"epsilon_target": "target epsilon", "sigma": "noise scale sigma"}
"""Titles of columns, if they differ from the names."""


class _Indented(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def section(papers: Sequence[Paper]) -> str:
    """Return the section as YAML: plots of the numbers that experiments show, then the experiments' figures."""
    content = {"plots": [*_lines(papers), *_figures(papers)]}
    return yaml.dump(content, Dumper=_Indented, sort_keys=False, width=1000)


def _lines(papers: Sequence[Paper]) -> Iterator[dict[str, Any]]:
    for paper in papers:
        for each in paper.experiments:
            for column, title in each.y.items():
                x = WORDS.get(each.x, each.x.replace("_", " "))
                yield {
                    f"{each.source or each.name}, {title} against {x} ({paper.title})": {
                        "template": "mechanisms",
                        "x": each.x,
                        "y": {f"{RESULTS}/plots/{paper.name}/{each.name}.csv": column},
                        "x_label": x,
                        "y_label": title,
                    }
                }


def _figures(papers: Sequence[Paper]) -> Iterator[str]:
    for paper in papers:
        for each in paper.experiments:
            if each.shown and each.draw is not None:
                yield f"{RESULTS}/figures/{paper.name}/{each.name}.png"


if __name__ == "__main__":
    print(section(parameters.load().known), end="")
