"""The command line `unlearn`: what the workflow's rules call, and people can call too."""

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import typer

from certified_unlearning.accounting import AccountantName, Adjacency
from certified_unlearning.errors import ParameterError, TrackingError, UnlearningError

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
data_app = typer.Typer(no_args_is_help=True, help="Raw files and prepared data sets.")
pipeline_app = typer.Typer(no_args_is_help=True, help="The jobs of the workflow, one command each.")
app.add_typer(data_app, name="data")
app.add_typer(pipeline_app, name="pipeline")

Raw = Annotated[Path, typer.Option(help="Directory of the raw files.")]
PlanFile = Annotated[Path, typer.Option("--plan", help="A plan made by `unlearn pipeline plan`.")]
DataFile = Annotated[Path, typer.Option("--data", help="A data set made by `unlearn data prepare`.")]
RecordsOutput = Annotated[Path, typer.Option("--records", help="Where the records go (Parquet).")]
CurvesOutput = Annotated[Path, typer.Option("--curves", help="Where the learning curves go (Parquet).")]


def main() -> None:
    """Run the command line; a mistake of the user's ends with one sentence and exit status 1."""
    try:
        try:
            app()
        finally:
            print(end="", flush=True)
    except UnlearningError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:
        if error.filename is not None:
            raise
        # It was standard output. What is left of it goes nowhere; otherwise Python complains once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # Whoever closed a pipe has seen enough.
        if not isinstance(error, BrokenPipeError):
            print(f"error: cannot write to standard output: {error.strerror}", file=sys.stderr)
        sys.exit(1)


@data_app.callback()
@pipeline_app.callback()
def show_command() -> None:
    """Print the command itself first: a job's log says how to repeat the job by hand."""
    print("$", shlex.join(["unlearn", *sys.argv[1:]]), flush=True)


@data_app.command("fetch")
def data_fetch(dataset: str, manifest: Annotated[Path, typer.Option()], raw: Raw = Path("data/raw")) -> None:
    """Put a data set's raw files in place, check them, and write a manifest of their digests."""
    from certified_unlearning.data import fetch

    fetch.fetch(dataset, raw)
    fetch.write_manifest(dataset, raw, manifest)


@data_app.command("prepare")
def data_prepare(
    dataset: str,
    output: Annotated[Path, typer.Option(help="Where the data set goes (safetensors).")],
    summary: Annotated[Path, typer.Option(help="Where its summary goes (JSON).")],
    seed: Annotated[int, typer.Option(help="Seed of the split.", min=0, max=2**32 - 1)],
    raw: Raw = Path("data/raw"),
) -> None:
    """Turn raw files into rows of norm 1 with labels -1 and +1, split into training and test records."""
    from certified_unlearning.data import prepare
    from certified_unlearning.files import write_json

    prepared = prepare(dataset, raw, seed)
    prepared.save(output)
    write_json(summary, prepared.summary())


@pipeline_app.command("plan")
def pipeline_plan(
    experiment: Literal["fig3a", "fig3b", "fig3c", "fig4"],
    preset: Annotated[str, typer.Option(help="Name of the preset, for the records.")],
    settings: Annotated[str, typer.Option(help="The preset's settings as JSON.")],
    sweep: Annotated[str, typer.Option(help="The experiment's sweep as JSON.")],
    summary: Annotated[Path, typer.Option(help="Summary of the prepared data set.")],
    output: Annotated[Path, typer.Option(help="Where the plan goes (JSON).")],
) -> None:
    """Plan an experiment: every run with its noise, steps and certified epsilon."""
    from certified_unlearning import parameters
    from certified_unlearning.experiments.plan import make_plan
    from certified_unlearning.files import read_json

    sweep_type = parameters.Experiments.model_fields[experiment].annotation
    plan = make_plan(
        preset,
        parameters.parse(parameters.Common, settings, source="--settings"),
        experiment,
        cast(parameters.Sweep, parameters.parse(cast(Any, sweep_type), sweep, source="--sweep")),
        read_json(summary, keys=("features", "n", "d", "largest_eigenvalue", "sha256")),
    )
    plan.write(output)


