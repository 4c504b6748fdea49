"""The commands `unlearn data ...`: raw files and prepared data sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certified_unlearning.commands.options import OthersPapers
from certified_unlearning.commands.output import after, show_command

if TYPE_CHECKING:
    from certified_unlearning.data.dataset import DataSet

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, help="Fetch the raw files of a data set, and prepare it."
)
app.callback()(show_command)

DataSetName = Annotated[str, typer.Argument(help="Name of the data set, such as digits.")]
Raw = Annotated[Path, typer.Option(help="Directory of the raw files.")]


@app.command("fetch", epilog="Example: `unlearn data fetch digits`")
def fetch(
    dataset: DataSetName,
    manifest: Annotated[
        Path | None, typer.Option(help="File for a manifest of the files' digests (JSON); by default, none is written.")
    ] = None,
    raw: Raw = Path("data/raw"),
    other: OthersPapers = None,
) -> None:
    """Put a data set's raw files in place and check them."""
    from certified_unlearning.data import fetch

    data_set = _data_set(dataset, other)
    paths = fetch.fetch(data_set, raw)
    if manifest is not None:
        fetch.write_manifest(data_set, raw, manifest)
    with after(f"the raw files of {dataset} are in {raw}"):
        for path in paths:
            print(path)


@app.command(
    "prepare",
    epilog="Example: `unlearn data prepare digits --seed 1 --output digits.safetensors --summary digits.json`",
)
def prepare(
    dataset: DataSetName,
    output: Annotated[Path, typer.Option(help="File for the data set (safetensors).")],
    summary: Annotated[Path, typer.Option(help="File for the data set's summary (JSON).")],
    seed: Annotated[int, typer.Option(help="Seed of the split.", min=0, max=2**32 - 1)],
    raw: Raw = Path("data/raw"),
    features: Annotated[
        str | None,
        typer.Option(help="Kind of image features: hog or resnet18; by default, the usual kind of the data set."),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(help="Declaration of your own data, as JSON, such as an entry of own_data in params.yaml."),
    ] = None,
    other: OthersPapers = None,
) -> None:
    """Turn raw files into labelled rows of norm at most 1, split into training and test records."""
    from certified_unlearning.files import write_json

    if table is None:
        prepared = _data_set(dataset, other).prepare(raw, seed, features)
    else:
        from certified_unlearning.data.tables import declaration
        from certified_unlearning.data.tables.declared import prepare_table

        prepared = prepare_table(dataset, declaration.parse(table, "--table"), seed, output.parent)
    prepared.save(output)
    write_json(summary, prepared.summary())


def _data_set(name: str, others: list[str] | None) -> "DataSet":
    """Return the data set of this name; the papers are imported only if this package has no such data set."""
    from certified_unlearning.data import sets

    own = sets.built_in(name)
    if own is not None:
        return own
    from certified_unlearning.papers import all

    return sets.find(name, all.data_sets(all.papers(others or ())))
