"""Compare the cost of a request with a new fit.

A new fit reads all records several times. With many records, a request to remove ten records often reads only these
ten. With few records, each request reads all records. So the advantage of unlearning grows with the number of records.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from certified_unlearning import CertifiedLogisticRegression

SIZES = (1000, 3000, 10_000, 30_000)
REQUESTS = 20

# Made-up rows of norm 1, with 30 features.
random = np.random.default_rng(0)
X = random.standard_normal((max(SIZES), 30))
y = X @ random.standard_normal(30) > random.logistic(size=len(X))
X /= np.linalg.norm(X, axis=1, keepdims=True)

# Requests and new fits take turns on one thread. Processor time depends little on other programs, and ratios depend
# little on the machine. With C = 1, scikit-learn's default, every request would read all rows.
rows = []
with threadpool_limits(1):
    for n in SIZES:
        model, plain = CertifiedLogisticRegression(C=100 / n).fit(X[:n], y[:n]), LogisticRegression(C=100 / n)
        times = []
        for gone in random.permutation(n)[: 10 * REQUESTS].reshape(REQUESTS, 10):
            left = np.setdiff1d(model.remaining_, gone)
            left_X, left_y = X[left], y[left]
            laps = [time.process_time()]
            model.unlearn(gone)
            laps.append(time.process_time())
            CertifiedLogisticRegression(C=100 / n).fit(left_X, left_y)
            laps.append(time.process_time())
            plain.fit(left_X, left_y)
            times.append(np.diff([*laps, time.process_time()]))
        request, again, usual = np.sum(times[1:], axis=0)  # the first round warms up
        rows += [(n, "the certified model", again / request), (n, "scikit-learn", usual / request)]
ratios = pd.DataFrame(rows, columns=["n", "new fit of", "ratio"])
print(ratios.round(1))

# Above the line, a request is cheaper than a new fit.
sns.set_theme(style="ticks", palette="colorblind", font="DejaVu Sans")
figure, axes = plt.subplots(layout="constrained")
sns.lineplot(ratios, x="n", y="ratio", hue="new fit of", style="new fit of", markers=True, ax=axes)
axes.axhline(1, color="0.3", linestyle=":")
axes.set(xscale="log", ylim=0, xlabel="Number of records", ylabel="Processor time of a new fit, in requests")
axes.legend(title="New fit of", frameon=False)
sns.despine()
plt.savefig("cost_of_a_request.svg")
