"""Declarations of tables on the pages: they are valid, they read what the page shows, and every key is explained."""

import json
import re
from pathlib import Path

import numpy as np
import yaml

from certified_unlearning.data.tables.declaration import Table, parse
from certified_unlearning.data.tables.table import feature_names, read_blocks, resolve
from certified_unlearning.papers import parameters
from tests.docs.code_blocks import blocks

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "howto" / "own-data.md"


def test_the_declaration_reads_the_table_that_the_page_shows(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = {block.language: block.text for block in reversed(blocks(PAGE))}
    declared = yaml.safe_load(found["yaml"])["own_data"]["customers"]
    Path(declared["path"]).parent.mkdir(parents=True)
    Path(declared["path"]).write_text(found["text"], encoding="utf-8")
    table = resolve(parse(json.dumps(declared), "own_data.customers"))
    (block,) = read_blocks(table)
    assert block.identifiers == ["1001", "1002", "1003"]
    assert block.labels.tolist() == [-1, 1, -1]
    assert block.test.tolist() == [False, False, True]
    names = feature_names(table)
    assert names == ["age", "balance", "job=clerk", "job=nurse", "job=teacher", "job=missing"]
    assert block.features[2, names.index("job=missing")] > 0
    np.testing.assert_allclose(np.linalg.norm(block.features, axis=1), 1, rtol=1e-6)


def test_the_page_makes_a_valid_parameter_file():
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    declared = [yaml.safe_load(block.text) for block in blocks(PAGE) if block.language == "yaml"]
    content["own_data"] = declared[0]["own_data"]
    least, chosen = (
        parameters.check(content | {"presets": content["presets"] | each["presets"]}) for each in declared[1:]
    )
    assert "customers" in least.own_data
    assert least.presets["customers"].settings.dataset == "customers"
    assert "records" in least.presets["customers"].defaults("langevin_unlearning", "fig5a")
    assert "records" not in chosen.presets["customers"].defaults("langevin_unlearning", "fig5a")


def test_the_preset_on_the_page_of_presets_is_valid_and_runs_what_it_shows():
    content = yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    (shown,) = (block.text for block in blocks(ROOT / "docs" / "howto" / "presets.md") if block.language == "yaml")
    declared = yaml.safe_load(shown)["presets"]
    content["presets"] |= declared
    checked = parameters.check(content)
    for name, preset in declared.items():
        assert [experiment.name for _, experiment in checked.shown(name)] == preset["shows"]


def test_the_declaration_on_the_ledger_page_is_valid():
    (declared,) = (block.text for block in blocks(ROOT / "docs" / "howto" / "ledger.md") if block.language == "yaml")
    assert parse(json.dumps(yaml.safe_load(declared)), "churn.yaml").identifier == "customer"


def test_every_key_of_a_table_is_explained():
    keys = (PAGE.parent / "declare.md").read_text(encoding="utf-8").partition("## The keys")[2].partition("\n## ")[0]
    explained = re.findall(r"^\| `(\w+)` \|", keys, re.MULTILINE)
    assert explained == list(Table.model_fields)
