"""web_fetch: one address over HTTP, as text."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from toolkit_core.effects import Effects
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.limits import WEB_BODY_MAX_BYTES, WEB_PAGE_CHARS, WEB_TOTAL_SECONDS
from toolkit_core.tools._web_page import WebPageData, require_success, show_page, with_pdf_text

if TYPE_CHECKING:
    from toolkit_core.context import ToolContext
    from toolkit_core.ports.documents import Documents
    from toolkit_core.ports.web import WebFetch
    from toolkit_core.result import ToolResult
    from toolkit_core.tool import Siblings, Tool


class WebFetchArguments(Arguments):
    """What web_fetch takes."""

    url: Annotated[str, Field(description="Absolute http or https URL.")]
    start_index: Annotated[int, Field(ge=0, description="Character of the text to start from; 0 is the first.")] = 0
    raw: Annotated[bool, Field(description="HTML as its source instead of Markdown.")] = False


def web_fetch_tool(
    web: WebFetch,
    *,
    documents: Documents | None = None,
    name: str = "web_fetch",
    description: str | None = None,
    siblings: Collection[str] | None = None,
    timeout_seconds: float = WEB_TOTAL_SECONDS,
    max_bytes: int = WEB_BODY_MAX_BYTES,
    page_chars: int = WEB_PAGE_CHARS,
) -> Tool[WebPageData]:
    """A tool that gets one address and returns its text.

    Codes: refused_url, network_error, timed_out, http_error, rate_limited, unsupported, too_large,
    invalid_arguments.

    Args:
        web: The network.
        documents: Reads PDF; without it a PDF is `unsupported`.
        name: Another name.
        description: Used verbatim.
        siblings: Kinds of the tools to hint at.
        timeout_seconds: For a whole call.
        max_bytes: Of the decoded body.
        page_chars: Of the text in one answer; `start_index` pages on.

    Example:
        >>> tool = web_fetch_tool(HostWeb())
        >>> result = await tool(url="https://example.com/")
    """
    if web is None:  # pyright: ignore[reportUnnecessaryComparison]  (callers without a type checker)
        raise TypeError("web_fetch_tool needs a WebFetch port, such as HostWeb()")

    async def run(arguments: WebFetchArguments, context: ToolContext) -> ToolResult[WebPageData]:
        def report(done: int, total: int | None) -> None:
            context.report("bytes", done=done, total=total)

        page = await web.fetch(
            arguments.url, raw=arguments.raw, timeout_seconds=timeout_seconds, max_bytes=max_bytes, on_bytes=report
        )
        require_success(arguments.url, page)
        page = await with_pdf_text(page, documents)
        return show_page(arguments.url, page, start_index=arguments.start_index, page_chars=page_chars)

    def describe(siblings: Siblings) -> str:
        return _describe(siblings, timeout_seconds, max_bytes, pdf=documents is not None)

    return port_tool(
        WebFetchArguments,
        run,
        kind="web_fetch",
        describe=describe,
        payload=WebPageData,
        effects=Effects(network=True),
        subject=_subject,
        name=name,
        description=description,
        siblings=siblings,
    )


async def _subject(arguments: WebFetchArguments) -> str:
    return arguments.url


def _describe(siblings: Siblings, timeout_seconds: float, max_bytes: int, *, pdf: bool) -> str:
    browse = siblings.get("browse")
    scripts = f"Scripts are not run; {browse} does that." if browse else "Scripts are not run."
    return (
        "Get a web page with an HTTP GET. The answer starts with the final address, status and type; then HTML comes "
        "as Markdown, the title first, JSON and other text as it is"
        f"{', PDF as text by page' if pdf else ''}; anything else is refused. A long text comes in parts: start_index "
        "is where to go on, raw=true gives HTML as its source. Redirects are followed, a meta refresh is reported, "
        f"not followed. Only public addresses are reached, without login or cookies. {scripts} "
        f"A call takes {timeout_seconds:g} s at most and reads {max_bytes:,} bytes; a cut is said."
    )
