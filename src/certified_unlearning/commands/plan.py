"""The commands `unlearn plan ...`: what a removal takes, by several kinds of unlearning, before anything is run."""

from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from certified_unlearning.accounting import ACCOUNTANTS
from certified_unlearning.commands.options import delta_of, positive
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import DELTA_HELP, Adjacency


class _Plans(typer.core.TyperGroup):
    """The commands; flags without one of them are answered by a sentence that names them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command's name.

        Raises:
            ParameterError: A flag stands where it should be.
        """
        if args and args[0].startswith("--") and args[0] != "--help":
            raise ParameterError(
                f"say what to plan before {args[0]}: `unlearn plan removal {args[0]} ...`, or one of "
                f"{', '.join(name for name in self.commands if name != 'removal')} instead of removal"
            )
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_Plans, no_args_is_help=True, help="Compute what a removal takes, before anything is run.")

Count = Annotated[int | None, typer.Option("--n", help="Number of training records.")]
InverseStrength = Annotated[
    float | None,
    typer.Option(
        "--C",
        help="C of logistic regression, as in scikit-learn; with --data 100 / n by default. Replaces m, L and M.",
    ),
]
Classes = Annotated[int | None, typer.Option(help="With --C: how many there are; 2 by default.")]
Intercept = Annotated[bool, typer.Option(help="With --C or --data: whether there is an intercept.")]
Data = Annotated[
    Path | None, typer.Option(help="A .csv, .csv.gz or .parquet file: its records are counted, none is changed.")
]
Label = Annotated[str | None, typer.Option(help="With --data: the column to predict.")]
Identifier = Annotated[str | None, typer.Option("--id", help="With --data: the column that says whose a record is.")]
Table = Annotated[Path | None, typer.Option(help="A YAML file with a table's declaration, as for `unlearn init`.")]
StrongConvexity = Annotated[float | None, typer.Option(help="m, of each record's loss with its regulariser.")]
Smoothness = Annotated[float | None, typer.Option(help="L, of each record's loss with its regulariser.")]
Lipschitz = Annotated[float | None, typer.Option(help="M, bounds each record's data-loss gradient.")]
Delta = Annotated[
    str | None, typer.Option(help=f"{DELTA_HELP}. By default 1/n, with --C or --data auto, as estimators and ledgers.")
]
StreamOfRequests = Annotated[
    str | None,
    typer.Option("--stream", help="5x20: 5 requests, one after another, of 20 records each; replaces --records."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON list, one object a row.")]


@app.command("removal")
def removal(
    n: Count = None,
    inverse_strength: InverseStrength = None,
    classes: Classes = None,
    features: Annotated[
        int | None, typer.Option(help="With --C: columns of a record, for an estimate of the time.")
    ] = None,
    intercept: Intercept = True,
    data: Data = None,
    label: Label = None,
    identifier: Identifier = None,
    table: Table = None,
    strong_convexity: StrongConvexity = None,
    smoothness: Smoothness = None,
    lipschitz: Lipschitz = None,
    records: Annotated[int | None, typer.Option(help="Records removed at once.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The target.", callback=positive)] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Noise scale: a step adds noise of standard deviation sqrt(2 step_size) sigma.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Unlearning steps K.")] = None,
    delta: Delta = None,
    step_size: Annotated[str, typer.Option(help="1/L, or a number.")] = "1/L",
    adjacency: Annotated[
        Adjacency | None,
        typer.Option(
            help="What the data after the removal are; by default replace, with --C or --data zero-out, as estimators."
        ),
    ] = None,
    stream: StreamOfRequests = None,
    accountant: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(ACCOUNTANTS)}; repeatable; all by default.")
    ] = None,
    as_json: AsJson = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw certified epsilon against steps, as .png, .pdf and .svg.")
    ] = None,
) -> None:
    """Plan Langevin unlearning, by every accountant side by side.

    To describe the problem, give --n and --C (logistic regression on rows of norm at most 1), or --data and
    --label, or --n and the theorems' constants. Leave out one of --records, --epsilon, --sigma and --steps: it is
    planned (most records, certified epsilon, least sigma, least steps).
    """
    from certified_unlearning.commands.plans import removal as planned
    from certified_unlearning.commands.plans.known import problem_of

    n, loss, known = problem_of(
        n=n,
        C=inverse_strength,
        classes=classes,
        features=features,
        intercept=intercept,
        data=data,
        label=label,
        identifier=identifier,
        table=table,
        strong_convexity=strong_convexity,
        smoothness=smoothness,
        lipschitz=lipschitz,
    )
    if adjacency is None:
        adjacency = "replace" if known is None else "zero-out"
    if delta is None:
        delta = "1/n" if known is None else "auto"
    planned.run(
        planned.ConstantFlags(
            n, loss.strong_convexity, loss.smoothness, loss.lipschitz, step_size, adjacency, delta_of(delta)
        ),
        accountant or tuple(ACCOUNTANTS),
        planned.CalibrationFlags(records=records, epsilon=epsilon, sigma=sigma, steps=steps, stream=stream),
        as_json=as_json,
        plot=plot,
        known=known,
    )


