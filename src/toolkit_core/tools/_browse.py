"""browse: one address in a browser, its DOM after the scripts ran, as text."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from toolkit_core.effects import Effects
from toolkit_core.errors import ToolError
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.limits import (
    BROWSE_WAIT_MAX_SECONDS,
    BROWSE_WAIT_SECONDS,
    WEB_BODY_MAX_BYTES,
    WEB_PAGE_CHARS,
    WEB_TOTAL_SECONDS,
)
from toolkit_core.tools._web_page import WebPageData, page_data, require_success, show_page, with_pdf_text

if TYPE_CHECKING:
    from toolkit_core.context import ToolContext
    from toolkit_core.ports.browser import Browser
    from toolkit_core.ports.web import WebPage
    from toolkit_core.result import ToolResult
    from toolkit_core.tool import Siblings, Tool


class BrowseArguments(Arguments):
    """What browse takes."""

    url: Annotated[str, Field(description="Absolute http or https URL.")]
    wait_seconds: Annotated[
        float,
        Field(
            ge=0,
            description=f"How long scripts may go on once the page has loaded, {BROWSE_WAIT_MAX_SECONDS:g} at most.",
        ),
    ] = BROWSE_WAIT_SECONDS
    start_index: Annotated[int, Field(ge=0, description="Character of the text to start from; 0 is the first.")] = 0
    raw: Annotated[bool, Field(description="The DOM as HTML instead of Markdown.")] = False


def browse_tool(
    browser: Browser,
    *,
    name: str = "browse",
    description: str | None = None,
    siblings: Collection[str] | None = None,
    timeout_seconds: float = WEB_TOTAL_SECONDS,
    max_bytes: int = WEB_BODY_MAX_BYTES,
    page_chars: int = WEB_PAGE_CHARS,
) -> Tool[WebPageData]:
    """A tool that loads one address in a browser and returns the DOM after its scripts ran.

    Codes: refused_url, network_error, timed_out (with the page so far), http_error, rate_limited, unsupported,
    unavailable, failed, too_large, invalid_arguments.

    Args:
        browser: The browser.
        name: Another name.
        description: Used verbatim.
        siblings: Kinds of the tools to hint at.
        timeout_seconds: For a whole call, the start of the browser included.
        max_bytes: Of the DOM.
        page_chars: Of the text in one answer; `start_index` pages on.
    """
    if browser is None:  # pyright: ignore[reportUnnecessaryComparison]  (callers without a type checker)
        raise TypeError("browse_tool needs a Browser port, such as ChromiumBrowser(egress=Egress())")

    async def run(arguments: BrowseArguments, context: ToolContext) -> ToolResult[WebPageData]:
        wait = min(arguments.wait_seconds, BROWSE_WAIT_MAX_SECONDS)
        notes = (
            []
            if wait == arguments.wait_seconds
            else [f"wait_seconds was {arguments.wait_seconds:g}; {wait:g} is the most"]
        )
        context.report("stage", "starting the browser\n")
        page = await browser.render(
            arguments.url, raw=arguments.raw, wait_seconds=wait, timeout_seconds=timeout_seconds, max_bytes=max_bytes
        )
        if page.unfinished:
            raise _unfinished(arguments.url, replace(page, unfinished=False), timeout_seconds, page_chars)
        require_success(arguments.url, page)
        page = await with_pdf_text(page, None)
        return show_page(arguments.url, page, start_index=arguments.start_index, page_chars=page_chars, notes=notes)

    def describe(siblings: Siblings) -> str:
        return _describe(siblings, timeout_seconds)

    return port_tool(
        BrowseArguments,
        run,
        kind="browse",
        describe=describe,
        payload=WebPageData,
        effects=Effects(network=True),
        subject=_subject,
        name=name,
        description=description,
        siblings=siblings,
    )


async def _subject(arguments: BrowseArguments) -> str:
    return arguments.url


def _unfinished(url: str, page: WebPage, timeout_seconds: float, page_chars: int) -> ToolError:
    so_far = show_page(url, page, start_index=0, page_chars=page_chars)
    return ToolError(
        f"{page.final_url} had not finished loading after {timeout_seconds:g} s",
        code="timed_out",
        hint="The page so far follows; it may be all that there is to read.",
        retryable=True,
        detail=so_far.text,
        data=page_data(url, page),
    )


def _describe(siblings: Siblings, timeout_seconds: float) -> str:
    fetch = siblings.get("web_fetch")
    plain = f" For a page that needs no scripts {fetch} is faster." if fetch else ""
    return (
        "Load a web page in a headless browser and read its DOM after the page's scripts ran. The answer starts with "
        "the final address, status and type; then the DOM comes as Markdown, the title first, or as HTML with "
        "raw=true. A long text comes in parts: start_index is where to go on (the page is loaded anew). Once the page "
        "has loaded its scripts get wait_seconds. The browser is new for every call: no login, no cookies. Only "
        "public addresses are reached, by the page's own requests too; downloads are refused. A call takes "
        f"{timeout_seconds:g} s at most; what a page showed by then comes with the error.{plain}"
    )
