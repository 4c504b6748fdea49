"""Receipts: proofs that a removal was requested and answered, which anybody can check without the model directory.

A receipt holds the events of one person's request, in which a pseudonym stands for the person. It also holds the hashes
that lead from each event to the head of the log. It proves in which order the events were recorded, and which
certificate belongs to the version that answered the request. A receipt may leave out later events, and it does not
prove that the steps of a removal were executed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from certified_unlearning.data.tables.declaration import text_of
from certified_unlearning.errors import DataError, LedgerError, ParameterError
from certified_unlearning.files import read_json, write_json
from certified_unlearning.ledger.database.events import Event
from certified_unlearning.ledger.directory import ModelDirectory
from certified_unlearning.ledger.log.setting import require_present
from certified_unlearning.ledger.proofs import merkle, signature
from certified_unlearning.ledger.proofs.head import Head, leaves_of, require_prefix
from certified_unlearning.ledger.proofs.leaves import Leaf
from certified_unlearning.ledger.state import State, read_state
from certified_unlearning.ledger.store import Ledger

FORMAT = "certified_unlearning receipt 1"
STAGES = ("held", "requested", "planned", "applied")
"""Kinds of events that a receipt of a request can show, in the order in which they occur."""
ABSENT = "absent"
"""The kind of the only event in the receipt of a person without records in the data."""


class ReceiptError(LedgerError):
    """A receipt does not prove what it states."""


@dataclass(frozen=True)
class Shown:
    """An event, and the proof that it is in the log.

    Attributes:
        leaf: The event as a leaf of the tree.
        proof: The hashes that lead from the leaf to the root.
    """

    leaf: Leaf
    proof: Sequence[bytes]


@dataclass(frozen=True)
class Receipt:
    """The statements of a receipt; `check` recomputes them.

    Attributes:
        head: The head of the log to which all proofs lead.
        pseudonym: The pseudonym of the person; None if the receipt only proves that the log grew from an earlier log.
        events: The events of the request by kind: some of `STAGES`, or `ABSENT`.
        since: An earlier head, and the proof that the log of ``head`` begins with the log of the earlier head; None
            without such a proof.
        signed: The operator's signature of the head; None without a signature.
    """

    head: Head
    pseudonym: str | None
    events: Mapping[str, Shown]
    since: tuple[Head, Sequence[bytes]] | None
    signed: signature.Signature | None

    def as_json(self) -> dict[str, Any]:
        """Return the receipt in the form that is written to a file."""
        found: dict[str, Any] = {"format": FORMAT, "head": str(self.head), "pseudonym": self.pseudonym}
        found["events"] = [
            {"event": each.leaf.as_json(), "proof": [part.hex() for part in each.proof]}
            for each in self.events.values()
        ]
        found["since"] = None
        if self.since is not None:
            earlier, proof = self.since
            found["since"] = {"head": str(earlier), "proof": [part.hex() for part in proof]}
        found["signature"] = None if self.signed is None else self.signed.as_json()
        return found

    def write(self, path: Path) -> None:
        """Write the receipt to a file, atomically."""
        write_json(path, self.as_json())


def make_receipt(
    path: Path,
    identifier: str | None,
    *,
    since: str | None = None,
    signing_key: Path | None = None,
) -> Receipt:
    """Return a receipt of one person's request, of the log's growth since an earlier head, or of both.

    Args:
        path: The model directory.
        identifier: The person's identifier; None for a proof of growth only.
        since: An earlier head.
        signing_key: A file with the Ed25519 key that signs the head.

    Raises:
        ParameterError: Nothing was requested for this person; neither ``identifier`` nor ``since`` is given; or
            ``since`` is not a head.
        DataError: The directory or the key cannot be read.
        LedgerError: The log does not begin with the log of ``since``, or was tampered with. Or the directory was
            restored from a backup, and the second copy of its log has more events.
    """
    if identifier is None and since is None:
        raise ParameterError("a receipt is about a person or about the log's growth: give --id, --since or both")
    directory = ModelDirectory(path)
    with Ledger.opened(directory.ledger, read_only=True) as ledger:
        require_present(ledger)
        state, leaves = read_state(ledger), leaves_of(directory, ledger)
        name = None if identifier is None else str(text_of(identifier))
        events = [] if name is None else _events_of(ledger, state, name)
        names = ledger.names
        person = None if name is None else names.pseudonym(names.stored(name))
    hashes = [leaf.hash() for leaf in leaves]
    head = Head.over(hashes)
    shown = {
        event.kind: Shown(leaves[event.sequence - 1], merkle.inclusion_proof(hashes, event.sequence - 1))
        for event in events
    }
    growth = None
    if since is not None:
        earlier = Head.parse(since)
        require_prefix(earlier, hashes, directory.ledger)
        growth = (earlier, merkle.consistency_proof(hashes, earlier.size))
    signed = None if signing_key is None else signature.sign(str(head), signing_key)
    return Receipt(head, person, shown, growth, signed)


def _events_of(ledger: Ledger, state: State, name: str) -> list[Event]:
    """Return the events of a person's request: its hold, recording, plan and application, as far as these exist.

    For somebody who had no records in the data, there is one event, which records this.
    """
    held, request = ledger.hold_of(name), ledger.request_of(name)
    if held is None and request is None:
        absent = ledger.answered_absent().get(ledger.names.stored(name))
        if absent is not None:
            return [absent]
        raise ParameterError(f"no removal of {name!r} was requested, so there is nothing to give a receipt of")
    found = [each for each in (held, request) if each is not None]
    if request is None:
        return found
    answers = [*state.batches, *([state.planned] if state.planned else [])]
    number = next((batch.version for batch in answers if batch.after < request.sequence <= batch.up_to), None)
    # Versions that a restore lost do not count: the person waits again, or has a newer answer.
    counts = {version.event for version in state.versions}
    events = (each for each in ledger.events("planned", "applied") if each.payload.get("version") == number)
    return found + [each for each in events if each.kind == "planned" or each.sequence in counts]


def read_receipt(path: Path) -> Receipt:
    """Read a receipt; `check` shows whether its statements are true.

    Raises:
        DataError: The file cannot be read, or is not a receipt.
    """
    found = read_json(path)
    try:
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise DataError("it has another format")
        if found.keys() != {"format", "head", "pseudonym", "events", "since", "signature"}:
            raise DataError("it has other fields")
        head, name, since = Head.parse(_text(found["head"])), found["pseudonym"], found["since"]
        if name is not None:
            _text(name)
        events: dict[str, Shown] = {}
        for each in found["events"]:
            leaf = Leaf.read(each["event"])
            if leaf.kind in events:
                raise DataError(f"it shows two events {leaf.kind!r}")
            events[leaf.kind] = Shown(leaf, _proof(each["proof"]))
        growth = None if since is None else (Head.parse(_text(since["head"])), _proof(since["proof"]))
        signed = None if found["signature"] is None else signature.Signature.read(found["signature"])
        return Receipt(head, name, events, growth, signed)
    except (DataError, ParameterError) as error:
        raise DataError(f"{path} is not a receipt: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is not a receipt: its fields are not those of a receipt ({error!r})") from error


def check(receipt: Receipt, *, head: str | None = None, public_key: Path | None = None) -> None:
    """Recompute the statements of a receipt.

    Args:
        receipt: The receipt.
        head: A head from another source. The receipt's head must be this head, or the receipt must prove that its log
            begins with the log of this head.
        public_key: A file with the operator's public key. The head must be signed with the matching private key.

    Raises:
        ReceiptError: A statement of the receipt is wrong.
        ParameterError: ``head`` is not a head.
        DataError: The key cannot be read.
    """
    if receipt.pseudonym is None and receipt.events:
        raise ReceiptError("the receipt shows events, but names no person")
    if receipt.pseudonym is None and receipt.since is None:
        raise ReceiptError("the receipt shows nothing")
    for each in receipt.events.values():
        leaf = each.leaf
        if not merkle.is_included(leaf.hash(), leaf.sequence - 1, receipt.head.size, each.proof, receipt.head.root):
            raise ReceiptError(f"the receipt's event {leaf.kind!r} is not in the log of the receipt's head")
    if receipt.pseudonym is not None:
        _check_order(receipt)
    if receipt.since is not None:
        earlier, proof = receipt.since
        if not merkle.is_consistent(earlier.size, earlier.root, receipt.head.size, receipt.head.root, proof):
            raise ReceiptError(
                f"the log of the receipt's head does not begin with the log of the earlier head {earlier}"
            )
    if head is not None:
        known = [receipt.head] + ([] if receipt.since is None else [receipt.since[0]])
        if Head.parse(head) not in known:
            raise ReceiptError(
                f"the receipt is about the head {receipt.head}, and does not connect it with {head}; "
                f"`unlearn receipt MODEL_DIR --since {head}` makes one that does"
            )
    if receipt.signed is not None or public_key is not None:
        if receipt.signed is None:
            raise ReceiptError("the receipt is not signed")
        signature.check(receipt.signed, str(receipt.head), public_key)


def _check_order(receipt: Receipt) -> None:
    """Check that the events belong to one person's request and its outcome."""
    found = {kind: each.leaf for kind, each in receipt.events.items()}
    if found.keys() == {ABSENT}:
        if found[ABSENT].subject != receipt.pseudonym:
            raise ReceiptError("the receipt shows the answer to a person other than the one it names")
        return
    if not found or not found.keys() <= set(STAGES):
        raise ReceiptError(
            f"a receipt of a request must show some of the events {', '.join(STAGES)}, and no others, got {[*found]}"
        )
    held, request, planned, applied = (found.get(kind) for kind in STAGES)
    if any(each is not None and each.subject != receipt.pseudonym for each in (held, request)):
        raise ReceiptError("the receipt shows the request of a person other than the one it names")
    released = None if request is None else request.shown.get("held")
    if released is not None and (held is None or held.sequence != released):
        raise ReceiptError("the receipt leaves out the hold that its request was released from")
    if planned is None and applied is None:
        return
    if request is None or planned is None:
        raise ReceiptError("the receipt shows an answer, but not the request and the plan that it belongs to")
    after, up_to = planned.shown.get("after"), planned.shown.get("up_to")
    if not (isinstance(after, int) and isinstance(up_to, int) and after < request.sequence <= up_to < planned.sequence):
        raise ReceiptError("the receipt shows a plan that does not contain the request")
    if applied is not None and (
        applied.sequence < planned.sequence or applied.shown.get("version") != planned.shown.get("version")
    ):
        raise ReceiptError("the receipt shows a version that does not follow from the plan")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise DataError(f"{value!r} is no text")
    return value


def _proof(values: Any) -> list[bytes]:
    if not isinstance(values, list) or len(values) > 128:
        raise DataError("a proof must be a list of at most 128 hashes")
    return [bytes.fromhex(_text(each)) for each in values]
