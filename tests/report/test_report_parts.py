"""The report's parts without a browser: words, numbers, and what happens when files are missing or damaged."""

import shutil
from pathlib import Path

import pytest
from report_results import PRESETS, change_claim

from certified_unlearning.certificate import read
from certified_unlearning.errors import DataError, ParameterError
from certified_unlearning.figures import BOUND_FIGURES, FIGURES
from certified_unlearning.files import write_model
from certified_unlearning.report import write_report
from certified_unlearning.report.captions import CAPTIONS
from certified_unlearning.report.provenance import _time
from certified_unlearning.report.tables import paper_tables, shown
from certified_unlearning.report.verdicts import places, words

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("path", "rule"), [
    ("data.json", "prepare"), ("records.parquet", "collect"), ("figures/fig3a.png", "figure"),
    ("plots/fig3a.csv", "figure"), ("plots/recuperation.csv", "bound_figure"), ("plots/accountants.csv", "accountants"),
    ("plans/fig3a.json", "plan"), ("parameters.html", "parameter_table"),
])  # fmt: skip
def test_a_missing_file_is_named_with_its_rule_and_an_older_page_stays(path, rule, results: Path):
    output = results / "report.html"
    output.write_text("older", encoding="utf-8")
    (results / "second" / path).unlink()
    with pytest.raises(DataError, match=rf"second/{path}, which does not exist; the workflow's rule {rule} makes it"):
        write_report(results, "both", PRESETS, output)
    assert output.read_text(encoding="utf-8") == "older"
    assert f"\nrule {rule}:\n" in "".join(file.read_text() for file in (ROOT / "workflow/rules").glob("*.smk"))


@pytest.mark.parametrize(("path", "content", "message"), [
    ("first/figures/fig3a.png", "no image", "fig3a.png is not an image"),
    ("first/plots/accountants.csv", "", "accountants.csv is not a table"),
    ("first/plots/accountants.csv", 'quantity,lsi\n"K: epsilon = 1, 2",5\n', "has not one number for each epsilon"),
    ("first/data.json", "{}", "data.json lacks name, features"),
    ("first/plans/fig3a.json", "{}", "fig3a.json lacks settings"),
    ("first/certificates/fig3a/lsi-0.json", "{}", "lsi-0.json is not a certificate: run_key"),
    *((f"second/{path}", content, rf"second/{path} is .*; the workflow's rule {rule} makes it$")
      for path, rule, contents in [
          ("plots/fig3a.csv", "figure", ["", "no table", "experiment,y\n", "x,y\n1\n1,2,3\n"]),
          ("plots/accountants.csv", "accountants", ["", "no table"]),
          ("plots/table1.csv", "tables", ["", "no table"]),
          ("figures/fig3a.pdf", "figure", ["", "no PDF", "%PDF-1.4 cut off"]),
          ("parameters.html", "parameter_table", ["", "no table", "<table>cut off"]),
      ] for content in contents),
    *(("second/plots/recuperation.csv", content, "recuperation.csv does not hold .*; the workflow's rule bound_figure")
      for content in ["x,y\n1,2\n", "experiment,y\nfig3a,1\n", "experiment,y\nrecuperation,1\nfig3a,1\n"]),
    ("first/records.parquet", "no table", "records.parquet is not a Parquet file"),
    ("both/claims.json", '[{"id": 1}]', "claims.json is not a list of claims: 0.id"),
])  # fmt: skip
def test_a_damaged_file_is_named(path, content, message, results: Path):
    (results / path).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        write_report(results, "both", PRESETS, results / "report.html")


def test_a_damaged_table_is_named_though_its_bytes_are_no_text(results: Path):
    (results / "second/plots/fig3a.csv").write_bytes(b"experiment,y\nfig3a,\xff\xfe\n")
    with pytest.raises(DataError, match=r"second/plots/fig3a.csv is not a table: .* rule figure makes it"):
        write_report(results, "both", PRESETS, results / "report.html")


def test_missing_certificates_of_an_experiment_are_named_with_their_rule(results: Path):
    shutil.rmtree(results / "second/certificates/fig4")
    with pytest.raises(DataError, match=r"second/certificates/fig4, which does not exist; the workflow's rule certify"):
        write_report(results, "both", PRESETS, results / "report.html")


@pytest.mark.parametrize("missing", [True, False], ids=["a run has none", "one is of an unknown run"])
def test_certificates_of_other_runs_than_the_records_are_refused(missing, results: Path):
    file = results / "second/certificates/fig4/lsi-0.json"
    if missing:
        file.unlink()
    else:
        write_model(file, read(file).model_copy(update={"run_key": "unknown"}))
    with pytest.raises(DataError, match=rf"the {8 - missing} certificates in .*second/certificates/fig4 are not those"):
        write_report(results, "both", PRESETS, results / "report.html")


