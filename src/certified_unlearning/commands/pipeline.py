"""The commands `unlearn pipeline ...`: the jobs of the workflow, one command each.

A job gets its experiment and its mechanism as ``module:name`` and imports only these. It does not import the list of
papers, so a change to one paper does not rerun jobs of other papers.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from certified_unlearning.commands.options import OthersPapers, Results
from certified_unlearning.commands.output import show_command
from certified_unlearning.text import counted

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="Run one job of the workflow.")
app.callback()(show_command)

Reference = Annotated[str, typer.Argument(metavar="MODULE:NAME", help="Module and name of the declaration.")]
PlanFile = Annotated[Path, typer.Option("--plan", help="Plan made by `unlearn pipeline plan`.")]
DataFile = Annotated[Path, typer.Option("--data", help="Data set made by `unlearn data prepare`.")]
Preset = Annotated[str, typer.Option(help="Name of the preset, which is written into the rows.")]
SettingsText = Annotated[str, typer.Option("--settings", help="The preset's settings as JSON.")]
SweepText = Annotated[str, typer.Option("--sweep", help="The experiment's sweep as JSON.")]
Defaults = Annotated[
    list[str] | None,
    typer.Option(
        "--default",
        help="Key in the settings or in the sweep whose value is the default. Default values are fitted to the size of "
        "the data set. Repeatable.",
    ),
]
Shows = Annotated[
    list[str],
    typer.Option("--shows", help="Preset and its experiments, as PRESET=EXPERIMENT,EXPERIMENT; repeatable."),
]

Processes = Annotated[
    int,
    typer.Option(
        min=1,
        help="Number of processes that share the job's rows; always 1 if the plan has no row_shards.",
    ),
]

SUMMARY_KEYS = ("features", "n", "n_test", "d", "classes", "largest_eigenvalue", "sha256")
"""Entries of a data set's summary that plans and tables use."""


@app.command("plan")
def plan(
    experiment: Reference,
    preset: Preset,
    settings: SettingsText,
    sweep: SweepText,
    summary: Annotated[Path, typer.Option(help="Summary of the prepared data set.")],
    output: Annotated[Path, typer.Option(help="File for the plan (JSON).")],
    default: Defaults = None,
) -> None:
    """Plan an experiment: every run with its noise, steps and certified epsilon.

    An experiment is left out if its whole sweep has default values and it cannot run with data of this size.
    """
    from certified_unlearning.errors import AssumptionError, InfeasibleError
    from certified_unlearning.mechanisms.constants import constants_and_problem
    from certified_unlearning.reproduction import declared

    found = declared.experiment(experiment)
    inputs = _inputs(found, preset, settings, sweep, summary, [], default)
    try:
        made = found.plan(inputs)
    except (AssumptionError, InfeasibleError) as error:
        if not set(default or ()).issuperset(found.sweep.model_fields):
            raise
        made = inputs.plan(constants_and_problem(inputs.settings, inputs.data, records=1)[0], [])
        made = made.model_copy(update={"left_out": str(error)})
        print(f"{preset}: {found.name} is left out: {error}")
    made.write(output)


@app.command("learn")
def learn(
    mechanism: Reference,
    plan: PlanFile,
    data: DataFile,
    output: Annotated[Path, typer.Option(help="File for the weights.")],
    processes: Processes = 1,
) -> None:
    """Learn the models that a mechanism's unlearning starts from."""
    planned = _planned(plan)
    if _is_shared(planned, processes):
        return
    from certified_unlearning.data.prepared import PreparedData
    from certified_unlearning.engine.row_shards import row_shards
    from certified_unlearning.reproduction import declared, jobs

    with row_shards() as shards:
        jobs.learn(declared.mechanism(mechanism), planned, PreparedData.load(data), output, shards)


