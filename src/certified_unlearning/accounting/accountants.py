"""All accountants of all mechanisms by name, for certificates, labels and tables."""

from certified_unlearning.accounting.accountant import Accountant
from certified_unlearning.accounting.cyclic import accountants as cyclic
from certified_unlearning.accounting.descent import accountants as descent
from certified_unlearning.accounting.langevin import accountants as langevin

NO_ACCOUNTANT = "none"
"""Placeholder for runs without an accountant: retraining is the comparator itself."""
ACCOUNTANTS: dict[str, Accountant] = {**langevin.ACCOUNTANTS, **descent.ACCOUNTANTS, **cyclic.ACCOUNTANTS}
