"""The table of the ledger's mechanisms: their options, and what a new one takes.

A new mechanism is a module with its plan and its method, its settings, and one entry. Here it is made in a process of
its own, because the command line reads the table when it is imported.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from certified_unlearning.cli import app
from certified_unlearning.errors import ParameterError
from certified_unlearning.ledger.mechanisms import DEFAULT, MECHANISMS, settings_of
from tests.ledger.tables import write_table
from tests.support.waiting import PATIENCE

ENTRY = '''
import functools, json, sys
from typing import ClassVar
from pydantic import Field
from certified_unlearning.ledger.mechanisms import MECHANISMS, LedgerMechanism
from certified_unlearning.ledger.settings.base import Words
from certified_unlearning.ledger.settings.exact_refit import RefitSettings


class ToySettings(RefitSettings):
    """Settings of the toy."""

    patience: int = Field(7, description="How patient the toy is.")

    def plan(self, mechanism, **numbers):
        return method().plans[0](**super().plan(mechanism, **numbers).model_dump(), patience=self.patience)

    def words(self, plan, weights):
        return Words(f"a toy with patience {plan.patience}", "it is a toy")


@functools.cache
def method():
    from certified_unlearning.ledger.methods.exact_refit import ExactRefit
    from certified_unlearning.mechanisms.refit_plan import RefitPlan

    class ToyPlan(RefitPlan):
        mechanism: ClassVar[str] = "toy"
        patience: int

    class Toy(ExactRefit):
        plans = (ToyPlan,)

    return Toy


MECHANISMS["toy"] = LedgerMechanism("toy", "plays", ToySettings, method, frozenset({"patience"}))

from typer.testing import CliRunner
from certified_unlearning.commands import program

found = []
for command in json.loads(sys.argv[1]):
    done = CliRunner().invoke(program(), command)
    found.append([done.exit_code, done.output + str(done.exception or "")])
print(json.dumps(found))
'''


def test_a_toy_needs_a_module_and_an_entry(tmp_path: Path) -> None:
    write_table(tmp_path / "people.csv")
    model = str(tmp_path / "model")
    asked = ["--data", str(tmp_path / "people.csv"), "--label", "ill", "--id", "person", "--epsilon", "1"]
    commands = [
        ["init", "--mechanism", "toy", "--help"],
        ["init", "--help"],
        ["init", model, *asked, "--patience", "3"],
        ["init", model, *asked, "--mechanism", "toy", "--patience", "3", "--C", "0.1"],
        ["request", model, "--id", "p3"],
        ["apply", model],
        ["verify", model],
        ["evaluate", model, str(tmp_path / "people.csv")],
    ]
    script = [sys.executable, "-c", ENTRY, json.dumps(commands)]
    done = subprocess.run(
        script, capture_output=True, text=True, timeout=PATIENCE, check=False, env=os.environ | {"COLUMNS": "200"}
    )
    assert done.returncode == 0, done.stderr
    own, usual, refused, made, *others = json.loads(done.stdout)
    assert "Options of toy" in own[1]
    assert "How patient the toy is." in own[1]
    assert "toy: plays" in " ".join(usual[1].replace("│", "").split())  # wherever the line breaks
    assert "Options of newton-removal" in usual[1]
    assert "--patience" not in usual[1]
    assert refused[1].endswith(
        "`patience` does not apply to newton-removal; leave it out, or add --mechanism toy, got 3"
    ), refused
    assert "\na toy with patience 3\n" in made[1]
    assert "warning: it is a toy\n" in made[1]
    assert [code for code, _ in (made, *others)] == [0] * 5, others
    stored = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    assert stored["learner"]["patience"] == 3


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_option_of_a_mechanism_says_what_it_means(name: str) -> None:
    mechanism = MECHANISMS[name]
    fields = mechanism.settings.model_fields
    assert mechanism.name == name
    assert mechanism.own <= fields.keys()
    assert all(field.description and not field.is_required() for field in fields.values())


def test_settings_of_other_mechanisms_may_have_their_usual_values() -> None:
    settings = settings_of("noisy-sgd", {"records": 1, "shards": None, "steps": 3})
    assert settings == settings_of("noisy-sgd", {"steps": 3})
    with pytest.raises(
        ParameterError, match=r"^`records` does not apply to noisy-sgd; .* --mechanism langevin, got 2$"
    ):
        settings_of("noisy-sgd", {"records": 2})
    with pytest.raises(ParameterError, match=r"^no mechanism has a setting 'epsilom'$"):
        settings_of("langevin", {"epsilom": 1})


@pytest.mark.parametrize(
    ("name", "own", "others"),
    [
        (
            "noisy-sgd",
            ("--sigma", "--step-size", "--radius", "--C"),
            ("--epsilon", "--quantum", "--shards", "--records"),
        ),
        ("langevin", ("--epsilon", "--records", "--accountant"), ("--step-size", "--budget", "--strict-timing")),
        ("certified-ensemble", ("--steps", "--budget", "--hidden"), ("--C", "--intercept", "--sigma", "--delta")),
    ],
)
def test_help_shows_general_options_and_those_of_the_mechanism(
    name: str, own: tuple[str, ...], others: tuple[str, ...]
) -> None:
    run = CliRunner(env={"COLUMNS": "200"}).invoke
    shown = run(app, ["init", "--mechanism", name, "--help"]).output
    assert f"Options of {name}" in shown
    assert all(f" {flag} " in shown for flag in ("--data", "--mechanism", *own))
    assert not any(f" {flag} " in shown for flag in others)
    assert f"Options of {DEFAULT}" in run(app, ["init", "--help"]).output
