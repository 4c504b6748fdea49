"""Fixtures of the rooms whose tests are repeated here."""

from tests.ledger.conftest import original
from tests.reproduction.conftest import small_data, three_classes

__all__ = ["original", "small_data", "three_classes"]
