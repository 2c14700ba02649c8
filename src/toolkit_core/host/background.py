"""One background process: its streams, its unread output, its end."""

from __future__ import annotations

import asyncio
import fcntl
import math
import os
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ToolError
from toolkit_core.host.commands import as_watched
from toolkit_core.host.drain import Drain, read_buffer, without_partial_end, without_partial_start
from toolkit_core.host.supervised import Ending, Supervised
from toolkit_core.limits import (
    COMMAND_ANSWER_SECONDS,
    COMMAND_DRAIN_SECONDS,
    PROCESS_GATHER_SECONDS,
    PROCESS_OUTPUT_MAX_BYTES,
    PROCESS_WRITE_SECONDS,
)
from toolkit_core.ports.processes import ProcessState

if TYPE_CHECKING:
    from toolkit_core.ports.sandbox import Invocation

if sys.platform != "win32":
    import termios

_TERMINAL_SIZE: Final = (40, 120)  # rows and columns: wide enough for most logs
_END_OF_INPUT: Final = "\x04"


class Unread:
    """Output that nobody has read yet, the newest `max_bytes` of it."""

    def __init__(self, max_bytes: int = PROCESS_OUTPUT_MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._data = bytearray()
        self._cut = 0
        self.changed: asyncio.Event = asyncio.Event()

    def read_from(self, descriptor: int) -> bytes | memoryview:
        """Read once, as `Sink` says."""
        view = read_buffer()
        chunk = view[: os.readv(descriptor, [view])]
        self._data += chunk
        surplus = len(self._data) - self._max_bytes
        if surplus > 0:
            del self._data[:surplus]
            self._cut += surplus
        if chunk:  # the end of the output is not yet the end of the process
            self.changed.set()
        return chunk

    def take(self, *, whole: bool) -> tuple[bytes, int]:
        """What is unread, and how many older bytes were dropped; a character's first bytes wait unless `whole`."""
        data = bytes(self._data)
        if not whole:
            data = without_partial_end(data)
        del self._data[: len(data)]
        cut, self._cut = self._cut, 0
        if cut:
            kept = without_partial_start(data)
            cut, data = cut + len(data) - len(kept), kept
        if not self._data:
            self.changed.clear()
        return data, cut

    def ready(self) -> bool:
        """Whether there is a whole character: more than the first bytes of one, which have four at most."""
        return len(self._data) > 3 or bool(without_partial_end(bytes(self._data)))


class Streams:
    """The ends of a process's input and output: pipes, or one terminal."""

    output: int
    input: int

    def __init__(self, *, pty: bool) -> None:
        self.pty = pty
        self.theirs: dict[int, int] = {}
        if pty:
            master, slave = os.openpty()
            fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *_TERMINAL_SIZE, 0, 0))
            self.output, self.input = master, os.dup(master)
            self.theirs = {0: slave, 1: os.dup(slave), 2: os.dup(slave)}
        else:
            theirs_in, self.input = os.pipe()
            self.output, theirs_out = os.pipe()
            self.theirs = {0: theirs_in, 1: theirs_out, 2: os.dup(theirs_out)}
        os.set_blocking(self.input, False)

    def close_theirs(self) -> None:
        """After the start: only the process holds its ends."""
        for descriptor in self.theirs.values():
            os.close(descriptor)
        self.theirs = {}

    def close_input(self) -> None:
        """The process reads the end of its input."""
        descriptor, self.input = self.input, -1
        if descriptor >= 0:
            os.close(descriptor)

    def close(self) -> None:
        """After the end, when the output was closed by whoever read it."""
        self.close_theirs()
        self.close_input()

    def close_all(self) -> None:
        """After a start that failed."""
        os.close(self.output)
        self.close()


