"""The names that figures and metrics give to mechanisms, accountants and members."""

from typing import get_args

import pytest

from certified_unlearning.accounting import AccountantName
from certified_unlearning.errors import DataError
from certified_unlearning.experiments.model import DescentAccountant
from certified_unlearning.summaries import label

PRINTED, TIGHTENED = "descent-to-delete N.1", "descent-to-delete shifted"


@pytest.mark.parametrize(
    ("mechanism", "variant", "accountant", "expected"),
    [
        ("langevin", "least-sigma", "lsi", "Langevin (lsi), K = 2"),
        ("langevin", "least-sigma", "shifted", "Langevin (shifted), K = 2"),
        ("langevin", "least-steps", "lsi-tight", "Langevin (lsi-tight), S = 20"),
        ("descent-to-delete", "secret-state", PRINTED, "Descent-to-Delete (printed), I = 2, secret state"),
        ("descent-to-delete", "secret-state", TIGHTENED, "Descent-to-Delete (tightened), I = 2, secret state"),
        (
            "descent-to-delete",
            "published-state",
            "descent-to-delete N.2",
            "Descent-to-Delete (printed), S = 20, state published",
        ),
        ("descent-to-delete", "published-state", TIGHTENED, "Descent-to-Delete (tightened), S = 20, state published"),
        ("retraining", "noisy", "none", "Retraining, noisy"),
        ("retraining", "noisy", "lsi", "Retraining, noisy (lsi)"),
        ("retraining", "noisy", "shifted", "Retraining, noisy (shifted)"),
        ("retraining", "noiseless", "none", "Retraining, noiseless"),
    ],
)
def test_labels_are_what_a_reader_would_say(mechanism: str, variant: str, accountant: str, expected: str) -> None:
    row = {
        "experiment": "fig4",
        "mechanism": mechanism,
        "variant": variant,
        "accountant": accountant,
        "unlearning_steps": 2,
        "records_per_request": 20,
    }
    assert label(row) == expected


def test_a_figure_against_the_records_removed_tells_its_lines_apart_by_epsilon() -> None:
    row = {"experiment": "fig5a", "mechanism": "langevin", "variant": "least-steps", "accountant": "lsi"}
    assert label({**row, "epsilon_target": 0.5, "records_per_request": 20}) == "Langevin (lsi), epsilon = 0.5"


def test_every_accountant_that_a_plan_may_name_has_a_label() -> None:
    row = {"experiment": "fig4", "unlearning_steps": 2, "records_per_request": 20}
    for accountant in get_args(AccountantName):
        assert label({**row, "mechanism": "langevin", "variant": "least-steps", "accountant": accountant})
    for accountant in get_args(DescentAccountant):
        assert label({**row, "mechanism": "descent-to-delete", "variant": "secret-state", "accountant": accountant})


@pytest.mark.parametrize(
    ("mechanism", "variant", "accountant"),
    [
        ("scrub", "least-sigma", "lsi"),
        ("langevin", "noisy", "lsi"),
        ("langevin", "least-sigma", "descent-to-delete N.1"),
        ("langevin", "least-sigma", "none"),
        ("descent-to-delete", "secret-state", "shifted"),
        ("retraining", "noiseless", "shifted"),
        ("retraining", "noisy", PRINTED),
    ],
)
def test_a_row_without_a_label_is_named(mechanism: str, variant: str, accountant: str) -> None:
    row = {"mechanism": mechanism, "variant": variant, "accountant": accountant}
    with pytest.raises(DataError) as raised:
        label({**row, "unlearning_steps": 2, "records_per_request": 20})
    assert str(raised.value) == (
        f"the records hold the mechanism {mechanism} ({variant}) of the accountant {accountant}, which has no label"
    )
