"""The radii of predictions on a grid of the plane."""

from collections.abc import Iterator

import pandas as pd
import torch

from certified_unlearning.papers.gradient_certificates.learning import CHANGES, learned
from certified_unlearning.papers.gradient_certificates.sweeps import Regions
from certified_unlearning.papers.gradient_certificates.tasks import clouds, lifted


def regions_table(sweep: Regions) -> pd.DataFrame:
    """Return the radius at every point of a grid: one row for each cloud, mode, gamma and point."""
    rows = pd.concat(_panels(sweep), ignore_index=True)
    return rows.assign(
        experiment="regions",
        hidden="-".join(map(str, sweep.hidden)),
        batch_size=sweep.batch_size,
        largest_k=sweep.k[-1],
        seed=sweep.seed,
    )


def _panels(sweep: Regions) -> Iterator[pd.DataFrame]:
    line = torch.linspace(-sweep.reach, sweep.reach, sweep.side, dtype=torch.float64)
    points = torch.cartesian_prod(line, line)
    seen = lifted(points)
    for name in sweep.data:
        task = clouds(name, seed=sweep.seed)
        for mode in CHANGES:
            for gamma in sweep.gamma:
                found = learned(task, sweep, mode=mode, gamma=gamma, k=sweep.k, seed=sweep.seed)
                yield pd.DataFrame(
                    {
                        "data": name,
                        "mode": mode,
                        "gamma": gamma,
                        "x": points[:, 0].numpy(),
                        "y": points[:, 1].numpy(),
                        "updates": sweep.epochs * (len(task) // sweep.batch_size),
                        "predicted": found.classes(seen).numpy(),
                        "radius": found.radii(seen).numpy(),
                    }
                )
