"""How a result, a tool and a set show themselves in a notebook, from plain mappings.

Each function returns a MIME bundle (`_repr_mimebundle_` of IPython's display protocol) with text/plain and text/html.
The HTML is escaped, bounded, without scripts, style sheets or remote sources; its colours lie over an inherited
background, so that it reads on dark themes as on light ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any, cast

from toolkit_core.limits import DISPLAY_IMAGE_BASE64_CHARS, DISPLAY_LINES, DISPLAY_ROWS, DISPLAY_TEXT_CHARS

Bundle = dict[str, str]

_GREEN = "rgba(46,160,67,0.22)"
_RED = "rgba(248,81,73,0.22)"
_BLUE = "rgba(56,139,253,0.20)"
_EDGE = "rgba(128,128,128,0.45)"
_ERROR_EDGE = "rgba(248,81,73,0.9)"
_CODE = "margin:0;white-space:pre;overflow-x:auto;text-align:left;font-family:monospace"
_CELL = f"text-align:left;vertical-align:top;padding:2px 8px;border-bottom:1px solid {_EDGE}"
_TABLE = "border-collapse:collapse;text-align:left;color:inherit;font-size:inherit"
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def result_bundle(result: Mapping[str, Any]) -> Bundle:
    """A result, as `ToolResult.to_dict(include_images=True)` gives it.

    A diff is coloured, grep's rows and glob's paths are tables, images are shown, an error has a red edge.
    """
    blocks = cast("Sequence[Mapping[str, Any]]", result.get("content") or ())
    text = "\n".join(str(block.get("text", "")) for block in blocks if block.get("type") == "text")
    images = [block for block in blocks if block.get("type") == "image"]
    error = cast("Mapping[str, Any] | None", result.get("error"))
    body = _code(text) if error is not None else _success(text, result.get("data"))
    shown = body + "".join(_image(image) for image in images)
    edge = _ERROR_EDGE if error is not None else _EDGE
    return {"text/plain": _plain_result(text, images), "text/html": _box(shown, edge)}


def tool_bundle(tool: Mapping[str, Any]) -> Bundle:
    """A tool: name, exact description, parameters, effects; keys as in `Tool`, `risk` beside them."""
    name, description = str(tool.get("name", "")), str(tool.get("description", ""))
    risk = str(tool.get("risk") or "unclassified")
    head = f"<b>{escape(name)}</b> <span style='opacity:0.7'>{escape(risk)}</span>"
    prose = f"<div style='white-space:pre-wrap;margin:4px 0'>{escape(_cut(description))}</div>"
    table = _table(("parameter", "type", "default", "what it is"), _parameter_rows(tool.get("parameters")))
    return {"text/plain": f"{name} ({risk})\n{description}", "text/html": _box(head + prose + table, _EDGE)}


def set_bundle(tools: Sequence[Mapping[str, Any]]) -> Bundle:
    """A set: one row a tool."""
    rows = [(t.get("name", ""), t.get("risk") or "unclassified", str(t.get("description", ""))) for t in tools]
    width = max((len(str(name)) for name, _, _ in rows), default=0)
    plain = "\n".join(f"{name:<{width}}  {risk:<12}  {text.splitlines()[0][:100]}" for name, risk, text in rows if text)
    return {"text/plain": plain, "text/html": _box(_table(("tool", "risk", "description"), rows), _EDGE)}


def _success(text: str, data: object) -> str:
    """The table or diff that the payload is, else the text."""
    if not isinstance(data, Mapping):
        return _code(text)
    payload = cast("Mapping[str, Any]", data)
    for key, show in _PAYLOADS.items():
        if payload.get(key):
            return show(payload)
    return _code(text)


def _diff(data: Mapping[str, Any]) -> str:
    lines = str(data["diff"]).splitlines()
    shown = "".join(_diff_line(line) for line in lines[:DISPLAY_LINES])
    return f"<div style='{_CODE}'>{shown}</div>{_more(len(lines) - DISPLAY_LINES, 'lines')}"


def _diff_line(line: str) -> str:
    colour = ""
    if not line.startswith(("---", "+++")):
        colour = {"+": _GREEN, "-": _RED, "@": _BLUE}.get(line[:1], "")
    style = f" style='background:{colour}'" if colour else ""
    return f"<div{style}>{escape(_cut(line)) or '&nbsp;'}</div>"


def _rows(data: Mapping[str, Any]) -> str:
    found = cast("Sequence[Mapping[str, Any]]", data["rows"])
    rows = [(row.get("path"), row.get("line"), row.get("text")) for row in found]
    return _table(("path", "line", "text"), rows, is_code=True)


def _paths(data: Mapping[str, Any]) -> str:
    return _table(("path",), [(path,) for path in data.get("paths") or data.get("files") or ()], is_code=True)


def _counts(data: Mapping[str, Any]) -> str:
    found = cast("Sequence[Mapping[str, Any]]", data["counts"])
    return _table(("path", "count"), [(row.get("path"), row.get("count")) for row in found], is_code=True)


def _links(data: Mapping[str, Any]) -> str:
    found = cast("Sequence[Mapping[str, Any]]", data["results"])
    return _table(("title", "url", "snippet"), [(r.get("title"), r.get("url"), r.get("snippet")) for r in found])


_PAYLOADS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "diff": _diff,
    "rows": _rows,
    "counts": _counts,
    "paths": _paths,
    "files": _paths,
    "results": _links,
}


def _parameter_rows(schema: object) -> list[tuple[object, ...]]:
    if not isinstance(schema, Mapping):
        return []
    declared = cast("Mapping[str, Any]", schema)
    properties = cast("Mapping[str, Mapping[str, Any]]", declared.get("properties") or {})
    required = cast("Sequence[str]", declared.get("required") or ())
    return [
        (name, _type_of(p), "" if name in required else _json(p.get("default", "-")), p.get("description", ""))
        for name, p in properties.items()
    ]


def _type_of(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(_json(choice) for choice in schema["enum"])
    kind = str(schema.get("type", "any"))
    items = schema.get("items")
    if kind == "array" and isinstance(items, Mapping):
        return f"array of {_type_of(cast('Mapping[str, Any]', items))}"
    return kind


def _table(heads: Iterable[str], rows: Sequence[Sequence[object]], *, is_code: bool = False) -> str:
    head = "".join(f"<th style='{_CELL}'>{escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td style='{_CELL};white-space:pre-wrap'>{_cell(value)}</td>" for value in row) + "</tr>"
        for row in rows[:DISPLAY_ROWS]
    )
    style = f"{_TABLE};font-family:monospace" if is_code else _TABLE
    table = f"<table style='{style}'><tr>{head}</tr>{body}</table>"
    return table + _more(len(rows) - DISPLAY_ROWS, "rows")


def _cell(value: object) -> str:
    return "" if value is None else escape(_cut(str(value)))


def _code(text: str) -> str:
    lines = text.splitlines()
    shown = "\n".join(_cut(line) for line in lines[:DISPLAY_LINES])
    return f"<pre style='{_CODE};background:none'>{escape(shown)}</pre>{_more(len(lines) - DISPLAY_LINES, 'lines')}"


def _image(block: Mapping[str, Any]) -> str:
    mime_type, encoded = block.get("mime_type"), block.get("base64")
    shows = mime_type in _IMAGE_TYPES and isinstance(encoded, str) and len(encoded) <= DISPLAY_IMAGE_BASE64_CHARS
    if not shows:
        return f"<div>{escape(_image_line(block))}</div>"
    source = f"data:{mime_type};base64,{escape(str(encoded))}"
    return f"<div><img src='{source}' alt='{escape(_image_line(block))}' style='max-width:100%'></div>"


def _image_line(block: Mapping[str, Any]) -> str:
    return f"[image {block.get('mime_type')}, {block.get('size_bytes')} bytes]"


def _plain_result(text: str, images: Sequence[Mapping[str, Any]]) -> str:
    lines = text.splitlines()
    shown = [_cut(line) for line in lines[:DISPLAY_LINES]]
    if len(lines) > DISPLAY_LINES:
        shown.append(f"... {len(lines) - DISPLAY_LINES} more lines")
    return "\n".join([*shown, *(_image_line(image) for image in images)])


def _box(inner: str, edge: str) -> str:
    return f"<div style='border-left:3px solid {edge};padding:2px 0 2px 10px;text-align:left'>{inner}</div>"


def _more(count: int, what: str) -> str:
    return f"<div style='opacity:0.7'>... {count} more {what}</div>" if count > 0 else ""


def _cut(text: str) -> str:
    return text if len(text) <= DISPLAY_TEXT_CHARS else f"{text[:DISPLAY_TEXT_CHARS]} ... {len(text)} characters"


def _json(value: object) -> str:
    return "-" if value == "-" else json.dumps(value, ensure_ascii=False, default=str)
