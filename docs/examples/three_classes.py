"""Forget with three classes and hundreds of features.

The rows are like embeddings of texts or images: wide, and of norm 1. Each request removes ten records, and a few passes
over all rows correct the old weights. We compare the processor time of requests with that of new fits by scikit-learn,
which start from zero.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from certified_unlearning import CertifiedLogisticRegression, certificate

RECORDS = 10_000
REQUESTS = 8

# Made-up embeddings of three classes. The last 1000 rows are for testing.
random = np.random.default_rng(0)
X = random.standard_normal((RECORDS + 1000, 400), dtype=np.float32) / np.sqrt(np.arange(1, 401, dtype=np.float32))
y = np.argmax(X @ random.standard_normal((400, 3)) + random.gumbel(size=(len(X), 3)), axis=1)
X /= np.linalg.norm(X, axis=1, keepdims=True)
X, X_test, y, y_test = X[:RECORDS], X[RECORDS:], y[:RECORDS], y[RECORDS:]

# Requests and new fits take turns on one thread, with the same C.
options = {"C": 1000 / RECORDS, "fit_intercept": False}
certified = CertifiedLogisticRegression(epsilon=1, **options).fit(X, y)
times = []
with threadpool_limits(1):
    for gone in random.permutation(RECORDS)[: 10 * REQUESTS].reshape(REQUESTS, 10):
        left = np.setdiff1d(certified.remaining_, gone)
        left_X, left_y = X[left], y[left]
        laps = [time.process_time()]
        certified.unlearn(gone)
        laps.append(time.process_time())
        plain = LogisticRegression(**options).fit(left_X, left_y)
        times.append(np.diff([*laps, time.process_time()]))
certificate.verify(certified.certificate_)
print(f"epsilon {certified.certificate_.epsilon:.4f}; {certified.certificate_.passes} of {REQUESTS} requests by passes")
print(f"accuracy {certified.score(X_test, y_test):.3f}, scikit-learn {plain.score(X_test, y_test):.3f}")

sns.set_theme(style="ticks", palette="colorblind", font="DejaVu Sans")
requests, fits = np.transpose(times)
figure, axes = plt.subplots(layout="constrained")
for seconds, style, name in (
    (fits, "s--", "new fits by scikit-learn"),
    (requests, "o-", "requests to the certified model"),
):
    axes.plot(range(REQUESTS + 1), np.cumsum([0, *seconds / np.median(fits)]), style, label=name)
axes.set(
    xlabel="Number of requests, of ten records each", ylabel="Processor time in total, in new fits by scikit-learn"
)
axes.legend(frameon=False)
sns.despine()
plt.savefig("three_classes.svg")
