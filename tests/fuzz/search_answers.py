"""Search services' answers: rows of plain text, or an error of its kind."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.making import ANY_TEXT, JSON, mostly, refused_as
from toolkit_core.errors import ToolError
from toolkit_core.host import search_providers

_URLS = st.sampled_from(
    ["https://a.test/", "javascript:alert(1)", "//b.test", "http://[", "/l/?uddg=https%3A%2F%2Fc.test"]
)
_ROW = st.fixed_dictionaries(
    {"url": mostly(_URLS | ANY_TEXT), "title": mostly(ANY_TEXT | st.just("<b>x</b> &amp;"))},
    optional={"content": mostly(ANY_TEXT), "description": mostly(ANY_TEXT)},
)
_ROWS = mostly(st.lists(mostly(_ROW), max_size=3))
_OBJECT = st.fixed_dictionaries(
    {"results": _ROWS, "web": mostly(st.fixed_dictionaries({"results": _ROWS}))},
    optional={"answer": mostly(ANY_TEXT), "unresponsive_engines": JSON},
)
_TAG = st.sampled_from(
    [
        '<div class="result">',
        "<div class='result result--ad'>",
        '<a class="result__a" href="//duckduckgo.com/l/?uddg=https://a.test">',
        '<a class="result__a" href="http://[">',
        '<a class="result__snippet">',
        "</a>",
        "</div>",
        "<b>",
        "</b>",
        "<!--",
        "&#0;",
        '<div class="no-results">',
        '<a class="result__a" href="//duckduckgo.com/l/?uddg=http%3A%2F%2F%5B">',
        "<![x[",
        "<?",
    ]
)
_PAGE = st.lists(_TAG | ANY_TEXT, max_size=8).map("".join)
INPUTS = st.tuples(mostly(_OBJECT).map(lambda value: json.dumps(value)) | _PAGE, st.sampled_from([200, 202]))
_CODES = ("failed", "unavailable", "rate_limited")


class _Canned:
    name = "canned"
    key = None

    def __init__(self, text: str, status: int) -> None:
        self._answer = SimpleNamespace(text=text, status=status, retry_after="")

    async def ask(self, *_: object, **__: object) -> Any:
        """The one answer."""
        return self._answer


def check(sent: Any) -> None:
    """Each provider reads it."""
    service: Any = _Canned(*sent)
    of: Any = search_providers  # its parsers are private, and a TLS server for each answer would be slow
    for provider in (
        of._Brave(service),
        of._Tavily(service),
        of._DuckDuckGo(service),
        of._SearXNG(service, "http://s.test"),
    ):
        try:
            answer = asyncio.run(provider.search("q", 3))
        except ToolError as e:
            refused_as(e, *_CODES)
            continue
        for hit in answer.hits:
            assert hit.url
            assert hit.title
            assert all(isinstance(text, str) for text in (hit.url, hit.title, hit.snippet))
