"""A cell of the figure: an attack on a mechanism, with what theory and certificates say of it."""

from dataclasses import dataclass

from certified_unlearning.papers.forget_unlearning.names import Attack, MechanismName
from certified_unlearning.papers.forget_unlearning.services.measurement import Scenario


@dataclass(frozen=True)
class Case:
    """An attack on a mechanism.

    Attributes:
        attack: Its name.
        mechanism: The mechanism's name; ``own`` where the attack is on a construction of its own.
        scenario: Runs it.
        observed: ``p``, how many releases requests depend on.
        secret_state: Whether the mechanism keeps some.
        expected: The advantage that theory gives (see `experiments.ATTACK_ROWS`); None where it is not known.
        promised: The largest advantage by the certificate that the mechanism is published with.
        bound: The largest advantage by a bound that holds; None where there is none below 1.
    """

    attack: Attack
    mechanism: MechanismName
    scenario: Scenario
    observed: int
    secret_state: bool
    expected: float | None
    promised: float
    bound: float | None = None
