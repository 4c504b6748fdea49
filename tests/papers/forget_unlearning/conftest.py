import pandas as pd
import pytest

from tests.papers.forget_unlearning.small_settings import RISK_SETTINGS, SETTINGS
from tests.support.planning import make, settings_of


@pytest.fixture(scope="session")
def attacks() -> pd.DataFrame:
    """All attacks once, at a size for tests."""
    table = make("deletion", settings_of("smoke"), SETTINGS, {})
    assert isinstance(table, pd.DataFrame)
    return table


@pytest.fixture(scope="session")
def risks() -> pd.DataFrame:
    table = make("risk", settings_of("smoke"), RISK_SETTINGS, {})
    assert isinstance(table, pd.DataFrame)
    return table
