"""The published suite on every client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.core.host.stand_in import docker_stand_in
from tests.core.sandboxes.planes import FakeE2B, FakeKubernetes, FolderPlane
from tests.core.sshd import Server, running_sshd
from tests.support import require
from toolkit_core import (
    BubblewrapSandbox,
    DockerSandbox,
    E2BSandbox,
    InMemorySandbox,
    KubernetesSandbox,
    SandboxClient,
)
from toolkit_core.testing.sandbox_suite import SandboxClientSuite


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_sshd() as running:
        yield running


class OverAFolder(SandboxClientSuite):
    @pytest.fixture
    def root(self, workspace: Path) -> str:
        return str(workspace)


class TestInMemory(SandboxClientSuite):
    has_shell: ClassVar[bool] = False

    @pytest.fixture
    def client(self) -> SandboxClient:
        return InMemorySandbox()

    @pytest.fixture
    def root(self) -> str:
        return "/workspace"


class TestThreeMethods(OverAFolder):
    @pytest.fixture
    def client(self, workspace: Path) -> SandboxClient:
        return FolderPlane(workspace)


class TestBubblewrap(OverAFolder):
    @pytest.fixture
    async def client(self, workspace: Path) -> AsyncIterator[SandboxClient]:
        sandbox = BubblewrapSandbox(workspace)
        require(sandbox.probe().available, "bubblewrap cannot start here")
        yield sandbox
        await sandbox.aclose()


class TestE2B(OverAFolder):
    exact_output: ClassVar[bool] = False
    any_name: ClassVar[bool] = True

    @pytest.fixture
    def client(self, workspace: Path) -> SandboxClient:
        async def from_snapshot(name: str) -> Any:
            Path(f"{workspace}/f").write_bytes(Path(f"{name}/f").read_bytes())
            return FakeE2B(workspace, "sb-2")

        return E2BSandbox(FakeE2B(workspace), root=str(workspace), from_snapshot=from_snapshot)

    async def test_leaves_nothing_running(self, client: SandboxClient, root: str) -> None:
        """E2B keeps background processes: that is what its sandboxes are for."""


class TestKubernetes(OverAFolder):
    exact_output: ClassVar[bool] = False

    @pytest.fixture
    def client(self, workspace: Path) -> SandboxClient:
        return KubernetesSandbox(FakeKubernetes(workspace), root=str(workspace))

    async def test_leaves_nothing_running(self, client: SandboxClient, root: str) -> None:
        """The service waits for the output's end, and so for what a command left running."""


class TestDocker(OverAFolder):
    @pytest.fixture
    async def client(self, workspace: Path, tmp_path: Path) -> AsyncIterator[SandboxClient]:
        program, _ = docker_stand_in(tmp_path)
        async with DockerSandbox("debian:stable", root=str(workspace), program=program) as sandbox:
            yield sandbox


class TestSSH(SandboxClientSuite):
    @pytest.fixture
    async def client(self, server: Server, root: str) -> AsyncIterator[SandboxClient]:
        async with server.sandbox(root) as sandbox:
            yield sandbox

    @pytest.fixture
    def root(self, server: Server, request: pytest.FixtureRequest) -> str:
        return server.new_folder(request.node.name)
