"""The evidence of certified predictions, and its evaluation.

The evidence is a file with the model, its boxes and the inputs.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from certified_unlearning.certificate.base import CertificateError
from certified_unlearning.certificate.former import in_present_words
from certified_unlearning.engine.abstract_training.descent import Descent
from certified_unlearning.engine.abstract_training.neighbourhoods import Neighbourhood
from certified_unlearning.engine.intervals.losses import require_labels, require_loss
from certified_unlearning.engine.intervals.network import Network
from certified_unlearning.engine.intervals.propagation import Bounding
from certified_unlearning.errors import AssumptionError, DataError, ParameterError
from certified_unlearning.mechanisms.certified_sgd.learned import Learned
from certified_unlearning.mechanisms.certified_sgd.sgd import widths as widths

OF_DESCENT = ("loss", "step_size", "decay", "clipping", "bound", "weight_decay", "momentum", "nesterov")
"""Names of the certificate's constants that determined the steps of training."""


def statements(learned: Learned, rows: Tensor, labels: Tensor | None) -> dict[str, Any]:
    """Return a certificate's statements about inputs.

    All these statements follow from the evidence.
    """
    radii = learned.radii(rows)
    return {
        "predictions": tuple(learned.classes(rows).tolist()),
        "radii": tuple(radii.tolist()),
        "shares": tuple((radii >= budget).double().mean().item() for budget in learned.budgets),
        "accuracy": None if labels is None else tuple(learned.accuracy_bounds(rows, labels)),
    }


def packed(learned: Learned, rows: Tensor, labels: Tensor | None, constants: bytes) -> bytes:
    """Return a safetensors file of the parameters, the boxes, the inputs, any labels, and the constants as text."""
    found = {"rows": rows, "constants": torch.tensor([*constants], dtype=torch.uint8), **learned.tensors}
    if labels is not None:
        found["labels"] = labels.long()
    return safetensors.torch.save({name: each.detach().cpu().clone().contiguous() for name, each in found.items()})


def network_of(constants: Mapping[str, Any]) -> Network:
    """Return the network that a certificate's constants describe.

    Raises:
        CertificateError: The constants are impossible.
    """
    try:
        network = Network.dense(*constants["widths"])
        require_loss(constants["loss"], network.outputs)
        Descent(**{name: constants[name] for name in OF_DESCENT})
        smallest = constants["smallest_batch"]
        # Removals cannot empty a batch that has a public row. The certificate does not say which batches have one.
        removable = smallest - bool(constants.get("public_records", 0))
        for k in constants["budgets"]:
            Neighbourhood(constants["changes"]).require(
                k, batch=smallest, removable=removable, clips=constants["clipping"] != "none"
            )
    except (ParameterError, AssumptionError) as error:
        raise CertificateError(f"the certificate states impossible constants: {error}") from error
    return network


def unpacked(
    evidence: bytes,
    network: Network,
    *,
    bounding: Bounding,
    budgets: Sequence[int],
    smallest_batch: int,
    dtype: str,
    inputs: int,
    constants: bytes,
) -> tuple[Learned, Tensor, Tensor | None]:
    """Return the model, the inputs and any labels that a file of evidence contains.

    Raises:
        CertificateError: The file does not match the certificate, or the boxes in the file are invalid.
    """
    try:
        tensors = safetensors.torch.load(evidence)
        learned = Learned.of(tensors, network, bounding, budgets=budgets, smallest_batch=smallest_batch)
        if learned.differences != bounding.differences:
            raise DataError("it does not contain the linear bounds of the last update")
        rows, labels = tensors["rows"], tensors.get("labels")
        if {str(each.dtype) for each in (*learned.tensors.values(), rows)} != {f"torch.{dtype}"}:
            raise CertificateError(f"the evidence is not of type {dtype}")
        if rows.shape != (inputs, network.affine[0].inputs):
            raise CertificateError("the inputs in the evidence are not those of the certificate's predictions")
        if labels is not None:
            if labels.shape != (inputs,):
                raise CertificateError(
                    f"the evidence has labels of shape {tuple(labels.shape)}, but needs one label for each input"
                )
            require_labels(labels, "cross-entropy", network.outputs)
    except (KeyError, DataError, ParameterError, safetensors.SafetensorError) as error:
        raise CertificateError(f"the evidence does not match the certificate: {error}") from error
    if _in_present_words(tensors.get("constants", torch.empty(0))) != json.loads(constants):
        raise CertificateError(
            "the certificate states constants, budgets or names that differ from those in its evidence"
        )
    return learned, rows, None if labels is None else labels.long()


def _in_present_words(constants: Tensor) -> Any:
    """Return the constants in a file of evidence, or None if the file cannot be read.

    Sentences have the wording of this release.
    """
    try:
        return in_present_words(json.loads(bytes(constants.tolist())))
    except (TypeError, ValueError, RecursionError):
        return None
