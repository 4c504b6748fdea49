"""The command `apply`: make one batch of the pending requests, and one new version without the records to remove.

If `apply` crashes, the next `apply` finishes the work. Until the event `applied` is in the ledger, the old version is
current, and the next `apply` carries out the whole batch again from the old weights. It draws new noise, unless
exactness requires the same noise. After that event, the only work left is to delete files.
"""

import functools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from certified_unlearning.engine.devices import pick_device
from certified_unlearning.errors import LedgerError, ParameterError
from certified_unlearning.files import synchronise
from certified_unlearning.ledger.directory import (
    ModelDirectory,
    destroy,
    drawn_key,
    finished_by_the_next,
    read_key,
    write_key,
)
from certified_unlearning.ledger.log.second_place import require_in_step
from certified_unlearning.ledger.log.setting import standing_settled
from certified_unlearning.ledger.method import Answered, RemovedRows, answered_of
from certified_unlearning.ledger.model import (
    StoredModel,
    method_of,
    read_secret,
    read_stored,
    read_weights,
    write_version,
)
from certified_unlearning.ledger.proofs.head import head_of
from certified_unlearning.ledger.requests import source_changed, source_key
from certified_unlearning.ledger.state import Addition, Batch, State, Version, read_state
from certified_unlearning.ledger.store import Ledger
from certified_unlearning.ledger.training.copies import Asked, Waiting
from certified_unlearning.ledger.training.forms import copy_of
from certified_unlearning.ledger.verification import check_data, spoilt_certificate

BY_APPLY = "the next `unlearn apply` finishes the interrupted work"
"""A sentence that says how interrupted work of `apply` or `add` is finished."""


@dataclass(frozen=True)
class Applied:
    """Result of `apply`.

    Attributes:
        versions: The versions that `apply` made; none if nothing was pending, two if it first finished an interrupted
            `apply` or `add`.
        deleted: Files that an interrupted command had left behind.
        head: The head of the log.
        source: A note about the file that the data came from; None if it is unchanged.
        interruption: A note about an interrupted `add` that had added nothing; None if there was none.
        certificate: A note about a certificate that is missing or was changed; None if there is none. Such a
            certificate does not delay a removal.
        unchecked: A note about what was not checked because the key of identifiers cannot be read; None if everything
            was checked.
    """

    versions: tuple[Version, ...]
    deleted: tuple[Path, ...]
    head: str
    source: str | None
    interruption: str | None
    certificate: str | None
    unchecked: str | None


def apply(path: Path, *, device: str | None = None) -> Applied:
    """Answer all pending requests with one new version.

    Args:
        path: The model directory.
        device: The device that takes the noisy steps: auto, cpu or cuda; by default the device that `init` recorded.

    Raises:
        LedgerError: A file was tampered with; nothing was done.
        StorageError: Another `apply` or `add` is running, or a file could not be written; run the command again.
        InfeasibleError: No number of steps meets the target; nothing was done.
        ParameterError: There is no such device, or the model's mechanism offers no choice of device.
    """
    made = []
    with opened_for_work(path) as (directory, ledger, state, model):
        place, certificate = pick_device(device or model.device), spoilt_certificate(directory, state)
        plan = functools.partial(_plan, directory, ledger, model)
        if place.type == "cuda" and device == "cuda" and method_of(directory, model).stays_on_the_cpu:
            raise ParameterError(
                "device='cuda' is not possible: this model's mechanism computes on the CPU; leave `device` out"
            )
        with finished_by_the_next(path, BY_APPLY):
            deleted = delete_leftovers(directory, state)
            interruption = directory.lost_addition(state, deleted)
            key = source_key(directory, state)
            # The removal must not wait until the whole file is read, and the file's key may be gone before that.
            with ThreadPoolExecutor(1) as beside:
                source = beside.submit(source_changed, directory, state, key)
                if state.planned is not None:
                    made.append(answer(directory, ledger, model, state, place, plan))
                    state = read_state(ledger)
                if state.waiting:
                    made.append(answer(directory, ledger, model, state, place, plan))
        missing = ledger.missing_key()
        unchecked = None if missing is None else f"the owners of rows were not checked: {missing.fact}"
        head, said = head_of(directory, ledger), source.result()
        return Applied(tuple(made), deleted, head, said, interruption, certificate, unchecked)


@contextmanager
def opened_for_work(path: Path) -> Iterator[tuple[ModelDirectory, Ledger, State, StoredModel]]:
    """Lock a directory against other commands that change it, check the ledger's chain, and yield its content.

    Raises:
        DataError: The second copy of the log has more events than the ledger, as happens after a restore.
        StorageError: The second copy of the log is missing.
    """
    directory = ModelDirectory(path)
    with directory.locked(), Ledger.opened(directory.ledger) as ledger:
        ledger.verify_chain()
        standing = standing_settled(ledger)
        if standing is not None:
            require_in_step(standing, path)
        state = read_state(ledger)
        yield directory, ledger, state, read_stored(directory, state)


