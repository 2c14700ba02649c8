"""A unified diff made from what the edits changed, not by comparing files.

The form is that of diff -u and git (git-diff(1), "Generating patch text with -p"); `git apply` takes it for files
in UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from toolkit_core.limits import (
    DIFF_ALIGNED_LINES,
    DIFF_BYTES,
    DIFF_CONTEXT_LINE_BYTES,
    DIFF_CONTEXT_LINES,
    FILE_BLOCK_BYTES,
)
from toolkit_core.text import shown_name

if TYPE_CHECKING:
    from toolkit_core.tools._codec import Codec
    from toolkit_core.tools._pieces import Change, PieceTable

_QUOTED: Final = re.compile(r'[\x00-\x1f\x7f"\\]')
_NO_NEWLINE: Final = "\\ No newline at end of file"


@dataclass(frozen=True)
class Diff:
    """The diff and the first line that differs, from 1."""

    text: str
    first_changed_line: int


@dataclass(frozen=True)
class _Block:
    """Whole lines that changed: old bytes `[start, end)`, the first of them line `line` of the old file."""

    start: int
    end: int
    line: int
    old: list[bytes]
    new: list[bytes]

    def joined(self, following: _Block) -> _Block:
        """This block and the one that follows at once; it takes over this one's lists."""
        self.old.extend(following.old)
        self.new.extend(following.new)
        return _Block(self.start, following.end, self.line, self.old, self.new)


@dataclass(frozen=True)
class _Region:
    """Whole lines around changes, before they are taken apart; `new_bytes` is the length of what they become."""

    start: int
    end: int
    changes: list[Change]

    @property
    def size_bytes(self) -> int:
        return 2 * (self.end - self.start) + sum(len(change.new) for change in self.changes)

    def new(self, old: bytes) -> bytes:
        parts, at = list[bytes](), self.start
        for change in self.changes:
            parts += (old[at : change.old_start], change.new)
            at = change.old_end
        return b"".join([*parts, old[at : self.end]])


def span_diff(table: PieceTable, codec: Codec, path: str, *, max_bytes: int = DIFF_BYTES) -> Diff:
    """The diff of all edits in a piece table.

    Args:
        table: The edits.
        codec: Of the file.
        path: As the header shows it.
        max_bytes: Whole hunks are written up to about this; then a line counts what is left out.
    """
    writer = _Writer(table.old, codec, max_bytes)
    written = 0
    for region in _regions(table, codec):
        if not writer.add(region):
            writer.leave_out(sum(1 for _ in table.changes()) - written)
            break
        written += len(region.changes)
    header = f"--- {_quoted('a/' + path.lstrip('/'))}\n+++ {_quoted('b/' + path.lstrip('/'))}\n"
    return Diff(header + writer.finish(), writer.first_changed_line)


def _quoted(name: str) -> str:
    """A name as git writes it: in quotes where it has quotes or control characters, a tab behind spaces."""
    name = shown_name(name)
    if _QUOTED.search(name):
        return '"' + _QUOTED.sub(lambda m: "\\" + (m[0] if m[0] in '"\\' else f"{ord(m[0]):03o}"), name) + '"'
    return name + "\t" if " " in name else name


def _regions(table: PieceTable, codec: Codec) -> Iterator[_Region]:
    """The changes extended to whole lines, those that share lines joined."""
    old = table.old
    start, end = 0, -1
    gathered: list[Change] = []
    for change in table.changes():
        if gathered and change.old_start >= end:  # else it shares the last line of those before
            yield _Region(start, end, gathered)
            gathered = []
        if not gathered:
            start = _line_start(old, change.old_start, codec)
        if change.old_end >= end or not gathered:
            end = _end_of_lines(old, change, codec)
        gathered.append(change)
    if gathered:
        yield _Region(start, end, gathered)


def _line_start(old: bytes, at: int, codec: Codec) -> int:
    feed = codec.rfind(old, codec.lf, 0, at)
    return min(at, max(codec.bom_bytes, feed + codec.width if feed >= 0 else 0))


def _end_of_lines(old: bytes, change: Change, codec: Codec) -> int:
    """Where the last line ends that a change touches, in the old file and in the new one alike."""
    end = change.old_end
    if _at_line_start(old, end, codec) and _ends_line(old, change, codec):
        return end
    feed = codec.find(old, codec.lf, end, len(old))
    return feed + codec.width if feed >= 0 else len(old)


def _at_line_start(old: bytes, at: int, codec: Codec) -> bool:
    return at <= codec.bom_bytes or old[at - codec.width : at] == codec.lf


def _ends_line(old: bytes, change: Change, codec: Codec) -> bool:
    if change.new:
        return change.new.endswith(codec.lf)
    return _at_line_start(old, change.old_start, codec)


