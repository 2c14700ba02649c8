"""Any text as text that does nothing where it is shown, and not more of it than a page takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from toolkit_core.limits import DISPLAY_LINES, DISPLAY_PART_CHARS, DISPLAY_ROWS, DISPLAY_TEXT_CHARS

_CONTROL_PICTURES: Final = 0x2400  # the Unicode block that holds a picture of each C0 control
_DELETE: Final = 0x7F

# C0 but tab and line feed, DEL, C1; marks, embeddings, overrides and isolates of direction (UAX 9), line and paragraph
# separators, byte-order mark, interlinear and tag characters, lone surrogates.
_LIVE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def inert(text: str) -> str:
    """Control and direction characters made visible: an escape by its picture, an override by its number."""
    return text if text.isascii() and text.isprintable() else _LIVE.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < ord(" "):
        return chr(_CONTROL_PICTURES + code)
    return "\u2421" if code == _DELETE else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def line(text: str) -> str:
    """One line or cell, cut where it is long; the cut says so."""
    if len(text) <= DISPLAY_TEXT_CHARS:
        return inert(text)
    return f"{inert(text[:DISPLAY_TEXT_CHARS])} ... {len(text):,} characters"


def lines(text: str) -> tuple[list[str], int]:
    """The first lines of a text, and how many more there are."""
    found = text.split("\n", DISPLAY_LINES)
    rest = found.pop() if len(found) > DISPLAY_LINES else ""
    if found and not found[-1] and not rest:
        found.pop()  # what ends in a line feed has no line after it
    if found and all(each.endswith("\r") for each in found[:-1]):
        found = [each.removesuffix("\r") for each in found]
    kept = _within(map(line, found))
    return kept, len(found) - len(kept) + (rest.removesuffix("\n").count("\n") + 1 if rest else 0)


def last_lines(text: str, count: int) -> list[str]:
    """The last lines of a text; a carriage return begins a line anew, as in a terminal."""
    found = text.rstrip("\n").rsplit("\n", count)[-count:]
    return [line(each.removesuffix("\r").rpartition("\r")[2]) for each in found]


def rows(found: Sequence[Sequence[object]]) -> tuple[list[list[str]], int]:
    """The first rows of a table, each cell a line, and how many more there are."""
    kept: list[list[str]] = []
    spent = 0
    for row in found[:DISPLAY_ROWS]:
        cells = ["" if value is None else line(str(value)) for value in row]
        spent += sum(map(len, cells))
        if spent > DISPLAY_PART_CHARS:
            break
        kept.append(cells)
    return kept, len(found) - len(kept)


def _within(texts: Iterable[str]) -> list[str]:
    kept: list[str] = []
    spent = 0
    for text in texts:
        spent += len(text)
        if spent > DISPLAY_PART_CHARS:
            break
        kept.append(text)
    return kept
