"""The page: skeleton, style, the calls as inert JSON, and the script that shows them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Final

from toolkit_core.limits import (
    REPORT_CALL_CHARS,
    REPORT_CALLS,
    REPORT_LEAST_CHARS,
    REPORT_PAGE_CHARS,
    REPORT_PAGE_SHARE,
)
from toolkit_core.report.content import Row, content_of, row_of
from toolkit_core.report.embedding import inert_json, source_hash
from toolkit_core.report.ordering import in_order
from toolkit_core.text import one_line_name

_SCRIPTS: Final = ("start", "texts", "model", "values", "results", "detail", "timeline", "list", "page")


def render(calls: Iterable[Mapping[str, Any]], *, source: str = "") -> Iterator[str]:
    """A ledger as one HTML page without a network: pieces of text in order, UTF-8 when encoded.

    The page holds 50,000 calls and some 100 million characters at most; what is left out is said on it. Whatever the
    calls hold is shown as text. Only the page's own script and style run (a Content-Security-Policy with their
    hashes), and nothing is loaded.

    Args:
        calls: Each with the keys entry_id, parent_id, session_id, call_id, tool, arguments, outcome, code, risk,
            traceparent, started_at (seconds since the epoch), duration_seconds, size_bytes, dropped, result (as
            `ToolResult.to_dict(include_images=True)`) and shown (what a model read, where that was kept).
        source: What the ledger is called; stands in the title and in the command that shows what was left out.

    Example:
        >>> with open("report.html", "w", encoding="utf-8") as page:
        ...     page.writelines(render(calls, source="run.ledger"))
    """
    style, script = _style(), _script()
    yield _HEAD.format(policy=_policy(style, script), title=escape(_title(source)), style=style)
    yield _part("page.html")
    rows: list[Row] = []
    left_calls = 0
    left_chars = REPORT_PAGE_CHARS
    for call in calls:
        if len(rows) == REPORT_CALLS:
            left_calls += 1
            continue
        fair = max(REPORT_LEAST_CHARS, min(REPORT_CALL_CHARS, left_chars // REPORT_PAGE_SHARE))
        content, spent = content_of(call, chars=fair, image_chars=left_chars // 4)
        left_chars -= spent
        yield _block(f"c{len(rows)}", content)
        rows.append(row_of(call))
    yield _block("index", _index(rows, left_calls, source))
    yield f"<script>{script}</script>\n</body>\n</html>\n"


def _block(name: str, value: Any) -> str:
    return f'<script type="application/json" id="{name}">{inert_json(value)}</script>\n'


def _index(rows: list[Row], left_calls: int, source: str) -> dict[str, Any]:
    """The rows in the page's order, as lists: keys would be most of their text."""
    ordered = in_order([(row.entry_id, row.parent_id, row.started_at) for row in rows])
    fields = list(Row.__dataclass_fields__)
    return {
        "source": source,
        "command": f"toolkit ledger {shlex.quote(source or 'LEDGER')}",
        "left_calls": left_calls,
        "fields": ["number", "depth", *fields],
        "rows": [[number, depth, *(getattr(rows[number], name) for name in fields)] for number, depth in ordered],
    }


def _title(source: str) -> str:
    return f"{one_line_name(source)} - tool calls" if source else "Tool calls"


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; script-src {source_hash(script)}; style-src {source_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _style() -> str:
    return _part("page.css")


@cache
def _script() -> str:
    parts = "".join(_part(f"{name}.js") for name in _SCRIPTS)
    return f'\n"use strict";\n(() => {{\n{parts}}})();\n'


def _part(name: str) -> str:
    return files("toolkit_core.report").joinpath(name).read_text(encoding="utf-8")


_HEAD: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
"""
