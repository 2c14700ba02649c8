"""The running text of several edits: pieces of the old file and of new text, never joined.

A piece table (Crowley, Data Structures for Text Sequences, 1998): the old bytes stay where they are, an edit cuts
pieces. What changed is then known without comparing: whatever lies between two pieces of the old file.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple, overload

from toolkit_core.limits import FILE_BLOCK_BYTES
from toolkit_core.tools._piece_chunks import Piece, PieceChunks, Span, replaced

if TYPE_CHECKING:
    from toolkit_core.tools._needle import Needle

_COPIED_BYTES: Final = 65_536


class Change(NamedTuple):
    """Old bytes `[old_start, old_end)` became `new`."""

    old_start: int
    old_end: int
    new: bytes


class PieceTable:
    """The old file and the edits made to it so far.

    What is searched is the running text in few parts: where edits left it in crumbs, those are joined. What it
    comes from is kept apart, in pieces.

    Args:
        old: The old file.
        joined_bytes: Neighbouring parts are joined up to this length.
    """

    def __init__(self, old: bytes, *, joined_bytes: int = FILE_BLOCK_BYTES) -> None:
        whole = [Piece(old, 0, len(old), True)] if old else []
        self._old, self._joined_bytes, self._length = old, joined_bytes, len(old)
        self._origins = PieceChunks(whole)
        self._pending: tuple[Sequence[Span], Sequence[bytes]] | None = None
        self._set(whole)

    @property
    def old(self) -> bytes:
        """The old file."""
        return self._old

    def _set(self, pieces: list[Piece]) -> None:
        self._pieces = pieces
        self._starts = list(accumulate((p.end - p.start for p in pieces), initial=0))

    def __len__(self) -> int:
        return self._length

    @property
    def parts(self) -> Sequence[bytes | memoryview]:
        """The running text in pieces."""
        return _Parts(list(self._origins))

    def bytes_at(self, start: int, end: int) -> bytes:
        """The bytes of a span."""
        self._catch_up()
        found: list[bytes] = []
        for index in range(max(0, bisect_right(self._starts, start) - 1), len(self._pieces)):
            piece, at = self._pieces[index], self._starts[index]
            if at >= end:
                break
            shift = piece.start - at
            found.append(piece.buffer[max(start, at) + shift : min(piece.end, end + shift)])
        return found[0] if len(found) == 1 else b"".join(found)

    def ranges(self, start: int, end: int) -> Iterator[tuple[Piece, int, int]]:
        """The pieces behind a span, each with the range of its buffer."""
        self._catch_up()
        index = max(0, bisect_right(self._starts, start) - 1)
        while index < len(self._pieces) and self._starts[index] < end:
            piece, at = self._pieces[index], self._starts[index]
            low = piece.start + max(0, start - at)
            high = min(piece.end, piece.start + end - at)
            if low < high:
                yield piece, low, high
            index += 1

    def find_all(self, needle: Needle, first: Span, most: int) -> list[Span]:
        """All matches from the first one on, none overlapping another; one more than `most` at most."""
        self._catch_up()
        if len(self._pieces) == 1 and self._pieces[0].start == 0:
            return needle.find_all(self._pieces[0].buffer, first[0], self._pieces[0].end, most)
        spans = [first]
        while len(spans) <= most and (found := self.find(needle, spans[-1][1])) is not None:
            spans.append(found)
        return spans

    def find(self, needle: Needle, start: int) -> Span | None:
        """The first match at or behind `start`, across pieces too."""
        self._catch_up()
        index = max(0, bisect_right(self._starts, start) - 1)
        for number in range(index, len(self._pieces)):
            found = self._find_from_piece(needle, number, start)
            if found is not None:
                return found
        return None

    def _find_from_piece(self, needle: Needle, number: int, start: int) -> Span | None:
        """The first match that begins in a piece."""
        piece, at = self._pieces[number], self._starts[number]
        low = piece.start + max(0, start - at)
        inside = needle.find(piece.buffer, low, piece.end)
        while inside is not None and self._splits_line_end(needle, at + inside[0] - piece.start):
            inside = needle.find(piece.buffer, inside[0] + needle.codec.width, piece.end)
        span = None if inside is None else (at + inside[0] - piece.start, at + inside[1] - piece.start)
        edge = at + piece.end - piece.start
        first_crossing = max(at, start, edge - needle.max_bytes + 1)
        if number + 1 == len(self._pieces) or (span is not None and span[0] <= first_crossing):
            return span
        crossing = self._find_crossing(needle, first_crossing, edge, piece.buffer[piece.end - 1])
        return min(filter(None, (span, crossing)), default=None)

    def _find_crossing(self, needle: Needle, low: int, edge: int, last: int) -> Span | None:
        """The first match that starts at or behind `low`, before `edge` with its `last` byte, and ends behind it."""
        if not needle.may_cross(last):
            return None
        low -= low % needle.codec.width
        window = self.bytes_at(low, edge + needle.max_bytes - 1)
        at = 0
        while (found := needle.find(window, at, len(window))) is not None and low + found[0] < edge:
            if low + found[1] > edge and not self._splits_line_end(needle, low + found[0]):
                return low + found[0], low + found[1]
            at = found[0] + needle.codec.width
        return None

    def _splits_line_end(self, needle: Needle, start: int) -> bool:
        """Whether a match that leads with a line end begins between its CR and its LF."""
        width = needle.codec.width
        if not needle.leads_with_line_end or start < width:
            return False
        return self.bytes_at(start - width, start + width) == needle.codec.cr + needle.codec.lf

    def replace(self, spans: Sequence[Span], news: Sequence[bytes]) -> None:
        """Put new bytes in place of spans, which are in order, not empty, and do not overlap."""
        self._catch_up()
        self._origins.replace(spans, news)
        self._length += sum(map(len, news)) - sum(end - start for start, end in spans)
        self._pending = spans, news

    def _catch_up(self) -> None:
        """What is searched follows an edit once it is searched again: after the last one that is never."""
        if self._pending is not None:
            spans, news = self._pending
            self._pending = None
            self._set(_joined(replaced(self._pieces, 0, spans, news), self._joined_bytes))

    def changes(self) -> Iterator[Change]:
        """What became of the old bytes, in order."""
        at, new = 0, list[bytes]()
        for piece in self._origins:
            if not piece.old:
                new.append(piece.buffer[piece.start : piece.end])
                continue
            if new or piece.start != at:
                yield Change(at, piece.start, b"".join(new))
                new = []
            at = piece.end
        if new or at != len(self._old):
            yield Change(at, len(self._old), b"".join(new))


class _Parts(Sequence[bytes | memoryview]):
    """Pieces as bytes, made when they are asked for: views of half a million at once would keep the collector busy."""

    def __init__(self, pieces: list[Piece]) -> None:
        self._pieces = pieces

    def __len__(self) -> int:
        return len(self._pieces)

    @overload
    def __getitem__(self, index: int) -> bytes | memoryview: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes | memoryview]: ...
    def __getitem__(self, index: int | slice) -> bytes | memoryview | Sequence[bytes | memoryview]:
        if isinstance(index, slice):
            return _Parts(self._pieces[index])
        piece = self._pieces[index]
        if piece.end - piece.start < _COPIED_BYTES:
            return piece.buffer[piece.start : piece.end]
        return memoryview(piece.buffer)[piece.start : piece.end]


def _joined(pieces: Sequence[Piece], most_bytes: int) -> list[Piece]:
    """Neighbours joined up to a length, so that any two that remain are longer together."""
    result: list[Piece] = []
    run: list[Piece] = []
    size = 0
    for piece in pieces:
        length = piece.end - piece.start
        if run and size + length > most_bytes:
            result.append(_one(run, size))
            run, size = [], 0
        run.append(piece)
        size += length
    if run:
        result.append(_one(run, size))
    return result


def _one(run: list[Piece], size: int) -> Piece:
    if len(run) == 1:
        return run[0]
    return Piece(b"".join(piece.buffer[piece.start : piece.end] for piece in run), 0, size, old=False)
