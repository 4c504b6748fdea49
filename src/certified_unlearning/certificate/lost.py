"""What certificates say after a ledger's directory was restored from a backup that lacked published releases.

These *lost* releases cannot be recalled, and new ones come from the state of the backup. What holds then:

- *The release that came last, seen alone.* Its steps, or its noise, were drawn anew from the restored state, so all
  bounds for it stay, if nobody lost the directory or chose the backup because of what was drawn. Otherwise bad draws
  would be taken back more often than good ones, and what is left has another distribution.
- *All releases together, weights with a certified residual.* Each release has fresh noise and, whatever the past is, a
  mean within the budget of the exact refit's: by composition ``mu sqrt(k)``, where ``k`` counts the lost ones.
- *All releases together, noisy steps.* They are one chain of states, each published, and the analysis follows this
  chain. A lost release is a second branch of it that started from the same state: no bound is known, so none is stated.
- *Exact unlearning.* Nothing is stated of several releases, and nothing changes, once the next removal draws other
  numbers than the lost one did (`ledger.methods.exact_steps`).
- *Answers of an ensemble.* Each is equal to the one without the removed records, whatever else was published.

A backup of a secret state is an older copy of it. Where nothing holds if somebody sees that, the certificate says so.
"""

from certified_unlearning.accounting.accountant import Assumption

OBLIVIOUS_RESTORE = Assumption(
    statement="when the model directory was lost, and which backup was restored, depended neither on a model nor on "
    "how long a request took",
    status="assumed",
    by="no software can see it; restoring a backup because of a model is choosing among models",
)
NO_BACKUP_SEEN = Assumption(
    statement="nobody sees the backup that the model directory was restored from, or it was destroyed",
    status="assumed",
    by="it holds an older state, which used records that were removed since",
)
NO_REASON_TO_RESTORE = "Nor may any of this have been a reason to restore the model's folder from a backup."
"""The first of these assumptions beside a condition on requests, in a sentence without terms."""
NOTHING_OF_LOST_RELEASES = (
    "nothing to readers of releases that were lost: the model directory was restored from a backup without them, and "
    "no number here counts them"
)
