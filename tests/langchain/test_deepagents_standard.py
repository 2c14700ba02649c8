"""deepagents' published sandbox tests, unmodified, over this machine and over its sandbox."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_tests.integration_tests import SandboxIntegrationTests

from tests.support import require
from toolkit_core import HostCommands
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
        from toolkit_core import BubblewrapSandbox

        sandbox = BubblewrapSandbox(cls.folder)
        found = sandbox.probe()
        require(found.available, f"no sandbox here: {found.reason}")
        return DeepAgentsBackend(sandbox)


class RemoteFolder:
    """A client with a filesystem of its own: the three methods, and nothing else."""

    filesystem = "separate"

    def __init__(self, folder: str) -> None:
        self.root = folder
        self._commands = HostCommands(folder)

    async def run(self, command: str, *, cwd: str = "", timeout_seconds: float = 120.0, **_: Any) -> Any:
        return await self._commands.run(command, timeout_seconds=timeout_seconds)

    async def read_bytes(self, path: str) -> bytes:
        return await asyncio.to_thread(Path(path).read_bytes)

    async def write_bytes(self, path: str, content: bytes) -> None:
        def write() -> None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)

        await asyncio.to_thread(write)


class TestOverAnyClient(OverAFolder):
    """Whatever implements `SandboxClient`, with find(1) and grep(1) in it."""

    @classmethod
    def backend(cls) -> Any:
        return DeepAgentsBackend(cast("Any", RemoteFolder(cls.folder)))
