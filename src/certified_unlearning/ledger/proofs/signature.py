"""Ed25519 signatures of heads. With a signature, the operator states that a log had this head."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from certified_unlearning.errors import DataError, LedgerError

_PURPOSE = b"certified_unlearning head\n"
"""Prefix of signed texts, so that a signature of something else cannot pass for a signature of a head."""


@dataclass(frozen=True)
class Signature:
    """A signature of a head.

    Attributes:
        public_key: The public key with which the signature can be checked, 32 bytes.
        value: The signature, 64 bytes.
    """

    public_key: bytes
    value: bytes

    def as_json(self) -> dict[str, str]:
        """Return the signature as a receipt stores it."""
        return {"algorithm": "Ed25519", "public_key": self.public_key.hex(), "value": self.value.hex()}

    @classmethod
    def read(cls, found: Any) -> Self:
        """Return the signature that `as_json` wrote.

        Raises:
            DataError: The object is not a signature.
        """
        names = ("algorithm", "public_key", "value")
        if not isinstance(found, dict) or found.keys() != set(names):
            raise DataError(f"a signature has the fields {', '.join(names)}")
        if found["algorithm"] != "Ed25519":
            raise DataError(f"signatures are Ed25519, got {found['algorithm']!r}")
        return cls(bytes.fromhex(found["public_key"]), bytes.fromhex(found["value"]))


def sign(head: str, key_file: Path) -> Signature:
    """Sign a head.

    Args:
        head: The head as commands print it.
        key_file: A file with a private Ed25519 key in PEM, without a password.

    Raises:
        DataError: The file does not hold such a key.
    """
    try:
        key = load_pem_private_key(key_file.read_bytes(), password=None)
    except OSError as error:
        raise DataError(f"cannot read {key_file}: {error.strerror}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise DataError(f"{key_file} does not hold an unencrypted private key in PEM: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise DataError(f"{key_file} holds a key that is not an Ed25519 key")
    return Signature(key.public_key().public_bytes_raw(), key.sign(_PURPOSE + head.encode()))


def check(signed: Signature, head: str, key_file: Path | None) -> None:
    """Check a signature of a head.

    Args:
        signed: The signature.
        head: The head as commands print it.
        key_file: A PEM file with a public Ed25519 key, which must be the key in the signature. None: every key in the
            signature is accepted.

    Raises:
        DataError: The file does not hold such a key.
        LedgerError: The signature belongs to a different head, or to a different key.
    """
    if key_file is not None and _public_key(key_file) != signed.public_key:
        raise LedgerError(f"the receipt is signed with a key other than that of {key_file}")
    try:
        Ed25519PublicKey.from_public_bytes(signed.public_key).verify(signed.value, _PURPOSE + head.encode())
    except (InvalidSignature, ValueError) as error:
        raise LedgerError("the receipt's signature is not a signature of its head") from error


def _public_key(path: Path) -> bytes:
    try:
        key = load_pem_public_key(path.read_bytes())
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise DataError(f"{path} does not hold a public key in PEM: {error}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise DataError(f"{path} holds a key that is not an Ed25519 key")
    return key.public_bytes_raw()
