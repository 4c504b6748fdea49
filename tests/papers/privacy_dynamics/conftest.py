import pandas as pd
import pytest

from certified_unlearning.papers.privacy_dynamics.measured import measured_table
from tests.support.planning import sweep_of


@pytest.fixture(scope="session")
def measured() -> pd.DataFrame:
    """The table of the committed sweep, to be read only."""
    return measured_table(sweep_of("digits", "measured"))