def answer(
    directory: ModelDirectory,
    ledger: Ledger,
    model: StoredModel,
    state: State,
    device: torch.device,
    plan: Callable[[State], Batch],
) -> Version:
    """Carry out the planned batch; if there is none, plan one first.

    The steps are: zero the removed rows, append the added rows, update the model, publish the new version, and delete
    the previous one.

    Args:
        directory: The model directory.
        ledger: The ledger of the directory.
        model: The part of the model that never changes.
        state: State of the ledger.
        device: The device that takes the noisy steps.
        plan: A function that checks the data, plans a batch, and records the plan.
    """
    method, answered = method_of(directory, model), answered_of(state)
    weights, secret = read_weights(directory, state.current), read_secret(directory, state.current)
    if secret is not None and state.restored is not None:
        secret = secret._replace(restored=state.restored.name)
    if state.planned is not None:
        check_data(directory, ledger, model, state)
    batch = state.planned or plan(state)
    copy = copy_of(directory, model.learner.features, state.current.version)
    key, rows = read_key(directory.digest_key(batch.version)), _rows(ledger, batch.after, batch.up_to)
    # After a crash, an earlier `apply` may have zeroed some rows of the batch already.
    needed = method.needs_what_it_removes and not state.planned and batch.addition is None
    taken = RemovedRows(*copy.take(rows)) if needed else None
    waiting = None if batch.addition is None else Waiting(batch.version, state.rows)
    changed = copy.changed(batch.version, rows, waiting)
    if not changed.holds(rows, waiting, batch.training_digest, key):
        raise LedgerError(f"{changed.place} does not contain what was written to it; nothing was published")
    outcome = method.remove(weights.ravel(), secret, answered, batch, rows, taken, device)
    answers = [*answered, Answered(batch, outcome.reading)]
    certified = method.certificate(answers, batch.training_digest, len(state.lost))
    written = write_version(directory, model, batch.version, outcome, certified)
    with ledger.transaction():
        ledger.append("applied", written)
        ledger.owners.forget_records(batch.after, batch.up_to)
    after = read_state(ledger)
    delete_leftovers(directory, after)
    # This comes last, because it waits for readers. If a reader stays, the next `apply` empties the log.
    ledger.empty_log()
    return after.current


def _plan(directory: ModelDirectory, ledger: Ledger, model: StoredModel, state: State) -> Batch:
    """Put all pending requests into a batch, and record it. From then on, the batch is final."""
    batch = planned_batch(directory, ledger, model, state)
    with ledger.transaction():
        ledger.append("planned", batch.as_payload())
    return batch


def planned_batch(
    directory: ModelDirectory,
    ledger: Ledger,
    model: StoredModel,
    state: State,
    added: int = 0,
    describe: Callable[[bytes], Addition | None] = lambda _: None,
) -> Batch:
    """Check the data, and return all pending requests as a batch, together with added records. Record nothing.

    Args:
        directory: The model directory.
        ledger: The ledger of the directory.
        model: The part of the model that never changes.
        state: State of the ledger.
        added: The number of records that the batch adds. Their rows are already in files where they wait.
        describe: A function that returns the ledger's entry about the added records, given the key of the digests.
    """
    after, up_to, version = state.answered_up_to, state.last_request, state.next_version
    rows, key = _rows(ledger, after, up_to), drawn_key()
    waiting = Waiting(version, state.rows) if added else None
    (digest,) = check_data(directory, ledger, model, state, [Asked(key, rows, waiting)])
    removal = method_of(directory, model).planned(answered_of(state), rows, added, waiting)
    write_key(directory.digest_key(version), key)
    return Batch(
        version=version,
        after=after,
        up_to=up_to,
        requests=state.waiting,
        records=removal.records,
        steps=removal.steps,
        training_digest=digest,
        places=removal.places,
        addition=describe(key),
    )


def _rows(ledger: Ledger, after: int, up_to: int) -> list[int]:
    return [record.row for record in ledger.owners.records_requested(after, up_to)]


def delete_leftovers(directory: ModelDirectory, state: State) -> tuple[Path, ...]:
    """Delete files that belong neither to the current version nor to a planned one, such as old weights and keys."""
    leftovers = directory.leftovers(state)
    for path in leftovers:
        destroy(path)
    if leftovers:
        synchronise(directory.path)
    return tuple(leftovers)
