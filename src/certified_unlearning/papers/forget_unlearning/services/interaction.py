"""Algorithm 1: a service, a requester and the public, with its rules enforced; thousands of interactions at once.

Source: Definitions 2.6 and 4.1 and Algorithm 1 of Chourasia and Shah, Forget Unlearning (ICML 2023). All arrays have
the interactions on axis 0. A request replaces records, so the number of records never changes.

What may be seen is enforced by not handing it over: requesters get the releases that they may see, and no others;
services get their arguments, each call on a fresh copy of the service, so that what it keeps outside the model is lost;
adversaries get what was released from the deletion on. Arrays that are handed over, alone or in tuples, are read-only.
Addresses of noise are hashed: a call's own tells it neither the hypothesis nor the noise of other calls.
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
"""An address of noise, see `engine.randomness.address`; every call gets one of its own."""


class ForbiddenReleaseError(UnlearningError):
    """A requester asked for a release that it is not allowed to see."""


@dataclass(frozen=True)
class Request:
    """Replacements of ``r`` records in every interaction.

    Attributes:
        indices: Which records, no one twice, shape ``(interactions, r)``.
        records: What they become, shape ``(interactions, r, *record shape)``.

    Raises:
        ParameterError: A record is replaced twice, or the shapes do not fit.
    """

    indices: Array
    records: Array

    def __post_init__(self) -> None:
        if self.indices.ndim != 2 or self.records.shape[:2] != self.indices.shape:
            raise ParameterError(
                "a request needs indices of shape (interactions, r) and as many records, got "
                f"{self.indices.shape} and {self.records.shape}"
            )
        if (np.diff(np.sort(self.indices, axis=1), axis=1) == 0).any():
            raise ParameterError("a request must not replace one record twice")

    def applied_to(self, databases: Array) -> Array:
        """Return the databases with the records replaced, shape ``(interactions, n, *record shape)``, read-only.

        Raises:
            ParameterError: There are not as many interactions, or no such records, or they have another shape.
        """
        if databases.shape[0] != len(self.indices) or databases.shape[2:] != self.records.shape[2:]:
            raise ParameterError(f"records of shape {self.records.shape} do not fit databases of {databases.shape}")
        if self.indices.min() < 0 or self.indices.max() >= databases.shape[1]:
            raise ParameterError(f"a request must replace records from 0 to n - 1 = {databases.shape[1] - 1}")
        edited = databases.copy()
        edited[np.arange(len(databases))[:, None], self.indices] = self.records
        return _read_only(edited)


class ObservedReleases(Generic[Release]):
    """The releases that a requester may see: those it observes, as far as they have been published."""

    def __init__(self, releases: dict[int, Release]) -> None:
        self._releases = releases

    def __getitem__(self, index: int) -> Release:
        """Return release ``index``; 0 is the learned model's.

        Raises:
            ForbiddenReleaseError: The requester does not observe it, or it is not there yet.
        """
        if index not in self._releases:
            visible = ", ".join(map(str, self._releases)) or "none"
            raise ForbiddenReleaseError(f"this requester may not see release {index} now; it may see {visible}")
        return self._releases[index]


class Requester(Protocol[Release]):
    """A p-adaptive requester: ``p = len(observes)``; without any its requests are fixed in advance.

    Attributes:
        observes: The releases that it may see, increasing.
    """

    @property
    def observes(self) -> tuple[int, ...]:
        """The releases that it may see."""

    def request(self, number: int, releases: ObservedReleases[Release], own: Sequence[Request]) -> Request:
        """Return request ``number``, from 1 on, given what it has seen and its own requests before."""


class Service(Protocol[Model]):
    """A learning and a deletion algorithm; `linear_losses` and `constructions` hold some."""

    def learn(self, databases: Array, key: Key) -> Model:
        """Return a model of each database."""

    def answer(self, databases: Array, request: Request, model: Model, key: Key) -> Model:
        """Return the models after a request on the databases from before it."""


@dataclass(frozen=True)
class Interaction(Generic[Release]):
    """Result of an interaction.

    Attributes:
        released: What was released from the deletion on: all that the adversary gets.
        databases: The databases after the last request.
    """

    released: tuple[Release, ...]
    databases: Array


def identity(model: Model) -> Model:
    """Publish the whole model: no state is kept secret."""
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
        databases: Shape ``(interactions, n, *record shape)``.
        service: Learns and answers requests.
        requester: Makes them.
        publish: What of a model is released; `identity` where nothing is kept secret.
        requests: How many there are.
        deletion: The request that deletes the target.
        target: Index of the record under attack.
        key: Address of all noise; interactions with different addresses are independent.

    Raises:
        ParameterError: A request is invalid, or the target is not deleted by request ``deletion``.
        ForbiddenReleaseError: The requester asks for a release that it is not allowed to see.
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
    """Return an address of its own for one call: it tells neither the hypothesis nor the addresses of other calls."""
    return (str(randomness.address(*key)),)


Value = TypeVar("Value")


def _read_only(value: Value) -> Value:
    """Return a value whose arrays cannot be written to, nor be made so: an array, or a tuple with some."""
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