@pytest.mark.parametrize(("change", "message"), [
    ({"epsilon": 0.4}, "states epsilon = 0.4, but its constants give"),
    ({"guarantee": "exact"}, "states other guarantee"),
    ({"step_size": 100.0}, ""),
])  # fmt: skip
def test_a_certificate_that_does_not_verify_is_named_with_its_rule(change, message, results: Path):
    file = results / "second/certificates/fig4/shifted-1.json"
    write_model(file, read(file).model_copy(update=change))
    with pytest.raises(
        DataError, match=rf"fig4/shifted-1.json does not verify: .*{message}.*; the workflow's rule certify"
    ):
        write_report(results, "both", PRESETS, results / "report.html")


def test_a_report_about_nothing_is_refused(results: Path):
    with pytest.raises(ParameterError, match="the report 'none' is about no presets"):
        write_report(results, "none", [], results / "report.html")


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
    with pytest.raises(DataError, match=r"claims.json is not a list of claims: 0.verdict"):
        write_report(results, "both", PRESETS, results / "report.html")


def test_without_claims_and_tables_the_page_says_so(results: Path):
    write_report(results, "second", ["second"], results / "report.html")
    page = (results / "report.html").read_text(encoding="utf-8")
    assert "results/second/claims.json</code> does not exist" in page
    assert "hold none of the paper’s tables" in page
    assert 'id="filters"' not in page


def test_the_same_results_give_the_same_page(results: Path, report: Path):
    write_report(results, "both", PRESETS, results / "deep/er/report.html")
    assert (results / "deep/er/report.html").read_bytes() == report.read_bytes()


def test_a_figure_without_a_caption_is_shown_under_its_name(results: Path):
    shutil.copy(results / "first/figures/fig3a.png", results / "first/figures/novel.png")
    (results / "first/plots/novel.csv").write_text("experiment,y\nnovel,1\n", encoding="utf-8")
    write_report(results, "first", ["first"], results / "report.html")
    assert "<b>novel.</b>" in (results / "report.html").read_text(encoding="utf-8")


def test_every_figure_of_the_project_has_a_caption_with_files_and_rules_that_exist():
    assert set(FIGURES) | set(BOUND_FIGURES) <= set(CAPTIONS)
    rules = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "workflow/rules").glob("*.smk"))
    for caption in CAPTIONS.values():
        assert (ROOT / "src/certified_unlearning/figures" / caption.drawn_by).is_file()
        for rule in caption.rules.split(", "):
            assert f"\nrule {rule}:\n" in rules


def test_a_papers_table_says_once_what_its_rows_share_and_gives_each_epsilon_a_column(written: Path):
    (table,) = paper_tables(written / "first")
    assert table.title.startswith("Table 2")
    assert table.facts == "dataset = digits, accountant = N.1"
    assert table.columns == ["ε = 0.5", "ε = 1.0"]
    assert table.groups == {
        "bound: L = 0.27874": [["6.533903", "3.31"]],
        "spectral: L = 0.1775751": [["3.889895", "–"]],
    }
    assert table.download.name == "first-table2.csv"


def test_a_table_without_epsilons_is_shown_as_it_is(written: Path, tmp_path: Path):
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots/table1.csv").write_text("data,n,rule\ndigits,1437,bound\ndigits,1437,spectral\n")
    (table,) = paper_tables(tmp_path)
    assert (table.facts, table.columns) == ("data = digits, n = 1437", ["rule"])
    assert table.groups == {"": [["bound"], ["spectral"]]}


@pytest.mark.parametrize(("cell", "expected"), [
    ("6.533902274961859", "6.533903"), ("0.50", "0.50"), ("3.31", "3.31"), ("123456789", "123456789"),
    ("0.1234567", "0.1234567"), ("0.12345671", "0.1234568"), ("lsi-tight", "lsi-tight"), ("", ""), ("nan", "nan"),
])  # fmt: skip
def test_long_fractions_are_rounded_up_and_nothing_else_changes(cell, expected):
    assert shown(cell) == expected


@pytest.mark.parametrize(("value", "expected"), [
    (None, "–"), (True, "yes"), (False, "no"), (12861, "12,861"), (0.00957769112, "0.00957769"), ("text", "text"),
    ([1, None, [2.5]], "1, –, 2.5"), ({"K": 3, "S": [1, 2]}, "K: 3; S: 1, 2"), ([], ""),
])  # fmt: skip
def test_any_json_value_has_words(value, expected):
    assert words(value) == expected


@pytest.mark.parametrize(("seconds", "expected"), [
    (0.00259, "0.00259 s"), (59.94, "59.9 s"), (60, "1 min 0 s"), (3599.4, "59 min 59 s"), (7380, "2 h 3 min"),
])  # fmt: skip
def test_times_are_told_in_fitting_units(seconds, expected):
    assert _time(seconds) == expected
