"""Models by federated averaging that forget clients exactly: a client is an identifier, with all its rows.

The state is secret: for each round it has the model, and the sum of what the clients sent, with noise and without. It
depends on no client that has left. As with `methods.exact_steps`, the seed of a removal is kept with the version before
it, so that an `apply` that is killed and run again ends as the first would have, up to rounding.

A removal computes what the leaving clients sent in every round, from their rows, which `apply` has taken before it
zeroed them. If it was killed then, these rows are gone. In their place the sums of the clients that are left are
computed, and what the leaving ones sent is the difference: that takes as long as learning anew, and has the same
result.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from certified_unlearning.certificate import FederatedCertificate
from certified_unlearning.engine.addresses import address
from certified_unlearning.engine.exact.draws import Draws
from certified_unlearning.errors import DataError, InfeasibleError
from certified_unlearning.ledger.method import Answered, Method, Outcome, RemovedRows, Secret
from certified_unlearning.ledger.methods.exact_steps import kept_in, outcome_of
from certified_unlearning.ledger.state import Batch
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.training.copies import Waiting
from certified_unlearning.ledger.training.dense import numbers
from certified_unlearning.mechanisms.exact.invariants import require_close
from certified_unlearning.mechanisms.exact.queries.clients import Clients
from certified_unlearning.mechanisms.exact.queries.federated_averaging import FederatedAveraging
from certified_unlearning.mechanisms.exact.queries.federated_plan import FederatedPlan
from certified_unlearning.mechanisms.exact.queries.linear_queries import LinearQueries, QueryRun
from certified_unlearning.mechanisms.learners.history import Removal


class FederatedSteps(Method[FederatedPlan]):
    """Federated averaging; a client's name is the first of its rows in the table.

    It computes on the CPU, where an `apply` that is run again draws the same numbers.
    """

    plans = (FederatedPlan,)
    stays_on_the_cpu = True
    needs_what_it_removes = True
    no_audits = "its clients leave with all their rows, and the canaries of an audit are single records"
    no_additions = "sums of what clients send are divided by the number of clients that there were at `unlearn init`"

    def learn(self, device: torch.device) -> Outcome:
        """Learn version 1 from the training copy."""
        clients = self._clients(self._owners())
        learner = self._plan.learner_of(self._plan.method_of(clients))
        run, _ = learner.learn(clients.names, 1, Draws.fresh())
        return self._version(learner, run)

    def planned(
        self, answered: Sequence[Answered], rows: Sequence[int], added: int = 0, waiting: Waiting | None = None
    ) -> Removal:
        """Return the removal of so many rows, which takes no noisy steps.

        Raises:
            InfeasibleError: No client would be left.
        """
        if len(rows) + sum(batch.records for batch, _ in answered) >= self._plan.n:
            raise InfeasibleError("no client would be left; nothing was done: delete the model directory instead")
        return Removal(len(rows), 0)

    def remove(
        self,
        weights: NDArray[Any],
        secret: Secret | None,
        answered: Sequence[Answered],
        batch: Batch,
        rows: Sequence[int],
        taken: RemovedRows | None,
        device: torch.device,
    ) -> Outcome:
        """Remove all clients of a batch in one edit of the state; see `Method.remove`."""
        owners = self._owners()
        run, seed = self._kept(secret, owners)
        clients, gone = self._clients(owners, rows, taken), torch.unique(owners[torch.tensor(rows)])
        method = self._plan.method_of(clients)
        if taken is None:
            method = _WithoutTheirRows(method, run, gone)
        # What it cost is told to nobody.
        learner, draws = self._plan.learner_of(method), Draws(address("removal", f"{seed:x}", *rows))
        learner.edit(run, gone.tolist(), [], draws)
        return self._version(learner, run)

    def check(
        self, weights: NDArray[Any], secret: Secret | None, answered: Sequence[Answered], left: Sequence[int]
    ) -> None:
        """Compute every round's sum and model from the one before, and the published weights; see `Method.check`."""
        owners = self._owners()
        run, _ = self._kept(secret, owners)
        learner = self._plan.learner_of(self._plan.method_of(self._clients(owners)))
        learner.check_invariants(learner.restore(run.tensors()))
        require_close("published weights", torch.from_numpy(weights), learner.model(run)[0])

    def certificate(self, answered: Sequence[Answered], data_digest: str, lost: int = 0) -> FederatedCertificate:
        """Return the certificate of the version that these batches led to; it states no digest."""
        plan = self._plan
        return FederatedCertificate.of(
            noise_source="system entropy",
            dataset=self._dataset,
            features=self._features,
            loss=plan.loss,
            d=plan.dimension,
            classes=plan.classes,
            strong_convexity=plan.strong_convexity,
            steps=plan.steps,
            local_steps=plan.local_steps,
            step_size=plan.step_size,
            clip=plan.clip,
            sigma=plan.sigma,
            n_learned=plan.clients,
            deleted=sum(batch.requests for batch, _ in answered),
            requests=len(answered),
            lost_releases=lost,
        )

    def _owners(self) -> torch.Tensor:
        """Return the client of each row of the table, -1 where it is nobody's; those about to leave are there.

        Raises:
            DataError: The ledger speaks of a row that is not in the table.
        """
        with Ledger.opened(self._directory.ledger, read_only=True) as ledger:
            records = [(record.identifier, record.row) for record in ledger.owners.records()]
        owners, first = torch.full((self._plan.n,), -1), dict[str, int]()
        for identifier, row in sorted(records, key=lambda record: record[1]):
            if not 0 <= row < self._plan.n:
                raise DataError(f"{self._directory.ledger} speaks of row {row}, but there are {self._plan.n} rows")
            owners[row] = first.setdefault(identifier, row)
        return owners

    def _clients(self, owners: torch.Tensor, rows: Sequence[int] = (), taken: RemovedRows | None = None) -> Clients:
        """Return clients with their rows of the training copy, of which those are read that are needed.

        Args:
            owners: The client of each row.
            rows: Rows that are zeros in the copy by now.
            taken: What they were; None where nobody knows.
        """
        plan = self._plan
        # A private view: what is written to it stays in memory.
        features = np.memmap(self._directory.features, np.float32, mode="c", shape=(plan.n, plan.features))
        labels = numbers(self._directory.labels, np.int8, plan.n)
        if taken is not None:
            features[list(rows)], labels[list(rows)] = taken.rows, taken.labels
        return plan.clients_of(torch.from_numpy(features), torch.from_numpy(labels), owners)

    def _kept(self, secret: Secret | None, owners: torch.Tensor) -> tuple[QueryRun, int]:
        """Return the state, which must be that of these clients, and the seed of the next removal."""
        tensors, seed = kept_in(secret)
        run = QueryRun(**tensors)
        if not torch.equal(run.records, torch.unique(owners[owners >= 0])):
            raise DataError(f"the state of {self._directory.path} has other clients than those that remain")
        return run, seed

    def _version(self, learner: LinearQueries, run: QueryRun) -> Outcome:
        """Return the version that a state gives, with the seed of the next removal."""
        return outcome_of(learner.model(run)[0].numpy(), run.tensors(), self._plan.step_size)


class _WithoutTheirRows(FederatedAveraging):
    """Federated averaging for a removal of clients whose rows are gone: they sent what the others did not."""

    def __init__(self, method: FederatedAveraging, run: QueryRun, gone: torch.Tensor) -> None:
        super().__init__(method.train, method.start(), method.settings)
        self._run, self._gone, self._left = run, gone, run.records[~torch.isin(run.records, gone)]

    def sums(self, step: int, models: torch.Tensor, records: torch.Tensor) -> torch.Tensor:
        """Return sums of clipped moves; see `FederatedAveraging.sums`."""
        if torch.equal(records, self._gone):
            return self._run.sums[:, step - 1] - super().sums(step, models, self._left)
        return super().sums(step, models, records)
