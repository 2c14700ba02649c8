"""Search services for web_search: Brave, Tavily, DuckDuckGo's HTML page, and a SearXNG of one's own.

Each goes through the egress policy, follows no redirect and has no key in any text: a key is read when a query is
sent, put into a header, and cut out of whatever the service answers.

Sources: the services' documentation (api-dashboard.search.brave.com/app/documentation, docs.tavily.com,
docs.searxng.org/dev/search_api.html); html.duckduckgo.com has none, its page is read as it is served.
"""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qs, urlencode, urlsplit

from toolkit_core.errors import ErrorCode, ToolError
from toolkit_core.host.egress.policy import Egress
from toolkit_core.host.egress.transport import default_tls, network_errors, open_answer
from toolkit_core.host.pages.body import ACCEPTED, header, read_body
from toolkit_core.host.pages.charset import decode
from toolkit_core.limits import SEARCH_BODY_MAX_BYTES, SEARCH_ROWS_MAX
from toolkit_core.ports.web_search import SearchAnswer, SearchHit

if TYPE_CHECKING:
    from toolkit_core.ports.web_search import WebSearchProvider

Key = str | Callable[[], str] | None
"""A key, or where to get it: a function called at each query; None reads the provider's usual variable."""

_EXCERPT_CHARS: Final = 200
_ACCEPTED: Final = 202
_KEY_CODES: Final = (401, 403)
_RATE_CODES: Final = (429, 432, 433)
_BROWSER_AGENT: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"


def brave(api_key: Key = None, *, egress: Egress | None = None, tls: ssl.SSLContext | None = None) -> WebSearchProvider:
    """Brave's web search. Without a key, BRAVE_API_KEY is read when a query is sent."""
    return _Brave(_Service("brave", egress or Egress(), tls, _Key(api_key, "BRAVE_API_KEY")))


def tavily(
    api_key: Key = None, *, egress: Egress | None = None, tls: ssl.SSLContext | None = None
) -> WebSearchProvider:
    """Tavily, with its own answer first. Without a key, TAVILY_API_KEY is read when a query is sent."""
    return _Tavily(_Service("tavily", egress or Egress(), tls, _Key(api_key, "TAVILY_API_KEY")))


def duckduckgo(*, egress: Egress | None = None, tls: ssl.SSLContext | None = None) -> WebSearchProvider:
    """DuckDuckGo's page for browsers without scripts: needs no key, and limits how often it may be asked."""
    return _DuckDuckGo(_Service("duckduckgo", egress or Egress(), tls, None))


def searxng(url: str, *, egress: Egress | None = None, tls: ssl.SSLContext | None = None) -> WebSearchProvider:
    """A SearXNG instance with its JSON format enabled; its host is reached although it may be private.

    Raises:
        ValueError: Not an http or https URL.
    """
    host = urlsplit(url).hostname
    if not host:
        raise ValueError(f"searxng takes the instance's address, such as http://localhost:8080, not {url!r}")
    policy = (egress or Egress()).with_private(host)
    try:
        policy.screen(url)
    except ToolError as e:
        raise ValueError(f"searxng cannot use this address: {e.message}") from None
    return _SearXNG(_Service("searxng", policy, tls, None), url.rstrip("/"))


class _Key:
    """A key that shows itself nowhere."""

    def __init__(self, source: Key, variable: str) -> None:
        self._source, self._variable = source, variable

    def __repr__(self) -> str:
        return "<key>"

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a search key is not pickled")

    def read(self) -> str:
        """The key now. Raises `ToolError` (`unavailable`) where there is none that can be sent."""
        source = self._source
        value = (
            os.environ.get(self._variable, "") if source is None else source if isinstance(source, str) else source()
        )
        value = value.strip()
        if not value:
            raise ToolError(
                f"no key: {self._variable} is not set", code="unavailable", hint=f"Set {self._variable} or give a key."
            )
        if not (value.isascii() and value.isprintable()) or " " in value:
            raise ToolError("the key holds characters that no header can carry", code="unavailable")
        return value


@dataclass(frozen=True)
class _Answer:
    status: int
    text: str
    retry_after: str


