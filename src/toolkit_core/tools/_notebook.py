"""A Jupyter notebook as cells (nbformat 4: https://nbformat.readthedocs.io/en/latest/format_description.html)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from toolkit_core.errors import ToolError
from toolkit_core.text import decoded


def notebook_cells(data: bytes, shown: str) -> str:
    """Each cell under a headline, then its outputs; images and other rich outputs by type and size.

    Raises:
        ToolError: `unsupported`: no notebook.
    """
    try:
        notebook = json.loads(decoded(data.removeprefix(b"\xef\xbb\xbf")))
        cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
        return "\n".join(_cell(number, cell) for number, cell in enumerate(cells, 1))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as e:
        reason = f"{type(e).__name__}: {e}" if isinstance(e, ValueError) else "it has no list of cells"
        raise ToolError(
            f"{shown} is not a notebook: {reason}.", code="unsupported", hint='Read it with view "text".'
        ) from None


def _cell(number: int, cell: Mapping[str, Any]) -> str:
    count = cell.get("execution_count") or cell.get("prompt_number")
    ran = f", run {count}" if isinstance(count, int) else ""
    lines = [f"--- cell {number} ({cell.get('cell_type', 'unknown')}{ran}) ---"]
    lines += _lines(cell["source"] if "source" in cell else cell.get("input", ""))
    for output in cell.get("outputs") or ():
        lines += _output(cast("Mapping[str, Any]", output))
    return "\n".join(lines)


def _output(output: Mapping[str, Any]) -> list[str]:
    kind = output.get("output_type", "output")
    if kind == "stream":
        return [f"--- output ({output.get('name', 'stdout')}) ---", *_lines(output.get("text", ""))]
    if kind in ("error", "pyerr"):
        return ["--- output (error) ---", f"{output.get('ename', '')}: {output.get('evalue', '')}"]
    rich = cast("Mapping[str, Any]", output.get("data") or {})
    lines = [f"--- output ({kind}) ---"]
    if "text/plain" in rich:
        lines += _lines(rich["text/plain"])
    others = [f"{mime}, {len(_text(value)):,} characters" for mime, value in rich.items() if mime != "text/plain"]
    return lines + [f"[{other}]" for other in others]


def _lines(value: object) -> list[str]:
    return _text(value).split("\n") if value else []


def _text(value: object) -> str:
    if isinstance(value, list):
        return "".join(str(part) for part in cast("list[object]", value))
    return value if isinstance(value, str) else json.dumps(value)
