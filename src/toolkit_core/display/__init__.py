"""How a result, a tool, a set and progress show themselves in a notebook, from plain mappings.

Each function returns a MIME bundle (`_repr_mimebundle_` of IPython's display protocol) with text/plain, text/html
and text/markdown. What is shown is made of a few parts (`_parts`), found in `_results` and `_tools`, and rendered by
`_html` and `_markdown`. It is inert and bounded: escaped, without scripts, style sheets or remote sources, control
and direction characters replaced by visible ones; its colours lie over an inherited background, so that it reads on
dark themes as on light ones. No function raises, whatever a tool returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolkit_core.display import _html, _markdown, _plain
from toolkit_core.display._inert import inert
from toolkit_core.display._parts import Part, Progressing
from toolkit_core.display._results import result_parts
from toolkit_core.display._tools import set_parts, tool_parts

__all__ = ["Bundle", "inert", "progress_bundle", "result_bundle", "set_bundle", "tool_bundle"]

Bundle = dict[str, str]
"""MIME type -> text."""


def result_bundle(result: Mapping[str, Any]) -> Bundle:
    """A result, as `ToolResult.to_dict(include_images=True)` gives it.

    A diff is coloured, matches, listings, answers and search results are tables, a command shows both streams, a page
    its title and address, images are shown, an error has a red edge. The plain text is what the model reads.
    """
    bundle = _bundle(result_parts(result), failed=result.get("error") is not None)
    return {**bundle, "text/plain": _plain.result(result)}


def tool_bundle(tool: Mapping[str, Any]) -> Bundle:
    """A tool: name, exact description, parameters, effects; keys as in `Tool`, `risk` beside them."""
    return {**_bundle(tool_parts(tool)), "text/plain": _plain.tool(tool)}


def set_bundle(tools: Sequence[Mapping[str, Any]]) -> Bundle:
    """A set: one row a tool."""
    return {**_bundle(set_parts(tools)), "text/plain": _plain.tool_set(tools)}


def progress_bundle(
    kind: str, text: str = "", *, done: float | None = None, total: float | None = None, ended: bool = False
) -> Bundle:
    """Progress so far: the end of the text, and a bar where the total is known."""
    return _bundle([Progressing(kind, text, done, total, ended)])


def _bundle(parts: Sequence[Part], *, failed: bool = False) -> Bundle:
    return {
        "text/plain": _plain.parts(parts),
        "text/html": _html.page(parts, failed=failed),
        "text/markdown": _markdown.page(parts),
    }
