"""The plain text of what is shown: what a terminal prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit_core.display._inert import last_lines, line, lines, rows
from toolkit_core.display._parts import Failure, Part, Picture, Progressing, Table
from toolkit_core.display._reading import blocks
from toolkit_core.display._tools import risk_of, summary_of
from toolkit_core.limits import DISPLAY_IMAGES, DISPLAY_PROGRESS_LINES

_SUMMARY_CHARS = 100  # a row of a wide terminal


def result(shown: Mapping[str, Any]) -> str:
    """What the model reads, bounded; an image is named."""
    text, pictures = blocks(shown)
    images = [line(picture.line) for picture in pictures[:DISPLAY_IMAGES]]
    return "\n".join([*_bounded(text), *images])


def tool(shown: Mapping[str, Any]) -> str:
    """Name, risk and description."""
    head = f"{line(str(shown.get('name', '')))} ({line(risk_of(shown))})"
    return "\n".join([head, *_bounded(str(shown.get("description", "")))])


def tool_set(tools: Sequence[Mapping[str, Any]]) -> str:
    """A line a tool."""
    summaries = [(tool.get("name", ""), risk_of(tool), summary_of(tool)) for tool in tools]
    kept, more = rows([(name, risk, text[:_SUMMARY_CHARS]) for name, risk, text in summaries])
    width = max((len(row[0]) for row in kept), default=0)
    said = [f"{name:<{width}}  {risk:<12}  {text}".rstrip() for name, risk, text in kept]
    return "\n".join([*said, *([f"... {more} more tools"] if more else [])])


def parts(shown: Sequence[Part]) -> str:
    """Any parts, one under the other."""
    return "\n".join(filter(None, map(_part, shown)))


def _part(part: Part) -> str:
    if isinstance(part, Progressing):
        head = line(" ".join(filter(None, (part.kind, part.count))))
        return "\n".join([head, *(last_lines(part.text, DISPLAY_PROGRESS_LINES) if part.text else [])])
    if isinstance(part, Table):
        return "\n".join("  ".join(row) for row in rows(part.rows)[0])
    if isinstance(part, Picture):
        return line(part.line)
    if isinstance(part, Failure):
        return line(f"Error ({part.code}): {part.message}")
    return "\n".join(_bounded(part.text))


def _bounded(text: str) -> list[str]:
    kept, more = lines(text)
    return [*kept, *([f"... {more} more lines"] if more else [])]