class BackgroundProcess:
    """A started command, on the event loop that keeps it."""

    def __init__(
        self,
        process_id: str,
        session: str,
        command: str,
        streams: Streams,
        kept: Supervised,
        *,
        grace_seconds: float,
    ) -> None:
        self.process_id = process_id
        self.session = session
        self.command = command
        self.note: str = ""
        self.ending: Ending | None = None
        self._streams = streams
        self._kept = kept
        self._grace_seconds = grace_seconds
        self._unread = Unread()
        self._drain = Drain(streams.output, self._unread, flood_bytes=math.inf)
        self._writing = asyncio.Lock()
        self._gone = asyncio.Event()

    @property
    def running(self) -> bool:
        """Whether it runs, or its end is not yet known."""
        return self.ending is None

    async def keep(self, stack: ExitStack, invocation: Invocation) -> None:
        """Wait for its end and clean up."""
        with stack:
            ending = await self._kept.ending()
            await asyncio.wait([self._drain.ended], timeout=COMMAND_DRAIN_SECONDS)
            self._drain.close()
            self._kept.close()
            self._streams.close()
            if ending.lost:
                self.note = f"it was ended early: {ending.lost}"
            if invocation.after_exit is not None:
                await self._clean_up(invocation.after_exit)
            self.ending = as_watched(ending, invocation)
            self._unread.changed.set()
            self._gone.set()

    async def _clean_up(self, after_exit: Callable[[], Awaitable[str]]) -> None:
        try:
            self.note = "\n".join(note for note in (self.note, await after_exit()) if note)
        except ToolError as e:  # the sandbox never started it
            self.note = e.message
        except Exception as e:  # noqa: BLE001 - the process has ended: its end is told, and what went wrong after it
            self.note = f"the sandbox's clean-up failed: {e!r}"

    def state(self) -> ProcessState:
        """How it stands, with its unread output."""
        output, cut = self._unread.take(whole=not self.running)
        ending = self.ending or Ending()
        return ProcessState(
            self.process_id, self.command, self.running, ending.exit_code, ending.signal, output, cut, self.note
        )

    async def wait_for_news(self, seconds: float) -> None:
        """Until there is output (and a moment more for the rest of it) or its end, at most `seconds`."""
        until = time.monotonic() + seconds
        while self.running and not self._unread.ready() and time.monotonic() < until:
            self._unread.changed.clear()  # set by the first bytes of a character, whose rest is still to come
            await _within(self._unread.changed, until)
        if self.running and self._unread.ready() and seconds > 0:
            await _within(self._gone, min(until, time.monotonic() + PROCESS_GATHER_SECONDS))

    async def write(self, text: str) -> None:
        """Write to its input, waiting a bounded time for it to read."""
        async with self._writing:
            if not self.running:
                raise ToolError(
                    f"{self.process_id} has ended; it reads no input.",
                    code="failed",
                    hint="Look at its last output, and start it again if it is still needed.",
                )
            if self._streams.input < 0:
                raise ToolError(
                    f"The input of {self.process_id} was closed.",
                    code="failed",
                    hint="Look at its output; to give it more input, stop it and start it again.",
                )
            if text == _END_OF_INPUT and not self._streams.pty:
                self._streams.close_input()
                return
            await self._write_all(text.encode())

    async def _write_all(self, data: bytes) -> None:
        until, written = time.monotonic() + PROCESS_WRITE_SECONDS, 0
        while written < len(data):
            try:
                written += os.write(self._streams.input, data[written:])
            except BlockingIOError:
                if time.monotonic() >= until or not self.running:
                    raise self._does_not_read(written, len(data)) from None
                await asyncio.sleep(PROCESS_GATHER_SECONDS / 5)
            except OSError as e:
                raise ToolError(f"{self.process_id} has closed its input: {e.strerror}.", code="failed") from e

    def _does_not_read(self, written: int, wanted: int) -> ToolError:
        return ToolError(
            f"{self.process_id} does not read its input: {written:,} of {wanted:,} bytes were taken.",
            code="timed_out",
            hint="Look at its output; it may be busy, or wait for something else.",
            retryable=True,
        )

    async def stop(self) -> None:
        """TERM, grace, KILL for its whole tree; returns when nothing is left."""
        if self.running:
            self._kept.terminate()
            await _within(self._gone, time.monotonic() + self._grace_seconds + COMMAND_ANSWER_SECONDS)
        if self.running:
            self._kept.force()
        await self._gone.wait()

    def kill(self) -> None:
        """KILL its whole tree now."""
        if self.running:
            self._kept.kill()

    async def gone(self) -> None:
        """Wait for its end after it was killed."""
        await _within(self._gone, time.monotonic() + COMMAND_ANSWER_SECONDS)
        if self.running:
            self._kept.force()
        await self._gone.wait()


async def _within(event: asyncio.Event, until: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, until - time.monotonic())):
            await event.wait()
    except TimeoutError:
        return
