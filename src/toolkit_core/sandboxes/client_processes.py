"""The `Processes` port over any sandbox client with a POSIX shell."""

from __future__ import annotations

import asyncio
import codecs
import itertools
import math
import posixpath
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolkit_core.cleanup import finish
from toolkit_core.command_checks import check_command
from toolkit_core.errors import ToolError
from toolkit_core.limits import (
    CLIENT_PROBE_SECONDS,
    CLIENT_PROCESS_READ_BYTES,
    CLIENT_PROCESS_WRITE_BYTES,
    COMMAND_GRACE_SECONDS,
    PROCESS_OUTPUT_MAX_BYTES,
    PROCESS_SETTLE_SECONDS,
    PROCESS_WAIT_MAX_SECONDS,
    PROCESS_WRITE_MAX_BYTES,
    PROCESS_WRITE_SECONDS,
    PROCESSES_ENDED_KEPT,
    PROCESSES_MAX,
)
from toolkit_core.ports.processes import ProcessState
from toolkit_core.sandboxes import process_scripts as scripts
from toolkit_core.sandboxes.client_commands import about_cwd
from toolkit_core.sandboxes.client_files import plane_folder
from toolkit_core.text import first_surrogate, one_line_name

if TYPE_CHECKING:
    from toolkit_core.ports.commands import CommandResult
    from toolkit_core.ports.sandbox import SandboxClient

_END_OF_INPUT: Final = "\x04"
_LOOKS: Final = 16
"""Looks of one read: the unread log in pieces, and a few more where it was cut between two."""

_SIGNALS: Final = {137: 9, 143: 15}
_LOST: Final = "its keeper in the sandbox is gone: how it ended is not known"


@dataclass
class _Process:
    """What is known of a process there; `offset` is where its next unread byte lies."""

    process_id: str
    session: str
    command: str
    mark: str
    place: str
    offset: int = 0
    seen: int = 0
    status: str = ""
    stopped: bool = False
    folder_gone: bool = False

    @property
    def running(self) -> bool:
        return not self.status


