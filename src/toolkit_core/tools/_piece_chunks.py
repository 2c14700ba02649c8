"""The pieces of a running text in chunks, so that one more edit costs what a chunk costs, however many came before."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Final, NamedTuple

_CHUNK_PIECES: Final = 256
"""An edit walks one chunk and the list of chunks: about the root of the half million pieces that there may be."""

_PIECES_A_SPAN: Final = 64
"""Above one span in so many pieces a pass over all of them is the cheaper way."""

Span = tuple[int, int]
"""Start and end in the running text."""


class Piece(NamedTuple):
    """A part of a buffer; `old` where the buffer is the old file."""

    buffer: bytes
    start: int
    end: int
    old: bool


class PieceChunks:
    """What each byte of the running text comes from."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._set_all(pieces)

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __iter__(self) -> Iterator[Piece]:
        return chain.from_iterable(self._chunks)

    def replace(self, spans: Sequence[Span], news: Sequence[bytes]) -> None:
        """Put new bytes in place of spans, which are in order, not empty, and do not overlap."""
        if len(spans) * _PIECES_A_SPAN >= len(self):
            self._set_all(replaced(list(self), 0, spans, news))
            return
        offsets = list(accumulate(self._sizes, initial=0))
        touched: set[int] = set()
        for span, new in zip(reversed(spans), reversed(news), strict=True):  # what lies before a span stays in place
            touched |= self._replace_one(offsets, span, new)
        self._settle(touched)

    def _replace_one(self, offsets: list[int], span: Span, new: bytes) -> set[int]:
        first = bisect_right(offsets, span[0]) - 1
        last = max(first, bisect_left(offsets, span[1]) - 1)
        around = list(chain.from_iterable(self._chunks[first : last + 1]))
        self._chunks[first] = replaced(around, offsets[first], [span], [new])
        for number in range(first + 1, last + 1):
            self._chunks[number] = []
        return set(range(first, last + 1))

    def _settle(self, touched: set[int]) -> None:
        """Chunks of the right size again, and their lengths."""
        for number in sorted(touched, reverse=True):
            chunks = _in_chunks(self._chunks[number])
            self._chunks[number : number + 1] = chunks
            self._sizes[number : number + 1] = map(_size, chunks)

    def _set_all(self, pieces: Sequence[Piece]) -> None:
        self._chunks = _in_chunks(pieces)
        self._sizes = list(map(_size, self._chunks))


def replaced(pieces: Sequence[Piece], at: int, spans: Sequence[Span], news: Sequence[bytes]) -> list[Piece]:
    """The pieces, the first of which starts at `at`, with new bytes in place of spans."""
    result: list[Piece] = []
    walk = iter(pieces)
    piece = next(walk, None)
    for (start, end), new in zip(spans, news, strict=True):
        while piece is not None and at + piece.end - piece.start <= start:
            result.append(piece)
            at += piece.end - piece.start
            piece = next(walk, None)
        if piece is not None and at < start:
            result.append(piece._replace(end=piece.start + start - at))
        if new:
            result.append(Piece(new, 0, len(new), old=False))
        while piece is not None and at + piece.end - piece.start <= end:
            at += piece.end - piece.start
            piece = next(walk, None)
        if piece is not None and at < end:
            piece = piece._replace(start=piece.start + end - at)
            at = end
    if piece is not None:
        result.append(piece)
    result.extend(walk)
    return result


def _in_chunks(pieces: Sequence[Piece]) -> list[list[Piece]]:
    if len(pieces) <= 2 * _CHUNK_PIECES:
        return [list(pieces)] if pieces else []
    return [list(pieces[i : i + _CHUNK_PIECES]) for i in range(0, len(pieces), _CHUNK_PIECES)]


def _size(pieces: Sequence[Piece]) -> int:
    return sum(piece.end - piece.start for piece in pieces)
