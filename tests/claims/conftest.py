import pytest
from mnist_results import write_results

from certified_unlearning.claims import Evidence


@pytest.fixture(scope="session")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Results of the preset mnist, to be read only."""
    return write_results(tmp_path_factory.mktemp("results"), "mnist")
