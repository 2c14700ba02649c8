"""The parts of a tool and of a set."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from toolkit_core.display._parts import Heading, Note, Part, Prose, Table
from toolkit_core.limits import DISPLAY_TEXT_CHARS


def tool_parts(tool: Mapping[str, Any]) -> list[Part]:
    """Name and risk, the exact description, a row a parameter."""
    rows = _parameter_rows(tool.get("parameters"))
    table: Part = Table(("parameter", "type", "default", "what it is"), rows) if rows else Note("takes no parameters")
    return [Heading(str(tool.get("name", "")), risk_of(tool)), Prose(str(tool.get("description", ""))), table]


def set_parts(tools: Sequence[Mapping[str, Any]]) -> list[Part]:
    """A row a tool, with the first sentence of its description."""
    rows = [(tool.get("name", ""), risk_of(tool), summary_of(tool)) for tool in tools]
    return [Table(("tool", "risk", "description"), rows) if rows else Note("no tools")]


def risk_of(tool: Mapping[str, Any]) -> str:
    """The tool's risk in a word."""
    return str(tool.get("risk") or "unclassified")


def summary_of(tool: Mapping[str, Any]) -> str:
    """The first sentence of the tool's description."""
    said = str(tool.get("description", ""))[:DISPLAY_TEXT_CHARS]
    return re.split(r"(?<=[.!?])\s|\n", said, maxsplit=1)[0]


def _parameter_rows(schema: object) -> list[tuple[object, ...]]:
    if not isinstance(schema, Mapping):
        return []
    declared = cast("Mapping[str, Any]", schema)
    properties = cast("Mapping[str, Mapping[str, Any]]", declared.get("properties") or {})
    required = cast("Sequence[str]", declared.get("required") or ())
    return [
        (name, _type_of(p), "required" if name in required else _default(p), p.get("description", ""))
        for name, p in properties.items()
    ]


def _default(schema: Mapping[str, Any]) -> str:
    return _json(schema["default"]) if "default" in schema else "optional"


def _type_of(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(_json(choice) for choice in schema["enum"])
    kind = str(schema.get("type", "any"))
    items = schema.get("items")
    if kind == "array" and isinstance(items, Mapping):
        return f"array of {_type_of(cast('Mapping[str, Any]', items))}"
    return kind


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
