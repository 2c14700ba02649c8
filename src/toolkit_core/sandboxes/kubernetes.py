"""A sandbox of the Kubernetes agent-sandbox project as a client, over the shape of `k8s_agent_sandbox.AsyncSandbox`.

https://github.com/kubernetes-sigs/agent-sandbox: commands.run, files.read, files.write. Its files are relative to the
root of the runtime; what lies elsewhere passes through commands, in base64.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import math
import posixpath
import re
import secrets
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from toolkit_core.cleanup import finish
from toolkit_core.command_checks import check_command, checked_timeout
from toolkit_core.errors import ToolError
from toolkit_core.limits import CLIENT_SCRIPT_BYTES, COMMAND_TIMEOUT_SECONDS
from toolkit_core.ports.commands import CommandResult
from toolkit_core.sandboxes.client_commands import no_exit_code
from toolkit_core.sandboxes.client_files import plane_folder
from toolkit_core.sandboxes.client_search import ClientSearch
from toolkit_core.sandboxes.foreign import code_of, content_of, exit_code_of, foreign_error, methods_of, stream_of
from toolkit_core.sandboxes.kept_output import KeptOutput
from toolkit_core.sandboxes.marked import KILL_SECONDS, MARK_NAME, kill_script
from toolkit_core.shell_words import assigned
from toolkit_core.text import first_surrogate, one_line_name

if TYPE_CHECKING:
    from toolkit_core.ports.commands import StreamName
    from toolkit_core.ports.sandbox import Filesystem
    from toolkit_core.ports.search import Search

_ANSWER_SECONDS: Final = 15.0
_NO_FOLDER: Final = 193
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_TRANSFER_SECONDS: Final = 300


class KubernetesLike(Protocol):
    """What is used of `k8s_agent_sandbox.AsyncSandbox`."""

    @property
    def commands(self) -> Any:
        """`run(command, timeout=, command_timeout=)`."""
        ...

    @property
    def files(self) -> Any:
        """`read(path, timeout=)`, `write(path, content, timeout=)`."""
        ...


class KubernetesSandbox:
    """Commands and files of a Kubernetes agent sandbox.

    Its service has no kill for one command: at the timeout, and when a call is cancelled, the command's processes
    are looked for and killed by another command; the note says where that failed. Output passes through the service
    as text: bytes that are not UTF-8 arrive as U+FFFD; files are exact.

    Args:
        sandbox: A `k8s_agent_sandbox.AsyncSandbox`, or what has its shape.
        root: The absolute folder that the service's file names are relative to, and where relative paths start.

    Raises:
        TypeError: It is no sandbox.
    """

    def __init__(self, sandbox: KubernetesLike, *, root: str = "/app") -> None:
        methods_of(sandbox, "a Kubernetes agent sandbox", ("commands.run", "files.read", "files.write"))
        self._sandbox = sandbox
        self._root = plane_folder(root)

    @property
    def filesystem(self) -> Filesystem:
        """Separate: its files are the pod's."""
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
        """Run a command. Its output comes when it has ended; of one that timed out the service tells none.

        Raises:
            ToolError: `io_error` (no usable exit code), `unavailable`, `not_found` (cwd), `invalid_arguments`.
        """
        check_command(command)
        seconds, note = checked_timeout(timeout_seconds)
        mark, started = secrets.token_hex(12), time.monotonic()
        folder = posixpath.join(self._root, cwd) if cwd else self._root
        words = _words(command, folder, mark, environment or {})
        try:
            async with asyncio.timeout(seconds + 2 * _ANSWER_SECONDS):
                answer: object = await self._sandbox.commands.run(
                    words, timeout=math.ceil(seconds + _ANSWER_SECONDS), command_timeout=seconds
                )
        except asyncio.CancelledError:
            await finish(self._kill(mark))
            raise
        except Exception as e:
            # The SDK's exceptions are not imported; each is told with its class.
            if code_of(e) != "timed_out":
                raise foreign_error(e, "a command ran: it may have run in part") from e
            return await self._timed_out(mark, b"", b"", note, time.monotonic() - started)
        stdout, stderr = stream_of(answer, "stdout"), stream_of(answer, "stderr")
        if getattr(answer, "timed_out", False) is True:
            return await self._timed_out(mark, stdout, stderr, note, time.monotonic() - started)
        code = exit_code_of(answer)
        if code < 0:  # what the SDK fills in where the service sent none
            raise no_exit_code(f"it sent {code}")
        if code == _NO_FOLDER and mark.encode() in stderr:
            message = f"The folder {one_line_name(folder)} does not exist (any more)."
            raise ToolError(message, code="not_found", hint="Make it, or run elsewhere.")
        result = _result(code, stdout, stderr, note, time.monotonic() - started)
        if on_output is not None and result.stdout:
            on_output("stdout", result.stdout)
        if on_output is not None and result.stderr:
            on_output("stderr", result.stderr)
        return result

    async def read_bytes(self, path: str) -> bytes:
        """A whole file."""
        place = posixpath.join(self._root, path)
        name = self._service_name(place)
        if name is None:
            return await self._read_by_command(place)
        return content_of(
            await self._file(path, "reading", self._sandbox.files.read(name, timeout=_TRANSFER_SECONDS)), path
        )

    async def write_bytes(self, path: str, content: bytes) -> None:
        """Write a whole file, its folders made."""
        place = posixpath.join(self._root, path)
        name = self._service_name(place)
        if name is None or "/" in name:  # the older runtime stores under the last name alone
            await self._write_by_command(place, content)
        else:
            await self._file(path, "writing", self._sandbox.files.write(name, content, timeout=_TRANSFER_SECONDS))

    def search(self, cwd: str) -> Search:
        """Search by commands: find, and ripgrep or grep."""
        return ClientSearch(self, cwd)

    def _service_name(self, place: str) -> str | None:
        """A path as the service takes it, relative to its root; None where it does not."""
        inner = posixpath.normpath(place).removeprefix(self._root.rstrip("/") + "/")
        if inner.startswith("/") or _CONTROL.search(inner) or first_surrogate(inner) is not None:
            return None
        return inner

    async def _file(self, path: str, doing: str, work: Awaitable[Any]) -> Any:
        try:
            return await work
        except Exception as e:
            # The SDK's exceptions are not imported; a missing file is an HTTP status in one of them.
            if code_of(e) == "not_found" or getattr(e, "status_code", None) == 404 or "404" in str(e):
                raise ToolError(f"There is nothing at {one_line_name(path)}.", code="not_found") from e
            raise foreign_error(e, f"{doing} {one_line_name(path)}") from e

    async def _read_by_command(self, place: str) -> bytes:
        script = f'{assigned("p", place)}\n[ -d "$p" ] && exit 21\n[ -e "$p" ] || exit 22\nbase64 <"$p"'
        answer: object = await self._plain(script)
        code = exit_code_of(answer)
        if code in (21, 22):
            shown = one_line_name(place)
            if code == 21:
                raise ToolError(f"{shown} is a folder, not a file.", code="is_a_directory")
            raise ToolError(f"There is nothing at {shown}.", code="not_found")
        try:
            return base64.b64decode(b"".join(stream_of(answer, "stdout").split()), validate=code == 0)
        except binascii.Error as e:
            raise ToolError(f"{one_line_name(place)} did not arrive whole.", code="io_error", retryable=True) from e

    async def _write_by_command(self, place: str, content: bytes) -> None:
        """In pieces, since a command can only be so long."""
        size = CLIENT_SCRIPT_BYTES // 4 * 3
        for start in range(0, max(len(content), 1), size):
            piece = base64.b64encode(content[start : start + size]).decode()
            mode = ">>" if start else ">"
            made = "" if start else 'mkdir -p -- "${p%/*}/" && '
            script = f"{assigned('p', place)}\n{made}printf %s '{piece}' | base64 -d {mode}\"$p\""
            answer: object = await self._plain(script)
            if exit_code_of(answer) != 0:
                said = stream_of(answer, "stderr").decode("utf-8", "backslashreplace").strip()
                raise ToolError(f"{one_line_name(place)} cannot be written: {said}", code="io_error")

    async def _plain(self, script: str) -> object:
        return await self._file(
            "the sandbox",
            "using",
            self._sandbox.commands.run(f"sh -c {shlex.quote(script)}", timeout=_TRANSFER_SECONDS),
        )

    async def _timed_out(self, mark: str, stdout: bytes, stderr: bytes, note: str, duration: float) -> CommandResult:
        left = "" if await self._kill(mark) else "it could not be killed there and may still run"
        note = "\n".join(filter(None, [note, left]))
        return _result(None, stdout, stderr, note, duration, timed_out=True)

    async def _kill(self, mark: str) -> bool:
        try:
            async with asyncio.timeout(KILL_SECONDS + _ANSWER_SECONDS):
                words = f"sh -c {shlex.quote(kill_script(mark))}"
                answer: object = await self._sandbox.commands.run(words, timeout=math.ceil(KILL_SECONDS))
            return exit_code_of(answer) == 0
        except Exception:  # noqa: BLE001 - whatever went wrong, the kill is not confirmed, and that is told
            return False


