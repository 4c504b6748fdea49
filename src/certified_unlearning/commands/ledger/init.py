"""The command `init`: it turns flags into a table's declaration and a mechanism's settings, and learns the model."""

import copy
import functools
import itertools
import json
import math
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand
from typer.main import get_command

from certified_unlearning.commands.ledger.use import print_left_out, print_quality, print_warnings
from certified_unlearning.commands.options import ADVANCED, KEEP_THE_KEY, WithQuality
from certified_unlearning.commands.output import after, interruptible
from certified_unlearning.commands.settings import with_settings
from certified_unlearning.errors import ParameterError
from certified_unlearning.files import read_yaml
from certified_unlearning.ledger.mechanisms import DEFAULT, MECHANISMS
from certified_unlearning.text import counted, rounded_up, seconds_in_words, with_commas

if TYPE_CHECKING:
    from certified_unlearning.data.tables.declaration import Table
    from certified_unlearning.data.tables.targets import TargetCounts
    from certified_unlearning.ledger.initialisation import Contents

    MechanismName = str
else:
    MechanismName = Literal[tuple(MECHANISMS)]

_CLASSES_SHOWN = 12
_BY_FLAGS = "the table"
"""The name that messages use for a declaration that is given by flags."""
_FLAG_OF = {"class_weight": "--class-weight", "target_range": "--range"}
"""The flag that sets each key of the declaration, for messages about the whole key."""
BALANCED = "balanced"
"""scikit-learn's name for weights that are computed from the records. No guarantee covers such weights."""
_TITLES = "; ".join(
    f"{', '.join(each.name for each in group)}: {title}"
    for title, group in itertools.groupby(MECHANISMS.values(), lambda each: each.title)
)


