r"""Patterns and line endings: a CR is invisible to a pattern, unless the pattern itself speaks of one.

So `token$` matches before CRLF, `one\ntwo` matches across CRLF too, and `\r$` still finds the files that have CRs.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from toolkit_core.ports.search import GrepQuery

_CARRIAGE_RETURN: Final = re.compile(r"(?<!\\)(?:\\\\)*\\(?:r|x0[dD]|x\{0*[dD]\}|u000[dD])|\r")


def speaks_of_cr(query: GrepQuery) -> bool:
    """Whether the pattern names a carriage return."""
    if query.fixed_strings:
        return "\r" in query.pattern
    return _CARRIAGE_RETURN.search(query.pattern) is not None


def across_any_line_end(query: GrepQuery) -> GrepQuery:
    r"""The same search where `\n` in a pattern across lines also stands for CRLF; a class such as `[^\n]` stays."""
    if not query.multiline or speaks_of_cr(query):
        return query
    if query.fixed_strings:
        if "\n" not in query.pattern:
            return query
        pieces = map(re.escape, query.pattern.split("\n"))
        return replace(query, pattern=r"\r?\n".join(pieces), fixed_strings=False)
    return replace(query, pattern=_rewritten(query.pattern))


def _rewritten(pattern: str) -> str:
    out: list[str] = []
    i, in_class = 0, False
    while i < len(pattern):
        c = pattern[i]
        step = 2 if c == "\\" else 1
        piece = pattern[i : i + step]
        if not in_class and piece in ("\n", r"\n"):
            piece = r"(?:\r?\n)"
        elif not in_class and c == "[":
            in_class = True
            step += len(_first_of_class(pattern, i + 1))
            piece = pattern[i : i + step]
        elif in_class and c == "]":
            in_class = False
        out.append(piece)
        i += step
    return "".join(out)


def _first_of_class(pattern: str, start: int) -> str:
    """What at the start of a class is a plain character even if it is `]`."""
    found = re.compile(r"\^?\]?").match(pattern, start)
    return found[0] if found is not None else ""
