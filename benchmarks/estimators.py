"""`LangevinLogisticRegression` on Adult, compared with scikit-learn: accuracy, and the time of `unlearn` relative to
`fit`.

It needs adult/adult.data in UNLEARNING_DATA. Times are compared only within one run, as ratios.
"""

import statistics
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from certified_unlearning.estimators import LangevinLogisticRegression

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.support.adult_table import adult

C = 0.003
RECORDS = 100
STEPS = 32
MODELS = 20


def main() -> None:
    rows, labels, test_rows, test_labels = adult()
    theirs = LogisticRegression(C=C).fit(rows, labels).score(test_rows, test_labels)
    print(f"Adult, n = {len(rows)}, C = {C} (C n = {C * len(rows):.0f}); scikit-learn: {theirs:.4f}")
    generator = np.random.default_rng(0)
    accuracies, after, ratios = [], [], []
    for _ in range(MODELS):
        model = LangevinLogisticRegression(epsilon=1, delta="1/n", C=C, records=RECORDS, steps=STEPS)
        start = time.perf_counter()
        model.fit(rows, labels)
        fitted = time.perf_counter()
        accuracies.append(model.score(test_rows, test_labels))
        gone = generator.choice(len(rows), RECORDS, replace=False)
        begun = time.perf_counter()
        model.unlearn(gone)
        ratios.append((time.perf_counter() - begun) / (fitted - start))
        after.append(model.score(test_rows, test_labels))
    for name, values in (("fit", accuracies), ("unlearn", after)):
        print(
            f"accuracy after {name}: {statistics.mean(values):.4f}, standard deviation {statistics.stdev(values):.4f}"
        )
    print(
        f"steps: {model.removals_[0].steps} against {model._learner.learning_steps}; time of unlearn over fit: median "
        f"{statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}"
    )


if __name__ == "__main__":
    main()
