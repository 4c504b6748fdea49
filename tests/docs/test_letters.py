"""The letter template says of the model only what the page about the law allows, and what the person's page says."""

import contextlib
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from certified_unlearning.cli import app
from tests.docs.test_shell_commands import page_in_markdown, people, without_days_and_hashes

DOCS = Path(__file__).parents[2] / "docs"
LAW, LETTERS, EXACT_SAMPLE = (
    (DOCS / name).read_text(encoding="utf-8") for name in ("law.md", "letter-template.md", "sample-answer-exact.md")
)
DAY = r"\d+ [A-Z][a-z]+ 20\d\d"
ABOUT_THE_MODEL = re.compile(
    r"\b(models?|versions?|records?|removed|removal|guess\w*|noise|certificate|certified|copy of the data|numbers?|"
    r"on hold|log|trained|training|anonymous|risk|GDPR)\b"
)
"""Words of sentences that say something about the model, or about what was done with it."""
CASES = {
    "Removed exactly": "exact",
    "Removed with epsilon and delta": "newton",
    "Waiting": "waiting",
    "On hold": "held",
    "Refused": "not recorded",
}


def sentences(text: str) -> list[str]:
    """The sentences of a text, in which all that differs from letter to letter is a #."""
    plain = re.sub(rf"\[[^\]]*\]|\.\.\.|{DAY}|\d+(?:[.,]\d+)*", "#", " ".join(text.split()))
    return [each.strip(" .") for each in re.split(r"(?<=[.?#]) (?=[A-Z])", plain) if each.strip(" .#")]


def rows_of_the_table() -> list[tuple[str, str]]:
    table = LAW.split("| may be written |")[1].split("\n\n")[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines()[2:]]
    assert all(len(row) == 2 for row in rows)
    return [(row[0], row[1]) for row in rows]


def quoted(cells: list[str]) -> list[str]:
    return [each for cell in cells for each in re.findall(r'"([^"]+)"', cell)]


ALLOWED = {each for text in quoted([may for may, _ in rows_of_the_table()]) for each in sentences(text)}
FORBIDDEN = {" ".join(sentences(text)).lower() for text in quoted([may_not for _, may_not in rows_of_the_table()])}


def letters() -> dict[str, str]:
    """The text of each part's letter, by the part's heading."""
    parts = re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", LETTERS, re.MULTILINE | re.DOTALL)
    return {
        heading: "\n".join(line.lstrip("> ") for line in text.splitlines() if line.startswith(">"))
        for heading, text in parts
    }


def not_allowed(letter: str) -> list[str]:
    """The sentences about the model that stand in no row of the table, and those that a row forbids."""
    found = sentences(letter)
    unknown = [each for each in found if ABOUT_THE_MODEL.search(each) and each not in ALLOWED]
    whole = " ".join(found).lower()
    return unknown + [each for each in FORBIDDEN if each and re.search(rf"(?<!\w){re.escape(each)}(?!\w)", whole)]


def test_each_letter_says_of_the_model_only_what_may_be_written() -> None:
    parts = letters()
    assert list(parts) == ["The frame", *CASES]
    assert len(ALLOWED) > 15
    assert len(FORBIDDEN) > 10
    for heading, letter in parts.items():
        assert letter, heading
        assert not_allowed(letter) == [], heading


@pytest.mark.parametrize("sentence", [
    "All your data have been deleted.",
    "The risk is 4.8 %.",
    "The model is anonymous.",
    "The model is exactly as if your records had never been there.",
    "Version 2 of the model was made without your record.",
    "At most 548 of 1,000 guesses are right.",
    "This complies with the GDPR.",
])  # fmt: skip
def test_a_sentence_that_may_not_be_written_is_found_in_a_letter(sentence: str) -> None:
    """Planted faults, with and without blanks."""
    for letter in letters().values():
        assert not_allowed(f"{letter}\n\n{sentence}") != []


