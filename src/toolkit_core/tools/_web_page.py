"""How a page is shown: what web_fetch and browse have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from typing_extensions import TypedDict

from toolkit_core.errors import ErrorCode, ToolError
from toolkit_core.limits import WEB_EXCERPT_CHARS
from toolkit_core.result import ToolResult

if TYPE_CHECKING:
    from toolkit_core.ports.documents import Documents, Page
    from toolkit_core.ports.web import WebPage

_RETRYABLE: Final = (408, 425, 429)
_LINE_END_SHARE: Final = 10
"""A part ends at a line's end where one lies in its last tenth."""


class WebPageData(TypedDict):
    """The payload of web_fetch and browse. `next_index` is where the next part starts, None on the last one."""

    url: str
    final_url: str
    status: int
    content_type: str
    title: str | None
    next_index: int | None


def page_data(url: str, page: WebPage, next_index: int | None = None) -> WebPageData:
    """The payload for a page."""
    return WebPageData(
        url=url,
        final_url=page.final_url,
        status=page.status,
        content_type=page.content_type,
        title=page.title or None,
        next_index=next_index,
    )


def show_page(
    url: str, page: WebPage, *, start_index: int, page_chars: int, notes: Sequence[str] = ()
) -> ToolResult[WebPageData]:
    """One part of a page that was answered with success.

    Raises:
        ToolError: `invalid_arguments` (`start_index` lies past the end).
    """
    text = page.text
    if start_index and start_index >= len(text):
        raise ToolError(
            f"start_index {start_index} lies past the end: the text has {len(text)} characters",
            code="invalid_arguments",
            hint="The first character has the index 0.",
            data=page_data(url, page),
        )
    end = _end(text, start_index, page_chars)
    remarks = [*_remarks(page, start_index, end), *notes]
    shown = text[start_index:end] or "(no text)"
    parts = [_headline(page), "", shown]
    if remarks:
        parts += ["", *(f"[{remark}]" for remark in remarks)]
    return ToolResult.ok("\n".join(parts), page_data(url, page, end if end < len(text) else None))


def require_success(url: str, page: WebPage) -> None:
    """Raise `http_error`, or `rate_limited` for 429, unless the status is a success."""
    if 200 <= page.status < 300:
        return
    limited = page.status == HTTPStatus.TOO_MANY_REQUESTS
    code: ErrorCode = "rate_limited" if limited else "http_error"
    retryable = page.status >= 500 or page.status in _RETRYABLE
    excerpt = page.text[:WEB_EXCERPT_CHARS]
    detail = f"{_headline(page)}\n\n{excerpt}" if excerpt else ""
    if len(page.text) > WEB_EXCERPT_CHARS:
        detail += f"\n[the first {WEB_EXCERPT_CHARS} of {len(page.text)} characters]"
    raise ToolError(
        f"HTTP {page.status}{_reason(page.status)} from {page.final_url}",
        code=code,
        hint=_what_next(page, retryable),
        retryable=retryable,
        detail=detail,
        data=page_data(url, page),
    )


async def with_pdf_text(page: WebPage, documents: Documents | None) -> WebPage:
    """The page with its text, where it is a PDF.

    Raises:
        ToolError: `unsupported` (no reader, or a type that is not text), `too_large` (a PDF beyond the cap).
    """
    if page.kind == "binary" or (page.kind == "pdf" and documents is None):
        reason = "it is read where the extra `documents` is installed" if page.kind == "pdf" else "it is not text"
        raise ToolError(
            f"{page.final_url} is {page.content_type or 'of no declared type'} ({page.size_bytes:,} bytes"
            f"{' and more' if page.cut else ''}): {reason}",
            code="unsupported",
        )
    if page.kind != "pdf" or documents is None:
        return page
    if page.cut:
        raise ToolError(
            f"{page.final_url} is a PDF of more than {page.size_bytes:,} bytes, and half a PDF cannot be read",
            code="too_large",
        )
    pages = await documents.pages(page.body, "application/pdf")
    return replace(page, text="\n\n".join(map(_pdf_page, pages)), body=b"")


def _pdf_page(page: Page) -> str:
    return f"--- page {page.number} ---\n{page.text.strip()}"


def _headline(page: WebPage) -> str:
    return f"{page.final_url} ({page.status}, {page.content_type or 'no type'})"


def _end(text: str, start: int, page_chars: int) -> int:
    end = start + page_chars
    if end >= len(text):
        return len(text)
    line_end = text.rfind("\n", end - page_chars // _LINE_END_SHARE, end)
    return end if line_end < 0 else line_end + 1


def _remarks(page: WebPage, start: int, end: int) -> list[str]:
    remarks: list[str] = []
    total = len(page.text)
    if start or end < total:
        following = f"; more follows: start_index={end}" if end < total else "; this is the last part"
        remarks.append(f"characters {start} to {end} of {total}{following}")
    if page.cut:
        remarks.append(f"cut at {page.size_bytes:,} bytes: the server had more, which cannot be read")
    if page.refresh is not None:
        remarks.append(f"after {page.refresh.seconds:g} s the page asks to go on to {page.refresh.url}, not followed")
    if page.note:
        remarks.append(page.note)
    return remarks


def _reason(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def _what_next(page: WebPage, retryable: bool) -> str:
    if page.retry_after:
        after = f"{page.retry_after} s" if page.retry_after.isdigit() else page.retry_after
        return f"The server asks to wait before the next try (Retry-After: {after})."
    if retryable:
        return "It may work later."
    if page.status in (401, 403):
        return "The address needs a login or refuses programs; the same call gives the same answer."
    return "The same call gives the same answer: check the address."
