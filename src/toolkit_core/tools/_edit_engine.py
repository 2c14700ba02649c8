"""Edits on bytes: each old text found in the running text, all applied or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.limits import EDIT_FILE_BYTES, EDIT_OCCURRENCES, FILE_BLOCK_BYTES
from toolkit_core.tools._line_ends import LineEndMapper, line_ends_of
from toolkit_core.tools._near_match import explain_no_match
from toolkit_core.tools._needle import LineEnds, Needle, sample
from toolkit_core.tools._pieces import PieceTable, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit_core.tools._codec import Codec

_COUNTED = 1_000
_LINES_NAMED = 10
_CHECKED_SPANS = 1_024
_SAMPLED_BYTES = 4_194_304
"""Less is searched before the bytes of a sample are counted."""


@dataclass(frozen=True)
class Edit:
    """One replacement: `old_text` exactly once, or everywhere."""

    old_text: str
    new_text: str
    replace_all: bool = False


@dataclass(frozen=True)
class Edited:
    """What the edits made: the pieces, and how many places each edit changed."""

    table: PieceTable
    counts: tuple[int, ...]


def apply_edits(
    old: bytes,
    codec: Codec,
    edits: Sequence[Edit],
    *,
    max_bytes: int = EDIT_FILE_BYTES,
    check: Callable[[], object] = int,
) -> Edited:
    """Apply edits in order, each on what the ones before it made.

    Args:
        old: The old file.
        codec: Of the file.
        edits: In order.
        max_bytes: Largest file that may come of it.
        check: Called again and again; raises once the call was cancelled, which ends the work.

    Raises:
        ToolError: `invalid_arguments`, `no_match`, `ambiguous_match`, `no_change`, `too_large`; the message names
            the edit, and nothing is changed.
    """
    for number, edit in enumerate(edits):
        _check(edit, _name(number, edits))
    engine = _Engine(old, codec, max_bytes, check, sampled=len(old) * len(edits) > _SAMPLED_BYTES)
    counts = tuple(engine.apply(edit, _name(number, edits)) for number, edit in enumerate(edits))
    if next(engine.table.changes(), None) is None or _same(engine.table):
        message = "Together the edits leave the file as it is; nothing was written."
        raise ToolError(message, code="no_change", hint="Leave out the edits that undo others, or make no call.")
    return Edited(engine.table, counts)


def _name(number: int, edits: Sequence[Edit]) -> str:
    return f"edits[{number}]" if len(edits) > 1 else "The edit"


def _check(edit: Edit, name: str) -> None:
    if not edit.old_text:
        hint = (
            "To append, give the last line as old_text and the last line with the addition as new_text; "
            "to replace everything, write the whole file."
        )
        raise ToolError(f"{name}: old_text is empty; nothing was written.", code="invalid_arguments", hint=hint)
    if edit.old_text == edit.new_text:
        message = f"{name}: old_text and new_text are the same; nothing was written."
        raise ToolError(message, code="no_change", hint="Give the changed text as new_text.")


def _same(table: PieceTable) -> bool:
    """Whether later edits took back what earlier ones did."""
    if len(table) != len(table.old):
        return False
    return all(table.old[c.old_start : c.old_end] == c.new for c in table.changes())


class _Engine:
    def __init__(self, old: bytes, codec: Codec, max_bytes: int, check: Callable[[], object], *, sampled: bool) -> None:
        self.table = PieceTable(old)
        self._codec, self._max_bytes, self._check = codec, max_bytes, check
        self._line_ends: LineEnds | None = None
        self._common = sample(old) if sampled else None

    def apply(self, edit: Edit, name: str) -> int:
        maps_line_ends = "\n" in edit.old_text and "\r" not in edit.old_text
        line_ends = self._line_ends_now() if maps_line_ends else "lf"
        needle = Needle.of(edit.old_text, self._codec, line_ends, self._common, self._check)
        spans = self._spans(edit, needle, name)
        news = self._news(edit, spans)
        grown = len(self.table) + sum(map(len, news)) - sum(end - start for start, end in spans)
        if grown > self._max_bytes:
            message = f"{name} would make the file {grown:,} bytes long; at most {self._max_bytes:,} are written."
            raise ToolError(message, code="too_large", hint="Nothing was written. Change less at once.")
        if all(self.table.bytes_at(*span) == new for span, new in zip(spans, news, strict=True)):
            message = (
                f"{name}: with the line ends of the file, old_text and new_text are the same; nothing was written."
            )
            raise ToolError(message, code="no_change", hint="Give the changed text as new_text.")
        self.table.replace(spans, news)
        if "\r" in edit.old_text + edit.new_text:
            self._line_ends = "mixed"
        return len(spans)

    def _line_ends_now(self) -> LineEnds:
        """Counted once, when an edit first needs it: without a CR of its own an edit keeps them all alike."""
        if self._line_ends is None:
            self._line_ends = line_ends_of(self.table.old, self._codec)
        return self._line_ends

    def _spans(self, edit: Edit, needle: Needle, name: str) -> list[Span]:
        first = self.table.find(needle, self._codec.bom_bytes)
        if first is None:
            raise explain_no_match(self.table, self._codec, edit.old_text, name)
        if edit.replace_all:
            return self._all(needle, first, name)
        if self.table.find(needle, first[0] + self._codec.width) is not None:
            raise self._ambiguous(needle, first, name)
        return [first]

    def _all(self, needle: Needle, first: Span, name: str) -> list[Span]:
        spans = self.table.find_all(needle, first, EDIT_OCCURRENCES)
        if len(spans) > EDIT_OCCURRENCES:
            message = f"{name}: old_text occurs more than {EDIT_OCCURRENCES:,} times; nothing was written."
            raise ToolError(message, code="too_large", hint="Give a longer old_text.")
        return spans

    def _news(self, edit: Edit, spans: list[Span]) -> list[bytes]:
        if "\r" in edit.old_text + edit.new_text or "\n" not in edit.new_text:
            return [self._codec.encode(edit.new_text)] * len(spans)
        line_ends = self._line_ends_now()
        if line_ends != "mixed":
            text = edit.new_text if line_ends == "lf" else edit.new_text.replace("\n", "\r\n")
            return [self._codec.encode(text)] * len(spans)
        mapper = LineEndMapper(self.table, self._codec)
        news: list[bytes] = []
        for number, span in enumerate(spans):
            if number % _CHECKED_SPANS == 0:
                self._check()
            news.append(mapper.encode(edit.old_text, edit.new_text, span))
        return news

    def _ambiguous(self, needle: Needle, first: Span, name: str) -> ToolError:
        starts = [first[0]]
        while len(starts) <= _COUNTED and (found := self.table.find(needle, starts[-1] + self._codec.width)):
            starts.append(found[0])
        count = f"{len(starts):,}" if len(starts) <= _COUNTED else f"more than {_COUNTED:,}"
        lines = line_numbers(self.table, self._codec, starts[:_LINES_NAMED])
        more = ", ..." if len(starts) > _LINES_NAMED else ""
        return ToolError(
            f"{name}: old_text occurs {count} times, at lines {', '.join(map(str, lines))}{more}; nothing was written.",
            code="ambiguous_match",
            hint="Add lines before or after to old_text until it is unique, or set replace_all to change every one.",
        )


def line_numbers(table: PieceTable, codec: Codec, offsets: Sequence[int]) -> list[int]:
    """The lines, from 1, that offsets of the running text lie in."""
    numbers: list[int] = []
    at, line = 0, 1
    for offset in offsets:
        for piece, low, high in table.ranges(at, offset):
            for start in range(low, high, FILE_BLOCK_BYTES):
                line += codec.count_lines(piece.buffer[start : min(high, start + FILE_BLOCK_BYTES)])
        at = offset
        numbers.append(line)
    return numbers
