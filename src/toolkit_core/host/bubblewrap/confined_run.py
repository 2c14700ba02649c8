"""One confined command from its wrapping to the sweep after it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

from toolkit_core.errors import ToolError
from toolkit_core.host._native.sandbox import end_namespace, hold_first_process
from toolkit_core.host.bubblewrap.confine import WATCHER_PROCESSES
from toolkit_core.limits import SANDBOX_DIAGNOSE_WITHIN_SECONDS, SANDBOX_END_SECONDS, SANDBOX_STATUS_MAX_BYTES
from toolkit_core.ports.sandbox import Watched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit_core.host.bubblewrap.runs import Record, Run


_SIGNALLED = 128  # what a shell adds to a signal's number (POSIX sh, 2.8.2)
_LAST_SIGNAL = 64  # signal(7)


class _Status:
    """What bubblewrap reports: its child's process id at once, and the exit code of a command that was started.

    JSON documents, one a line (bwrap(1), `--json-status-fd`). "exit-code" comes only after exec succeeded, so a
    sandbox that failed is never taken for a command that failed.
    """

    def __init__(self) -> None:
        self._readable, self.writable = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.writable, True)
        self._received = b""
        self.first_process: int | None = None
        self.command_ended = False
        self.exit_code: int | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._readable, self._read)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._received += os.read(self._readable, SANDBOX_STATUS_MAX_BYTES)
        if len(self._received) > SANDBOX_STATUS_MAX_BYTES:
            self._loop.remove_reader(self._readable)
        *lines, self._received = self._received.split(b"\n")
        for line in lines:
            self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            value: dict[str, Any] = dict(json.loads(line))
        except (ValueError, TypeError):
            return
        if isinstance(pid := value.get("child-pid"), int) and self.first_process is None:
            self.first_process = hold_first_process(pid)
        if "exit-code" in value:
            self.command_ended = True
            self.exit_code = value["exit-code"] if isinstance(value["exit-code"], int) else None

    def close(self) -> None:
        """Read what is left, once bubblewrap is gone, and give the pipe back."""
        self._loop.remove_reader(self._readable)
        self._read()
        os.close(self._readable)
        os.close(self.writable)


class _Notes:
    """What the watching shell wrote: a signal's name where one ended the command, then how many processes there are.

    The write end never blocks, so that nothing inside can hold the shell up by filling it.
    """

    def __init__(self) -> None:
        self._readable, self.writable = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def close(self, code: int | None) -> Watched:
        """Read it once the sandbox is gone, and give the pipe back; `code` is the exit code that bubblewrap saw."""
        said = b""
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._readable, SANDBOX_STATUS_MAX_BYTES)
        os.close(self._readable)
        os.close(self.writable)
        diagnosis, found, number = said.rpartition(b"left ")
        if not found or not number.strip().isdigit():
            return Watched()
        signalled = bool(diagnosis.strip()) and code is not None and _SIGNALLED < code <= _SIGNALLED + _LAST_SIGNAL
        by = code - _SIGNALLED if code is not None and signalled else None
        return Watched(by, max(0, int(number[:6]) - WATCHER_PROCESSES))


class ConfinedRun:
    """Holds what one command needs until its `after_exit`.

    Args:
        records: The records of the writable folders, and the runs begun in them, in the same order.
        runs: See there.
        diagnose: Finds out, blocking, why a sandbox did not start its command.
    """

    def __init__(self, records: Sequence[Record], runs: Sequence[Run], diagnose: Callable[[], ToolError]) -> None:
        self._records = tuple(records)
        self._runs = tuple(runs)
        self._diagnose = diagnose
        self._notes = _Notes()
        try:
            self._status = _Status()
        except BaseException:
            self._notes.close(None)
            raise
        self._watched = Watched()
        self._began = asyncio.get_running_loop().time()
        self._over = False

    @property
    def status_descriptor(self) -> int:
        """Where bubblewrap writes its status; open until `after_exit`."""
        return self._status.writable

    @property
    def notes_descriptor(self) -> int:
        """Where the watching shell writes; open until `after_exit`."""
        return self._notes.writable

    def watched(self) -> Watched:
        """How the command ended, after `after_exit`."""
        return self._watched

    async def after_exit(self) -> str:
        """Wait until the sandbox's last process is dead, sweep the workspace, and say what was found.

        Raises `unavailable` where the command was never started.
        """
        if self._over:
            return ""
        self._over = True
        self._status.close()
        self._watched = self._notes.close(self._status.exit_code)
        note = await self._end()
        if not self._status.command_ended:
            await self._complain(note)
        return note

    async def _end(self) -> str:
        alive = False
        if (pidfd := self._status.first_process) is not None:
            try:
                alive = not await end_namespace(pidfd, within_seconds=SANDBOX_END_SECONDS)
            finally:
                os.close(pidfd)
        notes = await asyncio.to_thread(end_all, self._records, self._runs)
        if alive:
            notes.append(f"A process of the sandbox was still not dead after {SANDBOX_END_SECONDS:g} s.")
        return " ".join(notes)

    async def _complain(self, note: str) -> None:
        lasted = asyncio.get_running_loop().time() - self._began
        if lasted > SANDBOX_DIAGNOSE_WITHIN_SECONDS:
            error = ToolError(
                "the sandbox ended without saying how the command ended",
                code="unavailable",
                hint="Its effects in the workspace are unknown: look before you repeat it.",
            )
        else:
            error = await asyncio.to_thread(self._diagnose)
        error.detail = note
        raise error


def begin_all(records: Sequence[Record]) -> list[Run]:
    """Begin a run in every record, or in none. Raises OSError."""
    runs: list[Run] = []
    try:
        runs.extend(record.begin() for record in records)
    except BaseException:
        end_all(records, runs)
        raise
    return runs


def end_all(records: Sequence[Record], runs: Sequence[Run]) -> list[str]:
    """End them; returns their notes."""
    ended = [record.end(run) for record, run in zip(records, runs, strict=False)]
    return [note for note in ended if note]
