"""The numbers by which presets are compared: named alike for all, absent of what was not run."""

import pandas as pd
import pytest

from certified_unlearning.papers.langevin_unlearning.findings import key_numbers
from certified_unlearning.reproduction.rows import RUN_ROWS

EMPTY = {"string": "", "int64": 1, "double": 0.5}


def row(experiment: str, mechanism: str, variant: str, accountant: str, **columns: object) -> dict[str, object]:
    """One run of one trial."""
    told = {"experiment": experiment, "mechanism": mechanism, "variant": variant, "accountant": accountant, **columns}
    name = repr(sorted(told.items()))
    plain = {field.name: EMPTY[str(field.type)] for field in RUN_ROWS}
    return {**plain, **told, "run_key": name, "line": name, "point": name, "member": "", "trial": 0}


FIG3A = [
    row(
        "fig3a",
        "langevin",
        "least-sigma",
        "shifted",
        epsilon_target=1.0,
        unlearning_steps=1,
        epsilon=0.99,
        sigma=0.03,
        accuracy=0.8,
    ),
    row("fig3a", "langevin", "least-sigma", "shifted", epsilon_target=5.0, epsilon=4.99, sigma=0.01, accuracy=0.9),
    row("fig3a", "retraining", "noisy", "shifted", epsilon_target=1.0, sigma=0.03, accuracy=0.85),
    row("fig3a", "retraining", "noiseless", "none", epsilon_target=0.0, sigma=0.0, accuracy=0.95),
]
FIG4 = [
    row(
        "fig4",
        "langevin",
        "least-steps",
        "lsi",
        epsilon_target=1.0,
        records_removed=100,
        unlearning_steps=90,
        learning_steps=300,
    ),
    row(
        "fig4",
        "langevin",
        "least-steps",
        "shifted",
        epsilon_target=1.0,
        records_removed=100,
        unlearning_steps=20,
        learning_steps=300,
    ),
    row(
        "fig4",
        "retraining",
        "noisy",
        "none",
        epsilon_target=1.0,
        records_removed=100,
        unlearning_steps=0,
        learning_steps=300,
    ),
]


def test_privacy_and_quality_are_of_fig_3a_and_cost_is_of_fig_4():
    numbers = key_numbers(pd.DataFrame([*FIG3A, *FIG4]))
    assert numbers == {
        "epsilon": 0.99,
        "sigma": 0.03,
        "accuracy": 0.8,
        "auc": 0.5,
        "log_loss": 0.5,
        "accuracy_of_retraining": 0.95,
        "accuracy_of_majority": 0.5,
        "unlearning_steps": 1,
        "largest_request": 100,
        "steps_for_the_largest_request": 20,
        "retraining_steps": 300,
    }


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (FIG4, {"largest_request", "steps_for_the_largest_request", "retraining_steps"}),
        ([row("other", "langevin", "least-steps", "lsi")], set()),
    ],
    ids=["one", "none"],
)
def test_what_a_preset_does_not_run_it_has_no_numbers_of(rows, names):
    assert set(key_numbers(pd.DataFrame(rows))) == names
