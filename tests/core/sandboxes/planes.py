"""Clients to test with: a folder of this machine as a plane, and the shapes of two SDKs over it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit_core import CommandResult, HostCommands, ToolError
from toolkit_core.ports.commands import StreamName
from toolkit_core.ports.sandbox import Filesystem


class FolderPlane:
    """The three methods over this machine, and nothing else; writes are as plain as they can be."""

    def __init__(self, folder: Path | str, *, path: str = "") -> None:
        self.root = str(folder)
        self.commands: list[str] = []
        self._commands = HostCommands(self.root)
        self._path = path

    @property
    def filesystem(self) -> Filesystem:
        return "separate"

    async def run(
        self,
        command: str,
        *,
        cwd: str = "",
        timeout_seconds: float = 120.0,
        environment: Mapping[str, str] | None = None,
        on_output: Callable[[StreamName, bytes], None] | None = None,
    ) -> CommandResult:
        self.commands.append(command)
        given = {"PATH": self._path or "/usr/local/bin:/usr/bin:/bin", **(environment or {})}
        return await self._commands.run(
            command, cwd=cwd, timeout_seconds=timeout_seconds, on_output=on_output, environment=given
        )

    async def read_bytes(self, path: str) -> bytes:
        try:
            return await asyncio.to_thread(Path(path).read_bytes)
        except (FileNotFoundError, NotADirectoryError) as e:
            raise ToolError(f"There is nothing at {path!r}.", code="not_found") from e
        except IsADirectoryError as e:
            raise ToolError(f"{path!r} is a folder.", code="is_a_directory") from e

    async def write_bytes(self, path: str, content: bytes) -> None:
        def write() -> None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)

        try:
            await asyncio.to_thread(write)
        except IsADirectoryError as e:
            raise ToolError(f"{path!r} is a folder.", code="is_a_directory") from e


class SandboxException(Exception):  # noqa: N818 - the SDK's name
    """As e2b's."""


class TimeoutException(SandboxException):
    """As e2b's."""


class NotFoundException(SandboxException):
    """As e2b's."""


@dataclass
class Completed:
    """As e2b's CommandResult and k8s-agent-sandbox's ExecutionResult."""

    stdout: str | None = ""
    stderr: str | None = ""
    exit_code: Any = 0
    error: str | None = None
    timed_out: bool = False


class CommandExitException(SandboxException, Completed):
    """As e2b's: raised for every exit code but 0."""

    def __init__(self, stdout: str, stderr: str, exit_code: int) -> None:
        Exception.__init__(self, f"Command exited with code {exit_code}")
        Completed.__init__(self, stdout, stderr, exit_code)


@dataclass
class FakeE2B:
    """The shape of `e2b.AsyncSandbox` over a folder of this machine."""

    folder: Path
    sandbox_id: str = "sb-1"
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        self.commands = _E2BCommands(self)
        self.files = _E2BFiles(self)

    async def create_snapshot(self) -> Any:
        name = f"{self.folder}.snapshot"
        shutil.copytree(self.folder, name)
        return Snapshot(name)


@dataclass
class Snapshot:
    snapshot_id: str


