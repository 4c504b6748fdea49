"""What `init` takes from a table: for the operator to read before learning begins.

Counts depend on the records, so they are printed and never stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from certified_unlearning.data.advice.shares import Largest
from certified_unlearning.data.tables.declaration import Table
from certified_unlearning.data.tables.spellings import Group
from certified_unlearning.vocabulary import ClassesFrom


@dataclass(frozen=True)
class Contents:
    """What a model is made from.

    Attributes:
        table: The declaration, resolved.
        drowning: The column that carries nearly all of a row's norm, if one does.
        left_out: The columns of the table that are used for nothing.
        numbers: How many numbers the features of one record become.
        classes: Number of records of each class.
        classes_from: Whether they were declared, or taken from the records.
        records: Number of records: all rows of the table.
        people: Number of identifiers.
        spellings: Identifiers that a person would take for one.
        absent: Identifiers of one row each that say that there is none.
        seconds: About how long learning takes.
    """

    table: Table
    drowning: Largest | None
    left_out: Sequence[str]
    numbers: int
    classes: Mapping[str, int]
    classes_from: ClassesFrom
    records: int
    people: int
    spellings: Sequence[Group]
    absent: Sequence[str]
    seconds: float
