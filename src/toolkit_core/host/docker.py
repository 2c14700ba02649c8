"""A container as a sandbox client, over the docker command line (podman's takes the same words).

https://docs.docker.com/reference/cli/docker/container/run/ and .../exec/.
"""

from __future__ import annotations

import asyncio
import posixpath
import secrets
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final

from toolkit_core.cleanup import finish
from toolkit_core.command_checks import check_command, checked_timeout
from toolkit_core.errors import ToolError
from toolkit_core.host._native.helper_process import killed
from toolkit_core.host.keeper_run import KeeperRun, end
from toolkit_core.host.keeper_script import keeper, killer, new_mark
from toolkit_core.limits import (
    CLEANUP_SECONDS,
    CLIENT_BLOCK_BYTES,
    CLIENT_FILE_MAX_BYTES,
    CLIENT_PROBE_SECONDS,
    COMMAND_OUTPUT_MAX_BYTES,
    COMMAND_TIMEOUT_SECONDS,
    DOCKER_PIDS_MAX,
    DOCKER_START_SECONDS,
    GIT_CLONE_SECONDS,
    PLANE_DEFAULT_ROOT,
)
from toolkit_core.sandboxes.client_files import plane_folder
from toolkit_core.sandboxes.client_search import ClientSearch
from toolkit_core.shell_words import assigned
from toolkit_core.text import one_line_name
from toolkit_core.turns import Turns

if TYPE_CHECKING:
    from toolkit_core.ports.commands import CommandResult, StreamName
    from toolkit_core.ports.sandbox import Filesystem
    from toolkit_core.ports.search import Search

_FOLDER: Final = 21
_MISSING: Final = 22
_SPECIAL: Final = 23
_FIRST_PROCESS: Final = 'mkdir -p -- "$1" && cd -- "$1" && echo ready && while read -r _; do :; done'
"""Lives while its standard input is open, and so no longer than the process that made it."""


