"""Why an old text was not found: the closest lines of the file and what differs. Nothing here is ever applied.

All of it is bounded in time and bytes: it looks at what a person would confuse (line ends, tabs and spaces, quotes,
Unicode forms, letter case, escapes, line numbers copied from a view), and else for the most similar lines.
"""

from __future__ import annotations

import html
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ToolError
from toolkit_core.limits import NEAR_MATCH_BYTES, NEAR_MATCH_OLD_CHARS, NEAR_MATCH_SECONDS, READ_LINE_CHARS
from toolkit_core.text import raw_name, shown_text
from toolkit_core.tools._look_alike import differences, fold

if TYPE_CHECKING:
    from toolkit_core.tools._codec import Codec
    from toolkit_core.tools._pieces import PieceTable

_SHOWN_LINES: Final = 12
_SIMILAR: Final = 0.6
_CANDIDATES: Final = 24
_GUTTER: Final = re.compile(r"^ *\d+\t", re.MULTILINE)
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class _Lines:
    """Consecutive lines of the file, the first numbered from 1."""

    first: int
    texts: list[str]

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


def explain_no_match(table: PieceTable, codec: Codec, old_text: str, name: str) -> ToolError:
    """The `no_match` error for an old text that is not in the running text."""
    message = f"{name}: old_text is not in the file; nothing was written."
    text = codec.decode(table.bytes_at(codec.bom_bytes, min(len(table), NEAR_MATCH_BYTES)))
    respelled = _respelled(text, old_text)
    if respelled is not None:
        reason, found = respelled
        return _error(f"{message} {reason}", found)
    if len(old_text) > NEAR_MATCH_OLD_CHARS:
        return _error(message, None)
    deadline = time.monotonic() + NEAR_MATCH_SECONDS
    lines = list(_lines_of(text, deadline))
    alike = _alike(lines, old_text, deadline)
    if alike is not None:
        return _error(f"{message} {differences(old_text, alike.text, f'Line {alike.first}')}", alike)
    similar = _similar(lines, old_text, deadline)
    if similar is not None:
        return _error(f"{message} The closest is line {similar.first}{_first_difference(old_text, similar)}.", similar)
    whole = len(table) <= NEAR_MATCH_BYTES and time.monotonic() <= deadline
    compared = "No line" if whole else "None of the lines at its start that were compared"
    return _error(f"{message} {compared} is similar to it.", None)


def _error(message: str, found: _Lines | None) -> ToolError:
    if found is None:
        return ToolError(message, code="no_match", hint="Read the file again and copy old_text from what it shows.")
    rows = [
        f"{number:6d}\t{shown_text(text)[:READ_LINE_CHARS]}" for number, text in enumerate(found.texts, found.first)
    ]
    hint = "Copy old_text from these lines exactly as they are:"
    return ToolError(message, code="no_match", hint=hint, detail="\n".join(rows[:_SHOWN_LINES]))


def _lines_of(text: str, deadline: float) -> Iterator[str]:
    """Lines without their ends, until the time is up."""
    for number, match in enumerate(_LINE.finditer(text)):
        if number % 4096 == 0 and time.monotonic() > deadline:
            return
        yield match[0].rstrip("\n")


def _respelled(text: str, old_text: str) -> tuple[str, _Lines] | None:
    """Old texts that match exactly once they are spelled otherwise, in a few passes over the file."""
    for respell, reason in _SPELLINGS:
        other = respell(old_text)
        if other is None or not other or other == old_text:
            continue
        at = text.find(other)
        if at < 0 and "\r" in text and "\r" not in other:
            other = other.replace("\n", "\r\n")
            at = text.find(other)
        if at >= 0:
            first = text.count("\n", 0, at) + 1
            start = text.rfind("\n", 0, at) + 1
            end = text.find("\n", at + len(other))
            shown = text[start : end if end >= 0 else len(text)]
            return reason.format(line=first), _Lines(first, shown[: 64 * READ_LINE_CHARS].split("\n"))
    return None


