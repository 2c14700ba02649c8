"""The first and the last bytes of a stream whose middle may be dropped, in bounded memory."""

from __future__ import annotations

from collections import deque

from toolkit_core.limits import COMMAND_OUTPUT_MAX_BYTES


class KeptOutput:
    """Keeps `max_bytes` of what it is fed, half from the start and half from the end, cut on UTF-8 borders."""

    def __init__(self, max_bytes: int = COMMAND_OUTPUT_MAX_BYTES) -> None:
        self._head_bytes = max_bytes // 2
        self._tail_bytes = max_bytes - self._head_bytes
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total_bytes: int = 0

    def feed(self, data: bytes) -> None:
        """Take more of the stream."""
        self.total_bytes += len(data)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data[-self._tail_bytes :])
            self._tail_size += len(self._tail[-1])
            while self._tail_size - len(self._tail[0]) >= self._tail_bytes:
                self._tail_size -= len(self._tail.popleft())

    def kept(self) -> tuple[bytes, int, int]:
        """The kept bytes, how many are missing, and at which offset."""
        head, tail = bytes(self._head), b"".join(self._tail)[-self._tail_bytes :]
        if len(head) + len(tail) == self.total_bytes:
            return head + tail, 0, 0
        head, tail = _whole_end(head), tail.lstrip(_CONTINUATION) if tail[:4].strip(_CONTINUATION) else tail
        return head + tail, self.total_bytes - len(head) - len(tail), len(head)


_CONTINUATION = bytes(range(0x80, 0xC0))


def _whole_end(data: bytes) -> bytes:
    """Without the first bytes of a character whose rest is missing."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if back < length else data
        if byte < 0x80:
            break
    return data