@app.command("unlearn")
def unlearn(
    mechanism: Reference,
    plan: PlanFile,
    data: DataFile,
    rows: Annotated[Path, typer.Option(help="File for the rows (Parquet).")],
    curves: Annotated[Path, typer.Option(help="File for the learning curves (Parquet).")],
    learned: Annotated[Path | None, typer.Option(help="Weights made by `unlearn pipeline learn`.")] = None,
    processes: Processes = 1,
) -> None:
    """Answer all removal requests of a mechanism's runs; retraining does so from scratch."""
    from certified_unlearning.data.prepared import PreparedData
    from certified_unlearning.engine.row_shards import row_shards
    from certified_unlearning.mechanisms.mechanism import Mechanism
    from certified_unlearning.reproduction import declared, jobs

    planned = _planned(plan)

    def descend(found: Mechanism) -> None:
        if not _is_shared(planned, processes):
            with row_shards() as shards:
                jobs.unlearn(found, planned, PreparedData.load(data), learned, rows, curves, shards)

    declared.mechanism(mechanism).carried_out(
        descend, lambda found: jobs.refit(found, planned, PreparedData.load(data), rows, curves)
    )


@app.command("make")
def make(
    experiment: Reference,
    preset: Preset,
    settings: SettingsText,
    sweep: SweepText,
    output: Annotated[Path, typer.Option(help="File for the rows (Parquet).")],
    summary: Annotated[Path | None, typer.Option(help="Summary of the prepared data set, if it is needed.")] = None,
    plan: Annotated[list[Path] | None, typer.Option(help="Plan to read; repeatable.")] = None,
    default: Defaults = None,
) -> None:
    """Make the rows of an experiment that runs no mechanism but computes bounds, attacks or tables."""
    from certified_unlearning.mechanisms.run import ExperimentPlan
    from certified_unlearning.reproduction import declared
    from certified_unlearning.reproduction.rows import concatenate, write_table

    found = declared.experiment(experiment)
    left_out = [path for path in plan or [] if ExperimentPlan.read(path).left_out is not None]
    if left_out:
        print(
            f"{preset}: {found.name} is left out: it reads the plan {left_out[0]}, which has no runs; the plan states "
            "the reason"
        )
        write_table(output, concatenate([], found.rows), found.rows)
        return
    made = found.table(_inputs(found, preset, settings, sweep, summary, plan or [], default))
    write_table(output, made, found.rows)


@app.command("certify")
def certify(
    plan: PlanFile, output: Annotated[Path, typer.Option(help="Directory for the certificates, one file for each run.")]
) -> None:
    """Write and verify the certificates of all unlearning runs of a plan."""
    from certified_unlearning import certificate
    from certified_unlearning.accounting.accountants import ACCOUNTANTS
    from certified_unlearning.errors import DataError, StorageError
    from certified_unlearning.mechanisms.run import ExperimentPlan
    from certified_unlearning.reproduction.layout import certificate_file

    whole = ExperimentPlan.read(plan)
    try:
        output.mkdir(parents=True, exist_ok=True)  # Even if there is nothing to certify.
    except OSError as error:
        raise StorageError(f"cannot write {output}/: {error.strerror or error}") from error
    written: set[Path] = set()
    for run in whole.runs:
        accountant = ACCOUNTANTS.get(run.accountant)
        if accountant is None or accountant.mechanism != run.mechanism:
            continue  # This run is only a baseline for others.
        certified = certificate.of(run, key=whole.key(run), noise_source="seed")
        certificate.verify(certified)
        path = output / certificate_file(run)
        if path in written:
            raise DataError(f"{plan} has several runs called {run.point!r}, but certificates need different names")
        certificate.write(certified, path)
        written.add(path)


@app.command("collect")
def collect(
    output: Annotated[Path, typer.Option(help="File for all rows (Parquet).")],
    rows: Annotated[list[Path] | None, typer.Argument(help="Rows of the jobs.")] = None,
) -> None:
    """Join the rows of all runs into one table; it is empty if nothing was run."""
    from certified_unlearning.reproduction.rows import RUN_ROWS, concatenate, write_table

    write_table(output, concatenate(rows or [], RUN_ROWS), RUN_ROWS)


