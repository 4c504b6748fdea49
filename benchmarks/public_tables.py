"""The default estimator and the default command compared with scikit-learn, on four public tables and ten splits each.

`Default`, `Caravan` and `Wage` come with the package ISLP, and the penguins with palmerpenguins; the extra `tables`
installs both packages. Accuracy, balanced accuracy and the area under the ROC curve on test records are compared for
three methods:

- `CertifiedLogisticRegression()`, and `unlearn init` with no options except the declaration and epsilon = 1;
- scikit-learn on the same rows with the same C = 1, without any guarantee;
- scikit-learn with its usual preparation: standardised numbers, one-hot encoded words, C = 1. This preparation learns
  means from the records.

The exit status is 1 if a mean is lower than `ALLOWED` permits.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import yaml
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from certified_unlearning import CertifiedLogisticRegression, load_model
from certified_unlearning.cli import app

SPLITS = 10
MEASURES = ("accuracy", "balanced accuracy", "AUC")
ALLOWED = {"accuracy": 0.005, "balanced accuracy": 0.01, "AUC": 0.005}
"""How far a mean may be below that of scikit-learn on the same rows."""
ALLOWED_BALANCED = 0.03
"""How far the mean balanced accuracy may be below that of scikit-learn with its usual preparation."""


@dataclass(frozen=True)
class PublicTable:
    """A table that comes with a package.

    Attributes:
        package: Name of the package.
        file: Path of the table in the package.
        label: Column to predict.
        words: Columns of words.
        ranges: Range of each column of numbers, from the table's description.
        prepare: Function that is applied to the table first.
    """

    package: str
    file: str
    label: str
    words: tuple[str, ...]
    ranges: dict[str, tuple[float, float]]
    prepare: Callable[[pd.DataFrame], pd.DataFrame] = lambda frame: frame

    def read(self) -> pd.DataFrame | None:
        """Return the table, or None if the package is missing."""
        # The package is found but not imported, because ISLP imports many packages that the table does not need.
        found = find_spec(self.package)
        if found is None or found.origin is None:
            return None
        frame = self.prepare(pd.read_csv(Path(found.origin).parent / "data" / self.file))
        return frame[[self.label, *self.words, *self.ranges]].dropna().reset_index(drop=True)


def caravan_ranges() -> dict[str, tuple[float, float]]:
    """Return the ranges of the 85 columns, which are customers' types and classes from 0 to 9."""
    found = find_spec("ISLP")
    if found is None or found.origin is None:
        return {}
    names = pd.read_csv(Path(found.origin).parent / "data" / "Caravan.csv", nrows=0).columns[:-1]
    own = {"MOSTYPE": (1, 41), "MAANTHUI": (1, 10), "MGEMOMV": (1, 6), "MGEMLEEF": (1, 6), "MOSHOOFD": (1, 10)}
    return {name: own.get(name, (0, 9)) for name in names}


def above_the_median(frame: pd.DataFrame) -> pd.DataFrame:
    """Replace wages by two classes: above 105 thousand dollars a year, which is about the median, or not."""
    return frame.assign(high=np.where(frame["wage"] > 105, "yes", "no"))


TABLES = {
    "Default": PublicTable(
        "ISLP", "Default.csv", "default", ("student",), {"balance": (0, 3000), "income": (0, 80_000)}
    ),
    "Caravan": PublicTable("ISLP", "Caravan.csv", "Purchase", (), caravan_ranges()),
    "Wage": PublicTable(
        "ISLP",
        "Wage.csv",
        "high",
        ("maritl", "race", "education", "jobclass", "health", "health_ins"),
        {"year": (2000, 2010), "age": (18, 80)},
        above_the_median,
    ),
    "penguins": PublicTable(
        "palmerpenguins",
        "penguins.csv",
        "species",
        ("island", "sex"),
        {
            "bill_length_mm": (30, 60),
            "bill_depth_mm": (12, 22),
            "flipper_length_mm": (170, 235),
            "body_mass_g": (2500, 6500),
        },
    ),
}