def _without_gutter(text: str) -> str | None:
    lines = text.split("\n")
    return _GUTTER.sub("", text) if all(_GUTTER.match(line) for line in lines if line) else None


def _unescaped(text: str) -> str | None:
    if "\\" not in text:
        return None
    return re.sub(r"\\([ntr\"'\\])", lambda m: _ESCAPES.get(m[1], m[1]), text)


def _escaped(text: str) -> str | None:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t").replace('"', '\\"')


def _line_end_respelled(text: str) -> str | None:
    if "\r" in text:
        return text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\n", "\r") if "\n" in text else None


_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}

_SPELLINGS: Final[tuple[tuple[Callable[[str], str | None], str], ...]] = (
    (
        _line_end_respelled,
        "It is at line {line} with other line ends: the carriage returns differ.",
    ),
    (_without_gutter, "It is at line {line} without the line numbers: they belong to the view, not to the file."),
    (_unescaped, "It is at line {line} where its backslash escapes are read as the characters they stand for."),
    (
        _escaped,
        "It is at line {line} in escaped form: the file has backslash escapes for characters of it.",
    ),
    (html.unescape, "It is at line {line} where its HTML entities are read as characters (&lt; as <)."),
    (lambda text: html.escape(text, quote=False), "It is at line {line} in HTML entities (< as &lt;)."),
    (raw_name, "It is at line {line} where \\xEF stands for a byte that is no text: leave that byte out of old_text."),
)


def _alike(lines: list[str], old_text: str, deadline: float) -> _Lines | None:
    """The lines that look the same once everything that may be confused is folded."""
    wanted = [fold(line) for line in old_text.strip("\n").split("\n")]
    anchor = max(range(len(wanted)), key=lambda i: len(wanted[i]))
    if not wanted[anchor]:
        return None
    whole = fold(old_text)
    for number, line in enumerate(lines):
        if number % 512 == 0 and time.monotonic() > deadline:
            return None
        if len(line) > NEAR_MATCH_OLD_CHARS or wanted[anchor] not in fold(line):
            continue
        start = number - anchor
        texts = lines[max(0, start) : start + len(wanted)]
        if start >= 0 and whole in fold("\n".join(texts)):
            return _Lines(start + 1, texts)
    return None


def _similar(lines: list[str], old_text: str, deadline: float) -> _Lines | None:
    """The lines most like the old text's: by shared words first, then by their characters."""
    old_lines = [line for line in old_text.split("\n") if line.strip()]
    if not old_lines:
        return None
    anchor = max(old_lines, key=len)[:READ_LINE_CHARS]
    words = set(re.findall(r"\w+", anchor))
    ranked: list[tuple[int, int]] = []
    for number, line in enumerate(lines):
        if number % 512 == 0 and time.monotonic() > deadline:
            break
        shared = len(words.intersection(re.findall(r"\w+", line[:READ_LINE_CHARS])))
        if shared or not words:
            ranked.append((-shared, number))
    best, best_ratio = -1, _SIMILAR
    for _, number in sorted(ranked)[:_CANDIDATES]:
        if time.monotonic() > deadline:
            break
        matcher = SequenceMatcher(None, lines[number][:400].strip(), anchor[:400].strip(), autojunk=False)
        if matcher.quick_ratio() > best_ratio and (ratio := matcher.ratio()) > best_ratio:
            best, best_ratio = number, ratio
    if best < 0:
        return None
    first = max(0, best - old_text.split("\n").index(max(old_lines, key=len)))
    return _Lines(first + 1, lines[first : first + max(1, old_text.count("\n") + 1)][:_SHOWN_LINES])


def _first_difference(old_text: str, found: _Lines) -> str:
    """Where the old text and the closest lines part, for a text of several lines."""
    for number, (one, other) in enumerate(zip(old_text.split("\n"), found.texts, strict=False)):
        if one != other:
            at = next(
                (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
            )
            return f"; line {number + 1} of old_text parts from line {found.first + number} at character {at + 1}"
    return ""
