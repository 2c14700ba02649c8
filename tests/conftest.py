from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["toolkit_core.testing.fixtures"]

# No deadline and no database: the machine may be busy, and what a run finds belongs into a test of its own.
settings.register_profile(
    "toolkit", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("toolkit")


def pytest_addoption(parser: pytest.Parser) -> None:
    """What a test compares with may be written anew."""
    parser.addoption("--write-notebooks", action="store_true", help="write the outputs of notebooks/ anew")
    parser.addoption("--write-public-api", action="store_true", help="write tests/public_api.txt anew")
