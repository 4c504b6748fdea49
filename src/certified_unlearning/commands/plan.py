"""The command `unlearn plan`: what a removal takes, by every accountant, before anything is run."""

from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.accounting import ACCOUNTANTS
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Adjacency


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
        list[str] | None, typer.Option(help=f"{', '.join(ACCOUNTANTS)}; repeatable; all by default.")
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
    from certified_unlearning.commands import plan_deletion, plan_removal

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
        plan_deletion.run(
            plan_deletion.DeletionWish(
                n, strong_convexity, smoothness, lipschitz, dimension, alpha, epsilon_dp, epsilon_dd, records, stream
            ),
            as_json=as_json,
        )
        return
    of_deletion = {"--dimension": dimension, "--alpha": alpha, "--epsilon-dp": epsilon_dp, "--epsilon-dd": epsilon_dd}
    given = [name for name, value in of_deletion.items() if value is not None]
    if given:
        raise ParameterError(f"{', '.join(given)} needs --deletion")

    plan_removal.run(
        plan_removal.Constants(n, strong_convexity, smoothness, lipschitz, step_size, adjacency, delta),
        accountant or tuple(ACCOUNTANTS),
        plan_removal.Wish(records=records, epsilon=epsilon, sigma=sigma, steps=steps, stream=stream),
        as_json=as_json,
        plot=plot,
    )
