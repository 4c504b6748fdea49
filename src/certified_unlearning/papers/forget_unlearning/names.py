"""The names of attacks and mechanisms in the experiment `deletion`, in the order of display."""

from typing import Literal, get_args

# Rows, claims and noise addresses contain these names, so they must not change; a look is an observed release.
Attack = Literal[
    "sum",
    "median",
    "counting",
    "counting-repaired",
    "copied-then-averaged",
    "written-key",
    "encode-then-delete",
    "encode-after-looks",
    "fixed-requests",
    "fixed-then-averaged",
]
# `own` is the construction for which an attack was made.
MechanismName = Literal[
    "noisy-gradient-deletion", "langevin", "published-state", "secret-state", "retraining", "own", "constant"
]
ATTACKS: tuple[Attack, ...] = get_args(Attack)
MECHANISMS: tuple[MechanismName, ...] = get_args(MechanismName)