class Program:
    """The program in a directory, as README and the pages of samples call it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, command: str) -> str:
        with contextlib.chdir(self.directory):
            result = CliRunner().invoke(app, command.split())
        assert result.exit_code == 0, f"{command}\n{result.output}"
        return result.output

    def page(self, model: str, identifier: int) -> str:
        printed = self(f"show {model} --id {identifier}")
        return printed[: printed.index("For the operator of the model (not part of the page)")]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """README's table, with its draft of a declaration, and a model of each kind."""
    directory = tmp_path_factory.mktemp("letters")
    table = people(1000, visits=np.arange(1000) % 100, customer_id=np.arange(5000, 6000))
    table = table.rename(columns={"older": "churned"})
    table.loc[0, "customer_id"] = 1234
    table.to_csv(directory / "customers.csv", index=False)
    run = Program(directory)
    run("declare customers.csv --label churned --id customer_id -o table.yaml")
    draft = directory / "table.yaml"
    draft.write_text(re.sub(r" *# check: from the data.*", "", draft.read_text(encoding="utf-8")), encoding="utf-8")
    run("init newton --table table.yaml --epsilon 1")
    run("init model --table table.yaml --mechanism subsample-gd")
    return run


@pytest.fixture(scope="module")
def exact_page(program: Program) -> str:
    program("request model --id 1234 --id 5678")
    program("apply model --no-quality")
    return program("show model --id 1234")


@pytest.fixture(scope="module")
def pages(program: Program, exact_page: str) -> dict[str, str]:
    """The page of a person in each case."""
    program("request newton --id 1234")
    found = {"waiting": program.page("newton", 1234)}
    program("request newton --id 5001 --hold case-12")
    found["held"] = program.page("newton", 5001)
    found["not recorded"] = program.page("newton", 5002)
    program("apply newton --no-quality")
    return {**found, "newton": program.page("newton", 1234), "exact": exact_page}


def test_the_sample_page_of_exact_unlearning_is_what_the_program_prints(exact_page: str) -> None:
    assert "--mechanism subsample-gd" in EXACT_SAMPLE
    sample = [line for line in EXACT_SAMPLE.splitlines() if line[:2] in ("##", "- ")]
    assert without_days_and_hashes(page_in_markdown(exact_page)) == without_days_and_hashes(sample)


OPERATORS = re.compile(r"\b(We|we|our|your|They will)\b|^Suppose that|^If the conditions|^An expert")
"""Sentences of the operator, which the page cannot have."""
ONLY_WITH_A_SECRET_FILE = (
    "Not finished: secret files in the model's folder may still contain information from the record"
)


@pytest.mark.parametrize("heading", CASES)
def test_the_page_of_each_case_says_what_the_letter_says(heading: str, pages: dict[str, str]) -> None:
    page = pages[CASES[heading]].replace("this page", "the attached page")
    on_the_page = {each for line in page.splitlines() for each in sentences(line)}
    found = [each for each in sentences(letters()[heading]) if ABOUT_THE_MODEL.search(each)]
    taken = [each for each in found if not OPERATORS.search(each) and each != ONLY_WITH_A_SECRET_FILE]
    assert taken
    assert [each for each in taken if each not in on_the_page] == []


def test_the_letters_results_are_those_of_the_pages(pages: dict[str, str]) -> None:
    assert (
        "At most 548 of 1,000 such guesses (54.8 %) are right on average; a coin is right about 500 times."
        in pages["newton"]
    )
    assert "at most [548] of 1,000 such guesses are right on average; a coin is\n> right 500 times." in LETTERS
    assert "500 of 1,000 such guesses (50 %) are right on average, as with a coin." in pages["exact"]
    assert "500 of 1,000 such guesses are right on average, as with a coin." in letters()["Removed exactly"]


def test_the_page_of_a_corrected_model_says_that_secret_files_keep_something(program: Program) -> None:
    table = people(20_000, visits=np.arange(20_000) % 100, customer_id=np.arange(20_000))
    table.rename(columns={"older": "churned"}).to_csv(program.directory / "many.csv", index=False)
    declared = (program.directory / "table.yaml").read_text(encoding="utf-8").replace("customers.csv", "many.csv")
    (program.directory / "many.yaml").write_text(declared, encoding="utf-8")
    program("init many --table many.yaml --epsilon 1 --C 0.005")
    program("request many --id 1234")
    program("apply many --no-quality")
    page = program.page("many", 1234)
    assert "The model was corrected for what was removed" in page
    assert ONLY_WITH_A_SECRET_FILE in page
