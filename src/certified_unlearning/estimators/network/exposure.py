"""The most exposed training records: those whose own prediction could be changed by a few records of a batch.

Source: Wicker et al. (2024), Section 4.2. An adversary can learn something only from predictions that are not
certified. Such predictions belong to people for whom the guarantee is weak.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.errors import ParameterError
from certified_unlearning.estimators.network.classifier import CertifiedMLPClassifier
from certified_unlearning.text import counted


@dataclass(frozen=True, eq=False, repr=False)
class ExposedRecords:
    """The radius within which each training record's own prediction is certified.

    It is secret, so it is never printed.

    Attributes:
        positions: Positions of the records in the fitted ``X``, the most exposed first. Records that are in no batch
            are left out, because nothing was learned from them.
        radii: Largest budget with which each record's own prediction is certified; 0 if there is none.
        margins: Margin of each record's prediction, at least 0: the distance between its two largest logits. Records of
            equal radius are ordered by margin.
        right: Whether each record's predicted class is the record's own class.
        largest: Largest budget of the model.
    """

    positions: NDArray[np.int64]
    radii: NDArray[np.int64]
    margins: NDArray[np.float64]
    right: NDArray[np.bool_]
    largest: int

    def __repr__(self) -> str:
        """Return the number of records, but nothing about any single record."""
        return f"<secret: exposure of {counted(len(self.positions), 'record')}; see most() and summary()>"

    def most(self, count: int = 10) -> pd.DataFrame:
        """Return the most exposed records as a table, with ``record`` (position), ``radius``, ``margin`` and ``right``.

        The table is as secret as the records.
        """
        require_count(least=1, count=count)
        columns = {"record": self.positions, "radius": self.radii, "margin": self.margins, "right": self.right}
        return pd.DataFrame({name: values[:count] for name, values in columns.items()})

    def of(self, record: int) -> int:
        """Return the radius of one record, for its owner only.

        The radius also depends on other records, and disclosing it is not differentially private.

        Raises:
            ParameterError: The record was removed, or nothing was learned from it.
        """
        place = np.flatnonzero(self.positions == record)
        if not len(place):
            raise ParameterError(
                f"`record` must be the position of a remaining record that is in a batch, got {record!r}"
            )
        return int(self.radii[place[0]])

    def summary(self) -> str:
        """Return a text that states, for each radius in changes, how many records have a prediction with this radius.

        The text is as secret as the records.
        """
        exposed = int((self.radii == 0).sum())
        lines = [
            f"Of {counted(len(self.positions), 'record')}, {exposed} {'has' if exposed == 1 else 'have'} a prediction "
            "that no budget certifies: such a prediction may reveal whether its record was learned from.",
            *(
                f"Certified for {counted(int(radius), 'change')}{' or more' if radius == self.largest else ''} "
                f"of each batch: {int((self.radii == radius).sum())}."
                for radius in np.unique(self.radii[self.radii > 0])
            ),
            "Secret: these numbers depend on the records, and reveal how some of the records are predicted.",
        ]
        return "\n".join(lines)


def exposed_records(model: CertifiedMLPClassifier) -> ExposedRecords:
    """Return how exposed the remaining training records are, for the owner of the data.

    If records were removed since the last training, the network is retrained first. A radius covers the same changes as
    the boxes (``changes``). With ``removals``, neither the absence of the record itself nor the absence of other
    records changes the prediction. For membership inference, use ``additions and removals``.

    Raises:
        DataError: The model was saved without its training data.
    """
    network, store = model._current(), model._store
    learned, positions = network.learned, network.learned_records(store)
    rows = store.rows[positions]
    logits, classes = learned.logits(rows), learned.classes(rows)
    if logits.shape[1] == 1:
        margins = logits[:, 0].abs()
    else:
        best, _ = logits.topk(2, dim=1)
        margins = best[:, 0] - best[:, 1]
    radii, apart = learned.radii(rows).cpu().numpy(), margins.cpu().numpy()
    right = (classes == store.labels[positions]).cpu().numpy()
    order = np.lexsort((apart, radii))
    return ExposedRecords(positions[order], radii[order], apart[order], right[order], learned.budgets[-1])
