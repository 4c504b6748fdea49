"""The command `init`: flags become a table's declaration and a learner's parameters."""

import functools
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from certified_unlearning.accounting import ACCOUNTANTS
from certified_unlearning.commands.ledger_use import print_quality, print_warnings
from certified_unlearning.commands.options import DELTA_HELP, WithQuality, delta_of, target
from certified_unlearning.commands.output import after, interruptible
from certified_unlearning.errors import ParameterError
from certified_unlearning.files import read_yaml
from certified_unlearning.text import counted, rounded_up, seconds_in_words
from certified_unlearning.vocabulary import DType

if TYPE_CHECKING:
    from certified_unlearning.ledger.contents import Contents
    from certified_unlearning.ledger.model import Learner

_CLASSES_SHOWN = 12
SLOW = 3
"""From how many times the advised ``C n`` on `init` warns."""


def init(
    model_dir: Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="Where the model goes: a new directory.")],
    epsilon: Annotated[
        float | None,
        typer.Option(help="The target after every removal; left out where removals are exact.", callback=target),
    ] = None,
    inverse_strength: Annotated[
        float | None,
        typer.Option(
            "--C",
            help="Inverse strength of the regulariser, as in scikit-learn, but the intercept is regularised too; by "
            "default 1, as there. Of langevin and exact mechanisms 100 / n by default: with C n of 30 to 100 removals "
            "by langevin are short and its noise is small.",
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="The records: a .csv, .csv.gz or .parquet file.")] = None,
    label: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    identifier: Annotated[
        str | None, typer.Option("--id", help="The column that says whose a record is; several may be one person's.")
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            help="A column to predict from, or a run of columns, 'pixel_0 to pixel_767'; repeatable; by default all "
            "others."
        ),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            help="column=a,b,null: all values that a column of categories may have; null: a missing one; repeatable."
        ),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="column=low:high, a range known beforehand, which becomes -1 to 1; repeatable. One for a run of "
            "columns: 'pixel_0 to pixel_767=0:255'.",
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            help="column=number, known beforehand: it stands where the column's number is missing; repeatable."
        ),
    ] = None,
    label_value: Annotated[
        list[str] | None,
        typer.Option("--class", help="A value of the label; repeatable, in order; by default those in the file."),
    ] = None,
    norm: Annotated[
        Literal["unit", "at-most-1"],
        typer.Option(help="unit: each row is divided by its own norm; at-most-1: a longer row is an error."),
    ] = "unit",
    table: Annotated[
        Path | None,
        typer.Option(help="A YAML file with the whole declaration, as `own_data` has it in params.yaml, instead."),
    ] = None,
    intercept: Annotated[bool, typer.Option(help="Whether the model has an intercept.")] = True,
    delta: Annotated[str, typer.Option(help=f"{DELTA_HELP}.")] = "auto",
    sigma: Annotated[
        float | None,
        typer.Option(
            help="Noise scale; by default 0.001, of langevin the least that does, for --steps and --records, of "
            "noisy-sgd and accelerated-noisy-sgd 0.01."
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            help="Of langevin: steps that shall remove --records records; not together with --sigma. Of exact "
            "mechanisms: steps of "
            "learning, all of which are kept; by default 256. Of certified-ensemble: updates of each stage; by default "
            "5."
        ),
    ] = None,
    records: Annotated[
        int, typer.Option(help="Of langevin: records that --steps steps shall be able to remove at once.")
    ] = 1,
    accountant: Annotated[
        str, typer.Option(help=f"Of langevin: which analysis: {', '.join(ACCOUNTANTS)}.")
    ] = "shifted",
    batch_size: Annotated[
        str,
        typer.Option(
            help="Of langevin and exact mechanisms: records of a mini-batch, which is what a step reads; auto: "
            "mini-batches where there are enough records (of exact mechanisms always, of 8 records); all: every step "
            "reads all records."
        ),
    ] = "auto",
    mechanism: Annotated[
        Literal[
            "newton-removal",
            "langevin",
            "noisy-sgd",
            "accelerated-noisy-sgd",
            "quantized-sgd",
            "subsample-gd",
            "certified-ensemble",
        ],
        typer.Option(
            help="newton-removal: a request reads its own records only, compared with an exact refit plus the same "
            "noise, for two classes and at most 5000 numbers a record (with more: a certified refit, which reads all); "
            "langevin: noisy steps, compared with learning anew by noisy steps; certified-ensemble: shards of "
            "networks that answer labels, or none, and are trained again when a budget is spent: answers are those of "
            "the ensemble trained without the removed records; the others are exact: epsilon is 0, compared with the "
            "same steps from nothing, for requests that do not "
            "depend on models, with a state that must stay secret."
        ),
    ] = "newton-removal",
    step_size: Annotated[
        float | None,
        typer.Option(
            help="Of exact mechanisms: size of a step, for rows of norm 1; by default 8, of accelerated-noisy-sgd "
            "0.05, of certified-ensemble 4."
        ),
    ] = None,
    radius: Annotated[
        float | None, typer.Option(help="Of exact mechanisms: of a ball that models stay in; by default none.")
    ] = None,
    quantum: Annotated[
        float | None,
        typer.Option(help="Of quantized-sgd: spacing of the grid that gradients are rounded to; by default 0.05."),
    ] = None,
    shards: Annotated[
        int | None, typer.Option(help="Of certified-ensemble: shards, each of which has a vote; by default 5.")
    ] = None,
    slices: Annotated[
        int | None,
        typer.Option(help="Of certified-ensemble: slices of a shard, with a checkpoint each; by default 2."),
    ] = None,
    budget: Annotated[
        list[int] | None,
        typer.Option(
            help="Of certified-ensemble: how many records may leave a shard before it is trained again; repeatable, "
            "rising: smaller ones certify more while fewer have left; by default 1, 2, 4, 8."
        ),
    ] = None,
    hidden: Annotated[
        list[int] | None,
        typer.Option(help="Of certified-ensemble: units of a hidden layer; repeatable; by default there is none."),
    ] = None,
    bound: Annotated[
        float | None,
        typer.Option(help="Of certified-ensemble: what entries of gradients are clipped to; by default 0.1."),
    ] = None,
    records_between_reads: Annotated[
        int | None,
        typer.Option(help="Of newton-removal: after how many removed records data are read again; by default planned."),
    ] = None,
    strict_timing: Annotated[
        bool, typer.Option(help="Of newton-removal: whether counts alone decide when data are read again.")
    ] = False,
    dtype: Annotated[DType, typer.Option(help="Of langevin's weights; the others have float64.")] = "float32",
    device: Annotated[
        Literal["auto", "cpu", "cuda"], typer.Option(help="Where langevin's steps are taken, now and later.")
    ] = "auto",
    quality: WithQuality = True,
) -> None:
    """Learn a model from people's records, so that they can be removed from it with a certificate.

    The directory holds a copy of the records, the model and its ledger. It appears whole or not at all.
    """
    from certified_unlearning.data.tables import declaration
    from certified_unlearning.ledger.initialisation import initialise

    flags = {
        "path": None if data is None else str(data),
        "label": label,
        "identifier": identifier,
        "features": feature or None,
        "classes": label_value or None,
        "categories": _by_column("--category", map(_category, category or [])),
        "ranges": _by_column("--range", map(_range, bounds or [])),
        "missing": _by_column("--missing", map(_missing, missing or [])),
        "norm": norm,
    }
    declared = _from_flags(flags) if table is None else _from_file(table, flags)
    learn = functools.partial(
        initialise,
        model_dir,
        declaration.parse(json.dumps(declared, default=_refuse_date), "the table" if table is None else str(table)),
        epsilon=epsilon,
        C=inverse_strength,
        delta=delta_of(delta),
        sigma=sigma,
        steps=steps,
        records=records,
        accountant=accountant,
        dtype=dtype,
        device=device,
        intercept=intercept,
        batch_size=_batch_size(batch_size),
        mechanism=mechanism,
        records_between_reads=records_between_reads,
        strict_timing=strict_timing,
        step_size=step_size,
        radius=radius,
        quantum=quantum,
        shards=shards,
        slices=slices,
        budgets=budget or None,
        hidden=hidden or None,
        bound=bound,
        planned=functools.partial(_announce, table),
    )
    with interruptible(lambda: _what_init_left(model_dir)):
        made = learn()
        start = made.state.start
        with after(f"{model_dir} was made (receipt: {made.head})"):
            print(
                f"{model_dir}: version 1 learned from {counted(start.records, 'record')} of "
                f"{counted(start.people, 'person')}"
            )
            if quality:
                print_quality(model_dir, names_columns=False)  # They were named before the model was learned.
            print(f"{start.source} is still there: what is removed from the model must be removed there too")
            print(f"receipt: {made.head}")


