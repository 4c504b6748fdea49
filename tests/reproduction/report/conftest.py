"""Results of two presets, and the page about them in a browser."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import Page

from certified_unlearning.reproduction.report import write_report
from certified_unlearning.reproduction.rows import RUN_ROWS, write_table
from tests.reproduction.report.report_results import SHOWN, records_of, write_results
from tests.support.browser import chromium


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results that no test changes."""
    results = tmp_path_factory.mktemp("report") / "results"
    write_results(results)
    return results


@pytest.fixture
def results(written: Path, tmp_path: Path) -> Path:
    """Results that a test may change."""
    return Path(shutil.copytree(written, tmp_path / "results"))


@pytest.fixture(scope="session")
def report(written: Path) -> Path:
    """The page about both presets."""
    output = written.parent / "report.html"
    write_report(written, "both", SHOWN, output)
    return output


@pytest.fixture(scope="module")
def browser_page() -> Iterator[Page]:
    with chromium(1400, 1000) as page:
        yield page


@pytest.fixture
def fresh_page(browser_page: Page) -> Iterator[Page]:
    """An empty page that nothing has happened in."""
    assert browser_page.context.browser is not None
    with browser_page.context.browser.new_context() as context:
        yield context.new_page()


@pytest.fixture
def page(browser_page: Page, report: Path) -> Page:
    """The report in a wide window, freshly opened, light."""
    browser_page.set_viewport_size({"width": 1400, "height": 1000})
    browser_page.emulate_media(media="screen", color_scheme="light")
    browser_page.goto(report.as_uri())
    return browser_page


@pytest.fixture
def change_records(results: Path) -> Callable[[Callable[[pd.DataFrame], None]], None]:
    """Return a function that changes the records of the first preset by another function."""

    def change(how: Callable[[pd.DataFrame], None]) -> None:
        records = records_of("first").copy()
        how(records)
        write_table(results / "first/records.parquet", records, RUN_ROWS)

    return change
