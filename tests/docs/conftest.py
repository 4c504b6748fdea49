from pathlib import Path

import pytest

from tests.docs.building import ROOT, build


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    site = tmp_path_factory.mktemp("documents") / "site"
    done = build(ROOT / "docs", site)
    assert done.returncode == 0, done.stderr
    return site
