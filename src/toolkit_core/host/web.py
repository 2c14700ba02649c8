"""web_fetch over this machine's network: redirects, one deadline, and what the body is.

httpcore is used as it is, not through httpx: that parses a Location header even where redirects are off (a
malformed one raises), and keeps cookies from hop to hop.

Sources: RFC 9110 (redirects, Retry-After), RFC 9112 (framing).
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from toolkit_core.errors import ToolError
from toolkit_core.host.egress.policy import Egress
from toolkit_core.host.egress.transport import default_tls, network_errors, open_answer
from toolkit_core.host.pages.body import ACCEPTED, Body, header, read_body
from toolkit_core.host.pages.charset import decode
from toolkit_core.host.pages.markdown import to_markdown
from toolkit_core.host.pages.sniffing import kind_of, media_type
from toolkit_core.limits import WEB_REDIRECTS
from toolkit_core.ports.web import Refresh, WebPage

if TYPE_CHECKING:
    import httpcore

    from toolkit_core.host.egress.urls import Target
    from toolkit_core.ports.web import OnBytes

_REDIRECTS: Final = (301, 302, 303, 307, 308)
_USER_AGENT: Final = "Mozilla/5.0 (compatible; toolkit-core; an agent's tool)"
_ACCEPT: Final = "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,application/json;q=0.9,*/*;q=0.5"


@dataclass
class _Journey:
    """How far a fetch has come, for the message when its time is over."""

    where: str
    stage: str = "looking up and connecting"
    hops: int = 0
    received_bytes: int = 0


class HostWeb:
    """The `WebFetch` port of this machine.

    Args:
        egress: Who may be reached.
        user_agent: The header of that name.
        tls: Another TLS context (a company's own roots, say); by default certifi's roots and the system's.

    Example:
        >>> web = HostWeb(egress=Egress(allow_domains=["example.com"]))
    """

    def __init__(
        self, *, egress: Egress | None = None, user_agent: str = _USER_AGENT, tls: ssl.SSLContext | None = None
    ) -> None:
        self._egress = egress or Egress()
        self._tls = tls
        self._headers = (
            ("User-Agent", user_agent),
            ("Accept", _ACCEPT),
            ("Accept-Language", "en, *;q=0.5"),
            ("Accept-Encoding", ACCEPTED),
            ("Connection", "close"),
        )

    async def fetch(
        self,
        url: str,
        *,
        raw: bool = False,
        timeout_seconds: float,
        max_bytes: int,
        on_bytes: OnBytes | None = None,
    ) -> WebPage:
        """Get an address; see the port."""
        target = self._egress.screen(url)
        journey = _Journey(target.host)
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._fetch(target, raw, max_bytes, journey, on_bytes)
        except TimeoutError as e:
            raise ToolError(
                f"{journey.where} was not done within {timeout_seconds:g} s: {journey.stage}"
                f" ({journey.hops} redirects, {journey.received_bytes:,} bytes of the body came)",
                code="timed_out",
                hint="The server is slow or sends without end; try again later or another address.",
                retryable=True,
            ) from e

    async def _fetch(
        self, target: Target, raw: bool, max_bytes: int, journey: _Journey, on_bytes: OnBytes | None
    ) -> WebPage:
        if self._tls is None:
            self._tls = await asyncio.to_thread(default_tls)
        async with AsyncExitStack() as opened:
            answer, target = await self._follow(target, opened, journey)
            journey.stage = "reading the body"

            def count(done: int, total: int | None) -> None:
                journey.received_bytes = done
                if on_bytes is not None:
                    on_bytes(done, total)

            body = await _body(answer, target, max_bytes, count, journey)
        journey.stage = "reading the page"
        return await _page(answer, target, body, raw)

    async def _follow(
        self, target: Target, opened: AsyncExitStack, journey: _Journey
    ) -> tuple[httpcore.Response, Target]:
        """The first answer that is no redirect, its connection open."""
        assert self._tls is not None  # noqa: S101 - set by the caller
        while True:
            journey.where, journey.stage = target.host, "waiting for the answer"
            answer = await opened.enter_async_context(
                open_answer(self._egress, target, self._tls, headers=self._headers)
            )
            location = header(answer, b"location") if answer.status in _REDIRECTS else ""
            if not location:
                return answer, target
            if journey.hops == WEB_REDIRECTS:
                raise ToolError(
                    f"stopped after {WEB_REDIRECTS} redirects, at {target.url[:200]}",
                    code="http_error",
                    hint="The site redirects in a circle.",
                )
            journey.hops += 1
            target = self._redirected(target, location, journey.hops)
            await opened.pop_all().aclose()

    def _redirected(self, base: Target, location: str, hop: int) -> Target:
        try:
            return self._egress.screen_redirect(base, location)
        except ToolError as e:
            raise ToolError(
                f"redirect {hop}, from {base.host}: {e.message}", code=e.code, hint="The redirect was not followed."
            ) from None


async def _body(
    answer: httpcore.Response, target: Target, max_bytes: int, on_bytes: OnBytes, journey: _Journey
) -> Body:
    try:
        with network_errors(target):
            return await read_body(answer, max_bytes=max_bytes, on_bytes=on_bytes)
    except ToolError as e:
        if e.code == "unsupported" and not _is_success(answer.status):
            return Body(b"", cut=False)  # the status tells more than the body that cannot be read
        if e.code == "network_error":
            e.message += f" ({journey.received_bytes:,} bytes of the body had come)"
        raise


async def _page(answer: httpcore.Response, target: Target, body: Body, raw: bool) -> WebPage:
    content_type = header(answer, b"content-type")
    kind, shown_type = kind_of(content_type, body.data)
    page: dict[str, Any] = {
        "final_url": target.url,
        "status": answer.status,
        "content_type": shown_type or media_type(content_type),
        "kind": kind,
        "size_bytes": len(body.data),
        "cut": body.cut,
        "retry_after": header(answer, b"retry-after")[:100],
    }
    if kind == "pdf":
        return WebPage(**page, body=body.data)
    if kind == "binary":
        return WebPage(**page)
    markup = kind == "html" or shown_type.endswith("xml")
    text, charset = await asyncio.to_thread(decode, body.data, content_type=content_type, markup=markup, cut=body.cut)
    if kind != "html" or raw:
        return WebPage(**page, text=text, charset=charset)
    converted = await to_markdown(text, target.url)
    note = "the Markdown was cut at its largest length" if converted.cut else ""
    return WebPage(
        **page,
        text=converted.text,
        title=converted.title,
        charset=charset,
        refresh=_refresh(converted.refresh, target),
        note=note,
    )


def _refresh(found: tuple[str, str] | None, base: Target) -> Refresh | None:
    """Where a meta refresh leads, shown and not judged: following it is a call of its own."""
    if found is None:
        return None
    try:
        seconds = float(found[0])
        url = urljoin(base.url, found[1])
    except ValueError:
        return None
    return Refresh(seconds, " ".join(url.split())[:2000])


def _is_success(status: int) -> bool:
    return 200 <= status < 300
