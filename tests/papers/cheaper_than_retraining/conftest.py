import pandas as pd
import pytest

from certified_unlearning.papers.cheaper_than_retraining.audits.table import audit_table
from certified_unlearning.papers.cheaper_than_retraining.measured import cost_table
from tests.support.planning import sweep_of


@pytest.fixture(scope="session")
def cost() -> pd.DataFrame:
    """The table of the preset smoke, to be read only."""
    return cost_table(sweep_of("smoke", "cost"))


@pytest.fixture(scope="session")
def audits() -> pd.DataFrame:
    """The audits of the preset smoke, to be read only."""
    return audit_table(sweep_of("smoke", "audit"))
