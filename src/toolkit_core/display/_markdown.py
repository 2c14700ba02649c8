"""Parts as Markdown (CommonMark with GitHub's tables): content in fences or with every sign escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolkit_core.display._inert import last_lines, line, lines, rows
from toolkit_core.display._parts import Code, Diff, Failure, Heading, Note, Part, Picture, Progressing, Prose, Table
from toolkit_core.limits import DISPLAY_PROGRESS_LINES

_SIGNS = re.compile(r"[!-/:-@\[-`{-~]")  # CommonMark 2.4: each may stand behind a backslash


def page(parts: Sequence[Part]) -> str:
    """The parts, a blank line between them."""
    return "\n\n".join(filter(None, map(_part, parts)))


def _part(part: Part) -> str:
    match part:
        case Heading():
            return f"**{_escaped(part.text)}** {_escaped(part.aside)}".rstrip()
        case Note():
            return f"*{_escaped(part.text)}*" if part.text.strip() else ""
        case Prose() | Code():
            return _fenced(*lines(part.text))
        case Diff():
            return _fenced(*lines(part.text), language="diff")
        case Table():
            return _table(part)
        case Failure():
            said = f"> **Error \\({_escaped(part.code)}\\)** {_escaped(part.message)}"
            return said + (f"\n>\n> {_escaped(part.hint)}" if part.hint else "")
        case Picture():
            return _escaped(part.line)
        case Progressing():
            head = _escaped(f"{part.kind} {part.count}".strip())
            return head + ("\n\n" + _fenced(last_lines(part.text, DISPLAY_PROGRESS_LINES), 0) if part.text else "")


def _escaped(text: str) -> str:
    return _SIGNS.sub(r"\\\g<0>", " ".join(line(text).split()))


def _fenced(kept: Sequence[str], more: int, *, language: str = "text") -> str:
    shown = "\n".join(kept)
    longest = max((len(run) for run in re.findall("`{3,}", shown)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}" + (f"\n\n... {more:,} more lines" if more else "")


def _table(part: Table) -> str:
    kept, more = rows(part.rows)
    table = [_row(part.heads), _row(["---"] * len(part.heads), plain=True), *map(_row, kept)]
    return "\n".join(table) + (f"\n\n... {more:,} more rows" if more else "")


def _row(cells: Sequence[str], *, plain: bool = False) -> str:
    return "| " + " | ".join(cell if plain else _escaped(cell) for cell in cells) + " |"