class DockerSandbox:
    """Commands and files of a container, made on first use and removed with `aclose`, or when this process dies.

    It has no network, no capabilities and no new privileges unless it is told otherwise; it is as strong as the
    engine that runs it. A command ends with everything it started, as over SSH.

    Args:
        image: What to run; it needs a POSIX shell.
        root: Absolute folder that relative paths start at; made if it is missing.
        network: Whether it has the engine's default network.
        user: Who runs in it, as `--user` takes it.
        memory: Its limit, as `--memory` takes it.
        options: More words for `docker run`, before the image.
        program: The command line's name or path.
        max_output_bytes: Kept of each stream of a command.

    Raises:
        ValueError: The image is empty or looks like an option, or `root` is no absolute path.
    """

    def __init__(
        self,
        image: str,
        *,
        root: str = PLANE_DEFAULT_ROOT,
        network: bool = False,
        user: str = "",
        memory: str = "",
        options: Sequence[str] = (),
        program: str = "docker",
        max_output_bytes: int = COMMAND_OUTPUT_MAX_BYTES,
    ) -> None:
        if not image or image.startswith("-"):
            raise ValueError(f"{image!r} is no name of an image")
        self._root = plane_folder(root)
        self._program = program
        self._words = [
            *("--rm", "--interactive", "--init", "--cap-drop=ALL", "--security-opt=no-new-privileges"),
            f"--pids-limit={DOCKER_PIDS_MAX}",
            *([] if network else ["--network=none"]),
            *([f"--user={user}"] if user else []),
            *([f"--memory={memory}"] if memory else []),
            *options,
        ]
        self._image = image
        self._max_output_bytes = max_output_bytes
        self._turns = Turns()
        self._name = ""
        self._holder: Process | None = None

    @property
    def filesystem(self) -> Filesystem:
        """Separate: its files are the container's."""
        return "separate"

    @property
    def root(self) -> str:
        """Where relative paths start."""
        return self._root

    async def __aenter__(self) -> DockerSandbox:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Remove the container with everything in it."""
        name, holder, self._name, self._holder = self._name, self._holder, "", None
        if name:
            await finish(self._remove_container(name), within_seconds=CLEANUP_SECONDS * 2)
        if holder is not None:
            await finish(killed(holder))

    async def run(
        self,
        command: str,
        *,
        cwd: str = "",
        timeout_seconds: float = COMMAND_TIMEOUT_SECONDS,
        environment: Mapping[str, str] | None = None,
        on_output: Callable[[StreamName, bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command in bash, or sh where there is none, to its end and the end of all that it started.

        Raises:
            ToolError: `unavailable` (no engine, no container), `killed`, `not_found` (cwd), `invalid_arguments`.
        """
        check_command(command)
        seconds, note = checked_timeout(timeout_seconds)
        folder = posixpath.join(self._root, cwd) if cwd else self._root
        name, mark, started = await self._container(), new_mark(), time.monotonic()
        run = KeeperRun(mark, f"the container {name}", self._max_output_bytes, on_output)
        process = await self._exec(name, keeper(mark, command, folder, environment or {}))
        reading = asyncio.ensure_future(_read_all(process, run))
        timed_out = False
        try:
            try:
                async with asyncio.timeout(seconds):
                    await run.closed.wait()
            except TimeoutError:
                timed_out = True
                await self._end(name, process, run)
        except BaseException:
            await finish(self._end(name, process, run, politely=False), within_seconds=CLEANUP_SECONDS * 2)
            raise
        finally:
            await finish(_reaped(process, reading))
        return run.result(folder, timed_out=timed_out, note=note, duration_seconds=time.monotonic() - started)

    async def read_bytes(self, path: str) -> bytes:
        """A whole file, 256 MiB at most; only a regular one is opened."""
        script = f'[ -d "$p" ] && exit {_FOLDER}; [ -e "$p" ] || exit {_MISSING}; [ -f "$p" ] || exit {_SPECIAL}\n'
        return await self._file(path, script + 'cat <"$p"')

    async def write_bytes(self, path: str, content: bytes) -> None:
        """Write a whole file, its folders made."""
        script = f'[ -d "$p" ] && exit {_FOLDER}\nmkdir -p -- "${{p%/*}}/" && cat >"$p"'
        await self._file(path, script, content)

    async def remove(self, path: str) -> None:
        """Remove a file or a folder with what is in it; of a link the link."""
        await self._file(path, f'[ -e "$p" ] || [ -L "$p" ] || exit {_MISSING}\nrm -rf -- "$p"')

    def search(self, cwd: str) -> Search:
        """Search by commands: find, and ripgrep or grep."""
        return ClientSearch(self, cwd)

    async def _file(self, path: str, script: str, content: bytes = b"") -> bytes:
        place, mark = posixpath.join(self._root, path), new_mark()
        name = await self._container()
        process = await self._exec(name, f"echo {mark} >&2\n{assigned('p', place)}\n{script}")
        try:
            async with asyncio.timeout(GIT_CLONE_SECONDS):
                output, said = await _exchange(process, content)
                code = await process.wait()
        except BaseException:
            await finish(killed(process))
            raise
        noise, opened, complaint = said.partition(f"{mark}\n".encode())
        if not opened:
            raise _no_engine(noise.decode("utf-8", "backslashreplace"))
        _refuse(code, complaint, path)
        return output

    async def _container(self) -> str:
        """The container's name, after it was made. Raises `ToolError` `unavailable`."""
        async with self._turns.turn("container"):
            if self._holder is not None and self._holder.returncode is None:
                return self._name
            if self._name:
                raise ToolError(
                    f"The container {self._name} has ended.",
                    code="unavailable",
                    hint="Its files are gone. Close the sandbox to have a new one made.",
                )
            name = f"toolkit-{secrets.token_hex(8)}"
            argv = ["run", f"--name={name}", *self._words, self._image, "/bin/sh", "-c", _FIRST_PROCESS]
            holder = await self._spawn([*argv, "sh", self._root])
            try:
                await _until_ready(holder)
            except BaseException:
                await finish(killed(holder))
                await finish(self._remove_container(name))
                raise
            self._name, self._holder = name, holder
            return name

    async def _exec(self, name: str, script: str) -> Process:
        return await self._spawn(["exec", "--interactive", name, "/bin/sh", "-c", script])

    async def _spawn(self, words: Sequence[str]) -> Process:
        try:
            return await asyncio.create_subprocess_exec(
                self._program, *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
            )
        except FileNotFoundError as e:
            raise _no_engine(f"there is no program {self._program}") from e
        except OSError as e:
            raise _no_engine(f"{self._program} cannot be started: {e.strerror}") from e

    async def _end(self, name: str, process: Process, run: KeeperRun, *, politely: bool = True) -> None:
        def tell(line: bytes) -> None:
            if process.stdin is not None:
                process.stdin.write(line)

        async def kill_apart() -> None:
            other = await self._exec(name, killer(run.mark))
            try:
                await other.communicate()
            finally:
                await finish(killed(other))

        await end(run, tell, kill_apart, politely=politely)

    async def _remove_container(self, name: str) -> None:
        process = await asyncio.create_subprocess_exec(
            self._program, "rm", "--force", name, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
        )
        try:
            async with asyncio.timeout(CLIENT_PROBE_SECONDS):
                await process.wait()
        finally:
            await killed(process)


