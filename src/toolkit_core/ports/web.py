"""Web: what web_fetch needs of a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

PageKind = Literal["html", "text", "pdf", "binary"]

OnBytes = Callable[[int, int | None], None]
"""Told of the decoded bytes that have come, and of the total where it is known."""


@dataclass(frozen=True)
class Refresh:
    """A meta refresh: after how many seconds, and the absolute address that the page asks for."""

    seconds: float
    url: str


@dataclass(frozen=True)
class WebPage:
    """An answer whose body was read, whatever its status.

    Attributes:
        final_url: After redirects, without fragment.
        status: The HTTP status.
        content_type: The media type in lower case, without parameters; what the bytes say where none was declared
            or they contradict.
        kind: "html", "text" (JSON and everything else that is read as it is), "pdf" or "binary".
        text: Markdown with the title as its first heading, or the text verbatim; "" for pdf and binary.
        title: The title of an HTML page, "" where there is none.
        body: The decoded bytes of a pdf; b"" for every other kind.
        size_bytes: Decoded bytes that were read.
        cut: The body was longer than was read.
        charset: The codec that read the text.
        retry_after: The Retry-After header; "" where there is none.
        refresh: A meta refresh, which is not followed.
        note: What else a reader must know; may be empty.
        unfinished: A browser's page that was read at the deadline, before it had loaded.
    """

    final_url: str
    status: int
    content_type: str
    kind: PageKind
    text: str = ""
    title: str = ""
    body: bytes = b""
    size_bytes: int = 0
    cut: bool = False
    charset: str = ""
    retry_after: str = ""
    refresh: Refresh | None = None
    note: str = ""
    unfinished: bool = False


class WebFetch(Protocol):
    """Getting one address over HTTP, redirects followed, each judged.

    Raises `ToolError`: `refused_url` (the address or a redirect is not allowed), `network_error` (no look-up, no
    connection, no TLS, an answer that breaks off or breaks the protocol), `timed_out` (the whole took longer),
    `http_error` (more redirects than are followed), `unsupported` (a coding that was not asked for),
    `too_large` (HTML that overwhelms the converter), `unavailable` (a part is not installed).
    Cancelled, it has closed its connections before it ends.
    """

    async def fetch(
        self,
        url: str,
        *,
        raw: bool = False,
        timeout_seconds: float,
        max_bytes: int,
        on_bytes: OnBytes | None = None,
    ) -> WebPage:
        """Get an address.

        Args:
            url: Absolute, http or https.
            raw: HTML as its source instead of Markdown.
            timeout_seconds: For all of it: look-ups, connections, headers, body, every redirect, conversion.
            max_bytes: Of the decoded body; more is cut and said.
            on_bytes: Told as the body comes.
        """
        ...