@pipeline_app.command("learn")
def pipeline_learn(
    plan: PlanFile, data: DataFile, output: Annotated[Path, typer.Option(help="Where the weights go.")]
) -> None:
    """Learn the models that Langevin unlearning starts from."""
    from certified_unlearning.data.prepared import PreparedData
    from certified_unlearning.experiments import jobs
    from certified_unlearning.experiments.model import Plan

    jobs.learn(Plan.read(plan), PreparedData.load(data), output)


@pipeline_app.command("unlearn")
def pipeline_unlearn(
    plan: PlanFile,
    data: DataFile,
    learned: Annotated[Path, typer.Option(help="Weights made by `unlearn pipeline learn`.")],
    records: RecordsOutput,
    curves: CurvesOutput,
) -> None:
    """Answer all removal requests by Langevin unlearning."""
    from certified_unlearning.data.prepared import PreparedData
    from certified_unlearning.experiments import jobs
    from certified_unlearning.experiments.model import Plan

    jobs.unlearn(Plan.read(plan), PreparedData.load(data), learned, records, curves)


@pipeline_app.command("retrain")
def pipeline_retrain(plan: PlanFile, data: DataFile, records: RecordsOutput, curves: CurvesOutput) -> None:
    """Retrain from scratch without the removed records, with and without noise."""
    from certified_unlearning.data.prepared import PreparedData
    from certified_unlearning.experiments import jobs
    from certified_unlearning.experiments.model import Plan

    jobs.retrain(Plan.read(plan), PreparedData.load(data), records, curves)


@pipeline_app.command("descend")
def pipeline_descend(plan: PlanFile, data: DataFile, records: RecordsOutput, curves: CurvesOutput) -> None:
    """Answer all removal requests by Descent-to-Delete."""
    from certified_unlearning.data.prepared import PreparedData
    from certified_unlearning.experiments import jobs
    from certified_unlearning.experiments.model import Plan

    jobs.descend(Plan.read(plan), PreparedData.load(data), records, curves)


@pipeline_app.command("certify")
def pipeline_certify(
    plan: PlanFile, output: Annotated[Path, typer.Option(help="Directory, one certificate a run.")]
) -> None:
    """Write the certificates of a plan's Langevin and Descent-to-Delete runs, each verified."""
    from certified_unlearning import certificate
    from certified_unlearning.experiments.model import Plan

    whole = Plan.read(plan)
    for run in (*whole.of("langevin"), *whole.of("descent-to-delete")):
        certified = certificate.certify(whole, run)
        certificate.verify(certified)
        certificate.write(certified, output / f"{certified.run_key}.json")


@pipeline_app.command("collect")
def pipeline_collect(
    records: Annotated[list[Path], typer.Argument(help="Records of the jobs.")],
    output: Annotated[Path, typer.Option(help="Where all records go (Parquet).")],
) -> None:
    """Join the records of all jobs into one table."""
    from certified_unlearning.results import RECORD_SCHEMA, concatenate, write_table

    write_table(output, concatenate(records, RECORD_SCHEMA), RECORD_SCHEMA)


@pipeline_app.command("figure")
def pipeline_figure(
    experiment: str,
    records: Annotated[list[Path], typer.Option(help="Records of the experiment's jobs; repeatable.")],
    style: Annotated[str, typer.Option(help="The figures' style as JSON.")],
    output: Annotated[Path, typer.Option(help="Where the figure goes, without ending (PNG and PDF).")],
    summary: Annotated[Path, typer.Option(help="Where the plotted numbers go (CSV).")],
) -> None:
    """Draw one figure and write the numbers it shows."""
    from certified_unlearning import parameters, summaries
    from certified_unlearning.figures import BOUND_FIGURES, render
    from certified_unlearning.results import BOUND_SCHEMA, RECORD_SCHEMA, concatenate

    of_bounds = experiment in BOUND_FIGURES
    rows = concatenate(records, BOUND_SCHEMA if of_bounds else RECORD_SCHEMA)
    render(experiment, rows, parameters.parse(parameters.FigureStyle, style, source="--style"), output)
    summaries.write_csv(summary, rows if of_bounds else summaries.summarise(rows, experiment))


