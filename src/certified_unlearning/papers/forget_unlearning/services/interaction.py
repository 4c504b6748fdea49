"""Algorithm 1, with its rules enforced, for thousands of interactions of a service and a requester at once.

Source: Definitions 2.6 and 4.1 and Algorithm 1 of Chourasia and Shah, Forget Unlearning (ICML 2023). Axis 0 of every
array indexes the interactions. A request replaces records, so the number of records never changes.

Each party gets only what it may see. A requester gets only the releases that it observes. A service gets nothing but
its arguments, because every call is made on a fresh copy of the service. So anything that the service keeps outside the
model is lost. An adversary gets only the release of the deletion and the later releases. Arrays that are passed on,
alone or in tuples, are read-only. Noise addresses are hashed: the address of a call reveals neither the hypothesis nor
the noise of other calls.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from certified_unlearning.engine import randomness
from certified_unlearning.errors import ParameterError, UnlearningError

Array = npt.NDArray[Any]
Model = TypeVar("Model")
Release = TypeVar("Release")
Key = tuple[str | int | float, ...]
"""A noise address, see `engine.randomness.address`; every call gets its own address."""


class ForbiddenReleaseError(UnlearningError):
    """A requester asked for a release that it is not allowed to see."""


@dataclass(frozen=True)
class Request:
    """Replacements of ``r`` records in every interaction.

    Attributes:
        indices: The numbers of the replaced records, each at most once, shape ``(interactions, r)``.
        records: The new values of these records, shape ``(interactions, r, *record shape)``.

    Raises:
        ParameterError: A record is replaced twice, or the shapes do not fit.
    """

    indices: Array
    records: Array

    def __post_init__(self) -> None:
        if self.indices.ndim != 2 or self.records.shape[:2] != self.indices.shape:
            raise ParameterError(
                "a request needs indices of shape (interactions, r) and records of shape (interactions, r, ...), got "
                f"{self.indices.shape} and {self.records.shape}"
            )
        if (np.diff(np.sort(self.indices, axis=1), axis=1) == 0).any():
            raise ParameterError("a request must not replace the same record twice")

    def applied_to(self, databases: Array) -> Array:
        """Return the databases with the replaced records, shape ``(interactions, n, *record shape)``, read-only.

        Raises:
            ParameterError: The request does not fit the databases: its number of interactions, its indices or the shape
                of its records.
        """
        if databases.shape[0] != len(self.indices) or databases.shape[2:] != self.records.shape[2:]:
            raise ParameterError(
                f"records of shape {self.records.shape} do not fit databases of shape {databases.shape}"
            )
        if self.indices.min() < 0 or self.indices.max() >= databases.shape[1]:
            raise ParameterError(f"the indices of a request must be from 0 to n - 1 = {databases.shape[1] - 1}")
        edited = databases.copy()
        edited[np.arange(len(databases))[:, None], self.indices] = self.records
        return _read_only(edited)


class ObservedReleases(Generic[Release]):
    """The releases that a requester may see now: the requester observes them, and they are already published."""

    def __init__(self, releases: dict[int, Release]) -> None:
        self._releases = releases

    def __getitem__(self, index: int) -> Release:
        """Return release ``index``; release 0 is that of the learned model.

        Raises:
            ForbiddenReleaseError: The requester does not observe this release, or it is not published yet.
        """
        if index not in self._releases:
            visible = ", ".join(map(str, self._releases)) or "none"
            raise ForbiddenReleaseError(f"this requester may not see release {index} now; it may see {visible}")
        return self._releases[index]


class Requester(Protocol[Release]):
    """A p-adaptive requester with ``p = len(observes)``; if ``p`` is 0, its requests are fixed in advance.

    Attributes:
        observes: The numbers, in increasing order, of the releases that the requester may see.
    """

    @property
    def observes(self) -> tuple[int, ...]:
        """The numbers, in increasing order, of the releases that the requester may see."""

    def request(self, number: int, releases: ObservedReleases[Release], own: Sequence[Request]) -> Request:
        """Return request ``number``, counted from 1, given the observed releases and the earlier requests ``own``."""


class Service(Protocol[Model]):
    """A learning and a deletion algorithm; `linear_losses` and `constructions` contain services."""

    def learn(self, databases: Array, key: Key) -> Model:
        """Return a model for each database."""

    def answer(self, databases: Array, request: Request, model: Model, key: Key) -> Model:
        """Return the models after a request; ``databases`` are those before the request."""


@dataclass(frozen=True)
class Interaction(Generic[Release]):
    """The result of an interaction.

    Attributes:
        released: The release of the deletion and all later releases; the adversary gets only these.
        databases: The databases after the last request.
    """

    released: tuple[Release, ...]
    databases: Array


def identity(model: Model) -> Model:
    """Publish the whole model, so that no state is secret."""
    return model


def interact(
    databases: Array,
    service: Service[Model],
    requester: Requester[Release],
    publish: Callable[[Model], Release],
    *,
    requests: int,
    deletion: int,
    target: int,
    key: Key,
) -> Interaction[Release]:
    """Run Algorithm 1 in all interactions at once.

    Args:
        databases: The databases, shape ``(interactions, n, *record shape)``.
        service: The service that learns and answers requests.
        requester: The requester.
        publish: The function that returns the released part of a model; `identity` if no state is secret.
        requests: The number of requests.
        deletion: The number of the request that deletes the target.
        target: The index of the attacked record.
        key: The noise address from which the address of every call is derived; interactions with different addresses
            are independent.

    Raises:
        ParameterError: A request is invalid, or the target is not deleted by request ``deletion``.
        ForbiddenReleaseError: The requester asks for a release that it must not see.
    """
    databases = _read_only(databases.copy())
    model = copy.deepcopy(service).learn(databases, sealed(*key, "learn"))
    seen: dict[int, Release] = {}
    released: list[Release] = []
    own: list[Request] = []
    for number in range(requests + 1):
        if number > 0:
            request = requester.request(number, ObservedReleases(dict(seen)), tuple(own))
            if number == deletion and not (request.indices == target).any(axis=1).all():
                raise ParameterError(f"request {number} must delete record {target} in every interaction")
            own.append(request)
            after = request.applied_to(databases)
            model = copy.deepcopy(service).answer(databases, request, model, sealed(*key, f"request {number}"))
            databases = after
        model = _read_only(model)
        release = _read_only(publish(model))
        if number in requester.observes:
            seen[number] = release
        if number >= deletion:
            released.append(release)
    return Interaction(tuple(released), databases)


def sealed(*key: str | int | float) -> Key:
    """Return a separate address for one call, which reveals neither the hypothesis nor the addresses of other calls."""
    return (str(randomness.address(*key)),)


Value = TypeVar("Value")


def _read_only(value: Value) -> Value:
    """Return a value whose arrays can be neither written to nor made writable.

    The value is an array or a tuple with arrays.
    """
    if isinstance(value, np.ndarray):
        owner: Any = value
        while isinstance(owner, np.ndarray):
            owner.flags.writeable = False
            owner = owner.base
        return cast(Value, value.view())
    if isinstance(value, tuple):
        parts = [_read_only(part) for part in value]
        return cast(Value, type(value)(*parts) if hasattr(value, "_fields") else tuple(parts))
    return value
