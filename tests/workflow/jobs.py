"""The jobs of the smoke preset, and those that Snakemake prints."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from certified_unlearning.papers import parameters
from certified_unlearning.reproduction.experiment import Experiment

ROOT = Path(__file__).parents[2]
SHOWN = {each.name: (paper, each) for paper, each in parameters.load(ROOT / "params.yaml").shown("smoke")}
PAPER_OF = {name: paper.name for name, (paper, _) in SHOWN.items()}
COMPARED = {name: each.mechanisms for name, (_, each) in SHOWN.items() if each.mechanisms}
EXPERIMENTS = tuple(COMPARED)
"""Those that mechanisms run; of the others, rows are made at once."""


def those(wanted: Callable[[Experiment], object]) -> tuple[str, ...]:
    """Return the experiments of the preset that are wanted."""
    return tuple(name for name, (_, each) in SHOWN.items() if wanted(each))


MADE = those(lambda each: not each.mechanisms)
DRAWN = those(lambda each: each.shown and each.draw)
TABLES = those(lambda each: each.shown and not each.draw)
TRACKED = those(lambda each: each.mechanisms or each.tracked)
WITHOUT_DATA = those(lambda each: not each.needs_data)

Name = tuple[str, str]
"""A job's rule, and its experiment, with a slash and its mechanism behind it; nothing where it has none."""


def each(rule: str, experiments: Iterable[str]) -> set[Name]:
    return {(rule, name) for name in experiments}


LEARNING = each("learn", (f"{name}/langevin" for name in EXPERIMENTS))
UNLEARNING = each("unlearn", (f"{name}/{mechanism}" for name in EXPERIMENTS for mechanism in COMPARED[name]))
DRAWING = each("draw", DRAWN)
TRACKING = each("track", TRACKED)
VERDICTS = {("claims", ""), ("headline", ""), ("page", "")}
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
    """A job that Snakemake printed: its message, the reason where it was printed, and where log and benchmark lie."""

    name: Name
    fields: str


class _Rule(NamedTuple):
    """What a rule prints of a job, and where it writes, as its file says."""

    name: str
    message: re.Pattern[str]
    places: str


def _rules() -> Iterable[_Rule]:
    for path in (ROOT / "workflow" / "rules").glob("*.smk"):
        for text in re.split(r"(?m)^(?=rule )", path.read_text(encoding="utf-8"))[1:]:
            said, log, benchmark = (
                re.search(rf'^    {key}:\n        "(.*)"', text, re.MULTILINE)[1]  # type: ignore[index]
                for key in ("message", "log", "benchmark")
            )
            message = re.sub(r"\\{wildcards\\.(\w+)\\}", r"(?P<\1>[\\w-]+)", re.escape(said))
            message = re.sub(r"\\{params\\.\w+\\}", r".+?", message)
            yield _Rule(text[5 : text.index(":")], re.compile(message), f"    log: {log}\n    benchmark: {benchmark}\n")


_RULES = tuple(_rules())
_PRINTED = re.compile(r"^Job \d+: (?P<message>.*)\n(?P<reason>(?:Reason: .*\n)?)", re.MULTILINE)


def jobs_in(printed: str) -> list[Job]:
    """Return the jobs that Snakemake printed (`all` is no job)."""
    found = []
    for job in _PRINTED.finditer(printed):
        matches = [(rule, match) for rule in _RULES if (match := rule.message.fullmatch(job["message"]))]
        if not matches:
            assert job["message"].endswith(": everything is made"), job["message"]
            continue
        ((rule, match),) = matches
        wildcards = match.groupdict()
        about = [wildcards[name] for name in ("experiment", "mechanism") if name in wildcards]
        fields = f"{job[0]}{rule.places.format(**wildcards)}"
        found.append(Job((rule.name, "/".join(about)), fields))
    return found
