"""A cell of the figure: an attack on a mechanism, with the advantages by theory and certificates."""

from dataclasses import dataclass

from certified_unlearning.papers.forget_unlearning.names import Attack, MechanismName
from certified_unlearning.papers.forget_unlearning.services.measurement import Scenario


@dataclass(frozen=True)
class Case:
    """An attack on a mechanism.

    Attributes:
        attack: The name of the attack.
        mechanism: The name of the mechanism; ``own`` if the attack is on its own construction.
        scenario: The function that runs the attack.
        observed: ``p``, the number of releases on which requests depend.
        secret_state: Whether the mechanism keeps a secret state.
        expected: The advantage by theory (see `experiments.ATTACK_ROWS`); None if it is unknown.
        promised: The largest advantage by the certificate with which the mechanism is published.
        bound: The largest advantage by a valid bound; None if no valid bound is below 1.
    """

    attack: Attack
    mechanism: MechanismName
    scenario: Scenario
    observed: int
    secret_state: bool
    expected: float | None
    promised: float
    bound: float | None = None
