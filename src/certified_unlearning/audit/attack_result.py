"""The result of a likelihood-ratio attack: rates with confidence intervals, a plot, and a secret list of records."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from certified_unlearning.accounting.auditing.roc import Array, Measured, Roc
from certified_unlearning.accounting.auditing.shown import SHOWN
from certified_unlearning.accounting.core.checks import require_probability
from certified_unlearning.audit.result import new_axes
from certified_unlearning.files import atomic_path

FALSE_POSITIVES = (0.01, 0.001)
"""False-positive rates in reports. A rate is reported only if enough records were never seen by a model."""
IDENTIFIES = "This list itself identifies people: records that models hardly forget are unusual ones. Keep it secret."
DRAWN = 60
"""Number of points of a plotted curve."""
BLUE, ORANGE = "#0072B2", "#D55E00"
"""Two colours of Okabe and Ito's palette, which colour-blind people can tell apart."""


class HardRecord(NamedTuple):
    """One of the records that are hardest to forget.

    Attributes:
        record: Position of the record in ``X``, or in the columns of the scores.
        separation: Distance between the record's two Gaussians, in standard deviations. They were fitted to the models
            that were not attacked. Records are ranked by this distance.
        area: Area under the curve of this record alone, estimated from the attacked models, so that the choice of the
            record does not inflate it. The area's interval holds for a single record, not for the largest of many
            areas. None if there are too few attacked models of one kind.
    """

    record: int
    separation: float
    area: Measured | None


@dataclass(frozen=True, eq=False, repr=False)
class AttackedRecords:
    """The attacked records and the numbers computed for each record.

    All of this is secret, because it reveals facts about people.
    """

    positions: NDArray[np.int64]
    separations: Array
    ratios: Array
    unlearned: NDArray[np.bool_]

    def __repr__(self) -> str:
        """Return a text that gives the number of records and says that they are secret."""
        return f"<{len(self.positions)} records, secret>"

    def hardest(self, count: int) -> list[HardRecord]:
        """Return the records that are hardest to forget, the hardest first."""
        order = np.argsort(-self.separations, kind="stable")[:count].tolist()
        return [
            HardRecord(int(self.positions[each]), float(self.separations[each]), self._area(each)) for each in order
        ]

    def _area(self, column: int) -> Measured | None:
        """Return the area under one record's curve; None if there are too few attacked models of one kind."""
        unlearned = self.unlearned[:, [column]]
        if not Roc.has_enough(unlearned):
            return None
        return Roc(self.ratios[:, [column]], unlearned).area(SHOWN)