def init(
    model_dir: Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="New directory for the model.")],
    data: Annotated[Path | None, typer.Option(help="Records to learn from: a .csv, .csv.gz or .parquet file.")] = None,
    label: Annotated[str | None, typer.Option("--label", "--target", help="Column to predict.")] = None,
    regression: Annotated[
        bool,
        typer.Option(
            "--regression",
            help="Predict numbers instead of classes. The column to predict then needs a --range.",
        ),
    ] = False,
    identifier: Annotated[
        str | None,
        typer.Option("--id", help="Column that identifies each record's person. One person may have several records."),
    ] = None,
    feature: Annotated[
        list[str] | None,
        typer.Option(
            help="Column to predict from, or several columns, such as 'pixel_0 to pixel_767'; repeatable. Default: all "
            "others."
        ),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of words and all values that it may have, such as plan=basic,plus,null, where null is a "
            "missing value; repeatable."
        ),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Column of numbers and its range, which must be known beforehand, such as age=0:120 or 'pixel_0 to "
            "pixel_767=0:255'; repeatable. The range is mapped to [-1, 1].",
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        typer.Option(
            help="Column and the number, known beforehand, that replaces its missing values, such as income=0; "
            "repeatable.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            help="Column of free text, such as comment, which is hashed into 65536 columns; comment=16384 sets another "
            "number of columns. Repeatable.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    label_value: Annotated[
        list[str] | None,
        typer.Option("--class", help="Value of the label; repeatable, in order. Default: the values in the file."),
    ] = None,
    class_weight: Annotated[
        list[str] | None,
        typer.Option(
            help="Weights of the classes' losses, fixed beforehand: no=1,yes=10, or JSON; repeatable. Try them if a "
            "class is rare.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    norm: Annotated[
        Literal["unit", "at-most-1"],
        typer.Option(
            help="Norm of rows. unit: each row is divided by its own norm; at-most-1: a longer row is an error.",
            rich_help_panel=ADVANCED,
        ),
    ] = "unit",
    table: Annotated[
        Path | None,
        typer.Option(
            help="YAML file with the whole declaration, in place of these options; `unlearn declare` drafts one.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    mechanism: Annotated[
        MechanismName,
        typer.Option(
            metavar="NAME", help=f"{_TITLES}. `unlearn init --mechanism NAME --help` shows a mechanism's options."
        ),
    ] = DEFAULT,
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        typer.Option(help="Device for the steps of langevin, now and later.", rich_help_panel=ADVANCED),
    ] = "auto",
    key_file: Annotated[
        Path | None,
        typer.Option(
            help="New file, outside the model directory, for the key of the pseudonyms that replace identifiers.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(
            help="New file on another disk for a second copy of the log. A restore from a backup needs this copy.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    quality: WithQuality = True,
    **asked: Any,
) -> None:
    """Learn a model from people's records, so that they can be removed from it with a certificate.

    The directory holds a copy of the records, the model and its ledger. It is created complete, or not at all.
    """
    from certified_unlearning.data.advice.undeclared import UndeclaredError
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
        "text": _by_column("--text", map(_text, text or [])),
        "norm": norm,
    }
    declared = _from_flags(flags, regression) if table is None else _from_file(table, flags, regression)
    where = _BY_FLAGS if table is None else str(table)
    _weigh(declared, class_weight or [], where)
    learn = functools.partial(
        initialise,
        model_dir,
        _parsed(declared, where),
        mechanism=mechanism,
        device=device,
        key_file=key_file,
        planned=functools.partial(_announce, table),
        log=log,
        **asked,
    )
    with interruptible(lambda: _what_init_left(model_dir)):
        try:
            made = learn()
        except UndeclaredError as error:
            if table is None:
                raise
            raise error.by_keys(str(table)) from error
        start = made.state.start
        with after(f"{model_dir} was made (head: {made.head})"):
            print(
                f"{model_dir}: version 1 learned from {counted(start.records, 'record')} of "
                f"{counted(start.people, 'person')}"
            )
            if quality:
                print_quality(model_dir, names_columns=False)  # The columns were named before the model was learned.
            print(
                f"{start.source} still exists: when you remove records from the model, remove them from this file, too"
            )
            if key_file is not None:
                print(f"the key of pseudonyms is in {key_file}: {KEEP_THE_KEY}")
            print(f"head: {made.head}")


class InitCommand(TyperCommand):
    """The command `init` with the options of all mechanisms. Its help shows only options of the chosen mechanism.

    The command accepts all options, so that it can refuse an option of another mechanism with a clear sentence.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Store the chosen mechanism for the help, and read the options."""
        given, _, _ = self.make_parser(ctx).parse_args(list(args))
        ctx.meta[__name__] = MECHANISMS.get(given.get("mechanism", DEFAULT), MECHANISMS[DEFAULT])
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the general options and of the chosen mechanism's options."""
        app, chosen = typer.Typer(add_completion=False), ctx.meta[__name__]
        app.command()(with_settings(init, [chosen], f"Options of {chosen.name}"))
        shown = copy.copy(self)
        # Options that few people need come last.
        shown.params = sorted(
            get_command(app).params, key=lambda option: getattr(option, "rich_help_panel", None) == ADVANCED
        )
        super(InitCommand, shown).format_help(ctx, formatter)


def register(app: typer.Typer) -> None:
    """Add the command `init` to the program."""
    app.command("init", cls=InitCommand)(with_settings(init, MECHANISMS.values()))


def _what_init_left(model_dir: Path) -> str:
    """Return a sentence about the files that an interrupted `init` left."""
    from certified_unlearning.ledger.directory import ModelDirectory
    from certified_unlearning.ledger.initialisation import unfinished

    if ModelDirectory(model_dir).ledger.exists():
        return f"{model_dir} was made; `unlearn status {model_dir}` prints the head of its log"
    left = unfinished(model_dir)
    return f"nothing was made, but {left} is left; the next `init` deletes it" if left.exists() else "nothing was made"


def _announce(file: Path | None, contents: "Contents") -> None:
    """Print what was read from the table, what is planned, and how long learning will take."""
    with after("nothing was made"):
        _print_contents(file, contents)
        if contents.words.warning is not None:
            print_warnings([contents.words.warning])
        print(contents.words.line)
        if contents.noise is not None:
            _print_noise(contents.table, contents.noise)
        print(f"learning takes about {seconds_in_words(contents.seconds)}", flush=True)


def _print_contents(file: Path | None, contents: "Contents") -> None:
    from certified_unlearning.data.advice.ranges import warning_about
    from certified_unlearning.data.tables.classes import are_numbers, in_place_of_classes
    from certified_unlearning.data.tables.declaration import in_words
    from certified_unlearning.data.tables.spellings import described, groups_of
    from certified_unlearning.data.tables.table_values import listed

    features = contents.table.features or ()
    numbers = f", {counted(contents.numbers, 'number')} a record" if contents.numbers != len(features) else ""
    print(f"features: {listed(features)} ({counted(len(features), 'column')}{numbers})")
    if contents.targets is None:
        shown = list(contents.classes.items())[:_CLASSES_SHOWN]
        more = f" and {len(contents.classes) - len(shown)} more" if len(contents.classes) > len(shown) else ""
        origin = "as declared" if contents.classes_from == "declaration" else "as found in the records"
        print("classes: " + ", ".join(f"{name!r} {count:,}" for name, count in shown) + f"{more} ({origin})")
        if contents.table.class_weight is not None:
            weights = in_words(contents.table.class_weight)
            print(f"weights of classes: {weights} (fixed numbers; the comparator uses the same weights)")
    else:
        low, high = contents.table.target_range or (0.0, 0.0)
        # The smallest and the largest target are not printed: each belongs to one record, and is no public range.
        print(
            f"predicts: {contents.table.label!r}, a number from {with_commas(low)} to {with_commas(high)} (as declared)"
        )
    print(
        f"identifiers: {contents.table.identifier!r}, {counted(contents.people, 'person')} in "
        f"{counted(contents.records, 'record')}"
    )
    if contents.wordless:
        _print_text(contents)
    print_left_out(contents.left_out)
    warnings = described(contents.spellings)
    if contents.absent:
        warnings.append(
            f"in {counted(len(contents.absent), 'row')}, the identifier {contents.table.identifier} is "
            f"{listed(contents.absent)}: if this means that the identifier is missing, leave such rows out"
        )
    if contents.classes_from == "records" and are_numbers(contents.classes):
        label = contents.table.label
        warnings.append(f"each of {len(contents.classes)} numbers is a separate class; {in_place_of_classes(label)}")
    warnings += [
        f"the classes {listed(group.spellings)} differ only in {group.difference}: are they one class?"
        for group in groups_of(map(str, contents.table.classes or ()))
    ]
    if contents.targets is not None:
        warnings += _about_targets(contents.table, contents.targets)
    if contents.drowning is not None:
        warnings.append(warning_about(contents.table, contents.drowning, None if file is None else str(file)))
    print_warnings(warnings)


def _print_text(contents: "Contents") -> None:
    """Print how columns of text become numbers, and how many records have no words in such a column."""
    for column, empty in contents.wordless.items():
        without = f"; {counted(empty, 'record')} without words there" if empty else ""
        print(f"text: {column!r}, hashed into {contents.table.text[column].width:,} columns{without}")


def _print_noise(table: "Table", noise: float) -> None:
    """Print the noise in a prediction; warn if it exceeds the spread of targets that fill their range evenly."""
    most = with_commas(float(rounded_up(noise, 3)))
    print(f"noise in a prediction: a standard deviation of at most {most} ({table.label})")
    low, high = table.target_range or (0.0, 0.0)
    spread = (high - low) / math.sqrt(12)
    if noise > spread:
        print_warnings(
            [
                "so much noise may hide what the model learned: even if the values of "
                f"{table.label} were spread evenly over the range, their standard deviation would be only "
                f"{with_commas(spread, 3)}; a smaller C helps, and newton-removal needs far less noise"
            ]
        )


def _about_targets(table: "Table", targets: "TargetCounts") -> list[str]:
    """Return warnings about the targets, the numbers that are predicted."""
    warnings = []
    if outside := targets.outside:
        warnings.append(
            f"in {counted(outside, 'record')}, {table.label} is outside its range ({targets.below:,} below, "
            f"{targets.above:,} above), and counts as the nearer end"
        )
    if values := targets.only_values:
        warnings.append(
            f"{table.label} is {' or '.join(f'{value:g}' for value in values)} in every row: is it a class? Without "
            "--regression (target_range in a file), the model would predict a probability for each class"
        )
    return warnings


def _from_flags(flags: dict[str, Any], regression: bool) -> dict[str, Any]:
    missing = [
        flag for flag, key in (("--data", "path"), ("--label", "label"), ("--id", "identifier")) if not flags[key]
    ]
    if missing:
        raise ParameterError(f"{' and '.join(missing)} must be given, or --table with a file that declares the table")
    if not regression:
        return flags
    label, ranges = flags["label"], dict(flags["ranges"])
    if flags["classes"]:
        raise ParameterError(f"--regression predicts numbers, and --class declares classes of {label}; leave one out")
    if label not in ranges:
        example = shlex.quote(f"{label}=LOW:HIGH")
        raise ParameterError(
            f"--regression needs --range {example}, two numbers known beforehand and not taken from this file: the "
            "guarantee depends on them, and a label outside this range is replaced by the nearer end "
            "of the range"
        )
    return flags | {"target_range": ranges.pop(label), "ranges": ranges}


def _from_file(path: Path, flags: dict[str, Any], regression: bool) -> dict[str, Any]:
    from certified_unlearning.data.tables.draft import MARK, marked
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
            "values that are taken from the records; write what each mark asks for, using only what you know without "
            "the file, and then remove the mark"
        )
    if not isinstance(declared, dict) or not isinstance(declared.get("path"), str):
        raise ParameterError(f"{path} does not declare a table: it must be a mapping with at least path and label")
    if regression and declared.get("target_range") is None:
        raise ParameterError(
            f"--regression predicts numbers, but {path} has no target_range: [LOW, HIGH], two numbers that are known "
            "beforehand and not taken from the file"
        )
    return declared | {"path": str(path.parent / declared["path"])}


