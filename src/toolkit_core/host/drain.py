"""Emptying pipes: always, so that no command blocks on a full one, and in bounded memory."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass

from toolkit_core.limits import PIPE_BYTES

_buffers = threading.local()


@dataclass(frozen=True)
class Kept:
    """What was kept of a stream: `data` is head and tail, `cut` bytes are missing at offset `cut_at`."""

    data: bytes
    cut: int = 0
    cut_at: int = 0


class HeadAndTail:
    """The first and the last bytes of a stream, `max_bytes` in all; cut on UTF-8 character borders."""

    def __init__(self, max_bytes: int) -> None:
        self._head_bytes = max_bytes // 2
        self._tail_bytes = max_bytes - self._head_bytes
        self._head = bytearray()
        self._tail = bytearray()
        self._ring_at = 0
        self._total = 0

    def add(self, chunk: bytes | memoryview) -> None:
        """The next bytes of the stream."""
        self._total += len(chunk)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += chunk[:room]
            chunk = chunk[room:]
        if len(chunk) > self._tail_bytes:
            chunk = chunk[len(chunk) - self._tail_bytes :]
        room = self._tail_bytes - len(self._tail)
        if room > 0:
            self._tail += chunk[:room]
            chunk = chunk[room:]
        while len(chunk):
            part = chunk[: self._tail_bytes - self._ring_at]
            self._tail[self._ring_at : self._ring_at + len(part)] = part
            self._ring_at = (self._ring_at + len(part)) % self._tail_bytes
            chunk = chunk[len(part) :]

    def kept(self) -> Kept:
        """What there is now."""
        tail = bytes(self._tail[self._ring_at :] + self._tail[: self._ring_at])
        cut = self._total - len(self._head) - len(tail)
        if cut == 0:
            return Kept(bytes(self._head) + tail)
        head = without_partial_end(bytes(self._head))
        tail = without_partial_start(tail)
        return Kept(head + tail, self._total - len(head) - len(tail), len(head))


def without_partial_end(data: bytes) -> bytes:
    """Without the first bytes of a UTF-8 character whose rest is missing; bytes that are no UTF-8 stay."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if back < length else data
        if byte < 0x80:
            break
    return data


def without_partial_start(data: bytes) -> bytes:
    """Without the last bytes of a UTF-8 character whose start is missing."""
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]


class Drain:
    """Reads a descriptor on the running event loop until its end, then closes it.

    `take` gets each chunk as a view that is valid only during the call.
    """

    def __init__(self, descriptor: int, take: Callable[[memoryview], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._take = take
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def _read(self) -> None:
        buffer = _buffer()
        try:
            count = os.readv(self._descriptor, [buffer])
        except (BlockingIOError, InterruptedError):
            return
        except OSError as e:
            if e.errno != errno.EIO:  # EIO is the end of a terminal
                self._end(e)
                return
            count = 0
        if count == 0:
            self._end()
        else:
            self._take(buffer[:count])

    def _end(self, error: OSError | None = None) -> None:
        self.close()
        if error is not None:
            self.ended.set_exception(error)
        elif not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> None:
        """Stop reading; harmless when it has ended."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1


def _buffer() -> memoryview:
    """One read buffer a thread: a reader's callback uses it up before it returns."""
    view: memoryview | None = getattr(_buffers, "view", None)
    if view is None:
        view = _buffers.view = memoryview(bytearray(PIPE_BYTES))
    return view