def _words(command: str, folder: str, mark: str, environment: Mapping[str, str]) -> str:
    """The command with its folder and variables: the older runtime takes neither beside it, nor a shell's syntax."""
    exports = [f"{MARK_NAME}={mark}"]
    for name, value in environment.items():
        if not _NAME.fullmatch(name) or "\0" in value:
            raise ToolError(f"{name!r} cannot be set in an environment.", code="invalid_arguments")
        exports.append(f"{name}={shlex.quote(value)}")
    script = (
        f"cd -- {shlex.quote(folder)} 2>/dev/null || {{ echo {mark} >&2; exit {_NO_FOLDER}; }}\n"
        f"export {' '.join(exports)}\n"
        f"s=sh; command -v bash >/dev/null 2>&1 && s='bash --norc'\n"
        f"exec $s -c {shlex.quote(command)} </dev/null"
    )
    return f"sh -c {shlex.quote(script)}"


def _result(
    code: int | None, stdout: bytes, stderr: bytes, note: str, duration: float, *, timed_out: bool = False
) -> CommandResult:
    out, err = KeptOutput(), KeptOutput()
    out.feed(stdout)
    err.feed(stderr)
    (kept_out, out_cut, out_at), (kept_err, err_cut, err_at) = out.kept(), err.kept()
    return CommandResult(
        exit_code=code,
        signal=None,
        stdout=kept_out,
        stderr=kept_err,
        stdout_cut=out_cut,
        stderr_cut=err_cut,
        timed_out=timed_out,
        duration_seconds=duration,
        note=note,
        stdout_cut_at=out_at,
        stderr_cut_at=err_at,
    )
