"""All accountants by name, of every mechanism: what certificates, labels and tables look up."""

from certified_unlearning.accounting.accountant import Accountant
from certified_unlearning.accounting.descent import accountants as descent
from certified_unlearning.accounting.langevin import accountants as langevin

NO_ACCOUNTANT = "none"
"""What a run that needs no accountant has in its place: retraining is what others are compared with."""
ACCOUNTANTS: dict[str, Accountant] = {**langevin.ACCOUNTANTS, **descent.ACCOUNTANTS}
