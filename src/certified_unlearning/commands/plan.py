"""The command `unlearn plan`: what a removal takes, by every accountant, before anything is run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from certified_unlearning.accounting import ACCOUNTANTS
from certified_unlearning.errors import ParameterError
from certified_unlearning.vocabulary import Adjacency


def plan(
    n: Annotated[int | None, typer.Option("--n", help="Number of training records.")] = None,
    inverse_strength: Annotated[
        float | None,
        typer.Option(
            "--C", help="Of logistic regression, as in scikit-learn; of --data 100 / n by default. Replaces m, L and M."
        ),
    ] = None,
    classes: Annotated[int | None, typer.Option(help="With --C: how many there are; 2 by default.")] = None,
    features: Annotated[
        int | None,
        typer.Option(
            help="With --C: columns of a record, for an estimate of the time. Of --private: columns of a row."
        ),
    ] = None,
    intercept: Annotated[bool, typer.Option(help="With --C or --data: whether there is an intercept.")] = True,
    data: Annotated[
        Path | None, typer.Option(help="A .csv, .csv.gz or .parquet file: its records are counted, none is changed.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="With --data: the column to predict.")] = None,
    identifier: Annotated[
        str | None, typer.Option("--id", help="With --data: the column that says whose a record is.")
    ] = None,
    table: Annotated[
        Path | None, typer.Option(help="A YAML file with a table's declaration, as for `unlearn init`.")
    ] = None,
    strong_convexity: Annotated[
        float | None, typer.Option(help="m, of each record's loss with its regulariser.")
    ] = None,
    smoothness: Annotated[float | None, typer.Option(help="L, of each record's loss with its regulariser.")] = None,
    lipschitz: Annotated[float | None, typer.Option(help="M, bounds each record's data-loss gradient.")] = None,
    records: Annotated[int | None, typer.Option(help="Records removed at once.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The target.")] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Noise scale: a step adds noise of standard deviation sqrt(2 step_size) sigma.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Unlearning steps K.")] = None,
    delta: Annotated[str, typer.Option(help="1/n, or a number strictly between 0 and 1.")] = "1/n",
    step_size: Annotated[str, typer.Option(help="1/L, or a number.")] = "1/L",
    adjacency: Annotated[
        Adjacency | None,
        typer.Option(
            help="What the data after the removal are; by default replace, with --C or --data zero-out, as estimators."
        ),
    ] = None,
    stream: Annotated[
        str | None, typer.Option(help="5x20: 5 requests, one after another, of 20 records each; replaces --records.")
    ] = None,
    accountant: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(ACCOUNTANTS)}; repeatable; all by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list, one object an accountant.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw certified epsilon against steps, as .png, .pdf and .svg.")
    ] = None,
    deletion: Annotated[
        bool,
        typer.Option(
            "--deletion",
            help="Plan data deletion (Forget Unlearning) instead; needs the next four, and --records or --stream.",
        ),
    ] = False,
    dimension: Annotated[
        int | None, typer.Option(help="Of --deletion and --exact: d, the number of parameters.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(help="Of deletion: the Rényi order.")] = None,
    epsilon_dp: Annotated[float | None, typer.Option(help="Of deletion: target for present records.")] = None,
    epsilon_dd: Annotated[float | None, typer.Option(help="Of deletion: target for deleted records.")] = None,
    exact: Annotated[
        str | None,
        typer.Option(
            help="Plan exact unlearning instead, by one of subsample-gd, noisy-sgd, accelerated-noisy-sgd, "
            "quantized-sgd, linear-queries, dual-averaging, frank-wolfe; what is left out of --steps, --sigma (or "
            "--quantum), --recompute is planned."
        ),
    ] = None,
    recompute: Annotated[
        float | None, typer.Option(help="Of --exact: the wanted probability that an edit computes again.")
    ] = None,
    batch_size: Annotated[int | None, typer.Option(help="Of --exact: records of a mini-batch.")] = None,
    quantum: Annotated[float | None, typer.Option(help="Of --exact: the spacing of the grid of gradients.")] = None,
    diameter: Annotated[float | None, typer.Option(help="Of --exact: D, of the set of models.")] = None,
    private: Annotated[
        bool,
        typer.Option(
            "--private",
            help="Plan differentially private learning instead, on rows of norm at most 1: needs --n, --features, "
            "--epsilon and --radius; --records of deletions that it shall cover with no work.",
        ),
    ] = False,
    radius: Annotated[float | None, typer.Option(help="Of private learning: the largest norm of weights.")] = None,
    loss_name: Annotated[
        str | None,
        typer.Option("--loss", help="Of private learning: logistic by default, squared, absolute, huber, tanh."),
    ] = None,
    relation: Annotated[
        str | None, typer.Option(help="Of private learning: replace-one by default, or add-remove.")
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(
            help="Of private learning: a small loss by default, or gradient, for methods that look for weights where "
            "the gradient is small."
        ),
    ] = None,
) -> None:
    """Plan a removal, by every accountant side by side: nothing is run.

    Of the problem, give --n and --C (logistic regression on rows of norm at most 1), or --data and --label, or --n and
    the theorems' constants. Leave out one of --records, --epsilon, --sigma and --steps: it is planned (most records,
    certified epsilon, least sigma, least steps). With --deletion: the steps of learning and of every request of a
    stream. With --exact: steps, batches and noise for a wanted share of edits that compute again. With --private: the
    noise of differentially private learning, whose models answer some deletions with no work.
    """
    of_exact = {"--recompute": recompute, "--batch-size": batch_size, "--quantum": quantum, "--diameter": diameter}
    of_private = {"--radius": radius, "--loss": loss_name, "--relation": relation, "--goal": goal}
    if exact is not None:
        from certified_unlearning.commands.plans.exact import ExactWish
        from certified_unlearning.commands.plans.exact_table import run as run_exact

        of_others = {
            "--C": inverse_strength,
            "--classes": classes,
            "--features": features,
            "--no-intercept": None if intercept else intercept,
            "--data": data,
            "--label": label,
            "--id": identifier,
            "--table": table,
            "--strong-convexity": strong_convexity,
            "--records": records,
            "--epsilon": epsilon,
            "--delta": None if delta == "1/n" else delta,
            "--step-size": None if step_size == "1/L" else step_size,
            "--adjacency": adjacency,
            "--stream": stream,
            "--accountant": accountant,
            "--plot": plot,
            "--deletion": deletion or None,
            "--alpha": alpha,
            "--epsilon-dp": epsilon_dp,
            "--epsilon-dd": epsilon_dd,
            "--private": private or None,
            **of_private,
        }
        if _given(of_others):
            raise ParameterError(f"with --exact, leave out {', '.join(_given(of_others))}")
        if n is None:
            raise ParameterError("with --exact, give --n")
        exact_wish = ExactWish(
            mechanism=exact,
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
        run_exact(exact_wish, as_json=as_json)
        return
    if _given(of_exact):
        raise ParameterError(f"{', '.join(_given(of_exact))} needs --exact")
    from certified_unlearning.accounting.core.losses import LossConstants
    from certified_unlearning.commands import plan_deletion, plan_removal

    if private:
        from certified_unlearning.commands.plans import private as plan_private

        left_out = {
            "--C": inverse_strength,
            "--classes": classes,
            "--data": data,
            "--label": label,
            "--id": identifier,
            "--table": table,
            "--strong-convexity": strong_convexity,
            "--smoothness": smoothness,
            "--lipschitz": lipschitz,
            "--sigma": sigma,
            "--step-size": None if step_size == "1/L" else step_size,
            "--adjacency": adjacency,
            "--stream": stream,
            "--accountant": accountant,
            "--plot": plot,
            "--deletion": deletion or None,
            "--no-intercept": None if intercept else True,
        }
        if _given(left_out):
            raise ParameterError(f"with --private, leave out {', '.join(_given(left_out))}")
        wish = plan_private.PrivateWish(
            n=n,
            features=features,
            epsilon=epsilon,
            delta=delta,
            radius=radius,
            loss=loss_name or "logistic",
            relation=relation or "replace-one",
            records=records,
            steps=steps,
            goal=goal or "loss",
        )
        plan_private.run(wish, as_json=as_json)
        return
    if _given(of_private):
        raise ParameterError(f"{', '.join(_given(of_private))} needs --private")
    given_constants = {
        "--strong-convexity": strong_convexity,
        "--smoothness": smoothness,
        "--lipschitz": lipschitz,
    }
    of_problem = {"--C": inverse_strength, "--data": data, "--table": table}
    with_problem = {"--classes": classes, "--features": features, "--label": label, "--id": identifier}
    named = _given(of_problem)
    superfluous = _given(given_constants)
    known = None
    if named:
        if superfluous:
            raise ParameterError(f"give {', '.join(named)} or {', '.join(superfluous)}, not both")
        from certified_unlearning.commands.plans.known import of_flags

        known = of_flags(
            n=n,
            C=inverse_strength,
            classes=classes,
            features=features,
            intercept=intercept,
            data=data,
            label=label,
            identifier=identifier,
            table=table,
        )
        n, loss = known.n, known.constants
    else:
        needing = [*_given(with_problem), *([] if intercept else ["--no-intercept"])]
        if needing:
            raise ParameterError(f"{', '.join(needing)} needs --C or --data")
        if n is None or strong_convexity is None or smoothness is None or lipschitz is None:
            missing = [name for name, value in ({"--n": n} | given_constants).items() if value is None]
            raise ParameterError(
                f"{', '.join(missing)} must be given, or --C and --n of a logistic regression, or --data and --label"
            )
        loss = LossConstants(strong_convexity, smoothness, lipschitz)

    if deletion:
        dimension = known.dimension if known is not None and dimension is None else dimension
        left_out = {"--epsilon": epsilon, "--sigma": sigma, "--steps": steps, "--accountant": accountant} | {
            "--plot": plot,
            "--step-size": None if step_size == "1/L" else step_size,
            "--delta": None if delta == "1/n" else delta,
            "--adjacency": None if adjacency == "replace" else adjacency,
        }
        if _given(left_out):
            raise ParameterError(f"with --deletion, leave out {', '.join(_given(left_out))}")
        plan_deletion.run(
            plan_deletion.DeletionWish(
                n,
                loss.strong_convexity,
                loss.smoothness,
                loss.lipschitz,
                dimension,
                alpha,
                epsilon_dp,
                epsilon_dd,
                records,
                stream,
            ),
            as_json=as_json,
        )
        return
    of_deletion = {"--dimension": dimension, "--alpha": alpha, "--epsilon-dp": epsilon_dp, "--epsilon-dd": epsilon_dd}
    if _given(of_deletion):
        raise ParameterError(f"{', '.join(_given(of_deletion))} needs --deletion")
    if adjacency is None:
        adjacency = "replace" if known is None else "zero-out"
    plan_removal.run(
        plan_removal.Constants(n, loss.strong_convexity, loss.smoothness, loss.lipschitz, step_size, adjacency, delta),
        accountant or tuple(ACCOUNTANTS),
        plan_removal.Wish(records=records, epsilon=epsilon, sigma=sigma, steps=steps, stream=stream),
        as_json=as_json,
        plot=plot,
        known=known,
    )


def _given(flags: Mapping[str, object]) -> list[str]:
    return [name for name, value in flags.items() if value is not None]
