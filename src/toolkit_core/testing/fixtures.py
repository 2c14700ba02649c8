"""pytest fixtures for tests of code that uses the toolkit: `workspace`, `sandbox` and `answers`.

In the top conftest.py: `pytest_plugins = ["toolkit_core.testing.fixtures"]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from toolkit_core.sandboxes.in_memory import InMemorySandbox
from toolkit_core.testing.ask import Answers

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty folder to use as the root of tools; its path holds no link."""
    folder = tmp_path.resolve() / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def sandbox() -> InMemorySandbox:
    """A deterministic sandbox in memory, with a filesystem of its own."""
    return InMemorySandbox()


@pytest.fixture
def answers() -> Answers:
    """Whoever answers questions: `answers.give("yes")`, then `ToolContext(ask=answers)`."""
    return Answers()
