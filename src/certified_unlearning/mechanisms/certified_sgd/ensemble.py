"""An ensemble of certified networks: shards answer while their budget lasts, and are trained again when it is spent.

A shard votes if it has lost no record since it was trained. If it has lost some records, but not more than its budget,
it votes if all parameters in its box give the same vote, because the box contains its future parameters. Any other vote
is unknown. The ensemble answers if no assignment of the unknown votes could change its label. So every answer
equals the answer after training all shards without the removed records, from the same starts, on the same slices.

For the sources, see `shards`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from certified_unlearning.accounting.core.checks import require_count
from certified_unlearning.engine.abstract_training.descent import Descent, Parameters, logits
from certified_unlearning.engine.abstract_training.training import Batch, Box, Trained, train
from certified_unlearning.engine.intervals.interval import Interval
from certified_unlearning.engine.intervals.margins import certify, possible
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.propagation import TIGHTEST, Bounding
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.mechanisms.certified_sgd.sgd import initial_parameters
from certified_unlearning.mechanisms.certified_sgd.shards import Sharding, ShardState
from certified_unlearning.mechanisms.certified_sgd.votes import Votes, decided
from certified_unlearning.text import counted

ROWS_AT_ONCE = 4096
"""Number of records whose votes are computed together."""


@dataclass(frozen=True)
class CertifiedEnsemble:
    """The settings of an ensemble.

    The settings are the same for all removals. Every update reads all records of its stage, because the effect of a
    removal is smaller in a larger batch.

    Attributes:
        network: The layers of every shard.
        descent: The rule by which parameters follow gradients; rates and velocities start anew with every stage.
        sharding: The shards, slices and budgets.
        epochs: Number of updates in each stage.
        bounding: Method of computing bounds.
    """

    network: Network
    descent: Descent
    sharding: Sharding
    epochs: int
    bounding: Bounding = TIGHTEST

    def __post_init__(self) -> None:
        require_count(least=1, epochs=self.epochs)

    def slices(self, generator: torch.Generator) -> Tensor:
        """Draw the slice of every record.

        The draw depends only on the number of records.

        Returns:
            The number of each record's slice, shape ``(n,)``. A slice has the number ``shard x slices + place``, where
            ``place`` is its place in its shard.
        """
        sharding = self.sharding
        found = torch.empty(sharding.n, dtype=torch.int64)
        order = torch.randperm(sharding.n, generator=generator)
        found[order] = torch.tensor([sharding.slice_of(position) for position in range(sharding.n)])
        return found

    def start(self, generator: torch.Generator) -> Parameters:
        """Draw the initial parameters of each shard, shapes ``(shards, ...)``."""
        drawn = [initial_parameters(self.network, generator) for _ in range(self.sharding.shards)]
        return tuple(torch.cat(each) for each in zip(*drawn, strict=True))

    def learn(self, rows: Tensor, labels: Tensor, present: Tensor, generator: torch.Generator) -> "CertifiedShards":
        """Train all shards on the present records.

        Args:
            rows: Rows of all records, shape ``(n, ...)``.
            labels: Labels of all records, shape ``(n,)``.
            present: Whether each record is present, shape ``(n,)``.
            generator: Generator that draws slices and starts; it must have the same seed for every set of records.
        """
        slices, start = self.slices(generator), self.start(generator)
        standing = ShardState(self.sharding)
        gone = slices[~present.cpu()].tolist()
        standing.remove([(place, gone.count(place)) for place in sorted({*gone})])
        standing.pending = [0] * len(standing.pending)
        budgets, stages = len(self.sharding.budgets), self.sharding.slices + 1
        shards = CertifiedShards(
            self,
            rows,
            labels,
            present.clone(),
            slices.to(rows.device),
            standing,
            *(
                tuple(
                    each[:, None, None].expand(each.shape[0], stages, many, *each.shape[1:]).clone().to(rows.device)
                    for each in start
                )
                for many in (1, budgets, budgets)
            ),
        )
        for shard in range(self.sharding.shards):
            shards._train(shard, 0)
        return shards


@dataclass
class CertifiedShards:
    """All trained shards, with the state that removals need. A removed record's row and label are never read again.

    The shards are trained one by one. So a shard that is trained again has the same bits as one that never saw the
    record.

    Attributes:
        settings: The settings of training.
        rows: Rows of all records, shape ``(n, ...)``.
        labels: Labels of all records, shape ``(n,)``.
        present: Whether each record is present, shape ``(n,)``.
        slices: Slices that `CertifiedEnsemble.slices` drew, shape ``(n,)``.
        standing: The counts of the shards: how many records of each slice are present, how many were removed, and how
            often shards were trained again.
        parameters: Parameters before the first stage and after each, shapes ``(shards, slices + 1, 1, ...)``.
        lower: Lower ends of the boxes, shapes ``(shards, slices + 1, budgets, ...)``. The box of a budget that is not
            usable is a point.
        upper: Upper ends of the boxes, shapes as for ``lower``.
    """

    settings: CertifiedEnsemble
    rows: Tensor
    labels: Tensor
    present: Tensor
    slices: Tensor
    standing: ShardState
    parameters: Parameters
    lower: Parameters = field(repr=False)
    upper: Parameters = field(repr=False)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return max(2, self.settings.network.outputs)

    def places(self, records: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Return the slices of records, and the number of records in each."""
        found = self.slices[torch.as_tensor([*records], dtype=torch.int64)].tolist()
        return tuple((place, found.count(place)) for place in sorted({*found}))

    def remove(self, records: Iterable[int]) -> None:
        """Remove records without training.

        The shards' parameters still depend on the removed records.

        Raises:
            ParameterError: A record is absent or is named twice.
        """
        wanted = [*records]
        outside = [each for each in wanted if not 0 <= each < len(self.present)]
        gone = outside or [each for each in wanted if not bool(self.present[each])]
        if gone or len({*wanted}) != len(wanted):
            what = f"record {gone[0]} is not there" if gone else "a record is named twice"
            raise ParameterError(f"each removed record must be present and be named only once, but {what}")
        self.standing.remove(self.places(wanted))
        self.present[wanted] = False
        # The tensors of the caller must not change.
        self.rows, self.labels = self.rows.clone(), self.labels.clone()
        self.rows[wanted], self.labels[wanted] = 0, 0

    def retrain(self, shards: Iterable[int] | None = None) -> None:
        """Train shards again without the removed records.

        The training of a shard continues from the checkpoint before the first slice that lost a record.

        Args:
            shards: The shards to train. None: the shards whose budget is spent.
        """
        wanted = self.standing.offline if shards is None else [*shards]
        first = {shard: self.standing.first_stage(shard) for shard in wanted}
        self.standing.retrain(wanted)
        for shard, stage in first.items():
            if stage is not None:
                self._train(shard, stage)

    def forget(self, records: Iterable[int]) -> None:
        """Remove records, and then train again the shards whose budget is spent."""
        self.remove(records)
        self.retrain()

    def votes(self, rows: Tensor) -> Votes:
        """Return the ensemble's label of each record, if it is known, and the number of unknown votes.

        Args:
            rows: Records in the form that the network expects, shape ``(records, ...)``.
        """
        pieces = [decided(self.possible(rows[at : at + ROWS_AT_ONCE])) for at in range(0, len(rows), ROWS_AT_ONCE)]
        if not pieces:
            return decided(torch.zeros(1, 0, self.classes, dtype=torch.bool, device=rows.device))
        return Votes(torch.cat([each.labels for each in pieces]), torch.cat([each.abstaining for each in pieces]))

    def possible(self, rows: Tensor) -> Tensor:
        """Return the classes that each shard may vote for without its removed records; shape as in `votes.decided`."""
        settings, standing = self.settings, self.standing
        own = torch.nn.functional.one_hot(self._classes(rows), self.classes).bool()
        spent = [standing.spent(shard) for shard in range(settings.sharding.shards)]
        offline = standing.offline
        asked = [shard for shard, many in enumerate(spent) if many and shard not in offline]
        own[offline] = True
        if asked:
            box = self._boxes(asked, [spent[shard] for shard in asked])
            sure = certify(settings.network, box, rows[None], settings.bounding).certified
            may = possible(settings.network, box, rows[None], settings.bounding)
            # The box contains the parameters, so a vote that the whole box shares is their vote.
            own[asked] = torch.where(sure[..., None], own[asked], may)
        return own

    def check(self, anew: "CertifiedShards") -> None:
        """Compare the stored state with an ensemble that was trained on the remaining records.

        Every stage before the first that lost a record is compared bit for bit. This needs the same kind of processor
        and software, because other kinds add in another order. If a shard is trained again from that stage without its
        removed records, it reaches new parameters. They must be in all boxes that may still be used. The boxes must
        also contain the shard's present parameters, which determine the vote that a whole box shares.

        Args:
            anew: An ensemble from the same starts, such as `fresh`.

        Raises:
            DataError: A part of the stored state does not follow from the records.
        """
        if not torch.equal(self.slices, anew.slices) or not torch.equal(self.present, anew.present):
            raise DataError(
                "records or slices of the ensemble that was trained again differ from those of the stored ensemble"
            )
        for shard in range(self.settings.sharding.shards):
            first = self.standing.first_stage(shard)
            known = slice(None) if first is None else slice(0, first + 1)
            for name in ("parameters", "lower", "upper"):
                pairs = zip(getattr(anew, name), getattr(self, name), strict=True)
                if not all(torch.equal(one[shard, known], two[shard, known]) for one, two in pairs):
                    raise DataError(
                        f"shard {shard} was trained again, and the values of `{name}` differ from the stored values; "
                        "this also happens on another kind of processor, with another version of PyTorch, or if a C++ "
                        "compiler was added or removed"
                    )
            self._check_boxes(shard, [each[shard, -1] for each in anew.parameters])

    def fresh(self) -> Self:
        """Return an ensemble that is trained from the same starts on the remaining records."""
        standing = ShardState(self.settings.sharding)
        standing.left = [*self.standing.left]
        points = [
            tuple(each[:, :1].expand(-1, each.shape[1], *(-1,) * (each.ndim - 2)).clone() for each in which)
            for which in (self.parameters, self.lower, self.upper)
        ]
        anew = type(self)(self.settings, self.rows, self.labels, self.present, self.slices, standing, *points)
        for shard in range(self.settings.sharding.shards):
            anew._train(shard, 0)
        return anew

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to store in a file: those that later removals need in addition to the records."""
        found = {"present": self.present, "slices": self.slices}
        for name in ("parameters", "lower", "upper"):
            found |= {f"{name}/{place}": each for place, each in enumerate(getattr(self, name))}
        return found

    @classmethod
    def from_tensors(
        cls,
        settings: CertifiedEnsemble,
        rows: Tensor,
        labels: Tensor,
        standing: ShardState,
        tensors: Mapping[str, Tensor],
    ) -> Self:
        """Return the shards from the tensors that `tensors` returned."""
        count = range(len(settings.network.shapes))
        points = [tuple(tensors[f"{name}/{place}"] for place in count) for name in ("parameters", "lower", "upper")]
        return cls(settings, rows, labels, tensors["present"].clone(), tensors["slices"], standing, *points)

    def _classes(self, rows: Tensor) -> Tensor:
        """Return the classes that each shard's parameters predict, shape ``(shards, records)``."""
        found = logits(self.settings.network, [each[:, -1, 0] for each in self.parameters], rows[None])
        return (found[..., 0] > 0).long() if found.shape[-1] == 1 else found.argmax(dim=-1)

    def _boxes(self, shards: list[int], needed: list[int]) -> Box:
        """Return, for each shard, the smallest box that covers the given number of removals."""
        budgets = self.settings.sharding.budgets
        runs = [next(run for run, budget in enumerate(budgets) if budget >= many) for many in needed]
        return tuple(
            Interval(low[shards, -1, runs], high[shards, -1, runs])
            for low, high in zip(self.lower, self.upper, strict=True)
        )

    def _check_boxes(self, shard: int, without: Sequence[Tensor]) -> None:
        """Check the boxes that may be used for a shard's vote, now or after more removals.

        Args:
            shard: The shard.
            without: The shard's parameters after training without its removed records.

        Raises:
            DataError: A box does not contain ``without``, or does not contain the stored parameters.
        """
        spent, largest = self.standing.spent(shard), self.standing.largest(shard)
        kept = [each[shard, -1] for each in self.parameters]
        for budget in self.settings.sharding.budgets:
            if not spent or not spent <= budget <= largest:
                continue
            box = self._boxes([shard], [budget])
            for what, values in (("trained again, ", without), ("", kept)):
                if not all(bool(one.holds(two).all()) for one, two in zip(box, values, strict=True)):
                    raise DataError(
                        f"{what}shard {shard} has parameters outside its box for {counted(budget, 'removal')}"
                    )

    def _train(self, shard: int, first: int) -> None:
        """Train the stages of a shard, beginning with stage ``first``.

        Afterwards, no removed record is pending.
        """
        slices = self.settings.sharding.slices
        usable = self.standing.usable(shard)
        for stage in range(first, slices):
            before = self._checkpoint(shard, stage, usable)
            low = shard * slices
            members = (self.present & (self.slices >= low) & (self.slices <= low + stage)).nonzero()[:, 0]
            after = self._stage(before, members, usable) if len(members) else before
            for place, (values, box) in enumerate(zip(after.parameters, after.box, strict=True)):
                self.parameters[place][shard, stage + 1] = values
                # The box of an unusable budget contains the parameters alone and is never used.
                self.lower[place][shard, stage + 1] = values
                self.upper[place][shard, stage + 1] = values
                self.lower[place][shard, stage + 1, :usable] = box.lower[:usable]
                self.upper[place][shard, stage + 1, :usable] = box.upper[:usable]

    def _checkpoint(self, shard: int, stage: int, usable: int) -> Trained:
        parameters = tuple(each[shard, stage] for each in self.parameters)
        runs = max(1, usable)
        box = tuple(
            Interval(low[shard, stage, :runs], high[shard, stage, :runs])
            for low, high in zip(self.lower, self.upper, strict=True)
        )
        return Trained(parameters, box, 0)

    def _stage(self, before: Trained, members: Tensor, usable: int) -> Trained:
        settings = self.settings
        batch = Batch(self.rows[members], self.labels[members])
        return train(
            settings.network,
            settings.descent,
            before.parameters,
            [batch] * settings.epochs,
            k=settings.sharding.budgets[:usable] or (0,),
            bounding=settings.bounding,
            box=before.box,
        )
