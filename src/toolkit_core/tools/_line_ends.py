"""Line ends: which a file has, and which a new text gets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from toolkit_core.limits import EDIT_SEARCH_BYTES, FILE_BLOCK_BYTES

if TYPE_CHECKING:
    from toolkit_core.tools._codec import Codec
    from toolkit_core.tools._needle import LineEnds
    from toolkit_core.tools._pieces import PieceTable, Span


def line_ends_of(data: bytes, codec: Codec) -> LineEnds:
    """Which line ends a file has; counted in blocks, since counting holds the GIL."""
    cr, lf = codec.cr, codec.lf
    if not any(data.find(b"\r", at, at + EDIT_SEARCH_BYTES) >= 0 for at in range(0, len(data), EDIT_SEARCH_BYTES)):
        return "lf"
    feeds = sum(codec.count_lines(block) for block in _blocks(data))
    pairs = sum(codec.count(block, cr + lf) for block in _blocks(data))
    pairs += sum(one.endswith(cr) and two.startswith(lf) for one, two in pairwise(_blocks(data)))
    return "crlf" if pairs and pairs == feeds else "mixed"  # a lone CR may become half of a pair


def _blocks(data: bytes) -> Iterator[bytes]:
    for at in range(0, len(data), FILE_BLOCK_BYTES):
        yield data[at : at + FILE_BLOCK_BYTES]


class LineEndMapper:
    """Gives a new text's LFs the line ends of the place that it is put into."""

    def __init__(self, table: PieceTable, codec: Codec) -> None:
        self._table, self._codec = table, codec
        self._feed: int | None = None
        self._is_last = False

    def encode(self, old_text: str, new_text: str, span: Span) -> bytes:
        """The new text for a span that matched the old text (which has no CR), as bytes.

        A new text with CR of its own is exact. Lines that old and new text share at either end keep their very
        endings; those between take the span's first, or without one that of the line the span lies in.
        """
        if "\n" not in new_text or "\r" in new_text:
            return self._codec.encode(new_text)
        ends = self._ends_in(span)
        if not ends:
            return self._joined(new_text, [self._end_of_line(span)] * new_text.count("\n"))
        if len(set(ends)) == 1:
            return self._joined(new_text, ends[:1] * new_text.count("\n"))
        return self._joined(new_text, _aligned(old_text.split("\n"), new_text.split("\n"), ends))

    def _joined(self, new_text: str, ends: list[bytes]) -> bytes:
        if all(end == self._codec.lf for end in ends):
            return self._codec.encode(new_text)
        lines = [self._codec.encode(line) for line in new_text.split("\n")]
        return b"".join(line + end for line, end in zip(lines, [*ends, b""], strict=True))

    def _ends_in(self, span: Span) -> list[bytes]:
        codec, data = self._codec, self._table.bytes_at(*span)
        pair = codec.cr + codec.lf
        lines = codec.split_lines(data)
        return [pair if line.endswith(pair) else codec.lf for line in lines if line.endswith(codec.lf)]

    def _end_of_line(self, span: Span) -> bytes:
        """The ending of the line that a span lies in; of the last line, that of the line before; else LF.

        Spans come in order, so the line feed found for one serves those before it, and the last one of the
        file all that follow.
        """
        start, end = span
        if self._feed is None or (self._feed < end and not self._is_last):
            self._feed = self._next_feed(end)
            self._is_last = self._feed < 0
            if self._is_last:
                self._feed = self._feed_before(start)
        if self._feed < 0:
            return self._first_end_of_old()
        width = self._codec.width
        pair = self._codec.cr + self._codec.lf
        is_pair = self._feed >= width and self._table.bytes_at(self._feed - width, self._feed + width) == pair
        return pair if is_pair else self._codec.lf

    def _first_end_of_old(self) -> bytes:
        """Where earlier edits took the last line end away, what the file began with."""
        old, codec = self._table.old, self._codec
        at = codec.find(old, codec.lf, 0, len(old))
        is_pair = at >= codec.width and old[at - codec.width : at] == codec.cr
        return codec.cr + codec.lf if is_pair else codec.lf

    def _next_feed(self, start: int) -> int:
        at = start
        for piece, low, high in self._table.ranges(start, len(self._table)):
            found = self._codec.find(piece.buffer, self._codec.lf, low, high)
            if found >= 0:
                return at + found - low
            at += high - low
        return -1

    def _feed_before(self, end: int) -> int:
        at, found_at = 0, -1
        for piece, low, high in self._table.ranges(0, end):
            found = self._codec.rfind(piece.buffer, self._codec.lf, low, high)
            if found >= 0:
                found_at = at + found - low
            at += high - low
        return found_at


def _aligned(old: list[str], new: list[str], ends: list[bytes]) -> list[bytes]:
    """Endings for the new lines of a span whose own endings differ."""
    wanted = len(new) - 1
    if len(old) == len(new):
        return ends
    limit = min(len(old), len(new)) - 1
    head = next((i for i in range(limit) if old[i] != new[i]), limit)
    tail = next((i for i in range(limit - head) if old[-2 - i] != new[-2 - i]), limit - head)
    middle = [ends[0]] * (wanted - head - tail)
    return [*ends[:head], *middle, *ends[len(ends) - tail :]]
