"""What certificates state after a ledger's directory was restored from a backup that lacked published releases.

These *lost* releases cannot be recalled, and new releases start from the state in the backup. The guarantee then
depends on the kind of certificate:

- *The last release, seen alone.* Its steps, or its noise, were drawn anew from the restored state. All bounds on the
  last release still hold if the drawn random numbers influenced neither whether the directory was lost nor which backup
  was chosen. Otherwise bad draws would be undone more often than good draws, and the remaining draws would have another
  distribution.
- *All releases of weights with a certified residual, seen together.* Each release has fresh noise. Whatever came
  before, the mean of a release differs from the exact refit's mean by no more than the budget allows. Composition gives
  ``mu sqrt(k)``, where ``k`` is the number of releases, including the lost releases.
- *All releases from noisy steps, seen together.* All releases are one chain of published states, and the analysis
  follows this chain. A lost release is a second branch that starts from the same state. No bound is known for two
  branches, so the certificate states none.
- *Exact unlearning.* Certificates state nothing about several releases. Lost releases do not change the scope of these
  certificates, as long as the random numbers of the next removal differ from those of the lost removal
  (`ledger.methods.exact_steps`).
- *Answers of an ensemble.* Each answer equals the answer of an ensemble without the removed records, whatever else was
  published.

A backup of a secret state is an older copy of that state. If the guarantee fails when somebody sees this copy, the
certificate states the assumption that nobody sees the copy.
"""

from certified_unlearning.accounting.accountant import Assumption

OBLIVIOUS_RESTORE = Assumption(
    statement="the time when the model directory was lost, and the choice of the restored backup, depended neither on "
    "a model nor on the duration of a request",
    status="assumed",
    by="no software can check this; somebody who restores a backup because of a model chooses among models",
)
NO_BACKUP_SEEN = Assumption(
    statement="nobody sees the backup from which the model directory was restored, or this backup was destroyed",
    status="assumed",
    by="it contains an older state, which was computed with records that have been removed since then",
)
NO_REASON_TO_RESTORE = "Nor may any of this have been a reason to restore the model's folder from a backup."
"""`OBLIVIOUS_RESTORE` in plain words. `Certificate.meaning` adds this sentence after the condition on requests."""
NOTHING_OF_LOST_RELEASES = (
    "the guarantee does not hold against readers of lost releases: the model directory was restored from a backup "
    "without these releases, and no number here includes them"
)