@dataclass(frozen=True, kw_only=True, eq=False)
class AttackResult:
    """The result of an attack on single records.

    It gives no bound, because a better attack may find more. Intervals hold with a confidence of about 95 % (`Roc`).
    They apply to these records and to this attack with its fitted Gaussians.

    Attributes:
        method: Name of the attacked method.
        models: Number of attacked models.
        fitted: Number of other models, to which the Gaussians were fitted.
        records: Number of attacked records.
        after: Log-likelihood ratios after the removal. Positives are records that a model unlearned; negatives are
            records that it never saw.
        before: Log-likelihood ratios before the removal, with their own Gaussians; None if they are not known.
        secret: The attacked records and the numbers computed for each record.
    """

    method: str
    models: int
    fitted: int
    records: int
    after: Roc = field(repr=False)
    before: Roc | None = field(repr=False)
    secret: AttackedRecords = field(repr=False)

    @property
    def area(self) -> Measured:
        """Area under the curve after the removal: how often an unlearned record's ratio exceeds an unseen record's."""
        return self.after.area(SHOWN)

    @property
    def area_before(self) -> Measured | None:
        """Area under the curve before the removal; None if it is not known."""
        return None if self.before is None else self.before.area(SHOWN)

    def true_positives(self, false_positives: float = 0.01, *, before: bool = False) -> Measured | None:
        """Return the rate of unlearned records that are found at a given rate of false positives.

        Args:
            false_positives: Share of the never-seen records that the attack mistakes for unlearned records.
            before: Whether to attack the models before the removal.

        Returns:
            The rate; None if there are too few models for this false-positive rate, or if nothing is known about the
            models before the removal.
        """
        require_probability(false_positives=false_positives)
        roc = self.before if before else self.after
        return None if roc is None else roc.rate(false_positives, SHOWN)

    def hardest_records(self, count: int = 10) -> list[HardRecord]:
        """Return the records that are hardest to forget, the hardest first.

        The list identifies people, so it must be kept secret.

        Args:
            count: Number of records.
        """
        return self.secret.hardest(count)

    def to_dict(self, records: int = 0) -> dict[str, Any]:
        """Return all numbers as JSON values.

        Args:
            records: Number of records to list, the hardest to forget first. The list identifies people.
        """
        found: dict[str, Any] = {
            "method": self.method,
            "kind": "likelihood-ratio attack, which gives no bound",
            "models": self.models,
            "fitted": self.fitted,
            "records": self.records,
            "confidence": 1 - SHOWN,
            "after": self._numbers(before=False),
            "before": None if self.before is None else self._numbers(before=True),
        }
        if records:
            hardest = [
                {"record": each.record, "separation": each.separation, "area": _named(each.area)}
                for each in self.hardest_records(records)
            ]
            found |= {"warning": IDENTIFIES, "hardest_records": hardest}
        return found

    def save(self, path: str | Path, records: int = 0) -> None:
        """Write all numbers as a JSON file that only its owner can read.

        Args:
            path: The file.
            records: Number of records to list, as in `to_dict`.

        Raises:
            StorageError: The file cannot be written.
        """
        with atomic_path(path) as temporary:
            # The permissions are set before anything is written, even if another file was there before.
            temporary.unlink(missing_ok=True)
            temporary.touch(mode=0o600, exist_ok=False)
            temporary.write_text(json.dumps(self.to_dict(records), indent=2) + "\n", encoding="utf-8")

    def _numbers(self, *, before: bool) -> dict[str, Any]:
        rates = {f"{rate:g}": _named(self.true_positives(rate, before=before)) for rate in FALSE_POSITIVES}
        area = self.area_before if before else self.area
        return {"area_under_the_curve": _named(area), "true_positives_at_false_positives": rates}

    def __str__(self) -> str:
        """Return a readable report, as text."""
        lines = [
            f"attack (no bound): area under the curve {_words(self.area)}"
            + ("" if self.area_before is None else f"; before unlearning {_words(self.area_before)}; a guess has 0.50")
        ]
        for rate in FALSE_POSITIVES:
            found, before = self.true_positives(rate), self.true_positives(rate, before=True)
            if found is None:
                lines.append(f"at a false-positive rate of {rate:.1%}: too few models to say")
            else:
                lines.append(
                    f"at a false-positive rate of {rate:.1%}, {_percent(found)} of the unlearned records are found"
                    + ("" if before is None else f"; before unlearning {_percent(before)}")
                )
        lines += [
            f"{self.method}: {self.records} records; the Gaussians were fitted to {self.fitted} models, and "
            f"{self.models} other models were attacked",
            f"Intervals hold with about {1 - SHOWN:.0%} confidence. An attack that finds nothing proves nothing: a "
            "better one may find more.",
            "The list of the records that are hardest to forget is secret, because it identifies people: "
            "hardest_records() returns it.",
        ]
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Plot true against false positives on logarithmic axes, with an interval at each false-positive rate.

        Args:
            ax: Matplotlib axes; None creates new ones.

        Returns:
            The axes.

        Raises:
            ParameterError: Matplotlib is not installed.
        """
        ax = ax or new_axes(5, 4.2)
        curves = [(self.after, "after unlearning", BLUE, "-")]
        if self.before is not None:
            # If a removal did nothing, both lines coincide; a dashed line leaves the other line visible.
            curves.append((self.before, "before unlearning", ORANGE, "--"))
        rates = np.geomspace(1 / self.after.positive.size, 0.999, DRAWN).tolist()
        found = [[(rate, *each) for rate in rates if (each := roc.rate(rate, SHOWN))] for roc, *_ in curves]
        least = 10.0 ** math.floor(math.log10(min(each[0][0] for each in found if each)))
        floor = least / 10  # Logarithmic axes have no 0.
        for points, (_, name, colour, style) in zip(found, curves, strict=True):
            at, value, low, high = np.maximum(np.array(points).reshape(-1, 4), floor).T
            ax.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
            ax.plot(at, value, style, color=colour, label=name)
        ax.plot([least, 1], [least, 1], ":", color="0.4", label="a guess")
        ax.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.1))
        ax.set_xlabel("false positives: share of records never seen")
        ax.set_ylabel("true positives: share of records unlearned")
        ax.set_title(f"{self.method}: likelihood-ratio attack", fontsize="medium")
        ax.legend(title=f"shaded: {1 - SHOWN:.0%} interval of each point", fontsize="small", title_fontsize="small")
        return ax


def _named(found: Measured | None) -> dict[str, float] | None:
    return None if found is None else found._asdict()


def _words(found: Measured) -> str:
    low, high = math.floor(found.low * 100) / 100, math.ceil(found.high * 100) / 100
    return f"{found.value:.2f} ({low:.2f} to {high:.2f})"


def _percent(found: Measured) -> str:
    low, high = math.floor(found.low * 1000) / 1000, math.ceil(found.high * 1000) / 1000
    return f"{found.value:.1%} ({low:.1%} to {high:.1%})"