class _Service:
    """One request to a service, its failures in words, its key in none of them."""

    def __init__(self, name: str, egress: Egress, tls: ssl.SSLContext | None, key: _Key | None) -> None:
        self.name, self.key = name, key
        self._egress, self._tls = egress, tls

    async def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        secret: str = "",
        accepted: tuple[int, ...] = (200,),
    ) -> _Answer:
        """A successful answer. Raises `ToolError` for every other."""
        try:
            answer = await self._exchange(method, url, headers, body)
        except ToolError as e:
            raise ToolError(_without(e.message, secret), code=e.code, hint=e.hint, retryable=e.retryable) from None
        if answer.status not in accepted:
            raise _failure(answer, secret)
        return answer

    async def _exchange(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> _Answer:
        target = self._egress.screen(url)
        sent = [("Accept-Encoding", ACCEPTED), ("Connection", "close"), *headers.items()]
        if body is not None:
            sent.append(("Content-Length", str(len(body))))
        self._tls = self._tls or await asyncio.to_thread(default_tls)
        async with open_answer(self._egress, target, self._tls, method=method, headers=sent, body=body) as answer:
            with network_errors(target):
                received = await read_body(answer, max_bytes=SEARCH_BODY_MAX_BYTES)
            text, _ = decode(received.data, content_type=header(answer, b"content-type"), cut=received.cut)
            return _Answer(answer.status, text, header(answer, b"retry-after")[:100])

    def __repr__(self) -> str:
        return f"<search service {self.name}>"


@dataclass(frozen=True)
class _Provider:
    service: _Service

    @property
    def name(self) -> str:
        """The service's name."""
        return self.service.name


class _Brave(_Provider):
    async def search(self, query: str, limit: int) -> SearchAnswer:
        """Ask Brave."""
        key = _key_of(self.service)
        asked = urlencode({"q": query, "count": min(limit, SEARCH_ROWS_MAX)}, errors="replace")
        answered = await self.service.ask(
            "GET",
            f"https://api.search.brave.com/res/v1/web/search?{asked}",
            headers={"X-Subscription-Token": key, "Accept": "application/json"},
            secret=key,
        )
        found = _mapping(_json(answered.text))
        return SearchAnswer(_hits(_mapping(found.get("web", {})).get("results", []), "description"))


class _Tavily(_Provider):
    async def search(self, query: str, limit: int) -> SearchAnswer:
        """Ask Tavily."""
        key = _key_of(self.service)
        asked = {
            "query": query,
            "max_results": min(limit, SEARCH_ROWS_MAX),
            "search_depth": "basic",
            "include_answer": True,
        }
        answered = await self.service.ask(
            "POST",
            "https://api.tavily.com/search",
            headers={
                "Authorization": f"Bearer {key}",
                "Content-Type": "application/json",
                "Accept": "application/json",
            },
            body=json.dumps(asked).encode("ascii"),
            secret=key,
        )
        found = _mapping(_json(answered.text))
        answer = found.get("answer")
        return SearchAnswer(_hits(found.get("results", []), "content"), answer if isinstance(answer, str) else "")


class _DuckDuckGo(_Provider):
    async def search(self, query: str, limit: int) -> SearchAnswer:
        """Ask DuckDuckGo; a page that is no list of results is a failure."""
        answered = await self.service.ask(
            "POST",
            "https://html.duckduckgo.com/html/",
            headers={
                "User-Agent": _BROWSER_AGENT,
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "text/html",
                "Referer": "https://html.duckduckgo.com/",
            },
            body=urlencode({"q": query, "b": ""}, errors="replace").encode("ascii"),
            accepted=(200, _ACCEPTED),
        )
        page = await asyncio.to_thread(_ResultPage.of, answered.text)
        hits = tuple(hit for hit in map(page.hit, page.rows) if hit is not None)
        if hits:
            return SearchAnswer(hits[:limit])
        if answered.status == _ACCEPTED or page.challenges:
            raise ToolError(
                "it answered with a check for robots instead of results",
                code="rate_limited",
                hint="Wait some minutes, or ask another service.",
                retryable=True,
            )
        if page.says_none:
            return SearchAnswer(())
        raise ToolError("its page neither lists results nor says that there are none", code="failed")


@dataclass(frozen=True)
class _SearXNG(_Provider):
    url: str

    async def search(self, query: str, limit: int) -> SearchAnswer:
        """Ask the instance."""
        asked = urlencode({"q": query, "format": "json"}, errors="replace")
        answered = await self.service.ask("GET", f"{self.url}/search?{asked}", headers={"Accept": "application/json"})
        found = _mapping(_json(answered.text))
        hits = _hits(found.get("results", []), "content")
        if not hits and found.get("unresponsive_engines"):
            raise ToolError("none of its engines answered", code="unavailable", retryable=True)
        return SearchAnswer(hits[:limit])


def _key_of(service: _Service) -> str:
    return service.key.read() if service.key is not None else ""


def _failure(answer: _Answer, secret: str) -> ToolError:
    line = next((line.strip() for line in answer.text.splitlines() if line.strip()), "")
    said = f": {_without(line, secret)[:_EXCERPT_CHARS]}" if line else ""
    code: ErrorCode = "http_error"
    hint = ""
    if answer.status in _RATE_CODES:
        code = "rate_limited"
        hint = f"Retry-After: {answer.retry_after}" if answer.retry_after else ""
    elif answer.status in _KEY_CODES:
        code = "unavailable"
        hint = "The service refuses the key or the caller."
    return ToolError(
        f"HTTP {answer.status}{said}", code=code, hint=hint, retryable=code == "rate_limited" or answer.status >= 500
    )


def _without(text: str, secret: str) -> str:
    return text.replace(secret, "[key]") if secret else text


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ToolError("its answer is not JSON", code="failed") from None


def _mapping(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ToolError("its answer does not have the documented shape", code="failed")
    return cast("Mapping[str, Any]", value)


def _hits(rows: object, snippet: str) -> tuple[SearchHit, ...]:
    if not isinstance(rows, list):
        raise ToolError("its answer does not have the documented shape", code="failed")
    hits: list[SearchHit] = []
    for row in cast("list[object]", rows):
        fields = _mapping(row)
        url = fields.get("url")
        if isinstance(url, str) and url:
            title = _plain(fields.get("title"))
            hits.append(SearchHit(title or url, url, _plain(fields.get(snippet))))
    return tuple(hits)


class _Reader(HTMLParser):
    """Older Pythons raise AssertionError on `<![x`, which HTML takes as a comment (WHATWG HTML, 13.2.5.42)."""

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """Skip it."""
        return self.parse_bogus_comment(i, bool(report))


class _Text(_Reader):
    """The text of a snippet that marks words with tags and entities."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_data(self, data: str) -> None:
        """Keep text."""
        self.parts.append(data)


def _plain(value: object) -> str:
    if not isinstance(value, str):
        return ""
    if "<" in value or "&" in value:
        reader = _Text()
        reader.feed(value)
        reader.close()
        value = "".join(reader.parts)
    return " ".join(value.split())


class _ResultPage(_Reader):
    """Rows of DuckDuckGo's page: `div.result` without an ad mark, `a.result__a`, `.result__snippet`."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[dict[str, str]] = []
        self.challenges = False
        self.says_none = False
        self._field: str | None = None
        self._field_tag = ""
        self._depth = 0

    @staticmethod
    def of(text: str) -> _ResultPage:
        """The page, read."""
        page = _ResultPage()
        page.feed(text)
        page.close()
        return page

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a row or a field of it."""
        named = dict(attrs)
        classes = (named.get("class") or "").split()
        self.challenges |= any(
            "anomaly" in name for name in (*classes, named.get("id") or "", named.get("action") or "")
        )
        self.says_none |= any(name.startswith("no-results") for name in classes)
        if self._field is not None:
            self._depth += tag == self._field_tag
            return
        if tag == "div" and "result" in classes:
            self.rows.append({"ad": "yes"} if "result--ad" in classes else {})
        elif self.rows and "result__a" in classes:
            self.rows[-1].setdefault("href", named.get("href") or "")
            self._open("title", tag)
        elif self.rows and "result__snippet" in classes:
            self._open("snippet", tag)

    def handle_endtag(self, tag: str) -> None:
        """Close a field."""
        if self._field is not None and tag == self._field_tag:
            self._depth -= 1
            if self._depth == 0:
                self._field = None

    def handle_data(self, data: str) -> None:
        """Text of the open field."""
        if self._field is not None:
            self.rows[-1][self._field] = self.rows[-1].get(self._field, "") + data

    def _open(self, field: str, tag: str) -> None:
        self._field, self._field_tag, self._depth = field, tag, 1

    @staticmethod
    def hit(row: Mapping[str, str]) -> SearchHit | None:
        """A row as a result, its address unwrapped; None for an advertisement and for a row without address."""
        url = _unwrapped(row.get("href", ""))
        if "ad" in row or not url:
            return None
        title = " ".join(row.get("title", "").split())
        return SearchHit(title or url, url, " ".join(row.get("snippet", "").split()))


def _unwrapped(href: str) -> str:
    """The address behind DuckDuckGo's own redirect; "" for an advertisement's."""
    if href.startswith("//"):
        href = "https:" + href
    try:
        parts = urlsplit(href)
        if parts.path == "/l/" and (target := parse_qs(parts.query).get("uddg")):
            href = target[0]
        is_advertisement = "/y.js" in (parts.path, urlsplit(href).path)
    except ValueError:  # no address, such as http://[ or too many fields
        return ""
    return href if href.startswith(("http://", "https://")) and not is_advertisement else ""
