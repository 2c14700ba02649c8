"""A machine behind SSH as a sandbox client, on asyncssh (extra `ssh`)."""

from __future__ import annotations

import asyncio
import posixpath
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from toolkit_core.cleanup import finish
from toolkit_core.command_checks import check_command, checked_timeout
from toolkit_core.errors import ErrorCode, ToolError
from toolkit_core.host.keeper_run import KeeperRun, end, lost
from toolkit_core.host.keeper_script import by_login_shell, keeper, killer, new_mark
from toolkit_core.host.loop_thread import LoopThread
from toolkit_core.limits import (
    CLEANUP_SECONDS,
    CLIENT_FILE_MAX_BYTES,
    CLIENT_PROBE_SECONDS,
    COMMAND_OUTPUT_MAX_BYTES,
    COMMAND_TIMEOUT_SECONDS,
    SSH_CONNECTIONS_MAX,
)
from toolkit_core.sandboxes.client_files import plane_folder
from toolkit_core.sandboxes.client_search import ClientSearch
from toolkit_core.shell_words import assigned
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from asyncssh import SFTPClient, SFTPClientFile, SSHClientChannel

    from toolkit_core.host.ssh_link import Line, Link
    from toolkit_core.ports.commands import CommandResult, StreamName
    from toolkit_core.ports.sandbox import Filesystem
    from toolkit_core.ports.search import Search

T = TypeVar("T")

_SFTP_FILE: Final = 1  # draft-ietf-secsh-filexfer-13, 7.2
_SFTP_FOLDER: Final = 2
_SFTP_UNKNOWN: Final = 5
_ARGUMENT_BYTES: Final = 60_000
_MISSING: Final = 64


