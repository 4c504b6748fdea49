"""An ensemble of certified networks: shards answer while their budget lasts, and are trained again when it is spent.

A shard that has lost no record since it was trained votes. A shard that has lost some records, but no more than its
budget, votes where all parameters in its box give the same vote, because the box contains its future parameters. Any
other vote is unknown. The ensemble answers where no assignment of the unknown votes could change its label. So every
answer is the one after training all shards without the removed records, from the same starts, on the same slices.

Sources: those of `shards`.
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
"""Number of records that are voted on together."""


@dataclass(frozen=True)
class CertifiedEnsemble:
    """How shards are trained; fixed for all removals.

    Every update reads all records of its stage: the larger a batch, the smaller the share of a removal.

    Attributes:
        network: The layers of every shard.
        descent: How parameters follow gradients; rates and velocities begin anew with every stage.
        sharding: How records lie in shards and slices, and the budgets.
        epochs: Number of updates of each stage.
        bounding: How bounds are computed.
    """

    network: Network
    descent: Descent
    sharding: Sharding
    epochs: int
    bounding: Bounding = TIGHTEST

    def __post_init__(self) -> None:
        require_count(least=1, epochs=self.epochs)

    def slices(self, generator: torch.Generator) -> Tensor:
        """Draw the slice of every record, by the number of records alone.

        Returns:
            Shape ``(n,)``: ``shard x slices + slice``.
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
        """Train all shards on the records that are present.

        Args:
            rows: Shape ``(n, ...)``.
            labels: Shape ``(n,)``.
            present: Shape ``(n,)``: which records are present.
            generator: Draws slices and starts: the same seed for every set of records.
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
    """All shards, and what removals need. A removed record's row and label are never read again.

    They are trained one by one, so one that is trained again has the same bits as one that never saw the record.

    Attributes:
        settings: How they are trained.
        rows: Shape ``(n, ...)``.
        labels: Shape ``(n,)``.
        present: Shape ``(n,)``: which records are present.
        slices: Shape ``(n,)``: as `CertifiedEnsemble.slices` drew them.
        standing: Which records have left, and how often shards were trained again.
        parameters: Shapes ``(shards, slices + 1, 1, ...)``: before the first stage, and after each.
        lower: Lower ends of the boxes, shapes ``(shards, slices + 1, budgets, ...)``; a point for budgets that are not
            usable.
        upper: Upper ends of the boxes.
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
        """Remove records at no cost: their effect stays in the shards' parameters for now.

        Raises:
            ParameterError: A record is absent, or is named twice.
        """
        wanted = [*records]
        outside = [each for each in wanted if not 0 <= each < len(self.present)]
        gone = outside or [each for each in wanted if not bool(self.present[each])]
        if gone or len({*wanted}) != len(wanted):
            what = f"record {gone[0]} is not there" if gone else "a record is named twice"
            raise ParameterError(f"records must be there to be removed, each once: {what}")
        self.standing.remove(self.places(wanted))
        self.present[wanted] = False
        # The caller's tensors are not changed.
        self.rows, self.labels = self.rows.clone(), self.labels.clone()
        self.rows[wanted], self.labels[wanted] = 0, 0

    def retrain(self, shards: Iterable[int] | None = None) -> None:
        """Train shards again without what left them, from the checkpoint before the first slice that lost a record.

        Args:
            shards: The shards; None: those whose budget is spent.
        """
        wanted = self.standing.offline if shards is None else [*shards]
        first = {shard: self.standing.first_stage(shard) for shard in wanted}
        self.standing.retrain(wanted)
        for shard, stage in first.items():
            if stage is not None:
                self._train(shard, stage)

    def forget(self, records: Iterable[int]) -> None:
        """Remove records, and train again the shards whose budget is then spent."""
        self.remove(records)
        self.retrain()

    def votes(self, rows: Tensor) -> Votes:
        """Return the ensemble's labels of records, where known, and the number of unknown votes.

        Args:
            rows: As the network takes them, shape ``(records, ...)``.
        """
        pieces = [decided(self.possible(rows[at : at + ROWS_AT_ONCE])) for at in range(0, len(rows), ROWS_AT_ONCE)]
        if not pieces:
            return decided(torch.zeros(1, 0, self.classes, dtype=torch.bool, device=rows.device))
        return Votes(torch.cat([each.labels for each in pieces]), torch.cat([each.abstaining for each in pieces]))

    def possible(self, rows: Tensor) -> Tensor:
        """Return the classes that each shard may vote for without its removed records, in `votes.decided`'s shape."""
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
            # The box contains the parameters, so a vote of the whole box is their vote.
            own[asked] = torch.where(sure[..., None], own[asked], may)
        return own

    def check(self, anew: "CertifiedShards") -> None:
        """Compare with the ensemble trained on the remaining records, as far as the stored state follows from them.

        Every stage before the first that lost a record is compared bit for bit, which needs the same kind of processor
        and software, because others add in another order. The parameters that a shard reaches from there without its
        removed records must lie in all boxes that may still be used, and so must its present parameters, which
        determine the vote of a whole box.

        Args:
            anew: An ensemble from the same starts, such as `fresh`.

        Raises:
            DataError: Something does not follow from the records.
        """
        if not torch.equal(self.slices, anew.slices) or not torch.equal(self.present, anew.present):
            raise DataError("training again reads other records, or in other slices, than those kept")
        for shard in range(self.settings.sharding.shards):
            first = self.standing.first_stage(shard)
            known = slice(None) if first is None else slice(0, first + 1)
            for name in ("parameters", "lower", "upper"):
                pairs = zip(getattr(anew, name), getattr(self, name), strict=True)
                if not all(torch.equal(one[shard, known], two[shard, known]) for one, two in pairs):
                    raise DataError(
                        f"training shard {shard} again gives other {name} than those kept; so it also does with "
                        "another processor or PyTorch, or with a C++ compiler where there was none, or without"
                    )
            self._check_boxes(shard, [each[shard, -1] for each in anew.parameters])

    def fresh(self) -> Self:
        """Return the ensemble trained from the starts on the remaining records."""
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
        """Return what later removals need besides the records, for a file."""
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
        """Return the shards that `tensors` gave."""
        count = range(len(settings.network.shapes))
        points = [tuple(tensors[f"{name}/{place}"] for place in count) for name in ("parameters", "lower", "upper")]
        return cls(settings, rows, labels, tensors["present"].clone(), tensors["slices"], standing, *points)

    def _classes(self, rows: Tensor) -> Tensor:
        """Return what each shard's parameters predict, shape ``(shards, records)``."""
        found = logits(self.settings.network, [each[:, -1, 0] for each in self.parameters], rows[None])
        return (found[..., 0] > 0).long() if found.shape[-1] == 1 else found.argmax(dim=-1)

    def _boxes(self, shards: list[int], needed: list[int]) -> Box:
        """Return the smallest boxes of shards that cover a number of removals."""
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
            without: Its parameters after training without its removed records.

        Raises:
            DataError: A box does not contain these, or the stored parameters.
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
                        f"{what}shard {shard} has parameters outside its box of {counted(budget, 'removal')}"
                    )

    def _train(self, shard: int, first: int) -> None:
        """Train a shard from a stage on; afterwards nothing is pending."""
        slices = self.settings.sharding.slices
        usable = self.standing.usable(shard)
        for stage in range(first, slices):
            before = self._checkpoint(shard, stage, usable)
            low = shard * slices
            members = (self.present & (self.slices >= low) & (self.slices <= low + stage)).nonzero()[:, 0]
            after = self._stage(before, members, usable) if len(members) else before
            for place, (values, box) in enumerate(zip(after.parameters, after.box, strict=True)):
                self.parameters[place][shard, stage + 1] = values
                # Budgets without a box hold the parameters alone and are never used.
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
