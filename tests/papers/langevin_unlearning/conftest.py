"""Results to read findings from."""

from tests.reproduction.claims.conftest import mnist  # noqa: F401
