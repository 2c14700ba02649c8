"""HTML to Markdown off the event loop: small plain pages in a thread, the rest in a process that can be killed.

The converter is native code and fast, yet hostile HTML makes it slow or large: time grows with the square of
the attributes of one tag, output with columns times rows of a table, and with links times the length of the
base address. A thread cannot be stopped, so it only gets what is small under each of these.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

from toolkit_core.cleanup import finish
from toolkit_core.errors import ToolError
from toolkit_core.host._native.browser_kill import end_child
from toolkit_core.host.pages import converting
from toolkit_core.limits import (
    MARKDOWN_CELLS,
    MARKDOWN_IN_THREAD_CHARS,
    MARKDOWN_WORKER_BYTES,
    WEB_BODY_MAX_BYTES,
    WEB_URL_MAX_CHARS,
)

_ROW: Final = re.compile(r"<tr\b", re.IGNORECASE)
_CELL: Final = re.compile(r"<t[dh]\b", re.IGNORECASE)
_BASE: Final = re.compile(r"<base\b", re.IGNORECASE)


@dataclass(frozen=True)
class Markdown:
    """A page as Markdown.

    Attributes:
        text: The body, the title as its first heading.
        title: The title, "" where the page has none.
        refresh: Seconds and target of a meta refresh, as the page gives them.
        cut: The Markdown was longer than the cap.
    """

    text: str
    title: str
    refresh: tuple[str, str] | None
    cut: bool


async def to_markdown(html: str, base_url: str) -> Markdown:
    """Convert a page; relative links are made absolute.

    Raises:
        ToolError: `unavailable` (the converter is not installed), `too_large` (the page overwhelms it).
    """
    if find_spec("html_to_markdown") is None:
        raise ToolError(
            "HTML cannot be shown as Markdown here: the package html-to-markdown is not installed",
            code="unavailable",
            hint="pip install html-to-markdown, or ask for the raw source.",
        )
    if await asyncio.to_thread(_is_plain, html, base_url):
        answer = await asyncio.to_thread(converting.convert, html, base_url, WEB_BODY_MAX_BYTES)
    else:
        answer = await _in_process(html, base_url)
    title, text = answer["title"], answer["text"]
    refresh = answer["refresh"]
    return Markdown(
        _with_title(title, text), title, None if refresh is None else (refresh[0], refresh[1]), answer["cut"]
    )


def _with_title(title: str, text: str) -> str:
    heading = f"# {title}"
    if not title or text == heading or text.startswith(heading + "\n"):
        return text
    return f"{heading}\n\n{text}" if text else heading


def _is_plain(html: str, base_url: str) -> bool:
    if len(html) > MARKDOWN_IN_THREAD_CHARS or len(base_url) > WEB_URL_MAX_CHARS or _BASE.search(html):
        return False
    rows = _ROW.split(html)
    return len(rows) * max(len(_CELL.findall(row)) for row in rows) <= MARKDOWN_CELLS


async def _in_process(html: str, base_url: str) -> dict[str, Any]:
    spec = find_spec("html_to_markdown")
    packages = str(Path(cast("str", cast("Any", spec).origin)).parent.parent)
    request = {
        "packages": packages,
        "base_url": base_url,
        "max_chars": WEB_BODY_MAX_BYTES,
        "memory_bytes": MARKDOWN_WORKER_BYTES,
    }
    sent = json.dumps(request).encode("ascii") + b"\n" + html.encode("utf-8", "replace")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        "-S",
        str(Path(converting.__file__)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        received, _ = await process.communicate(sent)
    finally:
        await finish(end_child(process))
    head, _, text = received.partition(b"\n")
    if process.returncode != 0 or not head:
        raise ToolError(
            f"the HTML ({len(html):,} characters) is too tangled to be shown as Markdown",
            code="too_large",
            hint="Ask for the raw source instead.",
        )
    return {**json.loads(head), "text": text.decode("utf-8")}
