"""Audits: attacks whose success on a model gives a lower bound, to compare with a certificate's upper bound.

`audit` attacks removed canaries in one run or in several. `two_laws` compares many unlearned models with many models of
the comparator; `compare_laws` compares the models of any two methods in the same way. If noise is added on publication,
`white_box` computes the distance between the two distributions. `likelihood_ratio_attack` attacks single records with
many models and gives no bound. An audit that finds nothing proves nothing.
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
