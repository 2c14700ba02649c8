r"""ripgrep's output, block by block, as rows: bounded memory whatever a line's length.

The form is that of `--null --no-heading --with-filename --line-number --column --field-match-separator=\x00`,
searched from `./`:

    ./PATH NUL LINE NUL COLUMN NUL TEXT LF    a match
    ./PATH NUL LINE NUL TEXT LF               a match of nothing behind the last line: it has no column
    ./PATH NUL LINE-TEXT LF               context
    -- LF                                 lines are missing
    ./PATH: binary file matches (...) LF  nothing of it is shown

A path may hold anything but NUL, a text anything but NUL and LF.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from toolkit_core.limits import GREP_ROW_CHARS
from toolkit_core.search_text import LEAD_CHARS, cut_line

_BINARY: Final = re.compile(
    rb"(?:WARNING: stopped searching binary file after match|binary file matches) \(found .* around offset \d+\)\Z"
)
_HEAD_MAX_BYTES: Final = 8192  # a path of 4,096 bytes, two numbers and their marks
_GIANT_BYTES: Final = 65_536  # a line longer than this is cut while it streams in
_CHAR_BYTES: Final = 4


RawRow = tuple[bytes, int, str, bool, bool, str]
"""The engine's path (bytes that begin with `./`), then line, text, context, gap and cut as in `Row`.

A plain tuple: the garbage collector stops looking at it, however many there are.
"""


@dataclass
class RowReader:
    """Turns blocks into rows.

    Attributes:
        binary: Files that the engine left out, or left early, as binary.
        malformed: Lines that are no row.
        held: The beginning of a row that is not complete.
        texts: Whether the rows carry their texts; without, there is no context either, and it is faster.
    """

    binary: int = 0
    malformed: int = 0
    held: bytes = b""
    texts: bool = True
    _gap: bool = False
    _giant: _Giant | None = field(default=None)

    def feed(self, block: bytes) -> list[RawRow]:
        """The rows that this block completes."""
        rows: list[RawRow] = []
        if self._giant is not None:
            block = self._feed_giant(block, rows)
        data = self.held + block if self.held else block
        whole, newline, self.held = data.rpartition(b"\n")
        if newline:
            self._split(whole, rows)
        if len(self.held) > _GIANT_BYTES:
            self._begin_giant()
        return rows

    def _split(self, whole: bytes, rows: list[RawRow]) -> None:
        waiting = b""
        for line in whole.split(b"\n"):
            if waiting:
                line = waiting + b"\n" + line
                waiting = b""
            head, null, rest = line.partition(b"\0")
            if null:
                row = self._row(head, rest) if self.texts else (head, 0, "", False, False, "")
                if row is not None:
                    rows.append(row)
            elif line in (b"--", b"--\r"):
                self._gap = True
            elif self._is_binary_note(line):
                self.binary += 1
            elif len(line) <= _HEAD_MAX_BYTES and line.startswith(b"./"):
                waiting = line  # a path that holds a line feed
            else:
                self.malformed += 1
        if waiting:
            self.held = waiting + b"\n" + self.held

    def _row(self, path: bytes, rest: bytes) -> RawRow | None:
        number, null, text = rest.partition(b"\0")
        gap, self._gap = self._gap, False
        if null and number.isdigit():
            column, null, behind = text.partition(b"\0")
            shown, cut = cut_line(behind, int(column) - 1) if null and column.isdigit() else cut_line(text, len(text))
            return (path, int(number), shown, False, gap, cut)
        number, _, text = rest.partition(b"-")
        if not number.isdigit():
            self.malformed += 1
            return None
        shown, cut = cut_line(text, 0)
        return (path, int(number), shown, True, gap, cut)

    @staticmethod
    def _is_binary_note(line: bytes) -> bool:
        _, colon, note = line.rpartition(b": ")
        if colon and _BINARY.match(note):
            return True
        _, colon, note = line.partition(b": WARNING: ")
        return bool(colon and _BINARY.match(b"WARNING: " + note))

    def _begin_giant(self) -> None:
        path, null, rest = self.held.partition(b"\0")
        head = re.match(rb"(\d+)(?:\0(?:(\d+)\0)?|(-))", rest)
        if null and head is not None:
            column = int(head[2]) - 1 if head[2] else 0
            gap, self._gap = self._gap, False
            self._giant = _Giant((path, int(head[1]), "", head[3] is not None, gap, ""), column)
            self._giant.add(rest[head.end() :])
        else:
            self.malformed += 1
            self._giant = _Giant(None, 0)
        self.held = b""

    def _feed_giant(self, block: bytes, rows: list[RawRow]) -> bytes:
        assert self._giant is not None  # noqa: S101 - for the type checker
        text, newline, rest = block.partition(b"\n")
        self._giant.add(text)
        if newline:
            row = self._giant.row()
            if row is not None:
                rows.append(row)
            self._giant = None
        return rest


class _Giant:
    """A line too long to hold: what lies around its match is kept, the rest counted."""

    def __init__(self, row: RawRow | None, match_at: int) -> None:
        self._row = row
        self._match_at = match_at
        self._from = 0 if match_at < GREP_ROW_CHARS else max(0, match_at - LEAD_CHARS * _CHAR_BYTES)
        self._room = 2 * GREP_ROW_CHARS * _CHAR_BYTES
        self._kept = bytearray()
        self._seen = 0

    def add(self, text: bytes) -> None:
        if len(self._kept) < self._room and self._seen + len(text) > self._from:
            start = max(0, self._from - self._seen)
            self._kept += text[start : start + self._room - len(self._kept)]
        self._seen += len(text)

    def row(self) -> RawRow | None:
        if self._row is None:
            return None
        before = self._from > 0
        text, cut = cut_line(bytes(self._kept), self._match_at - self._from, before=before, after=True)
        path, line, _, context, gap, _ = self._row
        return path, line, text, context, gap, cut
