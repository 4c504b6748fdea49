"""The experiment ``service``: how long shards answer without retraining, what they refuse, and what they save."""

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
"""The columns of the table, which has one row for each stream and budget.

Measured values are means over trials; columns that end in ``_std`` are standard deviations.

The requests of a stream are numbered from 1. ``first`` is the number of the request that first causes the retraining of
a shard. ``out`` is the number of the request with which the last shard exceeds its budget, if no shard is retrained.
``out`` is empty if a stream never reaches such a request. ``first`` and ``out`` are means over ``waits`` streams. For
random streams, ``first_expected`` and ``out_expected`` come from `accounting.core.occupancy`. ``trainings`` is the
number of retrained shards. ``refused`` is the share of queries without an answer, over all requests, and
``refused_most`` is the largest share after one request. ``against_sisa`` is the number of gradients that plain SISA
computes for the same requests, divided by the number that our shards compute. ``against_retraining`` is the number of
gradients for retraining all shards after each request, divided by the number that our shards compute. Both are empty if
no shard was retrained, because the number that our shards compute is then 0. ``compared`` is the number of answers that
were compared with those of the retrained ensemble, and ``wrong`` is the number of these answers that differ. At the
requests at which answers were compared, ``changed`` counts the retrained ensemble's labels that differ from the labels
before the first request. ``box_cost`` is the time of training with boxes divided by the time without boxes: the
relative cost of one gradient of our shards.
"""


def make(inputs: Inputs) -> pd.DataFrame:
    """Run all streams. Raises the same errors as `tables.service.service_table`."""
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
        "The votes of an ensemble of shards stay certified until more records have left a shard than its budget "
        "allows. Then the shard is trained again, from the last checkpoint that no removed record reached. Left: the "
        "share of test records without an answer, over all requests of a stream. Right: the gradients of plain SISA, "
        "which trains a shard again for every request, divided by ours. A gradient with boxes takes several times as "
        "long as a gradient of plain SISA. The streams remove records at random, all from one shard, or from each "
        "shard in turn. Bars are one standard deviation over trials. The figure does not depend on the preset’s data "
        "set.",
        "Refusals rise with the budget and are fewest if all requests go to one shard; the saved work rises, too.",
    ),
)
"""Every answer equals that of the ensemble trained without the removed records; less training means more refusals."""