@pipeline_app.command("recuperation")
def pipeline_recuperation(
    settings: Annotated[str, typer.Option(help="The preset's settings as JSON.")],
    sweep: Annotated[str, typer.Option(help="The sweep as JSON.")],
    summary: Annotated[Path, typer.Option(help="Summary of the prepared data set.")],
    output: Annotated[Path, typer.Option(help="Where the bounds go (Parquet).")],
) -> None:
    """Compute certified epsilon against unlearning steps, by every accountant."""
    from certified_unlearning import parameters
    from certified_unlearning.experiments.recuperation import recuperation_table
    from certified_unlearning.files import read_json
    from certified_unlearning.results import BOUND_SCHEMA, write_table

    table = recuperation_table(
        parameters.parse(parameters.Common, settings, source="--settings"),
        parameters.parse(parameters.Recuperation, sweep, source="--sweep"),
        read_json(summary, keys=("n", "d", "largest_eigenvalue", "sha256")),
    )
    write_table(output, table, BOUND_SCHEMA)


@pipeline_app.command("dynamics")
def pipeline_dynamics(
    figure: Annotated[int, typer.Argument(help="1 or 2, as in Differential Privacy Dynamics.", min=1, max=2)],
    sweep: Annotated[str, typer.Option(help="The sweep as JSON.")],
    output: Annotated[Path, typer.Option(help="Where the bounds go (Parquet).")],
) -> None:
    """Compute the bounds of a figure of Differential Privacy Dynamics."""
    from certified_unlearning import parameters
    from certified_unlearning.experiments.dynamics_bounds import dynamics_table
    from certified_unlearning.results import BOUND_SCHEMA, write_table

    write_table(
        output, dynamics_table(figure, parameters.parse(parameters.Dynamics, sweep, source="--sweep")), BOUND_SCHEMA
    )


@pipeline_app.command("accountants")
def pipeline_accountants(
    plans: Annotated[list[Path], typer.Argument(help="Plans of one preset: fig3a, fig3b, fig4.")],
    markdown: Annotated[Path, typer.Option(help="Where the table goes (Markdown).")],
    output: Annotated[Path, typer.Option(help="Where the table goes (CSV).")],
) -> None:
    """Write what each accountant asks for, for the same guarantee."""
    from certified_unlearning import accountant_table
    from certified_unlearning.experiments.model import Plan
    from certified_unlearning.files import write_text
    from certified_unlearning.summaries import write_csv

    table = accountant_table.accountant_table([Plan.read(path) for path in plans])
    write_text(markdown, accountant_table.markdown(table))
    write_csv(output, table.reset_index())


@pipeline_app.command("metrics")
def pipeline_metrics(
    records: Annotated[Path, typer.Option(help="All records.")],
    output: Annotated[Path, typer.Option(help="Where the metrics go (JSON).")],
) -> None:
    """Write epsilon, K and accuracy of every sweep point, for `dvc metrics`."""
    from certified_unlearning import summaries
    from certified_unlearning.files import write_json
    from certified_unlearning.results import RECORD_SCHEMA, read_table

    write_json(output, summaries.metrics(read_table(records, RECORD_SCHEMA)))


@pipeline_app.command("track-store")
def pipeline_track_store(
    preset: str, output: Annotated[Path, typer.Option(help="Where the store's status goes (JSON).")]
) -> None:
    """Create the MLflow store and the preset's MLflow experiment, once, before jobs fan out."""
    from certified_unlearning import tracking

    status = tracking.prepare_store(preset)
    _warn(status.warning)
    status.write(output)


@pipeline_app.command("track")
def pipeline_track(
    experiment: str,
    results: Annotated[Path, typer.Option(help="The preset's results, such as results/digits.")],
    store: Annotated[Path, typer.Option(help="Status made by `unlearn pipeline track-store`.")],
    output: Annotated[Path, typer.Option(help="Where it is noted what was tracked (JSON).")],
) -> None:
    """Log an experiment's runs to MLflow; a store that does not answer costs a warning, never a result."""
    from certified_unlearning import tracking

    status = tracking.StoreStatus.read(store)
    tracked = tracking.track_experiment(results, experiment, status)
    if status.warning is None:
        _warn(tracked.warning)
    tracked.write(output)


