"""One line for display: whole where it is short, else a window of its characters and where to read on."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from toolkit_core.text import decoded, shown_text


@dataclass(frozen=True)
class ShownLine:
    """A line as it is shown.

    Attributes:
        text: What is shown, bytes that are no text escaped.
        start: Characters of the line left out before it.
        end: Characters of the line up to its end.
        total: Characters in all; None where the end of the line was not reached.
        odd: Whether bytes were escaped.
        crlf: Whether the line ended in CRLF; None without a line end.
    """

    text: str
    start: int
    end: int
    total: int | None
    odd: bool = False
    crlf: bool | None = None

    @property
    def cut(self) -> bool:
        """Whether characters follow."""
        return self.total is None or self.end < self.total


class LongLine:
    """Collects `keep` characters of a line behind the first `skip`, and counts the rest without keeping it."""

    def __init__(self, skip: int, keep: int) -> None:
        self._skip, self._keep = skip, keep
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._parts: list[str] = []
        self._count = 0
        self._last = ""

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the line."""
        if not piece:
            return
        unseen = self._count >= self._skip + self._keep or self._count + len(piece) <= self._skip
        if unseen and piece.isascii() and not self._decoder.getstate()[0]:
            self._count += len(piece)  # only counted, and a byte is a character here
            self._last = chr(piece[-1])
            return
        self._take(self._decoder.decode(piece))

    def finish(self, *, ended_by_newline: bool, reached_end: bool = True) -> ShownLine:
        """The line as it is shown; a CR before the LF belongs to the line's ending."""
        self._take(self._decoder.decode(b"", final=True))
        crlf = ended_by_newline and self._last == "\r"
        total = self._count - 1 if crlf else self._count
        text = "".join(self._parts)[: max(0, total - self._skip)]
        shown = shown_text(text)
        end = min(self._skip + len(text), total)
        return ShownLine(
            shown, self._skip, end, total if reached_end else None, shown != text, crlf if ended_by_newline else None
        )

    def _take(self, text: str) -> None:
        if not text:
            return
        before, self._count = self._count, self._count + len(text)
        first, last = max(0, self._skip - before), self._skip + self._keep - before
        if last > first and first < len(text):
            self._parts.append(text[first:last])
        self._last = text[-1]


def short_line(raw: bytes, *, ended_by_newline: bool) -> ShownLine:
    """A line of at most as many bytes as characters are shown."""
    crlf = ended_by_newline and raw.endswith(b"\r")
    text = decoded(raw[:-1] if crlf else raw)
    shown = shown_text(text)
    return ShownLine(shown, 0, len(text), len(text), shown != text, crlf if ended_by_newline else None)