def _parsed(declared: dict[str, Any], where: str) -> "Table":
    """Return the declared table. If a flag declared a wrong value, the error names this flag."""
    from certified_unlearning.data.tables import declaration

    try:
        return declaration.parse(json.dumps(declared, default=_refuse_date), where)
    except ParameterError as error:
        for key, flag in _FLAG_OF.items():
            if str(error).startswith(f"{_BY_FLAGS}.{key} "):
                raise ParameterError(str(error).replace(f"{_BY_FLAGS}.{key}", flag, 1)) from error
        raise


def _refuse_date(value: object) -> None:
    """Refuse a date: YAML reads a date where a word looks like one."""
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
        raise ParameterError(
            f"--category is {text!r}, but must look like colour=red,green,null, where null is a missing value"
        )
    # The string "null" itself, as a value, can only be declared in a YAML file.
    return column, [None if value in ("", "null") else value for value in values.split(",")]


def _weigh(declared: dict[str, Any], texts: list[str], where: str) -> None:
    """Write the class weights that flags give into a declaration.

    Refuse weights that would be computed from the records.
    """
    from certified_unlearning.data.tables import classes, declaration

    if texts and declared.get("class_weight") is not None:
        raise ParameterError(f"--class-weight is given, and so is class_weight in {where}: leave one of them out")
    if texts and declared.get("target_range") is not None:
        raise ParameterError("--class-weight must be left out with --regression: numbers have no classes to weight")
    if texts:
        declared["class_weight"] = BALANCED if texts == [BALANCED] else _by_class(texts)
    if declared.get("class_weight") == BALANCED:
        plain = declared | {"class_weight": None}
        classes.refuse_balanced(declaration.parse(json.dumps(plain, default=_refuse_date), where))


