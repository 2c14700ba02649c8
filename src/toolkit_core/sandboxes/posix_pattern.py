r"""Regular expressions as grep -E takes them (IEEE 1003.1-2024, 9.4), where they mean the same.

What has no such form (look-around, lazy repetition, `\b`, Unicode classes) is not rewritten but refused: a pattern
that means something else would give a false answer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from toolkit_core.ports.search import GrepQuery

_CLASSES: Final = {"d": "0-9", "w": "[:alnum:]_", "s": "[:space:]"}
_LAZY: Final = re.compile(r"[*+?}][?+*]")


def extended_pattern(query: GrepQuery) -> str | None:
    """The pattern for grep -E, or for -F as it is; None where there is none that means the same."""
    if query.multiline:
        return None
    if query.fixed_strings:
        return query.pattern
    out: list[str] = []
    i, text = 0, query.pattern
    while i < len(text):
        step = _step(text, i)
        if step is None:
            return None
        piece, i = step
        out.append(piece)
    return "".join(out)


def _step(text: str, i: int) -> tuple[str, int] | None:
    c = text[i]
    if c == "\\":
        return _escape(text[i + 1 : i + 2], i + 2)
    if c == "[":
        return _class(text, i)
    if text.startswith("(?:", i):
        return "(", i + 3
    if text.startswith("(?", i) or _LAZY.match(text, i) or not c.isascii():
        return None
    return c, i + 1


def _escape(c: str, end: int) -> tuple[str, int] | None:
    if c in _CLASSES and c:
        return f"[{_CLASSES[c]}]", end
    if c.lower() in _CLASSES and c:
        return f"[^{_CLASSES[c.lower()]}]", end
    if c == "t":
        return "\t", end
    return None if not c or c.isalnum() else (f"\\{c}", end)


def _class(text: str, start: int) -> tuple[str, int] | None:
    i = start + 1
    out = ["["]
    if text.startswith("^", i):
        out.append("^")
        i += 1
    if text.startswith("]", i):
        out.append("]")
        i += 1
    while i < len(text) and text[i] != "]":
        if text[i] == "\\" and text[i + 1 : i + 2] in _CLASSES:
            out.append(_CLASSES[text[i + 1]])
            i += 2
        elif text[i] in "\\[&" or not text[i].isascii():
            return None
        else:
            out.append(text[i])
            i += 1
    return ("".join((*out, "]")), i + 1) if i < len(text) else None
