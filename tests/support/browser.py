"""Headless Chromium for tests that look at a page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, sync_playwright

from tests.support.waiting import PATIENCE

EXECUTABLES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium(width: int = 1600, height: int = 1000) -> Iterator[Page]:
    """Yield an empty page of the system's Chromium; skip the test where there is none."""
    executable = next(filter(None, map(shutil.which, EXECUTABLES)), None)
    if executable is None:
        pytest.skip(f"no Chromium on the PATH (looked for {', '.join(EXECUTABLES)})")
    # A proxy of the surroundings must not stand between the browser and a server on this machine.
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS), env=environment) as browser,
    ):
        page = browser.new_page(viewport={"width": width, "height": height})
        page.context.set_default_timeout(1000 * PATIENCE)
        yield page
