"""A cell of the figure: an attack on a mechanism, with the advantages that theory predicts and certificates allow."""

from dataclasses import dataclass

from certified_unlearning.papers.forget_unlearning.names import Attack, MechanismName
from certified_unlearning.papers.forget_unlearning.services.measurement import Scenario


@dataclass(frozen=True)
class Case:
    """An attack on a mechanism.

    Attributes:
        attack: The name of the attack.
        mechanism: The name of the mechanism; ``own`` if it is the construction for which the attack was made.
        scenario: The function that runs the attack.
        observed: ``p``, the number of releases on which requests depend.
        secret_state: Whether the mechanism keeps a secret state.
        expected: The advantage that theory predicts (see `experiments.ATTACK_ROWS`); None if it is unknown.
        promised: The largest advantage that the mechanism's published certificate allows.
        bound: The largest advantage that a valid bound allows; None if no valid bound is below 1.
    """

    attack: Attack
    mechanism: MechanismName
    scenario: Scenario
    observed: int
    secret_state: bool
    expected: float | None
    promised: float
    bound: float | None = None
