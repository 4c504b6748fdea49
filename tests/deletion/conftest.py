import pandas as pd
import pytest
from small_settings import INTERACTIONS, SETTINGS

from certified_unlearning.deletion.experiment import attack_table
from certified_unlearning.deletion.risk import risk_table


@pytest.fixture(scope="session")
def attacks() -> pd.DataFrame:
    """All attacks once, at a size for tests."""
    return attack_table(SETTINGS, interactions=INTERACTIONS)


@pytest.fixture(scope="session")
def risks() -> pd.DataFrame:
    return risk_table(SETTINGS)
