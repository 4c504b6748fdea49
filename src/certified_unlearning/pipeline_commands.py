"""The commands `unlearn pipeline ...`: the jobs of the workflow, one command each."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

pipeline_app = typer.Typer(no_args_is_help=True, help="The jobs of the workflow, one command each.")

PlanFile = Annotated[Path, typer.Option("--plan", help="A plan made by `unlearn pipeline plan`.")]
DataFile = Annotated[Path, typer.Option("--data", help="A data set made by `unlearn data prepare`.")]
RecordsOutput = Annotated[Path, typer.Option("--records", help="Where the records go (Parquet).")]
CurvesOutput = Annotated[Path, typer.Option("--curves", help="Where the learning curves go (Parquet).")]
Settings = Annotated[str, typer.Option(help="The preset's settings as JSON.")]
SummaryFile = Annotated[Path, typer.Option(help="Summary of the prepared data set.")]
Members = Annotated[list[str], typer.Option("--member", help="A preset whose results count; repeatable.")]
Results = Annotated[Path, typer.Option(help="Directory of all results.")]

SUMMARY_KEYS = ("features", "n", "n_test", "d", "classes", "largest_eigenvalue", "sha256")
"""What plans and tables need of a data set's summary."""


@pipeline_app.command("plan")
def pipeline_plan(
    experiment: Literal["fig3a", "fig3b", "fig3c", "fig4", "fig5a"],
    preset: Annotated[str, typer.Option(help="Name of the preset, for the records.")],
    settings: Settings,
    sweep: Annotated[str, typer.Option(help="The experiment's sweep as JSON.")],
    summary: SummaryFile,
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
        read_json(summary, keys=SUMMARY_KEYS),
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
    from certified_unlearning.figures import render, schema, shown
    from certified_unlearning.results import concatenate

    rows = concatenate(records, schema(experiment))
    render(experiment, rows, parameters.parse(parameters.FigureStyle, style, source="--style"), output)
    summaries.write_csv(summary, shown(experiment, rows))


@pipeline_app.command("recuperation")
def pipeline_recuperation(
    settings: Settings,
    sweep: Annotated[str, typer.Option(help="The sweep as JSON.")],
    summary: SummaryFile,
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
        read_json(summary, keys=SUMMARY_KEYS),
    )
    write_table(output, table, BOUND_SCHEMA)


@pipeline_app.command("smoothness")
def pipeline_smoothness(
    settings: Settings,
    sweep: Annotated[str, typer.Option(help="The sweep of fig3b as JSON.")],
    summary: SummaryFile,
    output: Annotated[Path, typer.Option(help="Where the streams go (Parquet).")],
) -> None:
    """Plan the requests of figure 3b under every rule for the smoothness L."""
    from certified_unlearning import parameters
    from certified_unlearning.experiments.smoothness_streams import smoothness_table
    from certified_unlearning.files import read_json
    from certified_unlearning.results import STREAM_SCHEMA, write_table

    table = smoothness_table(
        parameters.parse(parameters.Common, settings, source="--settings"),
        parameters.parse(parameters.Figure3b, sweep, source="--sweep"),
        read_json(summary, keys=SUMMARY_KEYS),
    )
    write_table(output, table, STREAM_SCHEMA)


@pipeline_app.command("tables")
def pipeline_tables(
    settings: Settings,
    experiments: Annotated[str, typer.Option(help="The preset's experiments as JSON.")],
    summary: SummaryFile,
    markdown: Annotated[Path, typer.Option(help="Where the tables go (Markdown).")],
    output: Annotated[Path, typer.Option(help="Directory for table1.csv, table2.csv, table3.csv.")],
) -> None:
    """Recompute Tables 1, 2 and 3 of Langevin unlearning for a preset's data set."""
    from certified_unlearning import paper_tables, parameters
    from certified_unlearning.files import read_json, write_text
    from certified_unlearning.summaries import write_csv

    tables = paper_tables.paper_tables(
        parameters.parse(parameters.Common, settings, source="--settings"),
        parameters.parse(parameters.Experiments, experiments, source="--experiments"),
        read_json(summary, keys=SUMMARY_KEYS),
    )
    for name, table in tables.items():
        write_csv(output / f"{name}.csv", table)
    write_text(markdown, paper_tables.markdown(tables))


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


@pipeline_app.command("deletion")
def pipeline_deletion(
    settings: Annotated[str, typer.Option("--parameters", help="`deletion` of params.yaml as JSON.")],
    interactions: Annotated[int, typer.Option(help="Of each attack, under either hypothesis.", min=1)],
    attacks: Annotated[Path, typer.Option(help="Where the attacks' records go (Parquet).")],
    risk: Annotated[Path, typer.Option(help="Where the excess risk along a stream goes (Parquet).")],
) -> None:
    """Attack every mechanism, and measure the excess risk along a stream of deletions (Forget Unlearning)."""
    from certified_unlearning import parameters
    from certified_unlearning.deletion.experiment import attack_table
    from certified_unlearning.deletion.parameters import Deletion
    from certified_unlearning.deletion.risk import risk_table
    from certified_unlearning.results import ATTACK_SCHEMA, RISK_SCHEMA, write_table

    parsed = parameters.parse(Deletion, settings, source="--parameters")
    write_table(risk, risk_table(parsed), RISK_SCHEMA)
    write_table(attacks, attack_table(parsed, interactions=interactions), ATTACK_SCHEMA)


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


@pipeline_app.command("claims")
def pipeline_claims(
    member: Members,
    output: Annotated[Path, typer.Option(help="Where the verdicts go (JSON).")],
    results: Results = Path("results"),
) -> None:
    """Give a verdict on every claim of the paper, from what presets left behind."""
    from certified_unlearning import claims

    evidence = [claims.Evidence.read(results, preset) for preset in member]
    claims.write(output, claims.evaluate(claims.all_claims(), evidence))


@pipeline_app.command("report")
def pipeline_report(
    name: Annotated[str, typer.Argument(help="The preset or collection.")],
    member: Members,
    output: Annotated[Path, typer.Option(help="Where the page goes (HTML).")],
    results: Results = Path("results"),
) -> None:
    """Write the report: one page that needs no network."""
    from certified_unlearning.report import write_report

    write_report(results, name, member, output)


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


def _warn(message: str | None) -> None:
    if message is not None:
        print(f"warning: {message}", file=sys.stderr)