def measured(model: Any, X: Any, y: Any) -> tuple[float, float, float]:
    """Return accuracy, balanced accuracy and AUC; with several classes, AUC is averaged over one-vs-rest problems."""
    predicted, probabilities = model.predict(X), model.predict_proba(X)
    several = probabilities.shape[1] > 2
    area = roc_auc_score(y, probabilities if several else probabilities[:, 1], multi_class="ovr")
    return accuracy_score(y, predicted), balanced_accuracy_score(y, predicted), area


def by_command(table: PublicTable, train: pd.DataFrame, directory: Path) -> Any:
    """Return the model that `unlearn init` creates."""
    train.assign(row=[f"r{number}" for number in range(len(train))]).to_csv(directory / "train.csv", index=False)
    classes = sorted(train[table.label].unique())
    declaration = {
        "path": str(directory / "train.csv"),
        "label": table.label,
        "classes": classes,
        "identifier": "row",
        "features": [*table.words, *table.ranges],
        "categories": {name: sorted(train[name].unique().tolist()) for name in table.words},
        "ranges": {name: list(ends) for name, ends in table.ranges.items()},
    }
    (directory / "table.yaml").write_text(yaml.safe_dump(declaration), encoding="utf-8")
    arguments = ["init", str(directory / "model"), "--table", str(directory / "table.yaml"), "--epsilon", "1"]
    made = CliRunner().invoke(app, arguments)
    if made.exit_code:
        raise SystemExit(made.output)
    return load_model(directory / "model")


def compared(table: PublicTable, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the results of each system, shape ``(splits, 3)``, and the seconds of the estimator's fits."""
    found: dict[str, list[Any]] = {}
    for seed in range(SPLITS):
        train, test = train_test_split(frame, test_size=0.3, stratify=frame[table.label], random_state=seed)
        with TemporaryDirectory() as directory:
            command = by_command(table, train, Path(directory))
            rows, test_rows = command.rows(train), command.rows(test)
            # A loaded model has text as classes.
            labels, test_labels = train[table.label].astype(str), test[table.label].astype(str)
            begun = time.perf_counter()
            ours = CertifiedLogisticRegression().fit(rows, labels)
            found.setdefault("seconds", []).append(time.perf_counter() - begun)
            theirs = LogisticRegression(max_iter=1000).fit(rows, labels)
            usual = make_pipeline(
                make_column_transformer(
                    (OneHotEncoder(handle_unknown="ignore"), list(table.words)), (StandardScaler(), list(table.ranges))
                ),
                LogisticRegression(max_iter=1000),
            ).fit(train, labels)
            models = {"estimator": ours, "command": command, "same rows": theirs}
            for name, model in models.items():
                found.setdefault(name, []).append(measured(model, test_rows, test_labels))
            found.setdefault("as people use it", []).append(measured(usual, test, test_labels))
    return {name: np.array(values) for name, values in found.items()}


def shortfalls(found: dict[str, np.ndarray]) -> list[str]:
    """Return a sentence for every mean that is too far below that of scikit-learn."""
    means = {name: values.mean(axis=0) for name, values in found.items()}
    said = []
    for name in ("estimator", "command"):
        below = dict(zip(MEASURES, means["same rows"] - means[name], strict=True))
        said += [f"{name}: {each} is {below[each]:.4f} below" for each in MEASURES if below[each] > ALLOWED[each]]
        usual = means["as people use it"][1] - means[name][1]
        if usual > ALLOWED_BALANCED:
            said.append(f"{name}: balanced accuracy is {usual:.4f} below scikit-learn as people use it")
    return said


def main() -> None:
    """Print results for each table, and what is too low."""
    wrong = []
    for name, table in TABLES.items():
        frame = table.read()
        if frame is None:
            print(f"{name}: skipped, {table.package} is not installed (pip install '.[tables]')")
            continue
        found = compared(table, frame)
        print(f"{name}: {len(frame)} records, {SPLITS} splits; fit takes {np.median(found.pop('seconds')):.3f} s")
        for system, values in found.items():
            print(
                f"  {system:>17}: "
                + ", ".join(f"{each} {mean:.3f}" for each, mean in zip(MEASURES, values.mean(0), strict=True))
            )
        wrong += [f"{name}, {sentence}" for sentence in shortfalls(found)]
    print("\n".join(wrong) if wrong else "nothing falls short")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
