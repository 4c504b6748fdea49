"""The commands `unlearn plan ...`: compute the steps and noise that a removal needs, before anything is run."""

from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from certified_unlearning.accounting import ACCOUNTANTS
from certified_unlearning.commands.options import ADVANCED, delta_of, positive
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import DELTA_HELP, Adjacency


class _Plans(typer.core.TyperGroup):
    """The group of plan commands. If flags come without a command, an error lists the commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command's name.

        Raises:
            ParameterError: A flag was given in place of the command's name.
        """
        if args and args[0].startswith("--") and args[0] != "--help":
            raise ParameterError(
                f"name what to plan before {args[0]}: `unlearn plan removal {args[0]} ...`, or one of "
                f"{', '.join(name for name in self.commands if name != 'removal')} instead of removal"
            )
        return super().parse_args(ctx, args)


CONSTANTS = "Constants of the theorems"
"""Heading of the options that describe the problem by the theorems' constants, not by data or C."""

app = typer.Typer(cls=_Plans, no_args_is_help=True, help="Compute what a removal needs, before anything is run.")

Count = Annotated[int | None, typer.Option("--n", help="Number of training records.")]
InverseStrength = Annotated[
    float | None,
    typer.Option(
        "--C",
        help="Inverse strength C of logistic regression, as in scikit-learn; with --data the default is 100 / n.",
    ),
]
Classes = Annotated[
    int | None, typer.Option(help="Number of classes, with --C; by default 2.", rich_help_panel=ADVANCED)
]
Intercept = Annotated[bool, typer.Option(help="Fit an intercept, with --C or --data.", rich_help_panel=ADVANCED)]
Data = Annotated[
    Path | None, typer.Option(help="Records to count: a .csv, .csv.gz or .parquet file, which is not changed.")
]
Label = Annotated[str | None, typer.Option(help="Column to predict, in --data.")]
Identifier = Annotated[
    str | None, typer.Option("--id", help="Column of identifiers, in --data.", rich_help_panel=ADVANCED)
]
Table = Annotated[
    Path | None,
    typer.Option(help="YAML file with the declaration of --data, as for `unlearn init`.", rich_help_panel=ADVANCED),
]
StrongConvexity = Annotated[
    float | None,
    typer.Option(help="Strong convexity m of each record's loss with its regulariser.", rich_help_panel=CONSTANTS),
]
Smoothness = Annotated[
    float | None,
    typer.Option(help="Smoothness L of each record's loss with its regulariser.", rich_help_panel=CONSTANTS),
]
Lipschitz = Annotated[
    float | None, typer.Option(help="Bound M on the gradient of each record's data loss.", rich_help_panel=CONSTANTS)
]
Delta = Annotated[
    str | None,
    typer.Option(
        help=f"Failure probability of the guarantee: {DELTA_HELP}. By default auto with --C or --data, otherwise 1/n.",
        rich_help_panel=ADVANCED,
    ),
]
StreamOfRequests = Annotated[
    str | None,
    typer.Option(
        "--stream", help="Requests one after another, such as 5x20: 5 requests of 20 records each; replaces --records."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON list with one object for each row.")]


@app.command(
    "removal", epilog="Example: `unlearn plan removal --n 100000 --C 0.001 --epsilon 1 --sigma 0.01 --records 10`"
)
def removal(
    n: Count = None,
    inverse_strength: InverseStrength = None,
    classes: Classes = None,
    features: Annotated[
        int | None,
        typer.Option(
            help="Number of columns of a record; used together with --C, to estimate the time.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    intercept: Intercept = True,
    data: Data = None,
    label: Label = None,
    identifier: Identifier = None,
    table: Table = None,
    strong_convexity: StrongConvexity = None,
    smoothness: Smoothness = None,
    lipschitz: Lipschitz = None,
    records: Annotated[int | None, typer.Option(help="Number of records removed at once.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Target epsilon.", callback=positive)] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Noise scale: a step adds noise of standard deviation sqrt(2 step_size) sigma.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Number of unlearning steps K.")] = None,
    delta: Delta = None,
    step_size: Annotated[str, typer.Option(help="Step size: 1/L, or a number.", rich_help_panel=CONSTANTS)] = "1/L",
    adjacency: Annotated[
        Adjacency | None,
        typer.Option(
            help="How a removed record is erased from the data of the retrained model that the guarantee compares "
            "with; by default zero-out with --C or --data, otherwise replace.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    stream: StreamOfRequests = None,
    accountant: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Accountant: {', '.join(ACCOUNTANTS)}; repeatable; by default all.", rich_help_panel=ADVANCED
        ),
    ] = None,
    as_json: AsJson = False,
    plot: Annotated[
        Path | None,
        typer.Option(help="File for a figure of certified epsilon against steps; it is drawn as .png, .pdf and .svg."),
    ] = None,
) -> None:
    """Plan Langevin unlearning, with all accountants side by side.

    To describe the problem, give --n and --C (logistic regression on rows of norm at most 1), or --data and
    --label, or --n and the constants of the theorems. Leave out one of --records, --epsilon, --sigma and --steps: the
    command computes it (the most records, the certified epsilon, the least sigma or the fewest steps).
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


@app.command(
    "deletion",
    epilog="Example: `unlearn plan deletion --n 1000 --C 0.1 --features 10 --alpha 2 --epsilon-dp 1 --epsilon-dd 0.01 "
    "--stream 5x20`",
)
def deletion(
    n: Count = None,
    inverse_strength: InverseStrength = None,
    classes: Classes = None,
    features: Annotated[
        int | None,
        typer.Option(help="Number of columns of a record; used together with --C.", rich_help_panel=ADVANCED),
    ] = None,
    intercept: Intercept = True,
    data: Data = None,
    label: Label = None,
    identifier: Identifier = None,
    table: Table = None,
    strong_convexity: StrongConvexity = None,
    smoothness: Smoothness = None,
    lipschitz: Lipschitz = None,
    dimension: Annotated[
        int | None,
        typer.Option(help="Number of parameters d; not needed with --data or --features.", rich_help_panel=CONSTANTS),
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Rényi order of both targets.")] = None,
    epsilon_dp: Annotated[
        float | None, typer.Option(help="Target epsilon for present records.", callback=positive)
    ] = None,
    epsilon_dd: Annotated[
        float | None, typer.Option(help="Target epsilon for deleted records.", callback=positive)
    ] = None,
    records: Annotated[int | None, typer.Option(help="Number of records that a single request replaces.")] = None,
    stream: StreamOfRequests = None,
    as_json: AsJson = False,
) -> None:
    """Plan data deletion (Forget Unlearning): the steps of learning and of each request of a stream."""
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


@app.command(
    "exact",
    no_args_is_help=True,
    epilog="Example: `unlearn plan exact noisy-sgd --n 9000 --steps 200 --batch-size 50 --lipschitz 1 --recompute 0.1`",
)
def exact(
    mechanism: Annotated[
        str,
        typer.Argument(
            help="One of subsample-gd, noisy-sgd, accelerated-noisy-sgd, quantized-sgd, linear-queries, "
            "dual-averaging, frank-wolfe."
        ),
    ],
    n: Count = None,
    steps: Annotated[int | None, typer.Option(help="Number of learning steps T.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Number of records in a mini-batch.")] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Standard deviation of the noise on each step's gradient.")
    ] = None,
    quantum: Annotated[float | None, typer.Option(help="Spacing of the grid of gradients.")] = None,
    recompute: Annotated[
        float | None, typer.Option(help="Desired probability that an edit causes a recomputation.")
    ] = None,
    lipschitz: Annotated[
        float | None,
        typer.Option(
            help="Bound on each record's gradient; for linear queries, on each record's contribution to a sum.",
            rich_help_panel=CONSTANTS,
        ),
    ] = None,
    smoothness: Annotated[
        float | None, typer.Option(help="Smoothness L of each record's loss.", rich_help_panel=CONSTANTS)
    ] = None,
    diameter: Annotated[
        float | None, typer.Option(help="Diameter D of the set of models.", rich_help_panel=CONSTANTS)
    ] = None,
    dimension: Annotated[int | None, typer.Option(help="Number of parameters d.", rich_help_panel=CONSTANTS)] = None,
    as_json: AsJson = False,
) -> None:
    """Plan exact unlearning: steps, batches and noise for a target probability that an edit causes a recomputation.

    If you leave out --steps, --sigma (or --quantum) or --recompute, the command computes the missing values.
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


@app.command("private", epilog="Example: `unlearn plan private --n 10000 --features 20 --epsilon 1 --radius 10`")
def private(
    n: Count = None,
    features: Annotated[int | None, typer.Option(help="Number of columns of a row; rows have norm at most 1.")] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Target epsilon for all --records together.", callback=positive)
    ] = None,
    radius: Annotated[float | None, typer.Option(help="Largest norm of the weights.")] = None,
    delta: Annotated[
        str, typer.Option(help=f"Failure probability of the guarantee: {DELTA_HELP}.", rich_help_panel=ADVANCED)
    ] = "auto",
    loss: Annotated[
        str, typer.Option(help="Loss: logistic, squared, absolute, huber or tanh.", rich_help_panel=ADVANCED)
    ] = "logistic",
    relation: Annotated[
        str, typer.Option(help="Neighbouring data sets: replace-one or add-remove.", rich_help_panel=ADVANCED)
    ] = "replace-one",
    records: Annotated[int, typer.Option(help="Number of deletions that the model covers without further work.")] = 1,
    steps: Annotated[
        int | None,
        typer.Option(help="Number of steps of descent; by default, it is planned.", rich_help_panel=ADVANCED),
    ] = None,
    goal: Annotated[
        str,
        typer.Option(help="Goal: loss (weights with a small loss) or gradient (weights with a small gradient)."),
    ] = "loss",
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Expected number of records in a Poisson batch, for methods with such batches; by default, it is "
            "planned.",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Plan differentially private learning. Its models cover some deletions without further work."""
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