class SSHSandbox:
    """Commands and files of another machine. The host's key is always verified.

    A command ends with everything it started: at its timeout, when the call is cancelled, and when this process or
    the connection goes away. A connection that is lost is an error, never a result. Connections are made on first
    use, shared, and made anew; the object works from any event loop.

    Args:
        host: Name or address.
        root: Absolute folder there that relative paths start at; it must exist.
        port: The server's port.
        username: None: the user of this process.
        known_hosts: File of host keys, or its content as bytes; None: `~/.ssh/known_hosts`.
        client_keys: Files of private keys; empty: the agent's, and the usual ones in `~/.ssh`.
        password: For hosts without keys.
        config: Files of OpenSSH client configuration to heed; none by default.
        max_connections: At once; each takes seven commands.
        max_output_bytes: Kept of each stream of a command.

    Raises:
        ImportError: asyncssh is missing: install the extra `ssh`.
        ValueError: `root` is no absolute path, or the host is empty.

    Example:
        >>> async with SSHSandbox("build.example", root="/srv/work") as sandbox:  # doctest: +SKIP
        ...     tools = default_tools("/srv/work", sandbox=sandbox)
    """

    def __init__(
        self,
        host: str,
        *,
        root: str,
        port: int = 22,
        username: str | None = None,
        known_hosts: str | bytes | None = None,
        client_keys: Sequence[str] = (),
        password: str | None = None,
        config: Sequence[str] = (),
        max_connections: int = SSH_CONNECTIONS_MAX,
        max_output_bytes: int = COMMAND_OUTPUT_MAX_BYTES,
    ) -> None:
        if not host:
            raise ValueError("host is empty: name the machine to connect to")
        options: dict[str, Any] = {"port": port, "config": list(config) or None}
        given = {"username": username, "known_hosts": known_hosts, "password": password}
        options |= {name: value for name, value in given.items() if value is not None}
        if client_keys:
            options["client_keys"] = list(client_keys)
        self._host = host
        self._root = plane_folder(root)
        self._link = _new_link(host, options, max_connections)
        self._max_output_bytes = max_output_bytes
        self._thread = LoopThread("toolkit-ssh")

    @property
    def filesystem(self) -> Filesystem:
        """Separate: its files are the other machine's."""
        return "separate"

    @property
    def root(self) -> str:
        """Where relative paths start."""
        return self._root

    async def __aenter__(self) -> SSHSandbox:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; what still runs on them ends."""
        await finish(self._thread.run(self._link.aclose()))
        await asyncio.to_thread(self._thread.stop)

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

        Death of the shell by a signal is an exit code of 128 and the signal's number: a keeper in POSIX sh sees no
        more of it.

        Raises:
            ToolError: `unavailable` (no connection; or lost while it ran: what it did stands), `killed` (its keeper
                was), `not_found` (cwd is gone), `invalid_arguments`.
        """
        check_command(command)
        seconds, note = checked_timeout(timeout_seconds)
        folder = posixpath.join(self._root, cwd) if cwd else self._root
        tell = None if on_output is None else _on_this_loop(on_output)
        return await self._thread.run(self._run(command, folder, seconds, note, dict(environment or {}), tell))

    async def read_bytes(self, path: str) -> bytes:
        """A whole file, 256 MiB at most; only a regular one is opened."""

        async def read(sftp: SFTPClient) -> bytes:
            size = await _regular_size(sftp, path)
            if size > CLIENT_FILE_MAX_BYTES:
                message = f"{one_line_name(path)} has {size:,} bytes; at most {CLIENT_FILE_MAX_BYTES:,} are held."
                raise ToolError(message, code="too_large")
            async with sftp.open(self._remote(path), "rb", encoding=None) as file:
                return await file.read()

        return await self._transfer(path, read)

    async def read_range(self, path: str, offset: int, size: int) -> bytes:
        """A part of a file."""

        async def read(sftp: SFTPClient) -> bytes:
            async with sftp.open(self._remote(path), "rb", encoding=None) as file:
                return await file.read(size, offset)

        return await self._transfer(path, read)

    async def write_bytes(self, path: str, content: bytes) -> None:
        """Write a whole file, its folders made."""

        async def write(sftp: SFTPClient) -> None:
            async with await self._opened(sftp, self._remote(path)) as file:
                await file.write(content)

        await self._transfer(path, write)

    async def remove(self, path: str) -> None:
        """Remove a file or a folder with what is in it; of a link the link."""
        script = f'[ -e "$p" ] || [ -L "$p" ] || exit {_MISSING}\nrm -rf -- "$p"'
        target = posixpath.join(self._root, path)
        result = await self.run(f"{assigned('p', target)}\n{script}", timeout_seconds=CLIENT_PROBE_SECONDS)
        if result.exit_code == _MISSING:
            raise ToolError(f"There is nothing at {one_line_name(path)}.", code="not_found")
        if result.exit_code != 0:
            said = result.stderr.decode("utf-8", "backslashreplace").strip()
            raise ToolError(f"{one_line_name(path)} could not be removed whole: {said}", code="io_error")

    def search(self, cwd: str) -> Search:
        """Search by commands: find, and ripgrep or grep."""
        return ClientSearch(self, cwd)

    def _remote(self, path: str) -> bytes:
        return posixpath.join(self._root, path).encode("utf-8", "surrogateescape")

    async def _opened(self, sftp: SFTPClient, path: bytes) -> SFTPClientFile:
        import asyncssh

        try:
            return await sftp.open(path, "wb", encoding=None)
        except asyncssh.SFTPNoSuchFile:
            await sftp.makedirs(posixpath.dirname(path), exist_ok=True)
            return await sftp.open(path, "wb", encoding=None)

    async def _transfer(self, path: str, work: Callable[[SFTPClient], Awaitable[T]]) -> T:
        async def on_line() -> T:
            import asyncssh

            async with self._link.line() as line:
                try:
                    return await work(await line.files())
                except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection) as e:
                    raise lost(self._host, "A file operation was under way") from e
                except asyncssh.SFTPError as e:
                    raise _sftp_refused(e, path) from e
                except (asyncssh.Error, OSError) as e:
                    raise lost(self._host, "A file operation was under way") from e

        return await self._thread.run(on_line())

    async def _run(
        self,
        command: str,
        folder: str,
        seconds: float,
        note: str,
        environment: Mapping[str, str],
        tell: Callable[[StreamName, bytes], None] | None,
    ) -> CommandResult:
        """On the thread's loop."""
        mark, started = new_mark(), time.monotonic()
        uploaded = await self._upload_long(command)
        words = by_login_shell(keeper(mark, "" if uploaded else command, folder, environment, uploaded))
        async with self._link.line() as line:
            run = KeeperRun(mark, self._host, self._max_output_bytes, tell)
            channel = await self._started(line, run, words)
            timed_out = False
            try:
                try:
                    async with asyncio.timeout(seconds):
                        await run.closed.wait()
                except TimeoutError:
                    timed_out = True
                    await self._end(line, channel, run)
            except asyncio.CancelledError:
                await finish(self._end(line, channel, run, politely=False), within_seconds=CLEANUP_SECONDS * 2)
                raise
            finally:
                channel.close()
        duration = time.monotonic() - started
        return run.result(folder, timed_out=timed_out, note=note, duration_seconds=duration)

    async def _upload_long(self, command: str) -> str:
        """A command that is too long for an argument goes into a file there."""
        if len(command.encode()) <= _ARGUMENT_BYTES:
            return ""
        path = f"/tmp/.toolkit-{secrets.token_hex(16)}"  # noqa: S108 - on the far side, its name random

        async with self._link.line() as line:
            sftp = await line.files()
            async with sftp.open(path, "xb", encoding=None) as file:
                await file.write(command.encode())
        return path

    async def _started(self, line: Line, run: KeeperRun, words: str) -> SSHClientChannel[bytes]:
        """Start it; cancelled meanwhile, what may have started over there is ended first."""
        starting = asyncio.ensure_future(self._start(line, run, words))
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:

            async def undo() -> None:
                channel = await starting
                await self._end(line, channel, run, politely=False)
                channel.close()

            await finish(undo(), within_seconds=CLEANUP_SECONDS * 2)
            raise

    async def _start(self, line: Line, run: KeeperRun, words: str) -> SSHClientChannel[bytes]:
        import asyncssh

        try:
            return await line.start(run, words)
        except asyncssh.ChannelOpenError as e:
            message = f"{self._host} opened no channel: {e.reason}."
            raise ToolError(message, code="unavailable", hint="Nothing was run. Try again.", retryable=True) from e
        except (asyncssh.Error, OSError) as e:
            raise lost(self._host, "The command was about to start") from e

    async def _end(
        self, line: Line, channel: SSHClientChannel[bytes], run: KeeperRun, *, politely: bool = True
    ) -> None:
        async def kill_apart() -> None:
            import asyncssh

            try:
                await line.connection.run(by_login_shell(killer(run.mark)), encoding=None)
            except asyncssh.Error as e:
                raise OSError(str(e)) from e

        await end(run, cast("Callable[[bytes], None]", cast("Any", channel).write), kill_apart, politely=politely)


