"""The report's parts without a browser: words, numbers, and what happens when files are missing or damaged."""

import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from certified_unlearning.certificate import read
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.files import read_json, write_json, write_model, write_text
from certified_unlearning.papers.all import PAPERS
from certified_unlearning.papers.langevin_unlearning.bounds.recuperation import RECUPERATION
from certified_unlearning.papers.langevin_unlearning.paper import PAPER
from certified_unlearning.papers.langevin_unlearning.tables import TABLE1, TABLE2
from certified_unlearning.reproduction import declared
from certified_unlearning.reproduction.experiment import Caption
from certified_unlearning.reproduction.layout import Layout
from certified_unlearning.reproduction.report import write_report
from certified_unlearning.reproduction.report.exhibits import exhibits
from certified_unlearning.reproduction.report.provenance import _time
from certified_unlearning.reproduction.report.verdicts import places
from certified_unlearning.reproduction.tabulation import tabulate, text_of
from tests.reproduction.report.report_results import FIGURES, SHOWN, change_claim

ROOT = Path(__file__).parents[3]
CERTIFICATES = "second/langevin_unlearning/fig4/certificates"


@pytest.mark.parametrize(("path", "rule"), [
    ("data.json", "prepare"), ("records.parquet", "collect"), ("figures/langevin_unlearning/fig3a.png", "draw"),
    ("figures/langevin_unlearning/fig4.pdf", "draw"), ("figures/langevin_unlearning/fig4.svg", "draw"),
    ("plots/langevin_unlearning/fig3a.csv", "draw"),
    ("plots/langevin_unlearning/recuperation.csv", "draw"), ("plots/langevin_unlearning/accountants.csv", "tabulate"),
    ("langevin_unlearning/accountants/rows.parquet", "make"), ("langevin_unlearning/fig3a/plan.json", "plan"),
    ("parameters.html", "parameter_table"),
])  # fmt: skip
def test_a_missing_file_is_named_with_its_rule_and_an_older_page_stays(path, rule, results: Path):
    output = results / "report.html"
    output.write_text("older", encoding="utf-8")
    (results / "second" / path).unlink()
    with pytest.raises(
        DataError, match=rf"second/{path}, which does not exist; the workflow's rule {rule} makes this file"
    ):
        write_report(results, "both", SHOWN, output)
    assert output.read_text(encoding="utf-8") == "older"
    assert f"\nrule {rule}:\n" in "".join(file.read_text() for file in (ROOT / "workflow/rules").glob("*.smk"))


@pytest.mark.parametrize(("path", "content", "message"), [
    ("first/figures/langevin_unlearning/fig3a.png", "no image", "fig3a.png is not an image"),
    ("first/langevin_unlearning/accountants/rows.parquet", "", "accountants/rows.parquet is not a Parquet file"),
    ("first/data.json", "{}", "data.json lacks name, features"),
    ("first/langevin_unlearning/fig3a/plan.json", "{}", "fig3a/plan.json lacks settings"),
    ("first/langevin_unlearning/fig3a/certificates/lsi-0.json", "{}", "lsi-0.json is not a certificate: run_key"),
    *((f"second/{path}", content, rf"second/{path} is .*; the workflow's rule {rule} makes this file$")
      for path, rule, contents in [
          ("plots/langevin_unlearning/fig3a.csv", "draw", ["", "no table", "experiment,y\n", "x,y\n1\n1,2,3\n"]),
          ("plots/langevin_unlearning/accountants.csv", "tabulate", ["", "no table"]),
          ("figures/langevin_unlearning/fig3a.pdf", "draw", ["", "no PDF", "%PDF-1.4 cut off"]),
          ("figures/langevin_unlearning/fig3a.svg", "draw", ["", "no SVG", "<?xml version='1.0'?><svg>cut off"]),
          ("parameters.html", "parameter_table", ["", "no table", "<table>cut off"]),
      ] for content in contents),
    *(("second/plots/langevin_unlearning/recuperation.csv", content,
       "recuperation.csv must contain only .*; the workflow's rule draw makes this file")
      for content in ["x,y\n1,2\n", "experiment,y\nfig3a,1\n", "experiment,y\nrecuperation,1\nfig3a,1\n"]),
    ("first/records.parquet", "no table", "records.parquet is not a Parquet file"),
    ("both/claims.json", '[{"id": 1}]', "claims.json is not a list of verdicts: 0.id"),
])  # fmt: skip
def test_a_damaged_file_is_named(path, content, message, results: Path):
    (results / path).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        write_report(results, "both", SHOWN, results / "report.html")


