import pytest

from certified_unlearning.reproduction.claims.evidence import Evidence
from tests.reproduction.claims.mnist_results import write_results


@pytest.fixture(scope="session")
def mnist(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Results of the preset mnist, to be read only."""
    return write_results(tmp_path_factory.mktemp("results"), "mnist")
