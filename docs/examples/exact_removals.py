"""Unlearn exactly, and see what the noise saves.

`ExactLogisticRegression` stores every step of its training. A removal examines the steps that used the record. Because
of the noise, most of these steps can stay as they are. With more noise, fewer removals repeat training steps, but the
model becomes less accurate.
"""

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from certified_unlearning import ExactLogisticRegression

SIGMAS = (0.01, 0.03, 0.1, 0.3, 1.0)
REMOVALS = 100

# The data are images of digits, even against odd. Rows of norm above 80 would be scaled down.
X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y % 2, random_state=0)
gone = np.random.default_rng(0).permutation(len(X))[:REMOVALS]  # chosen without a look at the model, as is required

# If the weights are equal after a removal, no step was repeated. Only the owner of the model may compare them.
again, accuracies = [], []
for sigma in SIGMAS:
    model = ExactLogisticRegression(sigma=sigma, data_norm=80, random_state=0).fit(X, y)
    changed = 0
    for record in gone:
        before = model.coef_
        changed += not np.array_equal(before, model.unlearn([record]).coef_)
    again.append(changed / REMOVALS)
    accuracies.append(model.score(X_test, y_test))
    stated = model.certificate_
    print(f"sigma {sigma}: {again[-1]:.0%} took steps again; accuracy {accuracies[-1]:.2f}; epsilon {stated.epsilon}")

sns.set_theme(style="ticks", palette="colorblind", font="DejaVu Sans")
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
left.axhline(stated.recompute_probability, color="0.3", linestyle=":", label="upper bound")
left.plot(SIGMAS, again, "o-", label="counted")
left.set(xscale="log", xlabel="σ of the noise on a gradient", ylabel="Removals that take steps again", ylim=0)
left.legend(frameon=False)
right.plot(SIGMAS, accuracies, "o-")
right.set(xscale="log", xlabel="σ of the noise on a gradient", ylabel="Accuracy on test records")
sns.despine()
plt.savefig("exact_removals.svg")