def _by_class(texts: list[str]) -> dict[str, float]:
    """Return the weight of each class, read from strings such as no=1,yes=10 or from JSON."""
    right = "like no=1,yes=10"
    found: dict[str, float] = {}
    for text in texts:
        if text.lstrip().startswith("{"):
            try:
                pairs = [*json.loads(text).items()]
            except ValueError as error:
                raise ParameterError(f"--class-weight is {text!r}, which is not JSON; it must look {right}") from error
        else:
            pairs = []
            for each in text.split(","):
                name, separator, number = each.rpartition("=")
                if not separator:
                    raise ParameterError(f"--class-weight has {each!r}, but must look {right}")
                pairs.append((name, _number("--class-weight", number, right)))
        for name, weight in pairs:
            if name in found:
                raise ParameterError(f"--class-weight is given twice for {name!r}; give it once")
            found[name] = weight
    return found


def _range(text: str) -> tuple[str, list[float]]:
    column, _, numbers = text.partition("=")
    low, separator, high = numbers.partition(":")
    if not separator:
        raise ParameterError(f"--range is {text!r}, but must look like age=0:100")
    return column, [_number("--range", number, "like age=0:100") for number in (low, high)]


def _missing(text: str) -> tuple[str, float]:
    column, separator, number = text.partition("=")
    if not separator:
        raise ParameterError(f"--missing is {text!r}, but must look like income=0")
    return column, _number("--missing", number, "like income=0")


def _text(text: str) -> tuple[str, dict[str, int]]:
    column, separator, width = text.rpartition("=")
    if not separator:
        return text, {}
    if not width.isdecimal():
        raise ParameterError(f"--text has {width!r}, but must look like comment, or comment=16384")
    return column, {"width": int(width)}


def _number(flag: str, text: str, right: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ParameterError(f"{flag} has {text!r}, but must look {right}") from error
