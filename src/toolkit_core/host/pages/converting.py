"""HTML to Markdown: the conversion itself, for a thread or for a process that can be killed.

Standard library and html-to-markdown only: the process runs this file by its path, without the package.
"""

from __future__ import annotations

import html as entities
import json
import re
import sys
from typing import Any

_TITLE = re.compile(r"<title\b[^>]{0,500}>", re.IGNORECASE)
_TITLE_END = re.compile(r"</title", re.IGNORECASE)
_BODY = re.compile(r"<(?:body|svg)\b", re.IGNORECASE)
_META = re.compile(r"<meta\b([^>]{0,3000})", re.IGNORECASE)
_REFRESH = re.compile(r"http-equiv\s{0,8}=\s{0,8}[\"']?\s{0,8}refresh", re.IGNORECASE)
_CONTENT = re.compile(r"\bcontent\s{0,8}=\s{0,8}(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_TARGET = re.compile(
    r"\s{0,64}([0-9.]{1,12})\s{0,64}[;,\s]\s{0,64}(?:url\s{0,8}=\s{0,8})?[\"']?([^\"']*)", re.IGNORECASE
)
_LONG_TAG = re.compile(r"<([a-zA-Z][^\s<>/]{0,40})[^<>]{10000,}>")
_ATTRIBUTES = 1_000  # the converter's time grows with the square of one tag's attributes
_HEAD_CHARS = 256 * 1024
_TITLE_CHARS = 2_000


def convert(source: str, base_url: str, max_chars: int) -> dict[str, Any]:
    """The page as {"text", "title", "refresh", "cut"}; `refresh` is [seconds, target] or None."""
    from html_to_markdown import ConversionOptions, PreprocessingOptions
    from html_to_markdown import convert as to_markdown

    options = ConversionOptions(
        extract_metadata=False,
        skip_images=True,
        compact_tables=True,
        exclude_selectors=["svg", "template", "noscript"],
        base_url=base_url,
        preprocessing=PreprocessingOptions(enabled=False),
    )
    text = (to_markdown(_LONG_TAG.sub(_without_attributes, source), options).content or "").replace("\0", "").strip()
    head = source[:_HEAD_CHARS]
    body = _BODY.search(head)
    return {
        "text": text[:max_chars],
        "title": _title(head[: body.start()] if body else head),
        "refresh": _refresh(head),
        "cut": len(text) > max_chars,
    }


def _without_attributes(tag: re.Match[str]) -> str:
    return f"<{tag[1]}>" if tag[0].count("=") > _ATTRIBUTES else tag[0]


def _title(head: str) -> str:
    start = _TITLE.search(head)
    if start is None:
        return ""
    end = _TITLE_END.search(head, start.end(), start.end() + _TITLE_CHARS)
    inner = head[start.end() : end.start() if end else start.end() + _TITLE_CHARS]
    return " ".join(entities.unescape(inner).replace("\0", "").split())


def _refresh(head: str) -> list[Any] | None:
    for tag in _META.finditer(head):
        if _REFRESH.search(tag[1]) and (content := _CONTENT.search(tag[1])):
            value = entities.unescape(content[1] or content[2] or content[3] or "")
            found = _TARGET.match(value)
            if found is not None and found[2].strip():
                return [found[1], found[2].strip()]
    return None


def main() -> None:
    """Limit this process, read the request and the page from stdin, write the answer to stdout."""
    request = json.loads(sys.stdin.buffer.readline())
    sys.path.insert(0, request["packages"])
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (request["memory_bytes"], request["memory_bytes"]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):  # not on this system: the deadline still holds
        pass
    source = sys.stdin.buffer.read().decode("utf-8")
    answer = convert(source, request["base_url"], request["max_chars"])
    text = answer.pop("text").encode("utf-8", "replace")
    sys.stdout.buffer.write(json.dumps(answer).encode("ascii") + b"\n" + text)


if __name__ == "__main__":
    main()
