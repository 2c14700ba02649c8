"""Emptying pipes: always, so that no command blocks on a full one, and in bounded memory."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import math
import os
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from toolkit_core.limits import FLOOD_BYTES, FLOOD_PAUSE_SECONDS, PIPE_BYTES, READ_BYTES

_F_SETPIPE_SZ: Final = 1031  # linux/fcntl.h; Python's fcntl has the name only where it was built on Linux
_STOP_POLL_MILLISECONDS: Final = 50

_buffers = threading.local()


class Sink(Protocol):
    """Where a stream goes."""

    def read_from(self, descriptor: int) -> bytes | memoryview:
        """Read once; the new bytes, valid until the next read, or nothing at the end. Raises OSError."""
        ...


@dataclass(frozen=True)
class Kept:
    """What was kept of a stream: `data` is head and tail, `cut` bytes are missing at offset `cut_at`."""

    data: bytes
    cut: int = 0
    cut_at: int = 0


class HeadAndTail:
    """The first and the last bytes of a stream, `max_bytes` in all; cut on UTF-8 character borders.

    Past the head it reads straight into a ring, so that a flood costs one copy.
    """

    def __init__(self, max_bytes: int) -> None:
        self._head_bytes = max_bytes // 2
        self._tail_bytes = max_bytes - self._head_bytes
        self._head = bytearray()
        self._ring: memoryview | None = None
        self._total = 0

    def read_from(self, descriptor: int) -> bytes | memoryview:
        """Read once, as `Sink` says."""
        room = self._head_bytes - len(self._head)
        if room > 0:
            view = read_buffer()[:room]
            count = os.readv(descriptor, [view])
            self._head += view[:count]
            self._total += count
            return view[:count]
        if self._ring is None:
            self._ring = memoryview(bytearray(self._tail_bytes))
        at = (self._total - self._head_bytes) % self._tail_bytes
        rest = self._ring[at : at + READ_BYTES]
        count = os.readv(descriptor, [rest])
        self._total += count
        return rest[:count]

    def kept(self) -> Kept:
        """What there is now."""
        head, past_head = bytes(self._head), self._total - len(self._head)
        if self._ring is None or past_head <= self._tail_bytes:
            return Kept(head + bytes(self._ring[:past_head] if self._ring is not None else b""))
        at = past_head % self._tail_bytes
        tail = without_partial_start(bytes(self._ring[at:]) + bytes(self._ring[:at]))
        head = without_partial_end(head)
        return Kept(head + tail, self._total - len(head) - len(tail), len(head))


def read_buffer() -> memoryview:
    """One read buffer a thread: whoever reads into it uses it up before another can."""
    view: memoryview | None = getattr(_buffers, "view", None)
    if view is None:
        view = _buffers.view = memoryview(bytearray(READ_BYTES))
    return view


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
    """Reads a descriptor into a sink until its end, then closes it.

    On the running event loop; past `flood_bytes` in a thread of its own, where it costs the loop nothing and a
    writer of small pieces does not wake anybody for each. `listener` is called on the loop with what came;
    pieces of a flood may be left out.
    """

    def __init__(
        self,
        descriptor: int,
        sink: Sink,
        listener: Callable[[bytes], None] | None = None,
        *,
        flood_bytes: float = FLOOD_BYTES,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._sink = sink
        self._listener = listener
        self._flood_bytes = flood_bytes
        self._total = 0
        self._news = b""
        self._closed = False
        self._thread: threading.Thread | None = None
        self.ended: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def close(self) -> None:
        """Stop reading; harmless when it has ended. A flood's thread closes its descriptor a moment later."""
        self._closed = True
        if self._thread is None and self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            self._close_descriptor()

    def _read(self) -> None:
        chunk = self._next()
        if chunk is None:
            return
        if self._listener is not None and chunk:
            self._listener(bytes(chunk))
        if not chunk:
            self._loop.remove_reader(self._descriptor)
            self._close_descriptor()
            self._set_ended()
        elif self._total > self._flood_bytes and not self._closed:
            self._read_in_thread()

    def _read_in_thread(self) -> None:
        self._loop.remove_reader(self._descriptor)
        self._thread = threading.Thread(target=self._flood, name="toolkit-drain", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # the system gives no more threads: the loop reads on
            self._thread, self._flood_bytes = None, math.inf
            self._loop.add_reader(self._descriptor, self._read)

    def _next(self) -> bytes | memoryview | None:
        """The next bytes, nothing at the end, None when there are none yet."""
        try:
            chunk = self._sink.read_from(self._descriptor)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as e:
            if e.errno != errno.EIO:  # EIO is the end of a terminal
                raise
            return b""
        self._total += len(chunk)
        return chunk

    def _flood(self) -> None:
        with contextlib.suppress(OSError):  # past /proc/sys/fs/pipe-user-pages-soft, or not Linux
            fcntl.fcntl(self._descriptor, _F_SETPIPE_SZ, PIPE_BYTES)
        readable = select.poll()
        readable.register(self._descriptor, select.POLLIN)
        try:
            while not self._closed:
                chunk = self._next()
                if chunk is None:
                    readable.poll(_STOP_POLL_MILLISECONDS)
                    continue
                if not chunk:
                    break
                if self._listener is not None:
                    self._pass_on(bytes(chunk))
                if len(chunk) < READ_BYTES // 2:
                    time.sleep(FLOOD_PAUSE_SECONDS)
        finally:
            self._close_descriptor()
            with contextlib.suppress(RuntimeError):  # the loop was closed
                self._loop.call_soon_threadsafe(self._set_ended)

    def _pass_on(self, chunk: bytes) -> None:
        """Tell the listener of the newest bytes; one call at a time waits, whatever the loop is doing."""
        waiting, self._news = self._news, chunk
        if not waiting:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        news, self._news = self._news, b""
        if self._listener is not None and news:
            self._listener(news)

    def _close_descriptor(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _set_ended(self) -> None:
        self._tell()
        if not self.ended.done():
            self.ended.set_result(None)