class _Writer:
    """Takes regions apart into blocks, joins near ones into hunks, and writes them until it is full."""

    def __init__(self, old: bytes, codec: Codec, max_bytes: int) -> None:
        self._old, self._codec, self._room = old, codec, max_bytes
        self._out: list[str] = []
        self._hunk: list[_Block] = []
        self._line, self._counted_to = 1, 0
        self._shift = 0
        self._left_out = 0
        self.first_changed_line = 0

    def add(self, region: _Region) -> bool:
        """Take a region; False where it is too long, or what came before it."""
        line = self._line_at(region.start) if not self.first_changed_line or self._room > 0 else 0
        if region.size_bytes > max(self._room, 0):
            self.first_changed_line = self.first_changed_line or line
            return False
        self._room -= region.size_bytes
        for block in self._blocks(region, line):
            self.first_changed_line = self.first_changed_line or block.line
            if self._hunk and self._is_apart(block):
                self._write_hunk()
            if self._hunk and self._hunk[-1].end == block.start:
                self._hunk[-1] = self._hunk[-1].joined(block)
            else:
                self._hunk.append(block)
        return True

    def leave_out(self, changes: int) -> None:
        """Say at the end how many changed places are not shown."""
        self._left_out = changes

    def finish(self) -> str:
        if self._hunk:
            self._write_hunk()
        if self._left_out:
            places = f"{self._left_out:,} more changed place{'s' if self._left_out > 1 else ''}"
            self._out.append(f"[diff cut: {places}, too long to show]\n")
        return "".join(self._out)

    def _line_at(self, offset: int) -> int:
        for start in range(self._counted_to, offset, FILE_BLOCK_BYTES):
            self._line += self._codec.count_lines(self._old[start : min(offset, start + FILE_BLOCK_BYTES)])
        self._counted_to = max(self._counted_to, offset)
        return self._line

    def _is_apart(self, block: _Block) -> bool:
        """Whether more lies between a block and the last one than a hunk shows as context."""
        last = self._hunk[-1]
        if block.line - (last.line + len(last.old)) > 2 * DIFF_CONTEXT_LINES:
            return True
        between = self._codec.split_lines(self._old[last.end : block.start])
        return max(map(len, between), default=0) > DIFF_CONTEXT_LINE_BYTES

    def _blocks(self, region: _Region, line: int) -> Iterator[_Block]:
        old = self._codec.split_lines(self._old[region.start : region.end])
        new = self._codec.split_lines(region.new(self._old))
        head, tail = _shared(old, new)
        offset = region.start + sum(map(len, old[:head]))
        line += head
        old, new = old[head : len(old) - tail], new[head : len(new) - tail]
        if max(len(old), len(new)) > DIFF_ALIGNED_LINES:
            yield _Block(offset, offset + sum(map(len, old)), line, old, new)
            return
        starts = [offset]
        for text in old:
            starts.append(starts[-1] + len(text))
        for tag, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                yield _Block(starts[i], starts[j], line + i, old[i:j], new[k:m])

    def _write_hunk(self) -> None:
        blocks, self._hunk = self._hunk, []
        before = self._lines_before(blocks[0].start)
        rows = [" " + self._row(text) for text in before]
        first, at = blocks[0].line - len(before), blocks[0].start
        for block in blocks:
            rows += [" " + self._row(text) for text in self._codec.split_lines(self._old[at : block.start])]
            rows += ["-" + self._row(text) for text in block.old]
            rows += ["+" + self._row(text) for text in block.new]
            at = block.end
        after = self._lines_after(at)
        rows += [" " + self._row(text) for text in after]
        old_count = blocks[-1].line + len(blocks[-1].old) + len(after) - first
        new_count = old_count + sum(len(block.new) - len(block.old) for block in blocks)
        ranges = f"-{_range(first, old_count)} +{_range(first + self._shift, new_count)}"
        self._out.append(f"@@ {ranges} @@\n" + "".join(rows))
        self._room -= sum(map(len, rows))
        self._shift += new_count - old_count

    def _row(self, line: bytes) -> str:
        text = self._codec.show(line)
        return text if text.endswith("\n") else f"{text}\n{_NO_NEWLINE}\n"

    def _lines_before(self, offset: int) -> list[bytes]:
        start, floor = offset, self._codec.bom_bytes
        for _ in range(DIFF_CONTEXT_LINES):
            if start <= floor:
                break
            found = self._codec.rfind(self._old, self._codec.lf, floor, start - self._codec.width)
            begin = found + self._codec.width if found >= 0 else floor
            if start - begin > DIFF_CONTEXT_LINE_BYTES:
                break
            start = begin
        return self._codec.split_lines(self._old[start:offset])

    def _lines_after(self, offset: int) -> list[bytes]:
        end = offset
        for _ in range(DIFF_CONTEXT_LINES):
            found = self._codec.find(self._old, self._codec.lf, end, len(self._old))
            stop = found + self._codec.width if found >= 0 else len(self._old)
            if stop - end > DIFF_CONTEXT_LINE_BYTES:
                break
            end = stop
        return self._codec.split_lines(self._old[offset:end])


def _shared(old: list[bytes], new: list[bytes]) -> tuple[int, int]:
    """How many lines both share at the start and, behind that, at the end."""
    limit = min(len(old), len(new))
    head = next((i for i in range(limit) if old[i] != new[i]), limit)
    tail = next((i for i in range(limit - head) if old[-1 - i] != new[-1 - i]), limit - head)
    return head, tail


def _range(first: int, count: int) -> str:
    """A hunk's range; an empty one names the line before it (GNU diffutils manual, "Detailed Unified")."""
    if count == 0:
        return f"{first - 1},0"
    return str(first) if count == 1 else f"{first},{count}"
