"""Audits: attacks on a model that turn success into a lower bound, beside the upper bound of a certificate.

`audit` attacks removed canaries in one run, or in a few; `two_laws` compares many unlearned models with many of the
comparator's, and `compare_laws` those of any method. Where noise is added on publication, `white_box` computes how far
they are apart. `likelihood_ratio_attack` attacks single records over many models, which gives no bound. An audit that
finds nothing proves nothing.
"""

from certified_unlearning.accounting.auditing.shown import Verdict
from certified_unlearning.audit.attack_result import AttackResult, HardRecord
from certified_unlearning.audit.attacks import attack_scores, likelihood_ratio_attack
from certified_unlearning.audit.canaries import Known
from certified_unlearning.audit.claims import Claim, LowerBound
from certified_unlearning.audit.laws import EventCounts, TwoLawResult, compare_laws, two_laws
from certified_unlearning.audit.one_run import audit
from certified_unlearning.audit.result import AuditResult, AuditRun
from certified_unlearning.audit.white_box import WhiteBoxResult, white_box

__all__ = [
    "AttackResult",
    "AuditResult",
    "AuditRun",
    "Claim",
    "EventCounts",
    "HardRecord",
    "Known",
    "LowerBound",
    "TwoLawResult",
    "Verdict",
    "WhiteBoxResult",
    "attack_scores",
    "audit",
    "compare_laws",
    "likelihood_ratio_attack",
    "two_laws",
    "white_box",
]
