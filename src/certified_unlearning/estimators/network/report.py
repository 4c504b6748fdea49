"""The report of a `CertifiedMLPClassifier`, as text."""

from collections.abc import Mapping

import torch

from certified_unlearning.estimators.network.trained import TrainedNetwork
from certified_unlearning.text import counted


def in_words(
    network: TrainedNetwork, forgotten: Mapping[str, int], spent: int | None, rows: torch.Tensor | None
) -> list[str]:
    """Return in sentences what was removed, which labels are certified, and what is not promised.

    Args:
        network: The network.
        forgotten: Numbers of removed ``records``, of ``requests``, and of requests that were answered for ``free``.
        spent: The largest number of records that one batch has lost since the last training; None if this is unknown,
            because the estimator was saved without its training data.
        rows: Inputs whose certified predictions are counted; None: nothing is counted.
    """
    return [
        f"Removed: {counted(forgotten['records'], 'record')} in {counted(forgotten['requests'], 'request')}. To answer "
        f"{forgotten['free']} of these requests, no training was needed. Trained {counted(network.trainings, 'time')}.",
        *(
            ["Nothing is certified here: the estimator was saved without its boxes and records."]
            if spent is None
            else _certified(network, spent, rows)
        ),
        "Not promised: privacy of the answers (whether an input is certified depends on the records); anything about "
        "probabilities or parameters; anything at all if features were scaled with numbers computed from the records.",
    ]


def _certified(network: TrainedNetwork, spent: int, rows: torch.Tensor | None) -> list[str]:
    """Return the sentences on certified labels, and on the share of inputs that have one."""
    learned, lines = network.learned, []
    if network.public_records:
        lines.append(f"Also learned from {counted(network.public_records, 'public row')}, which cannot be removed.")
    lines += [
        "A label that is certified for k removals is the label that a network gives if it is trained without the "
        "removed records, and without k further records of each batch, whichever these are.",
        f"Of the budget of {counted(learned.budgets[-1], 'removal')} from each batch, {learned.budgets[-1] - spent} "
        f"{'is' if learned.budgets[-1] - spent == 1 else 'are'} left.",
        "Labels that are not certified come from a network that is retrained when it is first asked for one.",
    ]
    if network.pending:
        lines.append(
            f"The parameters must stay secret: they were learned with {counted(network.pending, 'record')} that "
            f"{'was' if network.pending == 1 else 'were'} removed afterwards."
        )
    if rows is None:
        return lines
    shares = learned.certified(rows).double().mean(dim=1).tolist()
    among = f", including those since the last training (up to {spent} of a batch)" if spent else ""
    return lines + [
        f"Certified for {counted(budget, 'removal')} from each batch{among}: {share:.1%} of {len(rows)}."
        for budget, share in zip(learned.budgets, shares, strict=True)
        if budget > spent
    ]
