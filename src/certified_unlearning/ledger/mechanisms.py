"""The table of the mechanisms that a model directory can have.

An entry names the settings of the mechanism (`ledger.settings`) and its method (`ledger.methods`). The command line
makes the options of `init` from the settings. The settings make the plan, and a description of the plan as text. The
plan is stored in `model.json`, and the method carries out the plan.

The table has no heavy imports, because the command line reads it whenever it starts.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.settings.base import Settings
from certified_unlearning.ledger.settings.certified_answers import EnsembleSettings
from certified_unlearning.ledger.settings.exact_refit import RefitSettings
from certified_unlearning.ledger.settings.exact_steps import (
    AcceleratedSettings,
    ExactSettings,
    NoisySgdSettings,
    QuantizedSettings,
)
from certified_unlearning.ledger.settings.federated_averaging import FederatedSettings
from certified_unlearning.ledger.settings.noisy_steps import LangevinSettings

if TYPE_CHECKING:
    from certified_unlearning.ledger.method import Method


class LedgerMechanism(NamedTuple):
    """A mechanism of the ledger.

    Attributes:
        name: The name of the mechanism in ``--mechanism`` and in plans.
        title: A description of the mechanism, for the help of the command line.
        settings: The class of its settings, which makes plans.
        method: A function that imports and returns the class that carries out plans.
        own: Options that users associate with this mechanism. If another mechanism refuses one of them, the message
            names this mechanism.
    """

    name: str
    title: str
    settings: type[Settings]
    method: "Callable[[], type[Method[Any]]]"
    own: frozenset[str] = frozenset()


def _noisy_steps() -> "type[Method[Any]]":
    from certified_unlearning.ledger.methods.noisy_steps import NoisySteps

    return NoisySteps


def _exact_refit() -> "type[Method[Any]]":
    from certified_unlearning.ledger.methods.exact_refit import ExactRefit

    return ExactRefit


def _exact_steps() -> "type[Method[Any]]":
    from certified_unlearning.ledger.methods.exact_steps import ExactSteps

    return ExactSteps


def _federated_steps() -> "type[Method[Any]]":
    from certified_unlearning.ledger.methods.federated_averaging import FederatedSteps

    return FederatedSteps


def _certified_answers() -> "type[Method[Any]]":
    from certified_unlearning.ledger.methods.certified_answers import CertifiedAnswers

    return CertifiedAnswers


_EXACT = "epsilon is 0 if requests do not depend on models and the state stays secret"


DEFAULT = "newton-removal"
"""The mechanism that `init` uses if none is named."""


MECHANISMS: Mapping[str, LedgerMechanism] = {
    each.name: each
    for each in (
        LedgerMechanism(
            "langevin",
            "noisy steps on the model, compared with learning anew by noisy steps",
            LangevinSettings,
            _noisy_steps,
            frozenset({"steps", "records", "accountant", "batch_size", "dtype"}),
        ),
        LedgerMechanism(
            "newton-removal",
            "a Newton step on the request's own records, compared with an exact refit plus the same noise (a request "
            "reads all records if there are three or more classes, or over 5000 numbers for each record)",
            RefitSettings,
            _exact_refit,
        ),
        LedgerMechanism(
            "certified-ensemble",
            "an ensemble of networks, which gives the label that an ensemble trained without the removed records would "
            "give, or gives no label",
            EnsembleSettings,
            _certified_answers,
            frozenset({"shards", "slices", "budgets", "hidden", "bound"}),
        ),
        LedgerMechanism("subsample-gd", _EXACT, ExactSettings, _exact_steps),
        LedgerMechanism("noisy-sgd", _EXACT, NoisySgdSettings, _exact_steps),
        LedgerMechanism("accelerated-noisy-sgd", _EXACT, AcceleratedSettings, _exact_steps),
        LedgerMechanism("quantized-sgd", _EXACT, QuantizedSettings, _exact_steps),
        LedgerMechanism(
            "federated-averaging",
            f"each client has all rows of one identifier, and sends changes of the model; {_EXACT}; unless rounds are "
            "repeated, a request reads only the rows of its client",
            FederatedSettings,
            _federated_steps,
            frozenset({"local_steps", "clip", "recompute"}),
        ),
    )
}


def settings_of(mechanism: str, given: Mapping[str, Any]) -> Settings:
    """Return the settings of a mechanism.

    Args:
        mechanism: The name of the mechanism.
        given: Values of settings by their names. Settings of other mechanisms are ignored if they have their defaults.

    Raises:
        ParameterError: There is no such mechanism, or a setting of another mechanism differs from its default.
    """
    if mechanism not in MECHANISMS:
        raise ParameterError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {mechanism!r}")
    settings = MECHANISMS[mechanism].settings
    for name in [name for name in given if name not in settings.model_fields]:
        _require_usual(mechanism, name, given[name])
    return settings.model_construct(**{name: given[name] for name in settings.model_fields if name in given})


def require_weighing(mechanism: str) -> None:
    """Raise `ParameterError` if a mechanism does not accept weights of classes."""
    if not MECHANISMS[mechanism].settings.weighs_classes:
        others = " or ".join(f"--mechanism {each.name}" for each in MECHANISMS.values() if each.settings.weighs_classes)
        raise ParameterError(f"`class_weight` does not apply to {mechanism}; leave it out, or use {others}")


def require_text(mechanism: str) -> None:
    """Raise `ParameterError` if a mechanism does not accept text columns."""
    if not MECHANISMS[mechanism].settings.takes_text:
        others = " or ".join(f"--mechanism {each.name}" for each in MECHANISMS.values() if each.settings.takes_text)
        raise ParameterError(
            f"`text` does not apply to {mechanism}, which takes only columns of numbers; leave the columns of text "
            f"out, or use {others}"
        )


def _require_usual(mechanism: str, name: str, value: object) -> None:
    """Raise `ParameterError` unless a setting that belongs only to other mechanisms has its default."""
    others = [each for each in MECHANISMS.values() if name in each.settings.model_fields]
    if not others:
        raise ParameterError(f"no mechanism has a setting {name!r}")
    if value != others[0].settings.model_fields[name].default:
        known = next((f", or add --mechanism {each.name}" for each in others if name in each.own), "")
        raise ParameterError(f"`{name}` does not apply to {mechanism}; leave it out{known}, got {value!r}")
