"""The command line `unlearn`: what the workflow's rules call, and people can call too."""

import gc
import io
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, get_args

import typer

from certified_unlearning.accounting import AccountantName, Adjacency
from certified_unlearning.errors import ChangedVerdictsError, DataError, ParameterError, TrackingError, UnlearningError
from certified_unlearning.ledger import commands as ledger_commands
from certified_unlearning.pipeline_commands import pipeline_app

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
data_app = typer.Typer(no_args_is_help=True, help="Raw files and prepared data sets.")
app.add_typer(data_app, name="data")
app.add_typer(pipeline_app, name="pipeline")
ledger_commands.register(app)

Results = Annotated[Path, typer.Option(help="Directory of all results.")]
Raw = Annotated[Path, typer.Option(help="Directory of the raw files.")]

_PACKAGES = {
    "jinja2": "jinja2",
    "matplotlib": "matplotlib",
    "mlflow": "mlflow",
    "PIL": "pillow",
    "requests": "mlflow",
    "seaborn": "seaborn",
    "sqlalchemy": "mlflow",
}
"""Which package of the extra `workflow` brings a module."""


def main() -> None:
    """Run the command line; a mistake of the user's ends with one sentence and exit status 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that lacks a character gets a question mark, not a traceback.
            stream.reconfigure(errors="replace")
    # PyTorch's import makes objects by the hundred thousand, all of which stay:
    # to search them for garbage again and again, and once more at exit, takes a third of a short command's time.
    gc.set_threshold(100_000)
    try:
        try:
            app()
        finally:
            gc.freeze()
            print(end="", flush=True)
    except UnlearningError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except ModuleNotFoundError as error:
        package = _PACKAGES.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        advice = 'pip install "certified-unlearning[workflow]"'
        print(f"error: this command needs {package}, which is not installed: {advice}", file=sys.stderr)
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
def data_fetch(
    dataset: str,
    manifest: Annotated[Path | None, typer.Option(help="Also write a manifest of their digests (JSON).")] = None,
    raw: Raw = Path("data/raw"),
) -> None:
    """Put a data set's raw files in place and check them."""
    from certified_unlearning.data import fetch

    for path in fetch.fetch(dataset, raw):
        print(path)
    if manifest is not None:
        fetch.write_manifest(dataset, raw, manifest)


@data_app.command("prepare")
def data_prepare(
    dataset: str,
    output: Annotated[Path, typer.Option(help="Where the data set goes (safetensors).")],
    summary: Annotated[Path, typer.Option(help="Where its summary goes (JSON).")],
    seed: Annotated[int, typer.Option(help="Seed of the split.", min=0, max=2**32 - 1)],
    raw: Raw = Path("data/raw"),
    features: Annotated[str | None, typer.Option(help="Of images: hog or resnet18.")] = None,
    table: Annotated[
        str | None, typer.Option(help="Of your own data: the declaration in `tables` of params.yaml, as JSON.")
    ] = None,
) -> None:
    """Turn raw files into labelled rows of norm at most 1, split into training and test records."""
    from certified_unlearning.data import declaration, prepare
    from certified_unlearning.data.declared import prepare_table
    from certified_unlearning.files import write_json

    if table is None:
        prepared = prepare(dataset, raw, seed, features)
    else:
        prepared = prepare_table(dataset, declaration.parse(table, "--table"), seed, output.parent)
    prepared.save(output)
    write_json(summary, prepared.summary())


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
    deletion: Annotated[
        bool,
        typer.Option(
            "--deletion",
            help="Plan data deletion (Forget Unlearning) instead; needs the next four, and --records or --stream.",
        ),
    ] = False,
    dimension: Annotated[int | None, typer.Option(help="Of deletion: d, the number of parameters.")] = None,
    alpha: Annotated[float | None, typer.Option(help="Of deletion: the Rényi order.")] = None,
    epsilon_dp: Annotated[float | None, typer.Option(help="Of deletion: target for present records.")] = None,
    epsilon_dd: Annotated[float | None, typer.Option(help="Of deletion: target for deleted records.")] = None,
) -> None:
    """Plan a removal, by every accountant side by side: nothing is run, no data are needed.

    Leave out one of --records, --epsilon, --sigma and --steps: it is planned (most records, certified epsilon, least
    sigma, least steps). With --deletion: the steps of learning and of every request of a stream.
    """
    from certified_unlearning import deletion_plan_command, plan_command

    if deletion:
        superfluous = {"--epsilon": epsilon, "--sigma": sigma, "--steps": steps, "--accountant": accountant} | {
            "--plot": plot,
            "--step-size": None if step_size == "1/L" else step_size,
            "--delta": None if delta == "1/n" else delta,
            "--adjacency": None if adjacency == "replace" else adjacency,
        }
        given = [name for name, value in superfluous.items() if value is not None]
        if given:
            raise ParameterError(f"with --deletion, leave out {', '.join(given)}")
        deletion_plan_command.run(
            deletion_plan_command.DeletionWish(
                n, strong_convexity, smoothness, lipschitz, dimension, alpha, epsilon_dp, epsilon_dd, records, stream
            ),
            as_json=as_json,
        )
        return
    of_deletion = {"--dimension": dimension, "--alpha": alpha, "--epsilon-dp": epsilon_dp, "--epsilon-dd": epsilon_dd}
    given = [name for name, value in of_deletion.items() if value is not None]
    if given:
        raise ParameterError(f"{', '.join(given)} needs --deletion")

    plan_command.run(
        plan_command.Constants(n, strong_convexity, smoothness, lipschitz, step_size, adjacency, delta),
        accountant or get_args(AccountantName),
        plan_command.Wish(records=records, epsilon=epsilon, sigma=sigma, steps=steps, stream=stream),
        as_json=as_json,
        plot=plot,
    )


