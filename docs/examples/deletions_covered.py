"""Count the deletions that a private model covers.

A model that is differentially private from the start needs no work when records are deleted. Its guarantee becomes
weaker with each deletion, by group privacy. We train private models with several epsilons. For each model, we count the
deletions for which epsilon stays at 1 or below, and measure the accuracy.
"""

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns

from certified_unlearning import PrivateLogisticRegression, certificate

RECORDS = 20_000
TARGET = 1.0
EPSILONS = (0.02, 0.05, 0.1, 0.2, 1.0)

# Made-up rows of norm 1. The last 2000 are for testing.
random = np.random.default_rng(0)
X = random.standard_normal((RECORDS + 2000, 10))
X /= np.linalg.norm(X, axis=1, keepdims=True)
y = X @ np.arange(10) + random.standard_normal(len(X)) > 0

# The smaller the epsilon of one record is, the more deletions are covered. The radius is not computed from the records.
deletions = np.arange(1, 51)
sns.set_theme(style="ticks", palette="colorblind", font="DejaVu Sans")
figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.8), layout="constrained")
for epsilon in EPSILONS:
    model = PrivateLogisticRegression("noisy-gradient-descent", epsilon=epsilon, radius=5, steps=100, random_state=0)
    model.fit(X[:RECORDS], y[:RECORDS])
    certificate.verify(model.certificate_)
    covered, accuracy = model.deletions_within(TARGET), model.score(X[RECORDS:], y[RECORDS:])
    print(f"epsilon {epsilon} for one record: deletions within {TARGET:g}: {covered}, accuracy {accuracy:.2f}")
    after = [model.epsilon_after(int(each)) for each in deletions]
    for axes, place, value in ((left, deletions, after), (right, covered, accuracy)):
        axes.plot(place, value, marker="o", markevery=[-1])
        axes.annotate(f"{epsilon:g}", (np.max(place), np.max(value)), (6, -4), textcoords="offset points")

left.axhline(TARGET, color="0.3", linestyle=":")
left.set(xscale="log", yscale="log", xlabel="Number of deleted records", ylabel="ε after the deletions (δ = 1e-6)")
left.set_title("Each line: a model, named by its ε for one record", fontsize="small")
right.set(xscale="log", xlabel=f"Deletions within ε = {TARGET:g}", ylabel="Accuracy on test records")
for axes in (left, right):
    axes.margins(x=0.15)
    axes.xaxis.set_major_formatter("{x:g}")
sns.despine()
plt.savefig("deletions_covered.svg")