@app.command("deletion")
def deletion(
    n: Count = None,
    inverse_strength: InverseStrength = None,
    classes: Classes = None,
    features: Annotated[int | None, typer.Option(help="With --C: columns of a record.")] = None,
    intercept: Intercept = True,
    data: Data = None,
    label: Label = None,
    identifier: Identifier = None,
    table: Table = None,
    strong_convexity: StrongConvexity = None,
    smoothness: Smoothness = None,
    lipschitz: Lipschitz = None,
    dimension: Annotated[
        int | None, typer.Option(help="d, the number of parameters; with --data or --features it is known.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="The Rényi order.")] = None,
    epsilon_dp: Annotated[float | None, typer.Option(help="Target for present records.", callback=positive)] = None,
    epsilon_dd: Annotated[float | None, typer.Option(help="Target for deleted records.", callback=positive)] = None,
    records: Annotated[int | None, typer.Option(help="Records replaced by a single request.")] = None,
    stream: StreamOfRequests = None,
    as_json: AsJson = False,
) -> None:
    """Plan data deletion (Forget Unlearning): steps of learning and of every request of a stream."""
    from certified_unlearning.commands.plans import deletion as planned
    from certified_unlearning.commands.plans.known import problem_of

    n, loss, known = problem_of(
        n=n,
        C=inverse_strength,
        classes=classes,
        features=features,
        intercept=intercept,
        data=data,
        label=label,
        identifier=identifier,
        table=table,
        strong_convexity=strong_convexity,
        smoothness=smoothness,
        lipschitz=lipschitz,
    )
    planned.run(
        planned.DeletionFlags(
            n=n,
            strong_convexity=loss.strong_convexity,
            smoothness=loss.smoothness,
            lipschitz=loss.lipschitz,
            dimension=known.dimension if known is not None and dimension is None else dimension,
            alpha=alpha,
            epsilon_dp=epsilon_dp,
            epsilon_dd=epsilon_dd,
            records=records,
            stream=stream,
        ),
        as_json=as_json,
    )


@app.command("exact", no_args_is_help=True)
def exact(
    mechanism: Annotated[
        str,
        typer.Argument(
            help="One of subsample-gd, noisy-sgd, accelerated-noisy-sgd, quantized-sgd, linear-queries, "
            "dual-averaging, frank-wolfe."
        ),
    ],
    n: Count = None,
    steps: Annotated[int | None, typer.Option(help="Learning steps T.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Records of a mini-batch.")] = None,
    sigma: Annotated[float | None, typer.Option(help="Standard deviation of the noise of a step's gradient.")] = None,
    quantum: Annotated[float | None, typer.Option(help="The spacing of the grid of gradients.")] = None,
    recompute: Annotated[float | None, typer.Option(help="The wanted probability that an edit computes again.")] = None,
    lipschitz: Annotated[
        float | None, typer.Option(help="Bounds each record's gradient; for linear queries, what one record adds.")
    ] = None,
    smoothness: Annotated[float | None, typer.Option(help="L, of each record's loss.")] = None,
    diameter: Annotated[float | None, typer.Option(help="D, of the set of models.")] = None,
    dimension: Annotated[int | None, typer.Option(help="d, the number of parameters.")] = None,
    as_json: AsJson = False,
) -> None:
    """Plan exact unlearning: steps, batches and noise for a wanted share of edits that compute again.

    What is left out of --steps, --sigma (or --quantum) and --recompute is planned.
    """
    from certified_unlearning.commands.plans.exact import ExactFlags
    from certified_unlearning.commands.plans.exact_table import run

    if n is None:
        raise ParameterError("give --n, the number of records")
    flags = ExactFlags(
        mechanism=mechanism,
        n=n,
        steps=steps,
        batch_size=batch_size,
        sigma=sigma,
        quantum=quantum,
        recompute=recompute,
        lipschitz=lipschitz,
        smoothness=smoothness,
        diameter=diameter,
        dimension=dimension,
    )
    run(flags, as_json=as_json)


@app.command("private")
def private(
    n: Count = None,
    features: Annotated[int | None, typer.Option(help="Columns of a row of norm at most 1.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Target for as many deleted records as --records says.", callback=positive)
    ] = None,
    radius: Annotated[float | None, typer.Option(help="The largest norm of weights.")] = None,
    delta: Annotated[str, typer.Option(help=f"{DELTA_HELP}.")] = "auto",
    loss: Annotated[str, typer.Option(help="logistic, squared, absolute, huber or tanh.")] = "logistic",
    relation: Annotated[str, typer.Option(help="replace-one or add-remove.")] = "replace-one",
    records: Annotated[int, typer.Option(help="Deletions that the model shall cover with no work.")] = 1,
    steps: Annotated[int | None, typer.Option(help="Steps of descent; planned by default.")] = None,
    goal: Annotated[
        str, typer.Option(help="loss, or gradient: methods that look for weights where the gradient is small.")
    ] = "loss",
    batch_size: Annotated[
        int | None, typer.Option(help="Expected records of a Poisson batch, where there are such; planned by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Plan differentially private learning, whose models answer some deletions with no work."""
    from certified_unlearning.commands.plans import private as planned

    flags = planned.PrivateFlags(
        n=n,
        features=features,
        epsilon=epsilon,
        delta=delta_of(delta),
        radius=radius,
        loss=loss,
        relation=relation,
        records=records,
        steps=steps,
        goal=goal,
        batch=batch_size,
    )
    planned.run(flags, as_json=as_json)
