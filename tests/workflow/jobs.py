"""The jobs of the smoke preset, and those that Snakemake prints."""

import re
from collections.abc import Iterable
from typing import NamedTuple

COMPARED = {
    "fig3a": ("langevin", "descent-to-delete", "retraining"),
    "fig3b": ("langevin", "descent-to-delete", "retraining"),
    "fig3c": ("langevin", "retraining"),
    "fig4": ("langevin", "retraining"),
    "fig5a": ("langevin", "retraining"),
}
EXPERIMENTS = tuple(COMPARED)
TABLES = ("table1", "table2", "table3", "accountants")
WITHOUT_DATA = ("dynamics1", "dynamics2", "deletion", "risk")
PAPER_OF = {
    **dict.fromkeys((*EXPERIMENTS, *TABLES, "smoothness", "recuperation"), "langevin_unlearning"),
    **dict.fromkeys(("dynamics1", "dynamics2"), "privacy_dynamics"),
    **dict.fromkeys(("deletion", "risk"), "forget_unlearning"),
}
MADE = tuple(name for name in PAPER_OF if name not in EXPERIMENTS)
DRAWN = tuple(name for name in PAPER_OF if name not in (*TABLES, "risk"))
TRACKED = (*EXPERIMENTS, "deletion")

Name = tuple[str, str]
"""A job's rule, and its experiment, with a slash and its mechanism behind it; nothing where it has none."""


def each(rule: str, experiments: Iterable[str]) -> set[Name]:
    return {(rule, name) for name in experiments}


LEARNING = each("learn", (f"{name}/langevin" for name in EXPERIMENTS))
UNLEARNING = each("unlearn", (f"{name}/{mechanism}" for name in EXPERIMENTS for mechanism in COMPARED[name]))
DRAWING = each("draw", DRAWN)
TRACKING = each("track", TRACKED)
VERDICTS = {("claims", ""), ("page", "")}
TOGETHER = {("collect", ""), ("metrics", ""), *VERDICTS}
EVERY_JOB = {
    *each("plan", EXPERIMENTS), *LEARNING, *UNLEARNING, *each("certify", EXPERIMENTS), *each("make", MADE),
    *DRAWING, *each("tabulate", TABLES), *TRACKING, *TOGETHER,
    ("fetch", ""), ("prepare", ""), ("track_store", ""), ("parameter_table", ""),
}  # fmt: skip


def of(*experiments: str) -> set[Name]:
    """Return all jobs of some experiments."""
    return {(rule, about) for rule, about in EVERY_JOB if about.partition("/")[0] in experiments}


class Job(NamedTuple):
    """A job that Snakemake printed; ``fields`` is what it printed below the rule."""

    name: Name
    fields: str


_PRINTED = re.compile(r"^(?:local)?rule (?P<rule>\w+):\n(?P<fields>(?:    .*\n)+)", re.MULTILINE)


def jobs_in(printed: str) -> list[Job]:
    """Return the jobs that Snakemake printed (`all` is no job)."""
    found = []
    for job in _PRINTED.finditer(printed):
        about = re.findall(r"\b(?:experiment|mechanism)=([\w-]+)", job["fields"])
        found.append(Job((job["rule"], "/".join(about)), job["fields"]))
    return [job for job in found if job.name != ("all", "")]