class _E2BCommands:
    def __init__(self, sandbox: FakeE2B) -> None:
        self._sandbox = sandbox

    async def run(
        self,
        cmd: str,
        background: bool | None = None,
        envs: dict[str, str] | None = None,
        user: str | None = None,
        cwd: str | None = None,
        on_stdout: Callable[[str], Any] | None = None,
        on_stderr: Callable[[str], Any] | None = None,
        stdin: bool | None = None,
        timeout: float | None = 60,
        request_timeout: float | None = None,
        *,
        retain_output: bool = True,
    ) -> Any:
        self._sandbox.calls.append(("run", (cmd,), {"envs": envs, "cwd": cwd, "timeout": timeout}))
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", **(envs or {})}
        if cwd is not None and not Path(cwd).is_dir():
            raise SandboxException(f"cwd '{cwd}' does not exist")
        # Like the real service, it ends nothing when it stops waiting.
        process = await asyncio.create_subprocess_exec(
            *("/bin/bash", "-c", cmd),
            cwd=cwd,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        texts: list[list[str]] = [[], []]
        assert process.stdout is not None
        assert process.stderr is not None
        readers = [
            asyncio.ensure_future(_pump(process.stdout, texts[0], on_stdout)),
            asyncio.ensure_future(_pump(process.stderr, texts[1], on_stderr)),
        ]
        try:
            async with asyncio.timeout(timeout or None):
                code = await process.wait()
                await asyncio.gather(*readers)
        except TimeoutError:
            raise TimeoutException("the command timed out") from None
        finally:
            for reader in readers:
                reader.cancel()
        stdout, stderr = ("".join(text) for text in texts) if retain_output else ("", "")
        if code != 0:
            raise CommandExitException(stdout, stderr, code)
        return Completed(stdout if retain_output else None, stderr if retain_output else None)

    async def kill(self, pid: int, request_timeout: float | None = None) -> bool:
        self._sandbox.calls.append(("kill", (pid,), {}))
        return False


async def _pump(reader: asyncio.StreamReader, kept: list[str], tell: Callable[[str], Any] | None) -> None:
    import codecs

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while block := await reader.read(65_536):
        text = decoder.decode(block)
        kept.append(text)
        if tell is not None:
            tell(text)


class _E2BFiles:
    def __init__(self, sandbox: FakeE2B) -> None:
        self._sandbox = sandbox

    async def read(self, path: str, format: str = "text", user: str | None = None) -> Any:  # noqa: A002 - as the SDK names it
        self._sandbox.calls.append(("read", (path,), {"format": format}))
        try:
            data = Path(path).read_bytes()
        except (FileNotFoundError, NotADirectoryError) as e:
            raise NotFoundException(f"path {path} does not exist") from e
        except IsADirectoryError as e:
            raise SandboxException(f"path {path} is a directory") from e
        return bytearray(data) if format == "bytes" else data.decode()

    async def write(self, path: str, data: bytes) -> Any:
        self._sandbox.calls.append(("write", (path, data), {}))
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(data)
        except OSError as e:
            raise SandboxException(str(e)) from e

    async def remove(self, path: str) -> None:
        self._sandbox.calls.append(("remove", (path,), {}))
        target = Path(path)
        if not target.exists():
            raise NotFoundException(path)
        shutil.rmtree(target) if target.is_dir() else target.unlink()


class FakeKubernetes:
    """The shape of `k8s_agent_sandbox.AsyncSandbox` over a folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.commands = self
        self.files = _KubernetesFiles(self)
        self._e2b = _E2BCommands(FakeE2B(folder))

    async def run(
        self,
        command: str,
        timeout: int = 60,
        command_timeout: float | None = None,
        *,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
    ) -> Completed:
        self.calls.append(("run", (command,), {"timeout": timeout, "command_timeout": command_timeout}))
        if env or cwd:
            raise NotImplementedError("the legacy runtime takes neither")
        try:
            return await self._e2b.run(command, cwd=str(self.folder), timeout=command_timeout or timeout)
        except CommandExitException as e:
            return e
        except TimeoutException:
            return Completed("", "", 124, timed_out=True)


class _KubernetesFiles:
    def __init__(self, sandbox: FakeKubernetes) -> None:
        self._sandbox = sandbox

    def _path(self, path: str) -> Path:
        if any(ord(c) < 0x20 for c in path) or path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"unsafe path {path!r}")
        return self._sandbox.folder / path

    async def read(self, path: str, timeout: int = 60, allow_unsafe_paths: bool = False) -> bytes:
        self._sandbox.calls.append(("read", (path,), {"timeout": timeout}))
        return self._path(path).read_bytes()

    async def write(self, path: str, content: bytes, timeout: int = 60, allow_unsafe_paths: bool = False) -> None:
        self._sandbox.calls.append(("write", (path, content), {"timeout": timeout}))
        (self._sandbox.folder / Path(path).name).write_bytes(content)