@app.command("claims")
def show_claims(
    preset: Annotated[str | None, typer.Option(help="A preset or collection; by default that of params.yaml.")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 when a verdict differs from the baseline.")
    ] = False,
    accept: Annotated[bool, typer.Option("--accept", help="Make these verdicts the baseline.")] = False,
    results: Results = Path("results"),
    baselines: Annotated[Path, typer.Option(help="Directory of the baselines.")] = Path("workflow/baselines/claims"),
) -> None:
    """Print every claim of the paper with its verdict: reproduced, contradicted or not run; the workflow found them."""
    from rich.console import Console

    from certified_unlearning import claims

    if check and accept:
        raise ParameterError("say --check or --accept, not both")
    name = _active(preset)
    baseline = baselines / f"{name}.json"
    verdicts = claims.read(_made(results, name, "claims.json"))
    if accept:
        claims.accept(verdicts, baseline)
        print(f"accepted in {baseline}: {claims.counts(verdicts)}")
    elif check:
        _require_baseline(baseline, "claims", name)
        changed = claims.compare_with_baseline(verdicts, baseline)
        for change in changed:
            print(change)
        print(claims.counts(verdicts))
        if changed:
            raise ChangedVerdictsError(
                f"{len(changed)} verdicts differ from {baseline}; if that is right, say --accept and commit the file"
            )
    else:
        Console().print(claims.as_table(verdicts))
        print(claims.counts(verdicts))


@app.command("regression")
def check_regression(
    preset: Annotated[str | None, typer.Option(help="A preset; by default that of params.yaml.")] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Make these records the baseline.")] = False,
    results: Results = Path("results"),
    baselines: Annotated[Path, typer.Option(help="Directory of the baselines.")] = Path("workflow/baselines/metrics"),
) -> None:
    """Compare a preset's records with the committed baseline; exit with 1 and a table when something moved."""
    from certified_unlearning import regression

    name = _active(preset)
    _made(results, name, "records.parquet")
    baseline = baselines / f"{name}.json"
    if not accept:
        _require_baseline(baseline, "regression", name)
    regression.run(results, name, baseline, accept)


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
def verify(
    paths: Annotated[list[Path], typer.Argument(help="Certificates, or model directories of `unlearn init`.")],
    head: Annotated[
        str | None,
        typer.Option(help="A receipt that a command on the model directory printed: it must be in the ledger."),
    ] = None,
) -> None:
    """Recompute what certificates and model directories state; exit with 1 when something is not as stated."""
    from certified_unlearning import certificate
    from certified_unlearning.rounding import rounded_up

    if head is not None and not all(path.is_dir() for path in paths):
        raise ParameterError("--head is a receipt of a model directory; a certificate has none")
    wrong = 0
    for path in paths:
        try:
            if path.is_dir():
                ledger_commands.verify(path, head)
                continue
            certified = certificate.read(path)
            certificate.verify(certified)
        except UnlearningError as error:
            message = str(error) if str(path) in str(error) else f"{path}: {error}"
            print(f"error: {message}", file=sys.stderr)
            wrong += 1
            continue
        if not certified.unlearning_steps:
            print(f"{path}: nothing was removed yet, so nothing is guaranteed")
            continue
        delta = certified.delta + certified.extra_delta
        assumed = sum(each.status == "assumed" for each in certified.assumptions)
        exact = certified.epsilon_without_rounding
        rounding = "" if exact is None else f" ({rounded_up(exact)} in exact arithmetic)"
        print(
            f"{path}: epsilon = {rounded_up(certified.epsilon)}{rounding} at delta = {rounded_up(delta)} "
            f"under {certified.adjacency} ({certified.guarantee} by {certified.accountant}; "
            f"{assumed} assumptions not checked)"
        )
    if wrong:
        raise typer.Exit(1)


def _active(preset: str | None) -> str:
    """Return the named preset, or else the active one of the parameter file in this directory."""
    from certified_unlearning import parameters

    return parameters.load().preset if preset is None else preset


def _made(results: Path, name: str, file: str) -> Path:
    """Return the path of a result that the workflow makes."""
    path = results / name / file
    if not path.exists():
        raise DataError(f"{path} does not exist; `snakemake --cores all --config preset={name}` makes it")
    return path


def _require_baseline(path: Path, command: str, name: str) -> None:
    if not path.exists():
        raise DataError(
            f"preset {name} has no baseline yet ({path} does not exist); "
            f"`unlearn {command} --preset {name} --accept` makes one of the results at hand"
        )