def test_a_damaged_table_is_named_though_its_bytes_are_no_text(results: Path):
    Layout(results, "second").numbers(PAPER.name, "fig3a").write_bytes(b"experiment,y\nfig3a,\xff\xfe\n")
    with pytest.raises(DataError, match=r"second/.*/fig3a.csv is not a table: .* rule draw makes this file"):
        write_report(results, "both", SHOWN, results / "report.html")


def test_missing_certificates_of_an_experiment_are_named_with_their_rule(results: Path):
    shutil.rmtree(results / CERTIFICATES)
    with pytest.raises(DataError, match=rf"{CERTIFICATES}, which does not exist; the workflow's rule certify makes"):
        write_report(results, "both", SHOWN, results / "report.html")


@pytest.mark.parametrize(("wrong", "count"), [
    ("a run has none", 7), ("one is of an unknown run", 8), ("a run has two", 9),
])  # fmt: skip
def test_certificates_of_other_runs_than_the_records_are_refused(wrong, count, results: Path):
    file = results / CERTIFICATES / "lsi-0.json"
    match wrong:
        case "a run has none":
            file.unlink()
        case "one is of an unknown run":
            write_model(file, read(file).model_copy(update={"run_key": "unknown"}))
        case _:
            shutil.copy(file, file.with_name("again.json"))
    with pytest.raises(DataError, match=rf"the {count} certificates in .*{CERTIFICATES} are not those of the 8 runs"):
        write_report(results, "both", SHOWN, results / "report.html")


@pytest.mark.parametrize(("change", "message"), [
    ({"epsilon": 0.4}, "states epsilon = 0.4, but its constants give"),
    ({"guarantee": "exact"}, "states the wrong guarantee"),
    ({"step_size": 100.0}, ""),
])  # fmt: skip
def test_a_certificate_that_does_not_verify_is_named_with_its_rule(change, message, results: Path):
    file = results / CERTIFICATES / "shifted-1.json"
    write_model(file, read(file).model_copy(update=change))
    with pytest.raises(
        DataError, match=rf"{CERTIFICATES}/shifted-1.json does not verify: .*{message}.*; the workflow's rule certify"
    ):
        write_report(results, "both", SHOWN, results / "report.html")


def test_a_report_about_nothing_is_refused(results: Path):
    with pytest.raises(ParameterError, match="the report 'none' has no presets"):
        write_report(results, "none", {}, results / "report.html")


@pytest.mark.parametrize(("source", "expected"), [
    ("Theorem 3.2", ("Theorem 3.2",)),
    ("Theorems 3.2, 3.3, N.1 and N.2, Corollary 3.4",
     ("Theorem 3.2", "Theorem 3.3", "Theorem N.1", "Theorem N.2", "Corollary 3.4")),
    ("Algorithms 4 to 6", ("Algorithm 4", "Algorithm 5", "Algorithm 6")),
    ("Fig. 3b and Section 5, MNIST 3 against 8", ("Fig. 3b", "Section 5")),
    ("Fig. 4, MNIST 3 against 8, S = 100", ("Fig. 4",)), ("Appendix E", ("Appendix E",)),
    ("Table 1; Adult, Appendix M.8", ("Table 1", "Appendix M.8")), ("Table 2; Table 2, Adult", ("Table 2",)),
    ("the abstract, first line", ("the abstract",)),
])  # fmt: skip
def test_a_claim_is_found_under_every_part_of_a_paper_that_it_names(source, expected):
    assert places(source) == expected


def test_an_unknown_verdict_is_refused(results: Path):
    change_claim(results, verdict="fine")
    with pytest.raises(DataError, match=r"claims.json is not a list of verdicts: 0.verdict"):
        write_report(results, "both", SHOWN, results / "report.html")


def test_without_claims_and_tables_the_page_says_so(results: Path):
    figures = [(paper, each) for paper, each in SHOWN["second"] if each.name in FIGURES]
    write_report(results, "second", {"second": figures}, results / "report.html")
    page = (results / "report.html").read_text(encoding="utf-8")
    assert "results/second/claims.json</code> does not exist" in page
    assert "These results contain no tables" in page
    assert 'id="filters"' not in page
    assert 'class="first"' not in page
    assert 'class="findings"' not in page


def test_missing_findings_are_named_with_their_rule(results: Path):
    (results / "both/findings.json").unlink()
    with pytest.raises(DataError, match=r"both/findings.json, which does not exist; the workflow's rule claims makes"):
        write_report(results, "both", SHOWN, results / "report.html")


