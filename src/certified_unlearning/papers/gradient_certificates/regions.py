"""The experiment ``regions``: the part of the plane in which predictions are certified."""

import pandas as pd
import pyarrow as pa

from certified_unlearning.papers.gradient_certificates.sweeps import Regions
from certified_unlearning.reproduction.experiment import Caption, Experiment, Inputs
from certified_unlearning.reproduction.rows import column, columns

ROWS = pa.schema(
    [
        *columns("text", "point", "experiment", "data", "mode"),
        *columns("number", "point", "gamma", "x", "y"),
        column("hidden", "text", "constant"),
        *columns("whole", "constant", "batch_size", "updates", "largest_k", "seed"),
        *columns("whole", "measure", "predicted", "radius"),
    ]
)
"""The columns of the table, which has one row for each data set, mode, clipping level and point of the grid.

``radius`` is the largest of the given k for which the prediction at the point is certified, or 0 if there is none.
"""


def make(inputs: Inputs) -> pd.DataFrame:
    """Train, and certify the points of a grid. Raises the same errors as `tables.regions.regions_table`."""
    from certified_unlearning.papers.gradient_certificates.tables.regions import regions_table

    return regions_table(inputs.sweep)


REGIONS = Experiment(
    name="regions",
    source="Fig. 1",
    sweep=Regions,
    rows=ROWS,
    make=make,
    needs_data=False,
    draw="certified_unlearning.papers.gradient_certificates.figures.regions:draw",
    caption=Caption(
        "Where in the plane predictions are certified, on two clouds of points",
        "The colour of a point shows the largest given k for which changing any k records of every batch could not "
        "change the prediction at this point. Points without a colour are certified for none of the given k. Lines "
        "show where the network changes its prediction. Above: removals and the same number of additions (privacy). "
        "Below: removals (unlearning). The columns show overlapping (near) and separable (far) clouds, each with two "
        "clipping levels γ. Each panel is one network. The figure does not depend on the preset’s data set.",
        "In every panel, a white band runs along the boundary between the classes. The band is narrower for removals "
        "than for privacy, narrower for separable than for overlapping clouds, and narrower for the smaller clipping "
        "level. Points far from the boundary have the colours of large k.",
    ),
)
