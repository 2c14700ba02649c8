"""A slice of a file's lines: found by number from either end, bounded in lines, characters and text."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.limits import READ_COUNT_AHEAD_BYTES
from toolkit_core.text import after_newlines, newlines_in
from toolkit_core.tools._line import LongLine, ShownLine, short_line
from toolkit_core.tools._scan import Encoding, OutOfBudget, Scan

if TYPE_CHECKING:
    from toolkit_core.ports.files import OpenFile

_NUMBER_CHARS = 8  # six digits, the tab and the line's end


@dataclass(frozen=True)
class SliceQuery:
    """Which lines, and how much at most.

    Attributes:
        offset: First line from 1; negative counts from the end, -1 is the last.
        limit: Lines at most.
        char_offset: Characters of the first line to leave out.
        line_chars: Characters shown of a line.
        max_output_bytes: Text in all; always at least one line.
        max_scan_bytes: Bytes read to find the lines.
    """

    offset: int
    limit: int
    char_offset: int
    line_chars: int
    max_output_bytes: int
    max_scan_bytes: int


@dataclass
class Slice:
    """The lines found.

    Attributes:
        first_line: Number of the first.
        lines: As they are shown; a plain string is a whole line with nothing to say about it.
        total_lines: Lines of the file, where the scan reached its end.
        mixed: Whether some lines are no plain strings.
        crlf_lines: Shown lines that end in CRLF.
        lf_lines: Shown lines that end in LF alone.
        more: Whether lines follow.
        full: Whether the output's limit ended it.
        scan_ended: Whether the scan's budget ended it.
        final_newline: Whether the file ends with a line end, where the scan reached its end.
    """

    first_line: int
    lines: list[ShownLine | str] = field(default_factory=list["ShownLine | str"])
    mixed: bool = False
    crlf_lines: int = 0
    lf_lines: int = 0
    total_lines: int | None = None
    more: bool = False
    full: bool = False
    scan_ended: bool = False
    final_newline: bool = True


def read_slice(file: OpenFile, encoding: Encoding, head: bytes, query: SliceQuery) -> Slice:
    """Read a slice.

    Args:
        file: The file.
        encoding: How its bytes are text.
        head: Its first block, read already.
        query: Which lines.

    Returns:
        The slice; without lines only for a file that has none.

    Raises:
        ToolError: `invalid_arguments` (past the end), `exhausted` (past the scan's budget).
        OSError: Reading failed.
    """
    scan = Scan(file, encoding, max_bytes=query.max_scan_bytes, head=head)
    try:
        if query.offset > 0:
            return _from_line(scan, query, skip=query.offset - 1, first_line=query.offset)
        marks, total = _count_all(scan)
        first = max(1, total + query.offset + 1)
        if encoding.wide:  # its marks are no places in the file
            again = Scan(file, encoding, max_bytes=query.max_scan_bytes, head=head)
            return _from_line(again, query, skip=first - 1, first_line=first)
        before, start = marks[bisect.bisect_right(marks, (first - 1, -1)) - 1] if first > 1 else (0, 0)
        again = Scan(file, encoding, max_bytes=query.max_scan_bytes, start=start)
        return _from_line(again, query, skip=first - 1 - before, first_line=first)
    except OutOfBudget:
        raise ToolError(
            f"The lines asked for lie more than {query.max_scan_bytes:,} bytes into the file, where the scan stops.",
            code="exhausted",
            hint="Search the file for what you need instead of reading to it.",
        ) from None


def _count_all(scan: Scan) -> tuple[list[tuple[int, int]], int]:
    """Marks (lines before, byte offset) at every block, and the number of lines."""
    marks: list[tuple[int, int]] = []
    newlines = 0
    while True:
        start = scan.offset
        block = scan.block()
        if not block:
            return marks or [(0, 0)], newlines + (not scan.at_line_start)
        marks.append((newlines, start))
        newlines += newlines_in(block)


def _from_line(scan: Scan, query: SliceQuery, *, skip: int, first_line: int) -> Slice:
    rest, skipped = _skip(scan, skip)
    if not rest:
        total = first_line - 1 - (skip - skipped)
        if first_line == 1 or total <= 0:
            return _nothing(query, total)
        raise past_end(query.offset, total)
    return _collect(scan, rest, query, first_line)


def _nothing(query: SliceQuery, total: int) -> Slice:
    if total <= 0 and query.offset > 1:
        raise past_end(query.offset, 0)
    return Slice(first_line=0, total_lines=0)


def past_end(offset: int, total: int) -> ToolError:
    """The offset lies behind the last line."""
    lines = f"{total:,} line{'s' if total != 1 else ''}"
    message = f"offset {offset:,} is past the end: the file has {lines}."
    hint = f"Use an offset from 1 to {total:,}, or a negative one to count from the end." if total else "It is empty."
    return ToolError(message, code="invalid_arguments", hint=hint)


def _skip(scan: Scan, lines: int) -> tuple[bytes, int]:
    """What follows that many lines in their last block (or the next one), and how many lines there were."""
    left = lines
    while True:
        block = scan.block()
        if not block:
            return b"", lines - left + (not scan.at_line_start)
        if not left:
            return block, lines
        here = newlines_in(block)
        if here < left:
            left -= here
            continue
        rest = block[after_newlines(block, left) :]
        left = 0
        if rest:
            return rest, lines


class _Collector:
    """Takes blocks apart into shown lines until a limit is reached."""

    def __init__(self, query: SliceQuery, first_line: int) -> None:
        self._query = query
        self.found = Slice(first_line)
        self._room = query.max_output_bytes
        self._carry = b""
        self._long = LongLine(query.char_offset, query.line_chars) if query.char_offset else None

    @property
    def inside_line(self) -> bool:
        """Whether a line has begun and not ended."""
        return bool(self._carry) or self._long is not None

    @property
    def done(self) -> bool:
        """Whether no more lines are wanted."""
        return self.found.full or len(self.found.lines) >= self._query.limit

    def take(self, block: bytes) -> int:
        """Take lines from a block; returns how much of it was used."""
        start = 0 if self.inside_line else self._take_plain(block)
        while not self.done:
            end = block.find(b"\n", start)
            if end < 0:
                self._keep(block[start:])
                return len(block)
            if not self._end_line(block[start:end], ended_by_newline=True):
                return start
            start = end + 1
        return start

    def _take_plain(self, block: bytes) -> int:
        """The fast way for ordinary text: whole short lines of UTF-8 with one kind of line end, all at once."""
        found, wanted = self.found, self._query.limit - len(self.found.lines)
        newlines = newlines_in(block)
        if newlines > wanted:
            newlines, used = wanted, after_newlines(block, wanted)
        else:
            used = block.rfind(b"\n") + 1
        if not newlines or used + newlines * _NUMBER_CHARS > self._room:
            return 0
        chunk = block[: used - 1]
        returns = chunk.count(b"\r")
        try:
            text = chunk.decode("utf-8")
        except UnicodeDecodeError:
            return 0
        if returns:
            if returns != newlines or chunk.count(b"\r\n") + chunk.endswith(b"\r") != newlines:
                return 0
            text = text.replace("\r", "")
        lines = text.split("\n")
        if "\0" in text or max(map(len, lines)) > self._query.line_chars:
            return 0
        found.lines.extend(lines)
        found.crlf_lines += returns
        found.lf_lines += newlines - returns
        self._room -= used + newlines * _NUMBER_CHARS
        return used

    def finish(self, *, reached_end: bool = True) -> None:
        """The file or the budget ended inside a line."""
        if not self.inside_line or self.done:
            return
        if reached_end:
            self._end_line(b"", ended_by_newline=False)
        else:
            line = self._as_long().finish(ended_by_newline=False, reached_end=False)
            self._add(line)

    def _keep(self, piece: bytes) -> None:
        if self._long is None and len(self._carry) + len(piece) <= self._query.line_chars:
            self._carry += piece
        else:
            self._as_long().feed(piece)

    def _as_long(self) -> LongLine:
        if self._long is None:
            self._long = LongLine(0, self._query.line_chars)
            self._long.feed(self._carry)
            self._carry = b""
        return self._long

    def _end_line(self, piece: bytes, *, ended_by_newline: bool) -> bool:
        if self._long is None and len(self._carry) + len(piece) <= self._query.line_chars:
            return self._add(short_line(self._carry + piece, ended_by_newline=ended_by_newline))
        long = self._as_long()
        long.feed(piece)
        return self._add(long.finish(ended_by_newline=ended_by_newline))

    def _add(self, line: ShownLine) -> bool:
        if line.start and line.total is not None and line.start >= line.total:
            raise ToolError(
                f"char_offset {line.start:,} is past the end of line {self.found.first_line:,}, "
                f"which has {line.total:,} characters.",
                code="invalid_arguments",
                hint="Use a smaller char_offset, or read on at the next line with a char_offset of 0.",
            )
        size = _NUMBER_CHARS + (len(line.text) if line.text.isascii() else len(line.text.encode("utf-8")))
        if size > self._room and self.found.lines:
            self.found.full = True
            return False
        self._room -= size
        self._carry, self._long = b"", None
        self.found.lines.append(line)
        self.found.mixed = True
        if line.crlf is not None:
            self.found.crlf_lines += line.crlf
            self.found.lf_lines += not line.crlf
        return True


def _collect(scan: Scan, rest: bytes, query: SliceQuery, first_line: int) -> Slice:
    collector = _Collector(query, first_line)
    found = collector.found
    used = collector.take(rest)
    try:
        while not collector.done and (rest := scan.block()):
            used = collector.take(rest)
    except OutOfBudget:
        collector.finish(reached_end=False)
        if not found.lines:
            raise
        found.scan_ended = found.more = True
        return found
    if not collector.done:
        collector.finish()
    return _with_total(scan, found, rest[used:], inside=found.full)


def _with_total(scan: Scan, found: Slice, rest: bytes, *, inside: bool) -> Slice:
    """Count on a little: most files end soon, and then their number of lines is known."""
    newlines, begun = newlines_in(rest), bool(rest) or inside
    until = scan.seen_bytes + READ_COUNT_AHEAD_BYTES
    try:
        while block := scan.block():
            begun = True
            if scan.seen_bytes > until:
                found.more = True
                return found
            newlines += newlines_in(block)
    except OutOfBudget:
        found.more = True
        return found
    found.more = begun
    found.final_newline = scan.at_line_start
    last = found.first_line + len(found.lines) - 1
    found.total_lines = last + newlines + (begun and not scan.at_line_start)
    return found
