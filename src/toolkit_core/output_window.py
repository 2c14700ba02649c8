"""The output window: what a model reads of a long result, and how the rest is named.

Tools return their whole result; adapters window what they hand to a model. Nothing is left out unsaid: every
omitted range is named with its lines, its size and, where the call was recorded, the recall that returns it.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from typing import Any

from toolkit_core.errors import ToolError
from toolkit_core.limits import (
    RECALL_CHARS,
    WINDOW_CHARS,
    WINDOW_HEAD_CHARS,
    WINDOW_LINE_CHARS,
    WINDOW_TAIL_CHARS,
)


@dataclass(frozen=True)
class Window:
    """How much of a result a model reads; counted in characters.

    Attributes:
        limit_chars: A text up to this length is handed over verbatim.
        head_chars: Past it, whole lines from the start up to this much,
        tail_chars: and whole lines from the end up to this much.
        line_chars: A longer line shows this much of its start.
    """

    limit_chars: int = WINDOW_CHARS
    head_chars: int = WINDOW_HEAD_CHARS
    tail_chars: int = WINDOW_TAIL_CHARS
    line_chars: int = WINDOW_LINE_CHARS

    def __post_init__(self) -> None:
        if min(self.limit_chars, self.head_chars, self.tail_chars, self.line_chars) < 1:
            raise ValueError("a window's sizes are positive numbers of characters")

    def apply(self, text: str, *, recall_id: str | None = None, first_line: int = 1) -> str:
        """The text as a model reads it.

        Args:
            text: The whole text.
            recall_id: The ledger's id of the whole text; names the call that returns what is left out.
            first_line: The number of the text's first line within the recorded text.
        """
        if len(text) <= self.limit_chars:
            return text
        return _Cut(self, text, recall_id, first_line).text()


DEFAULT_WINDOW = Window()


def window(text: str, *, recall_id: str | None = None, first_line: int = 1) -> str:
    """The text within the default window of 30,000 characters; see `Window.apply`."""
    return DEFAULT_WINDOW.apply(text, recall_id=recall_id, first_line=first_line)


def bounded(text: str) -> str:
    """The text within the default window, for a place from which nothing can be recalled."""
    return DEFAULT_WINDOW.apply(text)


class _Cut:
    """One text being cut. Scans from both ends, so that the middle is only counted."""

    def __init__(self, sizes: Window, text: str, recall_id: str | None, first_line: int) -> None:
        self._sizes, self._whole = sizes, text
        self._recall_id, self._first_line = recall_id, first_line

    def text(self) -> str:
        head, middle_start = self._head()
        if middle_start > len(self._whole):
            return "\n".join(head)
        tail, middle_end = self._tail(middle_start)
        if middle_end <= middle_start:
            return "\n".join([*head, *tail])
        return "\n".join([*head, self._gap(len(head), middle_start, middle_end), *tail])

    def _head(self) -> tuple[list[str], int]:
        """Shown lines from the start, and where the first line lies that did not fit."""
        whole, lines, spent, start = self._whole, list[str](), 0, 0
        while start <= len(whole):
            end = whole.find("\n", start)
            end = len(whole) if end < 0 else end
            line = self._shown(start, end, len(lines))
            spent += len(line) + 1
            if spent > self._sizes.head_chars:
                break
            lines.append(line)
            start = end + 1
        return lines, start

    def _tail(self, middle_start: int) -> tuple[list[str], int]:
        """Shown lines from the end, and where they begin."""
        whole, lines, spent, end = self._whole, list[str](), 0, len(self._whole)
        while end >= middle_start:
            start = whole.rfind("\n", middle_start, end) + 1 or middle_start
            line = self._shown(start, end, None)
            spent += len(line) + 1
            if spent > self._sizes.tail_chars:
                break
            lines.append(line)
            end = start - 1
        return lines[::-1], end + 1

    def _shown(self, start: int, end: int, index: int | None) -> str:
        if end - start <= self._sizes.line_chars:
            return self._whole[start:end]
        cut = start + self._sizes.line_chars
        while cut > start + 1 and cut > start + self._sizes.line_chars - 8 and unicodedata.combining(self._whole[cut]):
            cut -= 1
        note = f"line continues for {end - cut} more characters"
        if self._recall_id is not None and self._first_line == 1:
            note += self._recall(start_char=cut, end_char=end)
        return f"{self._whole[start:cut]}[{note}]"

    def _gap(self, head_lines: int, start: int, end: int) -> str:
        whole = self._whole
        first = self._first_line + head_lines
        last = first + whole.count("\n", start, end - 1)
        lines = f"line {first}" if first == last else f"lines {first}–{last}"  # noqa: RUF001 - a range
        note = f"{lines} omitted ({end - start} characters)"
        if self._recall_id is not None:
            note += self._recall(start_line=first, end_line=last)
        return f"[{note}]"

    def _recall(self, **span: int) -> str:
        arguments: dict[str, Any] = {"entry_id": self._recall_id, **span}
        return f"; recall {json.dumps(arguments)}"


@dataclass(frozen=True)
class Slice:
    """A part of a recorded text.

    Attributes:
        text: The part, and where it was cut a last line that names where to go on.
        first: First line from 1, or first character from 0.
        last: Last line, included, or the character after the last one.
    """

    text: str
    first: int
    last: int


def slice_chars(text: str, start: int, end: int) -> Slice:
    """Characters `[start, end)`, at most 29,000 of them.

    Raises:
        ToolError: `invalid_arguments`: the text ends before `start`.
    """
    if start >= len(text):
        raise ToolError(
            f"character {start} is past the end: the text has {len(text)} characters",
            code="invalid_arguments",
            hint=f"Ask for characters below {len(text)}.",
        )
    end = min(end, len(text))
    last = min(end, start + RECALL_CHARS)
    note = f"\n[{end - last} more characters; go on with start_char {last}]" if last < end else ""
    return Slice(text[start:last] + note, start, last)


def slice_lines(text: str, first: int, last: int | None) -> Slice:
    """Lines `first` to `last`, both included, whole while they fit in 29,000 characters.

    Raises:
        ToolError: `invalid_arguments`: the text has fewer lines than `first`.
    """
    lines = text.split("\n")
    if first > len(lines):
        raise ToolError(
            f"line {first} is past the end: the text has {len(lines)} lines",
            code="invalid_arguments",
            hint=f"Ask for lines 1 to {len(lines)}.",
        )
    last = min(last or len(lines), len(lines))
    kept, spent = list[str](), 0
    for line in lines[first - 1 : last]:
        spent += len(line) + 1
        if spent > RECALL_CHARS:
            break
        kept.append(line)
    if not kept:
        start = sum(len(line) + 1 for line in lines[: first - 1])
        piece = slice_chars(text, start, start + len(lines[first - 1]))
        return Slice(piece.text, first, first)
    reached = first + len(kept) - 1
    note = f"\n[{last - reached} more lines; go on with start_line {reached + 1}]" if reached < last else ""
    return Slice("\n".join(kept) + note, first, reached)