@pytest.mark.parametrize(("own", "left_out"), [(("loans", "loans"), True), (("loans", "digits"), False)])
def test_a_page_about_own_data_alone_says_that_claims_about_others_are_left_out(own, left_out, results: Path):
    for preset, name in zip(SHOWN, own, strict=True):
        path = results / preset / "data.json"
        write_json(path, read_json(path) | {"name": name})
    write_report(results, "both", SHOWN, results / "report.html")
    page = (results / "report.html").read_text(encoding="utf-8")
    assert ("Claims of papers about other data than loans are left out" in page) == left_out


def test_the_same_results_give_the_same_page(results: Path, report: Path):
    write_report(results, "both", SHOWN, results / "deep/er/report.html")
    assert (results / "deep/er/report.html").read_bytes() == report.read_bytes()


def test_a_figure_of_ones_own_is_shown_with_its_own_words(results: Path):
    novel, layout = replace(RECUPERATION, name="novel", caption=Caption("What is new")), Layout(results, "first")
    for kind in ("png", "pdf", "svg"):
        shutil.copy(layout.figure(PAPER.name, "recuperation", kind), layout.figure(PAPER.name, "novel", kind))
    write_text(layout.numbers(PAPER.name, "novel"), "experiment,y\nnovel,1\n")
    write_report(results, "first", {"first": [*SHOWN["first"], (PAPER, novel)]}, results / "report.html")
    page = (results / "report.html").read_text(encoding="utf-8")
    assert '<span class="source">Not in the papers</span> <b>What is new.</b>' in page


def test_what_is_not_shown_is_not_on_the_page(results: Path):
    hidden = [(paper, replace(each, shown=each.name != "fig4")) for paper, each in SHOWN["first"]]
    write_report(results, "first", {"first": hidden}, results / "report.html")
    page = (results / "report.html").read_text(encoding="utf-8")
    assert 'id="first-fig3a"' in page
    assert 'id="first-fig4"' not in page


@pytest.mark.parametrize(
    "experiment", [each for paper in PAPERS for each in paper.experiments if each.shown], ids=lambda each: each.name
)
def test_every_shown_experiment_has_a_caption_and_what_draws_it_exists(experiment):
    assert declared.experiment(experiment.reference) is experiment
    assert experiment.caption.title
    if experiment.draw:
        assert experiment.caption.text
        assert experiment.caption.description
    for reference in filter(None, (experiment.draw, experiment.page)):
        assert callable(declared.function(reference))


def test_a_papers_table_says_once_what_its_rows_share_and_gives_each_epsilon_a_column(written: Path):
    (shown,) = exhibits(written, {"first": [(PAPER, TABLE2)]}, {}, {})
    (exhibited,) = shown.tables
    table = exhibited.table
    assert exhibited.title.startswith("Table 2: Noise of Descent-to-Delete")
    assert table.facts == (
        "dataset = digits, features = pixels, mechanism = descent-to-delete, accountant = descent-to-delete N.1, "
        "guarantee = as published, unlearning_steps = 1, delta = 0.001"
    )
    assert table.columns == ["ε = 0.5", "ε = 1.0"]
    assert table.groups == {
        "bound: L = 0.27874": [["6.533903", "3.31"]],
        "spectral: L = 0.1775751": [["3.889895", "–"]],
    }
    assert exhibited.download.name == "first-table2.csv"


def test_a_table_without_epsilons_is_shown_as_it_is():
    rows = pd.DataFrame({"data": "digits", "n": 1437, "rule": ["bound", "spectral"], "records": [1, None]})
    table = tabulate(TABLE1, rows.astype({"records": "Int64"}))
    assert (table.facts, table.columns) == ("data = digits, n = 1437", ["rule", "records"])
    assert table.groups == {"": [["bound", "1"], ["spectral", ""]]}


@pytest.mark.parametrize(("cell", "expected"), [
    ("6.533902274961859", "6.533903"), ("0.50", "0.50"), ("3.31", "3.31"), ("123456789", "123456789"),
    ("0.1234567", "0.1234567"), ("0.12345671", "0.1234568"), ("lsi-tight", "lsi-tight"), ("", ""), ("nan", "nan"),
])  # fmt: skip
def test_long_fractions_are_rounded_up_and_nothing_else_changes(cell, expected):
    assert text_of(cell) == expected


@pytest.mark.parametrize(("seconds", "expected"), [
    (0.00259, "0.00259 s"), (59.94, "59.9 s"), (60, "1 min 0 s"), (3599.4, "59 min 59 s"), (7380, "2 h 3 min"),
])  # fmt: skip
def test_times_are_told_in_fitting_units(seconds, expected):
    assert _time(seconds) == expected
