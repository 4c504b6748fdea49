"""Remove customers and read the certificates.

A model predicts which customers of a shop leave, and ten customers ask to be forgotten, one after the other. The model
stays as accurate as scikit-learn's, which is fitted again without the removed records each time. Each certificate
states epsilon 1 for a reader of the last model, and a larger epsilon for a reader who kept all models.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from certified_unlearning import CertifiedLogisticRegression, certificate

EPSILON = 1.0

# A made-up table of 500 customers, with several records each. Customers with few visits and many complaints leave.
random = np.random.default_rng(0)
ranges = {"age": (18, 100), "visits": (0, 50), "complaints": (0, 10), "spent": (0, 1000)}
table = pd.DataFrame({name: random.uniform(*ends, 3000) for name, ends in ranges.items()})
table["customer"] = random.integers(0, 500, 3000)
table["leaves"] = table["complaints"] / 2 - table["visits"] / 10 + random.logistic(size=3000) > 0
train, test, columns = table[:1500], table[1500:], list(ranges)

# The ranges are publicly known, and not computed from the table. random_state makes this example repeatable: leave it
# out of a model that you publish.
model = CertifiedLogisticRegression(EPSILON, feature_ranges=list(ranges.values()), random_state=0)
model.fit(train[columns], train["leaves"])
rows = []
for number, customer in enumerate(train["customer"].unique()[:10], 1):
    model.unlearn(np.flatnonzero(train["customer"] == customer))  # row numbers of the table that was fitted
    left = train.iloc[model.remaining_]
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(left[columns], left["leaves"])
    stated = model.certificate_
    certificate.verify(stated)  # raises an error if a number is wrong
    accuracies = [each.score(test[columns], test["leaves"]) for each in (model, plain)]
    rows.append((number, *accuracies, stated.epsilon, stated.epsilon_all_releases))
print(f"{len(model.remaining_)} of {len(train)} records remain; epsilon {stated.epsilon:.4f} at delta {stated.delta}")
print(stated.summary())
found = pd.DataFrame(rows, columns=["customers", "certified", "scikit-learn", "the last model", "all models"])

sns.set_theme(style="ticks", palette="colorblind", font="DejaVu Sans")
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
found.plot("customers", ["certified", "scikit-learn"], ax=left, style=["o-", "x:"], ylim=(0.7, 0.9))
left.set(xlabel="Customers removed", ylabel="Accuracy on test records")
found.plot("customers", ["the last model", "all models"], ax=right, style=["o-", "s--"], ylim=0)
right.set(xlabel="Customers removed", ylabel="ε for a reader of ... (δ = 1e-6)")
sns.despine()
plt.savefig("remove_customers.svg")
