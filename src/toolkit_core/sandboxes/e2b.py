"""An E2B sandbox as a client, over the shape of its SDK's `AsyncSandbox`; the SDK itself is not imported.

https://e2b.dev/docs: commands.run and kill; files.read, write and remove; create_snapshot, pause, connect.
"""

from __future__ import annotations

import asyncio
import inspect
import posixpath
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from toolkit_core.cleanup import finish
from toolkit_core.command_checks import check_command, checked_timeout
from toolkit_core.errors import ToolError
from toolkit_core.limits import COMMAND_TIMEOUT_SECONDS
from toolkit_core.ports.commands import CommandResult
from toolkit_core.sandboxes.client_files import plane_folder
from toolkit_core.sandboxes.client_search import ClientSearch
from toolkit_core.sandboxes.foreign import (
    code_of,
    content_of,
    exit_code_of,
    foreign_error,
    has_exit_code,
    methods_of,
    stream_of,
)
from toolkit_core.sandboxes.kept_output import KeptOutput
from toolkit_core.sandboxes.marked import KILL_SECONDS, MARK_NAME, kill_script
from toolkit_core.sandboxes.workers import Workers
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from toolkit_core.ports.commands import StreamName
    from toolkit_core.ports.sandbox import Filesystem
    from toolkit_core.ports.search import Search

T = TypeVar("T")

_ANSWER_SECONDS: Final = 15.0
"""What the SDK may take beyond the command's own timeout before it counts as timed out."""


class E2BLike(Protocol):
    """What is used of `e2b.AsyncSandbox`."""

    @property
    def commands(self) -> Any:
        """`run(cmd, *, envs, cwd, timeout)`, `kill(pid)`."""
        ...

    @property
    def files(self) -> Any:
        """`read(path, format=...)`, `write(path, data)`, `remove(path)`."""
        ...


Maker = Callable[[str], Awaitable[E2BLike]]


