"""Audit a warm start and a certified removal.

A common way to remove records is to fit again without them, from the old weights. The audit learns 25 of 50 made-up
records, the canaries, removes them, and then guesses from the model alone which 25 were learned. If the model forgot
them, about half of the guesses are right.
"""

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from sklearn.linear_model import LogisticRegression

from certified_unlearning import CertifiedLogisticRegression
from certified_unlearning.audit import audit

RECORDS = 100_000

random = np.random.default_rng(0)
X = random.standard_normal((RECORDS, 50))
y = X @ random.standard_normal(50) / 2 > random.logistic(size=RECORDS)
X /= np.linalg.norm(X, axis=1, keepdims=True)


def fit_again(model, X, y, gone):
    """Fit without the records; a warm start begins at the old weights."""
    return model.fit(np.delete(X, gone, axis=0), np.delete(y, gone))


# The solver of the warm start takes no step, because the old weights are good enough for it. With C = 1, the noise of
# the certified model would hide the canaries before the removal, too, and the verdict would be "no power".
warm = audit(LogisticRegression(warm_start=True), X, y, unlearn=fit_again, random_state=0)
anew = audit(LogisticRegression(), X, y, unlearn=fit_again, random_state=0)
certified = audit(CertifiedLogisticRegression(C=0.05), X, y, random_state=0)
results = {"warm start": warm, "fit from zero": anew, "certified": certified}
for name, result in results.items():
    print(f"{name}: {result.verdict}; {result.headline}")

# Each audit attacks one model, before and after the removal.
sns.set_theme(style="ticks", palette="colorblind", font="DejaVu Sans")
figure, axes = plt.subplots(layout="constrained")
places = np.arange(len(results))
axes.bar(places - 0.2, [each.runs[0].right_before for each in results.values()], 0.38, label="before the removal")
axes.bar(places + 0.2, [each.runs[0].right for each in results.values()], 0.38, label="after the removal")
axes.axhline(12.5, color="0.3", linestyle=":", label="expected of guesses that ignore the model")
axes.set(xticks=places, xticklabels=results, yticks=range(0, 26, 5), ylabel="Canaries named correctly, of 25")
figure.legend(loc="outside upper center", frameon=False, ncols=2)
sns.despine()
plt.savefig("audit_warm_start.svg")