def _what_init_left(model_dir: Path) -> str:
    """Return in words what an interrupted `init` made."""
    from certified_unlearning.ledger.directory import ModelDirectory
    from certified_unlearning.ledger.initialisation import unfinished

    if ModelDirectory(model_dir).ledger.exists():
        return f"{model_dir} was made; `unlearn status {model_dir}` prints its receipt"
    left = unfinished(model_dir)
    return f"nothing was made, but {left} is left; the next `init` deletes it" if left.exists() else "nothing was made"


def _batch_size(text: str) -> int | Literal["auto"] | None:
    if text == "auto":
        return "auto"
    if text == "all":
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ParameterError(f"--batch-size must be auto, all or a whole number, at least 1, got {text!r}")
    return int(text)


def _announce(file: Path | None, contents: "Contents", C: float, learner: "Learner") -> None:
    """Print what was taken from the table, which ``C``, and how long learning will take."""
    with after("nothing was made"):
        _print_contents(file, contents)
        _print_plan(C, learner)
        print(f"learning takes about {seconds_in_words(contents.seconds)}", flush=True)


def _print_contents(file: Path | None, contents: "Contents") -> None:
    from certified_unlearning.data.advice.ranges import warning_about
    from certified_unlearning.data.tables.spellings import described, groups_of
    from certified_unlearning.data.tables.table_values import listed

    features = contents.table.features or ()
    numbers = f", {counted(contents.numbers, 'number')} a record" if contents.numbers != len(features) else ""
    print(f"features: {listed(features)} ({counted(len(features), 'column')}{numbers})")
    shown = list(contents.classes.items())[:_CLASSES_SHOWN]
    more = f" and {len(contents.classes) - len(shown)} more" if len(contents.classes) > len(shown) else ""
    origin = "as declared" if contents.classes_from == "declaration" else "as found in the records"
    print("classes: " + ", ".join(f"{name!r} {count:,}" for name, count in shown) + f"{more} ({origin})")
    print(
        f"identifiers: {contents.table.identifier!r}, {counted(contents.people, 'person')} in "
        f"{counted(contents.records, 'record')}"
    )
    print(f"left out: no rows; {f'columns {listed(contents.left_out)}' if contents.left_out else 'no columns'}")
    warnings = described(contents.spellings)
    if contents.absent:
        warnings.append(
            f"the identifier {contents.table.identifier} is {listed(contents.absent)} in one row each: leave these "
            "rows out if that means that it is missing"
        )
    warnings += [
        f"the classes {listed(group.spellings)} differ only in {group.difference}: are they one class?"
        for group in groups_of(map(str, contents.table.classes or ()))
    ]
    if contents.drowning is not None:
        warnings.append(warning_about(contents.table, contents.drowning, None if file is None else str(file)))
    print_warnings(warnings)