@app.command("draw")
def draw(
    experiment: Reference,
    rows: Annotated[list[Path], typer.Option(help="Rows of the experiment; repeatable.")],
    numbers: Annotated[Path, typer.Option(help="File for the numbers that the figure or table shows (CSV).")],
    style: Annotated[str | None, typer.Option(help="The figures' style as JSON.")] = None,
    figure: Annotated[
        Path | None, typer.Option(help="File for the figure, without an ending; PNG, PDF and SVG are written.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="File for a page with the table (Markdown).")] = None,
) -> None:
    """Draw one figure, or lay out a table, and write the numbers that it shows."""
    from certified_unlearning.files import write_text
    from certified_unlearning.reproduction import declared, summaries
    from certified_unlearning.reproduction.figure_style import FigureStyle
    from certified_unlearning.reproduction.parsing import parse
    from certified_unlearning.reproduction.rows import concatenate
    from certified_unlearning.reproduction.tabulation import tabulate

    found = declared.experiment(experiment)
    made = concatenate(rows, found.rows)
    if made.empty:  # The experiment was left out. Otherwise the jobs before this one have rows, or fail.
        summaries.write_csv(numbers, made)
        if figure is not None and style is not None:
            from certified_unlearning.reproduction.figures.drawing import render_left_out

            render_left_out(found, parse(FigureStyle, style, source="--style"), figure)
    elif figure is None or style is None:
        summaries.write_csv(numbers, made)
    else:
        from certified_unlearning.reproduction.figures.drawing import render, shown

        render(found, made, parse(FigureStyle, style, source="--style"), figure)
        summaries.write_csv(numbers, shown(found, made))
    if page is not None:
        write_text(page, tabulate(found, made).markdown(found.title, found.caption.text))


@app.command("metrics")
def metrics(
    records: Annotated[Path, typer.Option(help="The rows of all runs.")],
    output: Annotated[Path, typer.Option(help="File for the metrics (JSON).")],
) -> None:
    """Write epsilon, K and accuracy of every sweep point."""
    from certified_unlearning.files import write_json
    from certified_unlearning.reproduction import summaries
    from certified_unlearning.reproduction.rows import RUN_ROWS, read_table

    rows = read_table(records, RUN_ROWS)
    write_json(output, {} if rows.empty else summaries.metrics(rows))


@app.command("headline")
def headline(
    records: Annotated[Path, typer.Option(help="The rows of all runs.")],
    claims: Annotated[Path, typer.Option(help="The verdicts.")],
    output: Annotated[Path, typer.Option(help="File for the numbers (JSON).")],
    numbers: Annotated[
        list[str] | None,
        typer.Option(help="Function that returns a paper's key numbers, as MODULE:FUNCTION; repeatable."),
    ] = None,
) -> None:
    """Write a dozen numbers under names that are the same for all presets, for `dvc metrics` and `dvc exp show`."""
    from certified_unlearning.errors import ParameterError
    from certified_unlearning.files import write_json
    from certified_unlearning.reproduction import declared
    from certified_unlearning.reproduction.claims import verdicts
    from certified_unlearning.reproduction.rows import RUN_ROWS, read_table

    rows = read_table(records, RUN_ROWS)
    own = [verdict for verdict in verdicts.read(claims) if verdict.whose == "paper"]
    together = {name.replace(" ", "_"): count for name, count in verdicts.numbers(own).items()}
    for reference in numbers or []:
        named = declared.function(reference)(rows)
        if taken := sorted(named.keys() & together.keys()):
            raise ParameterError(
                f"{reference} calls a number {taken[0]!r}, but another paper uses this name; choose a different one"
            )
        together |= named
    write_json(output, together)


@app.command("claims")
def claims(
    shows: Shows,
    output: Annotated[Path, typer.Option(help="File for the verdicts (JSON).")],
    findings: Annotated[Path, typer.Option(help="File for the findings (JSON).")],
    results: Results = Path("results"),
    other: OthersPapers = None,
) -> None:
    """Give a verdict on every claim of the papers, from the results of presets, and name the main findings."""
    from certified_unlearning.data.sets import built_in
    from certified_unlearning.papers import all
    from certified_unlearning.reproduction.claims import findings as found
    from certified_unlearning.reproduction.claims.evidence import Evidence
    from certified_unlearning.reproduction.claims.model import claims_of, claims_on
    from certified_unlearning.reproduction.claims.verdicts import evaluate, write

    known = all.papers(other or ())
    shown, about = _shown(shows, known, results), claims_of(known)
    evidence = {
        paper.name: [Evidence.read(results, preset, paper) for preset, own in shown.items() if paper in dict(own)]
        for paper in known
    }
    data_sets = {each.dataset for of_paper in evidence.values() for each in of_paper if each.layout.summary.exists()}
    if data_sets and not any(map(built_in, data_sets)):
        about = {name: claims_on(of_paper, data_sets) for name, of_paper in about.items() if evidence[name]}
    verdicts = [
        verdict
        for paper in known
        for verdict in evaluate(about.get(paper.name, []), evidence[paper.name], paper=paper.name)
    ]
    write(output, verdicts)
    found.write(findings, found.findings(verdicts, known, evidence))


@app.command("report")
def report(
    name: Annotated[str, typer.Argument(help="The preset or collection.")],
    shows: Shows,
    output: Annotated[Path, typer.Option(help="File for the page (HTML).")],
    results: Results = Path("results"),
    other: OthersPapers = None,
) -> None:
    """Write the report: one page that needs no network."""
    from certified_unlearning.papers import all
    from certified_unlearning.reproduction.report import write_report

    write_report(results, name, _shown(shows, all.papers(other or ()), results), output)


@app.command("track-store")
def track_store(
    preset: str,
    output: Annotated[Path, typer.Option(help="File for the store's status (JSON).")],
    figure: Annotated[
        list[str] | None, typer.Option(help="Figure that gets a separate view (JSON); repeatable.")
    ] = None,
) -> None:
    """Create the MLflow store and the preset's MLflow experiment, once, before jobs fan out."""
    from certified_unlearning.reproduction import tracking
    from certified_unlearning.reproduction.parsing import parse

    figures = [parse(tracking.FigureView, each, source="--figure") for each in figure or ()]
    status = tracking.prepare_store(preset, figures, patience=tracking.PATIENCE_SECONDS)
    _warn(status.warning)
    status.write(output)


@app.command("track")
def track(
    experiment: Reference,
    paper: Annotated[str, typer.Option(help="The paper's name.")],
    preset: Annotated[str, typer.Option(help="The preset.")],
    store: Annotated[Path, typer.Option(help="Status made by `unlearn pipeline track-store`.")],
    output: Annotated[Path, typer.Option(help="File for a note of what was tracked (JSON).")],
    results: Results = Path("results"),
) -> None:
    """Log an experiment's runs to MLflow; if the store does not answer, print a warning, and keep all results."""
    from certified_unlearning.reproduction import declared, tracking
    from certified_unlearning.reproduction.layout import Layout

    status = tracking.StoreStatus.read(store)
    layout, shown = Layout(results, preset), declared.experiment(experiment)
    tracked = tracking.track_experiment(layout, paper, shown, status, patience=tracking.PATIENCE_SECONDS)
    if status.warning is None:
        _warn(tracked.warning)
    tracked.write(output)


@app.command("parameters")
def parameters(
    preset: str,
    values: Annotated[str, typer.Option(help="The preset's parameters as JSON.")],
    output: Annotated[Path, typer.Option(help="File for the table (HTML).")],
) -> None:
    """Write a preset's parameters as an HTML table, for the report."""
    import json

    import pandas as pd

    from certified_unlearning.files import write_text

    (flat,) = pd.json_normalize(json.loads(values)).to_dict(orient="records")
    table = pd.DataFrame({"parameter": list(flat), preset: [str(value) for value in flat.values()]})
    write_text(output, table.to_html(index=False, border=0))


def _planned(path: Path) -> Any:
    from certified_unlearning.mechanisms.run import ExperimentPlan

    return ExperimentPlan.read(path)


def _is_shared(plan: Any, processes: int) -> bool:
    """Start processes with this command line if they can share the job; return whether they have done the job."""
    from certified_unlearning.engine.processes import is_launched, launch
    from certified_unlearning.engine.row_cut import cut

    if not plan.settings.row_shards or plan.left_out is not None or is_launched():
        return False
    blocks = max(len(cut(run.constants.n if run.cycle is None else run.cycle.batch_size)) for run in plan.runs)
    useful = min(processes, blocks)  # More processes would have no rows.
    if useful == 1:
        return False
    launch(useful, sys.argv[1:])
    return True


def _inputs(
    experiment: Any,
    preset: str,
    settings: str,
    sweep: str,
    summary: Path | None,
    plans: list[Path],
    defaults: list[str] | None,
) -> Any:
    from certified_unlearning.errors import ParameterError
    from certified_unlearning.files import read_json
    from certified_unlearning.mechanisms.run import ExperimentPlan
    from certified_unlearning.mechanisms.settings import Settings
    from certified_unlearning.reproduction.experiment import Inputs
    from certified_unlearning.reproduction.parsing import parse

    read = {plan.runs[0].experiment: plan for plan in map(ExperimentPlan.read, plans)}
    missing = [name for name in experiment.uses if name not in read]
    if missing:
        raise ParameterError(f"{experiment.name} reads the plan of {', '.join(missing)}: give this plan with --plan")
    if experiment.needs_data and summary is None:
        raise ParameterError(f"{experiment.name} depends on the data set: give the data set's summary with --summary")
    inputs = Inputs(
        preset,
        parse(Settings, settings, source="--settings"),
        parse(experiment.sweep, sweep, source="--sweep"),
        {} if summary is None else read_json(summary, keys=SUMMARY_KEYS),
        read,
    )
    if not defaults:
        return inputs
    fitted = inputs.fitted(defaults)
    changed = _differences(inputs.settings, fitted.settings) + _differences(inputs.sweep, fitted.sweep)
    if changed:
        print(
            f"{preset}: {experiment.name} fitted to {counted(int(inputs.data['n']), 'training record')}: "
            f"{'; '.join(changed)}"
        )
    return fitted


def _differences(before: Any, after: Any) -> list[str]:
    """Return a phrase for each difference between two sets of values."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    return [f"{key} {_number(new[key])} (by default {_number(old[key])})" for key in new if new[key] != old[key]]


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _shown(shows: list[str], known: Any, results: Path) -> dict[str, Any]:
    """Return pairs of a paper and an experiment that was not left out, for each preset, in the order of the papers."""
    from certified_unlearning.reproduction.layout import Layout

    named = {preset: set(names.split(",")) for preset, _, names in (each.partition("=") for each in shows)}
    return {
        preset: [
            (paper, each)
            for paper in known
            for each in paper.experiments
            if each.name in names and not _left_out(Layout(results, preset), paper, each)
        ]
        for preset, names in named.items()
    }


def _left_out(layout: Any, paper: Any, experiment: Any) -> bool:
    """Return whether the experiment, or a plan that it reads, was left out; the plan gives the reason."""
    from certified_unlearning.mechanisms.run import ExperimentPlan

    read = [experiment.name] if experiment.mechanisms else experiment.uses
    plans = [layout.plan(paper.name, name) for name in read]
    return any(ExperimentPlan.read(path).left_out is not None for path in plans if path.exists())


def _warn(message: str | None) -> None:
    if message is not None:
        print(f"warning: {message}", file=sys.stderr)


for _job in app.registered_commands:
    _job.epilog = "Each file in logs/ begins with such a command."