async def _until_ready(holder: Process) -> None:
    """Wait for the first process of a container."""
    assert holder.stdout is not None  # noqa: S101 - for the type checker
    assert holder.stderr is not None  # noqa: S101 - for the type checker
    try:
        async with asyncio.timeout(DOCKER_START_SECONDS):
            line = await holder.stdout.readline()
            said = b"" if line == b"ready\n" else await holder.stderr.read(2_000)
    except TimeoutError as e:
        raise _no_engine(f"no container within {DOCKER_START_SECONDS:g} s") from e
    if line != b"ready\n":
        raise _no_engine(said.decode("utf-8", "backslashreplace"))


async def _read_all(process: Process, run: KeeperRun) -> None:
    assert process.stdout is not None  # noqa: S101 - for the type checker
    assert process.stderr is not None  # noqa: S101 - for the type checker
    try:
        await asyncio.gather(_pass_on(process.stdout, run.feed_stdout), _pass_on(process.stderr, run.feed_stderr))
        run.exit_status = await process.wait()
    finally:
        run.close()


async def _pass_on(reader: asyncio.StreamReader, take: Callable[[bytes], None]) -> None:
    while block := await reader.read(65_536):
        take(block)


async def _exchange(process: Process, content: bytes) -> tuple[bytes, bytes]:
    """Feed standard input, and read both streams in bounded memory."""
    assert process.stdout is not None  # noqa: S101 - for the type checker
    assert process.stderr is not None  # noqa: S101 - for the type checker
    assert process.stdin is not None  # noqa: S101 - for the type checker
    writing = asyncio.ensure_future(_feed(process.stdin, content))
    errors = asyncio.ensure_future(process.stderr.read(1_000_000))
    blocks: list[bytes] = []
    size = 0
    while block := await process.stdout.read(CLIENT_BLOCK_BYTES):
        blocks.append(block)
        size += len(block)
        if size > CLIENT_FILE_MAX_BYTES:
            raise ToolError(f"The file has more than {CLIENT_FILE_MAX_BYTES:,} bytes.", code="too_large")
    await writing
    return b"".join(blocks), await errors


async def _feed(writer: asyncio.StreamWriter, content: bytes) -> None:
    view = memoryview(content)
    with suppress(ConnectionError):
        for start in range(0, len(view), CLIENT_BLOCK_BYTES):
            writer.write(view[start : start + CLIENT_BLOCK_BYTES])
            await writer.drain()
    writer.close()


async def _reaped(process: Process, reading: asyncio.Future[None]) -> None:
    """The docker client has ended, and nobody reads it any more."""
    with suppress(TimeoutError):
        async with asyncio.timeout(1.0):
            await asyncio.shield(reading)
    await killed(process)
    reading.cancel()
    with suppress(asyncio.CancelledError):
        await reading


def _refuse(code: int, said: bytes, path: str) -> None:
    shown = one_line_name(path)
    if code == _FOLDER:
        raise ToolError(f"{shown} is a folder, not a file.", code="is_a_directory")
    if code == _MISSING:
        raise ToolError(f"There is nothing at {shown}.", code="not_found")
    if code == _SPECIAL:
        raise ToolError(f"{shown} is a special file, not a file; it was not opened.", code="not_a_file")
    if code != 0:
        reason = said.decode("utf-8", "backslashreplace").strip() or f"status {code}"
        raise ToolError(f"{shown} cannot be used: {reason}", code="io_error")


def _no_engine(reason: str) -> ToolError:
    said = " ".join(reason.split())[:400] or "no message"
    return ToolError(
        f"There is no container to work in: {said}.",
        code="unavailable",
        hint="Check that docker runs and has the image.",
        retryable=True,
    )