def _print_plan(C: float, learner: "Learner") -> None:
    """Print which ``C`` was taken, and a warning where learning will take long."""
    from certified_unlearning.accounting.core.occupancy import requests_until_all, requests_until_first
    from certified_unlearning.accounting.core.scale import QUICK_CONDITION
    from certified_unlearning.accounting.tv.subsampling import subsampling_tv
    from certified_unlearning.mechanisms.certified_sgd.ensemble_plan import EnsemblePlan
    from certified_unlearning.mechanisms.exact.plan import ExactPlan
    from certified_unlearning.mechanisms.refit_plan import RefitPlan

    if isinstance(learner, EnsemblePlan):
        hits = learner.budgets[-1] + 1
        print(
            f"{counted(learner.shards, 'shard')} of {counted(learner.slices, 'slice')}: the first one is trained "
            "again after about "
            f"{counted(round(requests_until_first(learner.shards, hits)), 'request')} for single records at random, "
            "and each once "
            f"after about {requests_until_all(learner.shards, hits):.0f}; whoever knows who lies where needs {hits}",
            flush=True,
        )
        return
    condition, quick = C * learner.n, QUICK_CONDITION / learner.n
    if isinstance(learner, RefitPlan):
        reads = learner.records_between_reads
        often = f"after {counted(reads, 'removed record')} at the latest" if reads else "for every request"
        print(f"C = {C:.4g}, C n = {condition:,.0f}: data are read again {often}", flush=True)
        return
    if isinstance(learner, ExactPlan):
        again = subsampling_tv(n=learner.n, batch_size=learner.batch_size, steps=learner.steps)
        print(
            f"C = {C:.4g}, C n = {condition:,.0f}: learning takes {counted(learner.steps, 'step')} of "
            f"{counted(learner.batch_size, 'record')}, and removing one record takes steps again with probability at "
            f"most {rounded_up(again, 3)} while all {learner.n:,} are there, and more likely with fewer",
            flush=True,
        )
        return
    if condition > SLOW * QUICK_CONDITION:
        print(
            f"warning: with C = {C:.4g}, C n is {condition:,.0f} and learning takes "
            f"{counted(learner.learning_steps, 'step')}; "
            f"C = {quick:.4g} ({QUICK_CONDITION} / n) would be quick",
            file=sys.stderr,
            flush=True,
        )
    of = f" of {counted(learner.cycle.batch_size, 'record')}" if learner.cycle is not None else ""
    print(
        f"C = {C:.4g}, C n = {condition:,.0f}: learning takes {counted(learner.learning_steps, 'step')}{of}", flush=True
    )


