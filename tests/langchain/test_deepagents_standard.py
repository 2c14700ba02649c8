"""deepagents' published sandbox tests, unmodified, over this machine and over its sandbox."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_tests.integration_tests import SandboxIntegrationTests

from tests.support import require
from toolkit_langchain import DeepAgentsBackend

pytestmark = pytest.mark.filterwarnings(
    # the published suite defines its fixtures in a way that pytest 10 will refuse
    "ignore:Class-scoped fixtures defined as instance methods:pytest.PytestRemovedIn10Warning"
)


class OverAFolder(SandboxIntegrationTests):
    """The suite over one folder a class."""

    folder = ""

    @pytest.fixture(scope="class")
    @classmethod
    def sandbox(cls) -> Iterator[Any]:
        with tempfile.TemporaryDirectory() as made:
            cls.folder = str(Path(made).resolve())
            yield cls.backend()

    @classmethod
    def backend(cls) -> Any:
        raise NotImplementedError

    @property
    def sandbox_root_dir(self) -> str:
        return f"{type(self).folder}/"


class TestOnThisMachine(OverAFolder):
    @classmethod
    def backend(cls) -> Any:
        return DeepAgentsBackend(cls.folder)


class TestInBubblewrap(OverAFolder):
    """Commands confined, files on the host, where they are the same."""

    @classmethod
    def backend(cls) -> Any:
        from toolkit_core.host.bubblewrap.sandbox import BubblewrapSandbox

        sandbox = BubblewrapSandbox(cls.folder)
        found = sandbox.probe()
        require(found.available, f"no sandbox here: {found.reason}")
        return DeepAgentsBackend(sandbox)