@pipeline_app.command("parameters")
def pipeline_parameters(
    preset: str,
    values: Annotated[str, typer.Option(help="The preset's parameters as JSON.")],
    output: Annotated[Path, typer.Option(help="Where the table goes (HTML).")],
) -> None:
    """Write a preset's parameters as an HTML table, for the report."""
    import pandas as pd

    from certified_unlearning import parameters
    from certified_unlearning.files import write_text

    parsed = parameters.parse(parameters.Preset, values, source="--values")
    (flat,) = pd.json_normalize(parsed.model_dump(mode="json")).to_dict(orient="records")
    table = pd.DataFrame({"parameter": list(flat), preset: [str(value) for value in flat.values()]})
    write_text(output, table.to_html(index=False, border=0))


@app.command("plan")
def plan(
    n: Annotated[int, typer.Option("--n", help="Number of training records.")],
    strong_convexity: Annotated[float, typer.Option(help="m, of each record's loss with its regulariser.")],
    smoothness: Annotated[float, typer.Option(help="L, of each record's loss with its regulariser.")],
    lipschitz: Annotated[float, typer.Option(help="M, bounds each record's data-loss gradient.")],
    records: Annotated[int | None, typer.Option(help="Records removed at once.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The target.")] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Noise scale: a step adds noise of standard deviation sqrt(2 step_size) sigma.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Unlearning steps K.")] = None,
    delta: Annotated[str, typer.Option(help="1/n, or a number strictly between 0 and 1.")] = "1/n",
    step_size: Annotated[str, typer.Option(help="1/L, or a number.")] = "1/L",
    adjacency: Annotated[Adjacency, typer.Option(help="What the data after the removal are.")] = "replace",
    stream: Annotated[
        str | None, typer.Option(help="5x20: 5 requests, one after another, of 20 records each; replaces --records.")
    ] = None,
    accountant: Annotated[
        list[str] | None, typer.Option(help="lsi, lsi-tight or shifted; repeatable; all by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list, one object an accountant.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw certified epsilon against steps, as .png and .pdf.")
    ] = None,
) -> None:
    """Plan a removal, by every accountant side by side: nothing is run, no data are needed.

    Leave out one of --records, --epsilon, --sigma and --steps: it is planned (most records, certified epsilon, least
    sigma, least steps).
    """
    from certified_unlearning import plan_command

    plan_command.run(
        plan_command.Constants(n, strong_convexity, smoothness, lipschitz, step_size, adjacency, delta),
        accountant or get_args(AccountantName),
        plan_command.Wish(records=records, epsilon=epsilon, sigma=sigma, steps=steps, stream=stream),
        as_json=as_json,
        plot=plot,
    )


@app.command("track")
def track(
    sync: Annotated[bool, typer.Option("--sync", help="Send every result that MLflow does not know yet.")] = False,
    results: Annotated[Path, typer.Option(help="Directory of all results.")] = Path("results"),
) -> None:
    """Bring MLflow (MLFLOW_TRACKING_URI, else sqlite:///mlflow.db) in line with the results on disk."""
    from certified_unlearning import tracking

    if not sync:
        raise ParameterError("the pipeline tracks by itself; say `unlearn track --sync` to send what was missed")
    tracked = tracking.sync(results)
    print(f"{tracked.added} runs added, {tracked.updated} updated, {tracked.unchanged} unchanged")
    if tracked.warning is not None:
        raise TrackingError(tracked.warning)


@app.command("verify")
def verify_certificates(certificates: list[Path]) -> None:
    """Recompute what certificates state; exit with 1 when one states something else than its constants give."""
    from certified_unlearning import certificate
    from certified_unlearning.rounding import rounded_up

    wrong = 0
    for path in certificates:
        try:
            certified = certificate.read(path)
            certificate.verify(certified)
        except UnlearningError as error:
            message = str(error) if str(path) in str(error) else f"{path}: {error}"
            print(f"error: {message}", file=sys.stderr)
            wrong += 1
            continue
        delta = certified.delta + certified.extra_delta
        assumed = sum(each.status == "assumed" for each in certified.assumptions)
        print(
            f"{path}: epsilon = {rounded_up(certified.epsilon)} at delta = {rounded_up(delta)} "
            f"under {certified.adjacency} ({certified.guarantee} by {certified.accountant}; "
            f"{assumed} assumptions not checked)"
        )
    if wrong:
        raise typer.Exit(1)


def _warn(message: str | None) -> None:
    if message is not None:
        print(f"warning: {message}", file=sys.stderr)
