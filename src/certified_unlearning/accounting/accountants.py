"""All accountants by name, of every mechanism: what certificates, labels and tables look up."""

from certified_unlearning.accounting.accountant import Accountant
from certified_unlearning.accounting.cyclic import accountants as cyclic
from certified_unlearning.accounting.descent import accountants as descent
from certified_unlearning.accounting.langevin import accountants as langevin

NO_ACCOUNTANT = "none"
"""Stands for the accountant of a run that needs none: retraining is what others are compared with."""
ACCOUNTANTS: dict[str, Accountant] = {**langevin.ACCOUNTANTS, **descent.ACCOUNTANTS, **cyclic.ACCOUNTANTS}
