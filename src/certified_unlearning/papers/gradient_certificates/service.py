"""Experiment ``service``: how long shards answer without training again, what they refuse, and what that saves."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.gradient_certificates.service_sweep import Service
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "stream"),
        column("budget", "whole", "point"),
        column("data", "text", "constant"),
        *columns("whole", "constant", "hidden", "parameters", "n", "shards", "slices", "epochs"),
        *columns("number", "constant", "step_size", "gamma"),
        *columns("whole", "constant", "requests", "trials", "seed", "waits"),
        *columns("number", "measure", "first", "first_std"),
        *columns("number", "measure", "out", "out_std", empty=True),
        *columns("number", "constant", "first_expected", "out_expected", empty=True),
        *columns("number", "measure", "trainings", "trainings_std", "refused", "refused_std", "refused_most"),
        *columns("number", "measure", "against_sisa", "against_sisa_std", "against_retraining", empty=True),
        *columns("whole", "measure", "compared", "wrong", "changed"),
        column("accuracy", "number", "measure"),
        column("box_cost", "number", "cost"),
    ]
)
"""One row for each stream and budget: means over trials, and their standard deviations.

``first`` is the request with which a shard is trained again for the first time, ``out`` the one with which no shard has
budget left if none is trained again (nothing where a stream never gets there), means of ``waits`` streams; the expected
numbers are those of `accounting.core.occupancy`, for random streams. ``trainings`` counts shards that were trained
again. ``refused`` is the share of queries without an answer, over all requests, ``refused_most`` the largest after one.
``against_sisa`` is the number of gradients of plain SISA over ours, for the same requests, ``against_retraining`` that
of training all shards again after each; nothing where no shard was trained again, so that ours is 0.
``wrong`` of the ``compared`` answers differ from those of the ensemble trained again; ``changed`` of its labels at
those requests differ from the first ones.
``box_cost`` is the time of training with boxes over that without: what a gradient of ours costs more.
"""


def make(inputs: Inputs) -> pd.DataFrame:
    """Run all streams; errors as for `tables.service.service_table`."""
    from certified_unlearning.papers.gradient_certificates.tables.service import service_table

    return service_table(inputs.sweep)


SERVICE = Experiment(
    name="service",
    source="Section 4.4",
    sweep=Service,
    rows=ROWS,
    make=make,
    needs_data=False,
    tracked=True,
    draw="certified_unlearning.papers.gradient_certificates.figures.service:draw",
    caption=Caption(
        "Deletion requests to shards with budgets: answers refused, and work saved",
        "The votes of an ensemble of shards are certified while at most so many records have left a shard. Then the "
        "shard is trained again, from the last checkpoint that no removed record reached. Left: the share of test "
        "records without an answer, over all requests of a stream. Right: gradients of plain SISA, which trains a "
        "shard again for every request, over those taken here. A gradient with boxes takes several times as long. "
        "The streams take records at random, all from one shard, or from each shard in turn. Bars are one standard "
        "deviation over trials. The figure depends on no data set of the preset.",
        "Refusals rise with the budget and are fewest where all requests go to one shard; the work saved rises, too.",
    ),
)
"""Every answer is that of the ensemble trained without the removed records: what is refused pays for what is saved."""
