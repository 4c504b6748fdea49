"""The command `unlearn verify`: certificates and model directories recomputed."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from certified_unlearning.commands import ledger
from certified_unlearning.errors import ParameterError, UnlearningError
from certified_unlearning.text import counted, rounded_up

if TYPE_CHECKING:
    from certified_unlearning.certificate import PrivateCertificate


def verify(
    paths: Annotated[list[Path], typer.Argument(help="Certificates, or model directories of `unlearn init`.")],
    head: Annotated[
        str | None,
        typer.Option(help="A receipt that a command on the model directory printed: it must be in the ledger."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Of one certificate or model directory: print one JSON object.")
    ] = False,
) -> None:
    """Recompute what certificates and model directories state; exit with 1 when something is not as stated."""
    from certified_unlearning import certificate

    if head is not None and not all(path.is_dir() for path in paths):
        raise ParameterError("--head is a receipt of a model directory; a certificate has none")
    if as_json:
        if len(paths) != 1:
            raise ParameterError(f"--json is for one certificate or model directory, got {len(paths)}")
        verified = ledger.verify_as_json(paths[0], head) if paths[0].is_dir() else _verify_as_json(paths[0])
        if not verified:
            raise typer.Exit(1)
        return
    wrong = 0
    for path in paths:
        try:
            if path.is_dir():
                ledger.verify(path, head)
                continue
            certified = certificate.read_any(path)
            certificate.verify(certified)
        except UnlearningError as error:
            message = str(error) if str(path) in str(error) else f"{path}: {error}"
            print(f"error: {message}", file=sys.stderr)
            wrong += 1
            continue
        assumed = sum(each.status == "assumed" for each in certified.assumptions)
        if isinstance(certified, certificate.ResidualCertificate):
            every = certified.epsilon_all_releases
            print(
                f"{path}: epsilon = {rounded_up(certified.epsilon)} at delta = {rounded_up(certified.delta)} against "
                f"an exact refit with the same noise, {'nothing' if every is None else rounded_up(every)} for all "
                f"{counted(certified.releases, 'release')} or adaptive requests ({certified.guarantee} by "
                f"{certified.mechanism}; "
                f"{counted(assumed, 'assumption')} not checked)"
            )
            continue
        if isinstance(certified, certificate.ExactCertificate):
            print(
                f"{path}: equal in law to a run on {_left(certified.n)} ({certified.guarantee} by "
                f"{certified.mechanism}; a deletion computes again with probability at most "
                f"{rounded_up(certified.recompute_probability)}; {counted(assumed, 'assumption')} not checked)"
            )
            continue
        if isinstance(certified, certificate.PredictionCertificate):
            shares = ", ".join(
                f"{share:.1%} at k = {k}" for k, share in zip(certified.budgets, certified.shares, strict=True)
            )
            print(
                f"{path}: of {counted(len(certified.predictions), 'prediction')} certified: {shares} "
                f"({certified.changes} in each "
                f"batch; {certified.guarantee} by {certified.mechanism}; {counted(assumed, 'assumption')} not checked)"
            )
            continue
        if isinstance(certified, certificate.PrivateCertificate):
            print(f"{path}: {_private_in_words(certified)}")
            continue
        if isinstance(certified, certificate.PrivateLabelsCertificate):
            print(
                f"{path}: epsilon = {rounded_up(certified.epsilon)} at delta = {rounded_up(certified.delta)} under "
                f"{certified.relation} for {counted(certified.queries, 'label')} together, each by the rule "
                f"{certified.rule} "
                f"({certified.guarantee} by {certified.mechanism}; {counted(assumed, 'assumption')} not checked)"
            )
            continue
        if isinstance(certified, certificate.EnsembleCertificate):
            print(
                f"{path}: answers are those of {counted(certified.shards, 'shard')} trained on {_left(certified.n)}; "
                f"of {counted(certified.deleted, 'removed record')} {sum(certified.pending)} "
                f"{'is' if sum(certified.pending) == 1 else 'are'} still in parameters, which must stay secret "
                f"({certified.guarantee} by {certified.mechanism}; {counted(assumed, 'assumption')} not checked)"
            )
            continue
        if not certified.unlearning_steps:
            print(f"{path}: nothing was removed yet, so nothing is guaranteed")
            continue
        delta = certified.delta + certified.extra_delta
        exact = certified.epsilon_without_rounding
        rounding = "" if exact is None else f" ({rounded_up(exact)} in exact arithmetic)"
        print(
            f"{path}: epsilon = {rounded_up(certified.epsilon)}{rounding} at delta = {rounded_up(delta)} "
            f"under {certified.adjacency} ({certified.guarantee} by {certified.accountant}; "
            f"{counted(assumed, 'assumption')} not checked)"
        )
    if wrong:
        raise typer.Exit(1)


def _left(n: int) -> str:
    return "the one record that is left" if n == 1 else f"the {n} records that are left"


def _private_in_words(certified: "PrivateCertificate") -> str:
    assumed = sum(each.status == "assumed" for each in certified.assumptions)
    several = "; ".join(f"{each.records}: {rounded_up(each.epsilon, 3)}" for each in certified.deletions[1:])
    worth = f"unchanged after deletions of several records, epsilon of {several}" if several else "of one record"
    secret = "" if certified.mu is not None else ", as long as batches stay secret"
    return (
        f"epsilon = {rounded_up(certified.epsilon)} at delta = {rounded_up(certified.delta + certified.extra_delta)} "
        f"under {certified.relation}, towards everybody who sees the model{secret}; {worth} "
        f"(private by {certified.mechanism}; {counted(assumed, 'assumption')} not checked)"
    )


def _verify_as_json(path: Path) -> bool:
    """Print what is found of a certificate as one JSON object; return whether it is as stated.

    ``epsilon``, at ``delta``, is None where nothing was removed, so that nothing is guaranteed.
    """
    from certified_unlearning import certificate

    try:
        certified = certificate.read_any(path)
        certificate.verify(certified)
    except UnlearningError as error:
        print(json.dumps({"certificate": str(path), "verified": False, "error": str(error)}, indent=2))
        return False
    epsilon = (
        None
        if isinstance(certified, certificate.PredictionCertificate | certificate.EnsembleCertificate)
        else certified.epsilon
    )
    adjacency: str | None
    if isinstance(certified, certificate.PredictionCertificate):
        # Labels of single inputs: there is no epsilon of the answers together.
        accountant, everything, nothing, delta, adjacency = None, None, True, None, certified.changes
    elif isinstance(certified, certificate.EnsembleCertificate):
        accountant, everything, nothing, delta, adjacency = None, None, True, None, "removals"
    elif isinstance(certified, certificate.Certificate):
        accountant, everything = certified.accountant, certified.epsilon_all_published
        delta, adjacency = certified.delta + certified.extra_delta, certified.adjacency
        nothing = not certified.unlearning_steps
    elif isinstance(certified, certificate.ResidualCertificate):
        accountant, everything, nothing = None, certified.epsilon_all_releases, False
        delta, adjacency = certified.delta + certified.extra_delta, certified.adjacency
    elif isinstance(certified, certificate.PrivateCertificate):
        accountant, everything, nothing = None, None, False
        delta, adjacency = certified.delta + certified.extra_delta, certified.relation
    elif isinstance(certified, certificate.PrivateLabelsCertificate):
        accountant, everything, nothing = None, certified.epsilon, False
        delta, adjacency = certified.delta, certified.relation
    else:
        # Two states together tell more than one: nothing is stated of all of them.
        accountant, everything, nothing, delta, adjacency = None, None, False, 0.0, None
    found = {
        "certificate": str(path),
        "verified": True,
        "error": None,
        "mechanism": certified.mechanism,
        "accountant": accountant,
        "guarantee": certified.guarantee,
        "comparator": certified.comparator,
        "adjacency": adjacency,
        "epsilon": None if nothing else epsilon,
        "delta": delta,
        "epsilon_all_published": None if nothing else everything,
        "checked": [each.statement for each in certified.assumptions if each.status == "checked"],
        "assumed": [each.statement for each in certified.assumptions if each.status == "assumed"],
    }
    print(json.dumps(found, indent=2))
    return True
