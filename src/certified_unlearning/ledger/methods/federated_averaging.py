"""Models by federated averaging that unlearn clients exactly. A client is an identifier with all its rows.

The state is secret. For each round, the state contains the model and the sum of the clients' messages, with and without
noise. The state does not depend on clients that have left. As in `methods.exact_steps`, the seed of a removal is kept
with the version before the removal. So an `apply` that is killed and run again has the result that the first run would
have had, up to rounding.

A removal recomputes the messages of the leaving clients in every round, from their rows, which `apply` reads before it
zeroes them. If `apply` was killed after it had zeroed these rows, they are gone. Then the sums of the remaining clients
are computed anew. The kept sums minus these sums are the sums of the leaving clients' messages. This takes as long as
learning anew, and has the same result.
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
    """Federated averaging. A client's number is the number of its first row in the table.

    The method computes on the CPU, so that an `apply` that is run again draws the same numbers.
    """

    plans = (FederatedPlan,)
    stays_on_the_cpu = True
    needs_what_it_removes = True
    no_audits = "its clients leave with all their rows, and the canaries of an audit are single records"
    no_additions = "sums of clients' messages are divided by the number of clients at `unlearn init`"

    def learn(self, device: torch.device) -> Outcome:
        """Learn version 1 from the training copy."""
        clients = self._clients(self._owners())
        learner = self._plan.learner_of(self._plan.method_of(clients))
        run, _ = learner.learn(clients.names, 1, Draws.fresh())
        return self._version(learner, run)

    def planned(
        self, answered: Sequence[Answered], rows: Sequence[int], added: int = 0, waiting: Waiting | None = None
    ) -> Removal:
        """Return the removal of rows, which takes no noisy steps.

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
        # The cost of the edit must stay unknown to everybody.
        learner, draws = self._plan.learner_of(method), Draws(address("removal", f"{seed:x}", *rows))
        learner.edit(run, gone.tolist(), [], draws)
        return self._version(learner, run)

    def check(
        self, weights: NDArray[Any], secret: Secret | None, answered: Sequence[Answered], left: Sequence[int]
    ) -> None:
        """Recompute the published weights, and each round's sum and model from the round before; see `Method.check`."""
        owners = self._owners()
        run, _ = self._kept(secret, owners)
        learner = self._plan.learner_of(self._plan.method_of(self._clients(owners)))
        learner.check_invariants(learner.restore(run.tensors()))
        require_close("published weights", torch.from_numpy(weights), learner.model(run)[0])

    def certificate(self, answered: Sequence[Answered], data_digest: str, lost: int = 0) -> FederatedCertificate:
        """Return the certificate of the version after these batches; it states no digest."""
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
        """Return, for each row of the table, the client that owns the row; -1 for a row without an owner.

        Clients that are leaving still own their rows.

        Raises:
            DataError: The ledger names a row that is not in the table.
        """
        with Ledger.opened(self._directory.ledger, read_only=True) as ledger:
            records = [(record.identifier, record.row) for record in ledger.owners.records()]
        owners, first = torch.full((self._plan.n,), -1), dict[str, int]()
        for identifier, row in sorted(records, key=lambda record: record[1]):
            if not 0 <= row < self._plan.n:
                raise DataError(f"{self._directory.ledger} names row {row}, but there are {self._plan.n} rows")
            owners[row] = first.setdefault(identifier, row)
        return owners

    def _clients(self, owners: torch.Tensor, rows: Sequence[int] = (), taken: RemovedRows | None = None) -> Clients:
        """Return clients with their rows of the training copy; only rows that are used are read.

        Args:
            owners: The client of each row.
            rows: Rows that are already zero in the copy.
            taken: The content of these rows before they were zeroed; None if it is not known any more.
        """
        plan = self._plan
        # The memory map is private: writing to it changes the memory, not the file.
        features = np.memmap(self._directory.features, np.float32, mode="c", shape=(plan.n, plan.features))
        labels = numbers(self._directory.labels, np.int8, plan.n)
        if taken is not None:
            features[list(rows)], labels[list(rows)] = taken.rows, taken.labels
        return plan.clients_of(torch.from_numpy(features), torch.from_numpy(labels), owners)

    def _kept(self, secret: Secret | None, owners: torch.Tensor) -> tuple[QueryRun, int]:
        """Return the state and the seed of the next removal, after a check that the state belongs to these clients."""
        tensors, seed = kept_in(secret)
        run = QueryRun(**tensors)
        if not torch.equal(run.records, torch.unique(owners[owners >= 0])):
            raise DataError(f"the state of {self._directory.path} does not hold exactly the remaining clients")
        return run, seed

    def _version(self, learner: LinearQueries, run: QueryRun) -> Outcome:
        """Return the version with this state, and with a new seed for the next removal."""
        return outcome_of(learner.model(run)[0].numpy(), run.tensors(), self._plan.step_size)


class _WithoutTheirRows(FederatedAveraging):
    """Federated averaging for a removal of clients whose rows are gone, because an interrupted removal zeroed them.

    The sum of these clients' messages is the kept sum minus the sum of the remaining clients' messages.
    """

    def __init__(self, method: FederatedAveraging, run: QueryRun, gone: torch.Tensor) -> None:
        super().__init__(method.train, method.start(), method.settings)
        self._run, self._gone, self._left = run, gone, run.records[~torch.isin(run.records, gone)]

    def sums(self, step: int, models: torch.Tensor, records: torch.Tensor) -> torch.Tensor:
        """Return sums of clipped moves; see `FederatedAveraging.sums`."""
        if torch.equal(records, self._gone):
            return self._run.sums[:, step - 1] - super().sums(step, models, self._left)
        return super().sums(step, models, records)