class ClientProcesses:
    """Processes in a sandbox, by its `run` alone; they get no trace context and no terminal.

    A keeper there, in POSIX sh, holds the input, writes the output to a log in a private folder and notes the exit
    status; on Linux it ends with the command whatever that left behind. The log is cut there to its newest 1 MiB each
    time it has grown to twice that; what nobody read of the rest is counted. Death by a signal is an exit code of 128
    and the signal's number, unless the process was stopped from here.

    They outlive a lost connection, and the death of this process: `aclose` ends them, or the end of the sandbox.
    A sandbox that ends whatever a command left running can keep none, which the start of one says.

    Args:
        client: The sandbox.
        cwd: The absolute folder of the sandbox that commands start in.
        max_processes: Running at once in one session.

    Raises:
        ValueError: `cwd` is no absolute path.

    Example:
        >>> processes = ClientProcesses(sandbox, cwd="/srv/work")  # doctest: +SKIP
        >>> started = await processes.start("npm run dev")  # doctest: +SKIP
    """

    def __init__(self, client: SandboxClient, *, cwd: str, max_processes: int = PROCESSES_MAX) -> None:
        self._client = client
        self._cwd = plane_folder(cwd)
        self._max_processes = max_processes
        self._numbers = itertools.count(1)
        self._processes: dict[str, _Process] = {}
        self._starting: dict[str, int] = {}

    async def start(
        self,
        command: str,
        *,
        cwd: str = "",
        pty: bool = False,
        session: str = "default",
        traceparent: str | None = None,
    ) -> ProcessState:
        """Start a command; returns within a moment, with its first output if it wrote some.

        Raises:
            ToolError: As `Processes` says; `unsupported`: a terminal, no POSIX shell, or a sandbox that keeps none.
        """
        check_command(command)
        if "\0" in cwd:
            raise ToolError("cwd has a NUL character.", code="invalid_arguments")
        if pty:
            raise ToolError(
                "This sandbox gives a process no terminal.",
                code="unsupported",
                hint="Start it without; script(1), where the sandbox has it, gives a command one.",
            )
        self._starting[session] = self._starting.get(session, 0) + 1
        mark = secrets.token_hex(12)
        try:
            await self._make_room(session)
            process = await self._start(command, cwd, session, mark)
            return await self._first_look(process)
        except BaseException:  # nobody knows its id
            await finish(self._undo(mark))
            raise
        finally:
            self._starting[session] -= 1

    async def read(self, process_id: str, *, wait_seconds: float = 0.0, session: str = "default") -> ProcessState:
        """New output, waiting there up to `wait_seconds`, a minute at most, for some or for the end."""
        if math.isnan(wait_seconds) or wait_seconds < 0:
            message = f"wait_seconds is {wait_seconds}; it must be 0 or more."
            raise ToolError(message, code="invalid_arguments")
        return await self._state(self._find(process_id, session), min(wait_seconds, PROCESS_WAIT_MAX_SECONDS))

    async def write(self, process_id: str, text: str, *, session: str = "default") -> ProcessState:
        """Write to its standard input, then wait a moment for an answer."""
        data = _checked_input(text)
        process = self._find(process_id, session)
        if not process.running:
            raise _has_ended(process_id)
        if text == _END_OF_INPUT:
            await self._ask(process.mark, scripts.close_script(process.place))
        else:
            await self._write(process, data)
        return await self._state(process, PROCESS_SETTLE_SECONDS)

    async def stop(self, process_id: str, *, session: str = "default") -> ProcessState:
        """TERM, a grace of 2 s, KILL: for its session, and for what carries its mark (Linux)."""
        process = self._find(process_id, session)
        if process.running:
            process.stopped = True
            await self._ask(
                process.mark, scripts.stop_script(process.place, grace_seconds=COMMAND_GRACE_SECONDS), "did not end"
            )
        return await self._state(process, 0)

    async def command_of(self, process_id: str) -> str:
        """The command that a process of any session was started with; "" for an unknown id."""
        process = self._processes.get(process_id)
        return "" if process is None else process.command

    async def aclose(self) -> None:
        """Kill all processes and remove what was kept of them; a sandbox that is gone is logged."""
        processes, self._processes = list(self._processes.values()), {}
        if processes:
            await finish(self._end_all(processes))

    async def _end_all(self, processes: list[_Process]) -> None:
        async def end(process: _Process) -> None:
            if process.running:
                await self._ask(process.mark, scripts.stop_script(process.place, grace_seconds=0), "did not end")
            await self._forget(process)

        for outcome in await asyncio.gather(*map(end, processes), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    def _find(self, process_id: str, session: str) -> _Process:
        process = self._processes.get(process_id)
        if process is not None and process.session == session:
            return process
        known = [p.process_id for p in self._processes.values() if p.session == session]
        hint = f"Known ids: {', '.join(known)}." if known else "No process was started in this session."
        raise ToolError(f"There is no process {process_id!r}.", code="not_found", hint=hint)

    async def _make_room(self, session: str) -> None:
        mine = [p for p in self._processes.values() if p.session == session]
        running = [p for p in mine if p.running]
        if running and len(running) + self._starting[session] > self._max_processes:
            running = await self._still_running(running)
        if len(running) + self._starting[session] > self._max_processes:
            shown = ", ".join(f"{p.process_id} ({one_line_name(p.command[:40])})" for p in running)
            message = f"{len(running)} processes run already, as many as one session may have: {shown}."
            raise ToolError(message, code="too_large", hint="Stop one first.")
        ended = [p for p in mine if p not in running]
        for process in ended[: max(0, len(ended) - PROCESSES_ENDED_KEPT + 1)]:
            self._processes.pop(process.process_id, None)
            await self._forget(process)

    async def _still_running(self, processes: list[_Process]) -> list[_Process]:
        """They are not marked as ended: their last output is still to be read."""
        result = await self._run(scripts.over_script([p.place for p in processes]))
        said = result.stdout.decode("utf-8", "replace")
        return [p for index, p in enumerate(processes) if f"{p.mark} {index} over" not in said]

    async def _start(self, command: str, cwd: str, session: str, mark: str) -> _Process:
        folder = posixpath.join(self._cwd, cwd) if cwd else self._cwd
        try:
            answer = await self._client.run(
                scripts.start_script(mark, command), cwd=folder, timeout_seconds=CLIENT_PROBE_SECONDS
            )
        except ToolError as e:
            raise about_cwd(e, f"cwd {one_line_name(cwd)}" if cwd else f"The root folder {folder}") from e
        words = _line(answer, mark).split(" ", 4)
        if len(words) != 5 or not (words[0].isdigit() and words[2].isdigit() and words[4].startswith("/")):
            raise _no_shell(answer)
        place = scripts.place_words(mark, words[4], (words[0], words[1]), (words[2], words[3]))
        return _Process(f"p{next(self._numbers)}", session, command, mark, place)

    async def _first_look(self, process: _Process) -> ProcessState:
        state = await self._state(process, PROCESS_SETTLE_SECONDS)
        if process.status == "lost":
            raise ToolError(
                "The sandbox ended the process as soon as the call that started it returned.",
                code="unsupported",
                hint="This sandbox keeps no processes between calls. Run the command to its end in one call.",
            )
        self._processes[process.process_id] = process
        return state

    async def _undo(self, mark: str) -> None:
        await self._run(scripts.undo_script(mark))

    async def _write(self, process: _Process, data: bytes) -> None:
        for start in range(0, len(data), CLIENT_PROCESS_WRITE_BYTES):
            piece = data[start : start + CLIENT_PROCESS_WRITE_BYTES]
            await self._run(scripts.collect_script(process.place, piece, first=not start))
        script = scripts.feed_script(process.place, within_seconds=PROCESS_WRITE_SECONDS)
        said = await self._ask(process.mark, script)
        if said == "ended":
            raise _has_ended(process.process_id)
        if said == "late":
            raise ToolError(
                f"{process.process_id} does not read its input: not all of {len(data):,} bytes were taken.",
                code="timed_out",
                hint="Look at its output; it may be busy, wait for something else, or have closed its input.",
                retryable=True,
            )
        if said != "0":
            raise ToolError(f"{process.process_id} has closed its input.", code="failed")

    async def _state(self, process: _Process, wait_seconds: float) -> ProcessState:
        """How it stands, with its unread output, in as many looks as that takes."""
        output, cut = bytearray(), 0
        for _ in range(_LOOKS):
            if process.folder_gone:
                break
            new, dropped, more = await self._look(process, 0 if output else wait_seconds)
            if dropped:  # what came before the gap is older still
                cut += dropped + len(output)
                output.clear()
            output += new
            if not more or len(output) + CLIENT_PROCESS_READ_BYTES > PROCESS_OUTPUT_MAX_BYTES:
                break
        return _told(process, bytes(output), cut)

    async def _look(self, process: _Process, wait_seconds: float) -> tuple[bytes, int, bool]:
        """New bytes, how many older ones were dropped, and whether there are more.

        Two looks at once get the same bytes: the later answer keeps what the earlier one has not taken.
        """
        script = scripts.look_script(process.place, offset=process.offset, seen=process.seen, wait_seconds=wait_seconds)
        answer = await self._run(script, wait_seconds)
        words = _line(answer, process.mark).split(" ")
        if len(words) != 4 or not all(word.isdigit() for word in words[1:]):
            raise _garbled(answer)
        status, (size, start, count) = words[0], map(int, words[1:])
        data = _bytes_of(answer, process.mark)
        whole = len(data) == count  # else the log was cut between two steps of the look
        if status == "-" and whole and start + count == size:
            data = _without_partial_end(data)
        process.seen = max(process.seen, size)
        dropped = max(0, start - process.offset)
        fresh = data[max(0, process.offset - start) :]
        process.offset = max(process.offset, start + len(data))
        more = not whole or start + count < size
        if status != "-" and not more and not process.status:
            process.status = status
            if status == "lost":  # nobody else ends what it kept
                await self._run(scripts.stop_script(process.place, grace_seconds=0))
            await self._forget(process)
        return fresh, dropped, more

    async def _forget(self, process: _Process) -> None:
        """Remove its folder there, once."""
        if not process.folder_gone:
            process.folder_gone = True
            await self._run(f'{process.place}\nrm -rf -- "$d"')

    async def _ask(self, mark: str, script: str, failing: str = "") -> str:
        answer = await self._run(script)
        said = _line(answer, mark)
        if not said:
            message = f"The process {failing} in the sandbox." if failing else "The sandbox gave no answer."
            raise ToolError(message, code="io_error", hint="Look at it again, then try again.", retryable=True)
        return said

    async def _run(self, script: str, wait_seconds: float = 0.0) -> CommandResult:
        result = await self._client.run(script, timeout_seconds=wait_seconds + CLIENT_PROBE_SECONDS)
        if result.timed_out:
            message = f"The sandbox did not answer within {wait_seconds + CLIENT_PROBE_SECONDS:g} s."
            raise ToolError(message, code="unavailable", hint="Try again.", retryable=True)
        return result


def _told(process: _Process, output: bytes, cut: int) -> ProcessState:
    status, signal, note = process.status, None, ""
    exit_code = int(status) if status.isdigit() else None
    if process.stopped and exit_code in _SIGNALS:
        exit_code, signal = None, _SIGNALS[exit_code]
    if status and not status.isdigit():
        signal, note = (9, "") if process.stopped else (None, _LOST)
    return ProcessState(process.process_id, process.command, process.running, exit_code, signal, output, cut, note)


def _line(answer: CommandResult, mark: str) -> str:
    """The line of an answer, whatever a login shell printed before it; "" where there is none."""
    _, found, rest = answer.stdout.partition(f"{mark} ".encode())
    return rest.partition(b"\n")[0].decode("utf-8", "replace").strip() if found else ""


def _bytes_of(answer: CommandResult, mark: str) -> bytes:
    rest = answer.stdout.partition(f"{mark} ".encode())[2].partition(b"\n")[2]
    digits, found, _ = rest.partition(f"{mark}.".encode())
    try:
        if not found:
            raise ValueError("the end is missing")
        return bytes.fromhex(digits.decode("ascii"))
    except ValueError as e:
        raise _garbled(answer) from e


def _without_partial_end(data: bytes) -> bytes:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    pending = len(decoder.getstate()[0])
    return data[: len(data) - pending] if pending else data


def _checked_input(text: str) -> bytes:
    place = first_surrogate(text)
    if place is not None:
        message = f"The text has a lone surrogate U+{ord(text[place]):04X} at index {place}; no byte stands for it."
        raise ToolError(message, code="invalid_arguments")
    data = text.encode()
    if not data or len(data) > PROCESS_WRITE_MAX_BYTES:
        message = f"The text has {len(data):,} bytes; one write takes 1 to {PROCESS_WRITE_MAX_BYTES:,}."
        raise ToolError(message, code="invalid_arguments", hint="Write more in several calls, or through a file.")
    return data


def _has_ended(process_id: str) -> ToolError:
    return ToolError(
        f"{process_id} has ended; it reads no input.",
        code="failed",
        hint="Look at its last output, and start it again if it is still needed.",
    )


def _no_shell(answer: CommandResult) -> ToolError:
    said = answer.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
    reason = one_line_name(said[-1]) if said else "there was no answer"
    return ToolError(
        f"The sandbox started no process: {reason}.",
        code="unsupported" if answer.exit_code == 127 else "io_error",
        hint="It needs a POSIX shell with mktemp, mkfifo, dd and od.",
    )


def _garbled(answer: CommandResult) -> ToolError:
    return ToolError(f"The sandbox gave no usable answer: {answer.stdout[:80]!r}.", code="io_error", retryable=True)