class E2BSandbox:
    """Commands and files of an E2B sandbox.

    While a restore runs and after one that failed nothing is run, read or written; a later good restore ends that.
    Output passes through the SDK as text: bytes that are not UTF-8 arrive as U+FFFD; files are exact.

    Args:
        sandbox: An `e2b.AsyncSandbox`, or what has its shape.
        connect: Connects to a sandbox by id, for `restore`; it must return the very one. None: the sandbox's own
            `connect`, which only takes its own id.
        from_snapshot: Makes a sandbox from a snapshot's id, for `restore`; taken before `connect`.
        root: The folder that relative paths start at.

    Raises:
        TypeError: It is no sandbox.

    Example:
        >>> sandbox = E2BSandbox(await AsyncSandbox.create(), from_snapshot=AsyncSandbox.create)  # doctest: +SKIP
    """

    def __init__(
        self,
        sandbox: E2BLike,
        *,
        connect: Maker | None = None,
        from_snapshot: Maker | None = None,
        root: str = "/home/user",
    ) -> None:
        _check(sandbox)
        self._workers: Workers[E2BLike] = Workers(sandbox)
        self._connect, self._from_snapshot = connect, from_snapshot
        self._root = plane_folder(root)

    @property
    def filesystem(self) -> Filesystem:
        """Separate: its files are E2B's."""
        return "separate"

    @property
    def root(self) -> str:
        """Where relative paths start."""
        return self._root

    async def run(
        self,
        command: str,
        *,
        cwd: str = "",
        timeout_seconds: float = COMMAND_TIMEOUT_SECONDS,
        environment: Mapping[str, str] | None = None,
        on_output: Callable[[StreamName, bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command. At the timeout its processes are looked for and killed there; the note says if that failed.

        Raises:
            ToolError: `io_error` (no usable exit code), `unavailable` (restoring, or gone), `not_found` (cwd).
        """
        check_command(command)
        seconds, note = checked_timeout(timeout_seconds)
        folder = posixpath.join(self._root, cwd) if cwd else self._root
        call = _Call(command, folder, seconds, dict(environment or {}), on_output)
        return await self._workers.ask(lambda worker: call.on(worker, note))

    async def read_bytes(self, path: str) -> bytes:
        """A whole file."""
        place = posixpath.join(self._root, path)
        answer = await self._file(path, "reading", lambda worker: worker.files.read(place, format="bytes"))
        return content_of(answer, path)

    async def write_bytes(self, path: str, content: bytes) -> None:
        """Write a whole file, its folders made."""
        place = posixpath.join(self._root, path)
        await self._file(path, "writing", lambda worker: worker.files.write(place, content))

    async def remove(self, path: str) -> None:
        """Remove a file or a folder."""
        place = posixpath.join(self._root, path)
        await self._file(path, "removing", lambda worker: worker.files.remove(place))

    async def kill(self, process_id: str) -> bool:
        """Kill a process by its pid there."""
        if not process_id.isdigit():
            raise ToolError(f"{process_id!r} is no process id.", code="invalid_arguments")
        answer: object = await self._file(process_id, "killing", lambda worker: worker.commands.kill(int(process_id)))
        return answer is True

    def search(self, cwd: str) -> Search:
        """Search by commands: find, and ripgrep or grep."""
        return ClientSearch(self, cwd)

    async def snapshot(self) -> str:
        """Keep the present state: a snapshot where the SDK makes them, else the sandbox is paused under its own id."""

        async def keep(worker: Any) -> str:
            if callable(getattr(worker, "create_snapshot", None)):
                made: object = await worker.create_snapshot()
                return _id_of(made, "snapshot_id", "id")
            if not callable(getattr(worker, "pause", None)):
                raise ToolError("This sandbox makes no snapshots.", code="unsupported")
            name = _id_of(worker, "sandbox_id", "sandboxId")
            await worker.pause()  # False says that it was paused already
            return name

        return await self._file("the sandbox", "making a snapshot", keep)

    async def restore(self, snapshot_id: str) -> None:
        """Go back to a kept state. Raises `ToolError`, after which there is no worker until a restore succeeds."""
        if not snapshot_id:
            raise ToolError("There is no snapshot without an id.", code="invalid_arguments")
        await self._workers.replace(lambda: self._made(snapshot_id))

    async def _made(self, name: str) -> E2BLike:
        try:
            if self._from_snapshot is not None:
                made = await self._from_snapshot(name)
                _check(made)
                return made
            made = await self._connected(name)
            _check(made)
        except ToolError:
            raise
        except Exception as e:
            # Whatever an SDK raises, the sandbox is without a worker, and the caller has to know why.
            raise foreign_error(e, f"restoring {one_line_name(name)}") from e
        got = _id_of(made, "sandbox_id", "sandboxId")
        if got != name:
            raise ToolError(
                f"Asked for the sandbox {one_line_name(name)}, the connector returned {one_line_name(got)}.",
                code="unavailable",
                hint="It was not taken. Restore again with a connector that returns the one that is asked for.",
            )
        return made

    async def _connected(self, name: str) -> E2BLike:
        if self._connect is not None:
            return await self._connect(name)
        last: Any = self._workers.last
        if not callable(getattr(last, "connect", None)) or _id_of(last, "sandbox_id", "sandboxId") != name:
            raise ToolError(
                f"There is no way to restore {one_line_name(name)}.",
                code="unsupported",
                hint="Make the client with connect= or from_snapshot=.",
            )
        made: object = await last.connect()
        return cast("E2BLike", last if made is None else made)

    async def _file(self, path: str, doing: str, work: Callable[[Any], Awaitable[Any]]) -> Any:
        try:
            return await self._workers.ask(work)
        except ToolError:
            raise
        except Exception as e:
            # The SDK's exceptions are not imported; each is told with its class.
            if code_of(e) == "not_found":
                raise ToolError(f"There is nothing at {one_line_name(path)}.", code="not_found") from e
            raise foreign_error(e, f"{doing} {one_line_name(path)}") from e


class _Call:
    """One command on one worker."""

    def __init__(
        self,
        command: str,
        cwd: str,
        seconds: float,
        environment: dict[str, str],
        on_output: Callable[[StreamName, bytes], None] | None,
    ) -> None:
        self._command, self._seconds = command, seconds
        self._mark = secrets.token_hex(12)
        self._options: dict[str, Any] = {
            "envs": {**environment, MARK_NAME: self._mark},
            "cwd": cwd,
            "timeout": seconds,
        }
        self._on_output = on_output
        self._out, self._err = KeptOutput(), KeptOutput()

    async def on(self, worker: E2BLike, note: str) -> CommandResult:
        started = time.monotonic()
        self._stream(worker)
        try:
            async with asyncio.timeout(self._seconds + _ANSWER_SECONDS):
                answer: object = await worker.commands.run(self._command, **self._options)
        except asyncio.CancelledError:
            await finish(self._kill(worker))
            raise
        except Exception as e:  # noqa: BLE001 - a non-zero exit is raised too; whatever carries an exit code is a result
            if not has_exit_code(e):
                return await self._failed(worker, e, note, time.monotonic() - started)
            answer = e
        code = exit_code_of(answer)
        return self._result(answer, code, note, time.monotonic() - started)

    def _stream(self, worker: E2BLike) -> None:
        """Have output handed over as it comes, where the SDK can do without keeping all of it (2.20 and later)."""
        if "retain_output" in inspect.signature(worker.commands.run).parameters:
            self._options |= {"retain_output": False, "on_stdout": self._stdout, "on_stderr": self._stderr}

    def _stdout(self, text: str | bytes) -> None:
        self._take("stdout", self._out, text)

    def _stderr(self, text: str | bytes) -> None:
        self._take("stderr", self._err, text)

    def _take(self, stream: StreamName, kept: KeptOutput, text: str | bytes) -> None:
        data = text.encode("utf-8", "backslashreplace") if isinstance(text, str) else bytes(text)
        kept.feed(data)
        if self._on_output is not None:
            self._on_output(stream, data)

    def _result(
        self, answer: object, code: int | None, note: str, duration: float, *, timed_out: bool = False
    ) -> CommandResult:
        for stream, kept in (("stdout", self._out), ("stderr", self._err)):
            data = b"" if kept.total_bytes else stream_of(answer, stream)
            if data:
                self._take("stdout" if stream == "stdout" else "stderr", kept, data)
        (stdout, out_cut, out_at), (stderr, err_cut, err_at) = self._out.kept(), self._err.kept()
        return CommandResult(
            exit_code=code,
            signal=None,
            stdout=stdout,
            stderr=stderr,
            stdout_cut=out_cut,
            stderr_cut=err_cut,
            timed_out=timed_out,
            duration_seconds=duration,
            note=note,
            stdout_cut_at=out_at,
            stderr_cut_at=err_at,
        )

    async def _failed(self, worker: E2BLike, error: Exception, note: str, duration: float) -> CommandResult:
        if code_of(error) == "timed_out":
            killed = await self._kill(worker)
            left = "" if killed else "it could not be killed there and may still run"
            return self._result(error, None, "\n".join(filter(None, [note, left])), duration, timed_out=True)
        said = str(error)
        if "cwd" in said and ("not exist" in said or "no such" in said.lower()):
            message = f"The folder {one_line_name(str(self._options['cwd']))} does not exist (any more)."
            raise ToolError(message, code="not_found", hint="Make it, or run elsewhere.") from error
        raise foreign_error(error, "a command ran: it may have run in part") from error

    async def _kill(self, worker: E2BLike) -> bool:
        """Kill whatever carries the command's mark; True where the sandbox confirms that nothing is left."""
        try:
            async with asyncio.timeout(KILL_SECONDS + _ANSWER_SECONDS):
                answer: object = await worker.commands.run(kill_script(self._mark), timeout=KILL_SECONDS)
            return exit_code_of(answer) == 0
        except Exception:  # noqa: BLE001 - whatever went wrong, the kill is not confirmed, and that is told
            return False


def _check(sandbox: object) -> None:
    methods_of(sandbox, "an E2B sandbox", ("commands.run", "files.read", "files.write"))


def _id_of(given: object, *names: str) -> str:
    for name in names:
        value: object = getattr(given, name, None)
        if isinstance(value, str) and value:
            return value
    raise ToolError(f"The sandbox sent no {names[0]}.", code="io_error")
