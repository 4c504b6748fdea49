"""The names of attacks and mechanisms in the experiment `deletion`, in the order in which they are shown."""

from typing import Literal, get_args

# Rows, claims and addresses of noise hold these names, so they stay verbatim: a look is an observed release.
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
# `own` is the construction that an attack was made for.
MechanismName = Literal[
    "noisy-gradient-deletion", "langevin", "published-state", "secret-state", "retraining", "own", "constant"
]
ATTACKS: tuple[Attack, ...] = get_args(Attack)
MECHANISMS: tuple[MechanismName, ...] = get_args(MechanismName)