def _new_link(host: str, options: Mapping[str, Any], max_connections: int) -> Link:
    try:
        from toolkit_core.host.ssh_link import Link
    except ImportError as e:
        raise ImportError("SSHSandbox needs asyncssh: pip install 'toolkit-core[ssh]'") from e
    return Link(host, options, max_connections=max_connections)


def _on_this_loop(listener: Callable[[StreamName, bytes], None]) -> Callable[[StreamName, bytes], None]:
    loop = asyncio.get_running_loop()

    def tell(stream: StreamName, data: bytes) -> None:
        with suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(listener, stream, data)

    return tell


async def _regular_size(sftp: SFTPClient, path: str) -> int:
    attributes = await sftp.stat(path.encode("utf-8", "surrogateescape"))
    kind, shown = attributes.type, one_line_name(path)
    if kind == _SFTP_FOLDER:
        raise ToolError(f"{shown} is a folder, not a file.", code="is_a_directory")
    if kind not in (_SFTP_FILE, _SFTP_UNKNOWN):
        raise ToolError(f"{shown} is a special file, not a file; it was not opened.", code="not_a_file")
    return attributes.size or 0


def _sftp_refused(error: Exception, path: str) -> ToolError:
    import asyncssh

    shown, reason = one_line_name(path), str(getattr(error, "reason", error))
    code: ErrorCode = "io_error"
    if isinstance(error, asyncssh.SFTPNoSuchFile | asyncssh.SFTPNoSuchPath):
        code = "not_found"
    elif isinstance(error, asyncssh.SFTPFileIsADirectory):
        code = "is_a_directory"
    if code == "not_found":
        return ToolError(f"There is nothing at {shown}.", code=code)
    return ToolError(f"{shown} cannot be used: {reason}.", code=code)