def _from_flags(flags: dict[str, Any]) -> dict[str, Any]:
    missing = [
        flag for flag, key in (("--data", "path"), ("--label", "label"), ("--id", "identifier")) if not flags[key]
    ]
    if missing:
        raise ParameterError(f"{' and '.join(missing)} must be given, or --table with a file that declares the table")
    return flags


def _from_file(path: Path, flags: dict[str, Any]) -> dict[str, Any]:
    from certified_unlearning.data.tables.drafting import MARK, marked
    from certified_unlearning.data.tables.table_values import listed

    given = [key for key, value in flags.items() if value and key != "norm"]
    if given or flags["norm"] != "unit":
        raise ParameterError(f"--table declares everything: leave out the flags for {', '.join(given) or 'norm'}")
    declared = read_yaml(path)
    left = marked(path.read_text(encoding="utf-8"))
    if left:
        columns = listed(list(dict.fromkeys(left)))
        raise ParameterError(
            f'{path} is a draft: it has {counted(len(left), "mark")} "{MARK}" ({columns}), and no guarantee covers '
            "what is read off the records; write what each mark asks for, from what you know without the file, and "
            "remove the mark when that is written"
        )
    if not isinstance(declared, dict) or not isinstance(declared.get("path"), str):
        raise ParameterError(f"{path} is no declaration of a table: it must be a mapping with at least path and label")
    return declared | {"path": str(path.parent / declared["path"])}


def _refuse_date(value: object) -> None:
    """Refuse what YAML makes of words that look like a date."""
    raise ParameterError(f"the declaration has the {type(value).__name__} {value}; put quotes around it")


def _by_column(flag: str, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for column, value in pairs:
        if column in found:
            raise ParameterError(f"{flag} is given twice for {column!r}; give it once")
        found[column] = value
    return found


def _category(text: str) -> tuple[str, list[str | None]]:
    column, separator, values = text.partition("=")
    if not separator or not values:
        raise ParameterError(f"--category is {text!r}, but must be like colour=red,green,null (null: a missing one)")
    # A value that is called null can be declared in a YAML file.
    return column, [None if value in ("", "null") else value for value in values.split(",")]


def _range(text: str) -> tuple[str, list[float]]:
    column, _, numbers = text.partition("=")
    low, separator, high = numbers.partition(":")
    if not separator:
        raise ParameterError(f"--range is {text!r}, but must be like age=0:100")
    return column, [_number("--range", number, "like age=0:100") for number in (low, high)]


def _missing(text: str) -> tuple[str, float]:
    column, separator, number = text.partition("=")
    if not separator:
        raise ParameterError(f"--missing is {text!r}, but must be like income=0")
    return column, _number("--missing", number, "like income=0")


def _number(flag: str, text: str, right: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ParameterError(f"{flag} has {text!r}, but must be {right}") from error
