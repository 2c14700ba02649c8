"""browse over a fake browser: what it shows of a page, finished or not."""

from __future__ import annotations

import pytest

from toolkit_core import ToolError, ToolResult
from toolkit_core.ports.web import WebPage
from toolkit_core.testing.web import FakeBrowser
from toolkit_core.tools import browse_tool

URL = "https://app.test/"


class Recording(FakeBrowser):
    waits: list[float]

    async def render(
        self, url: str, *, raw: bool = False, wait_seconds: float, timeout_seconds: float, max_bytes: int
    ) -> WebPage:
        self.waits = [*getattr(self, "waits", []), wait_seconds]
        return await super().render(
            url, raw=raw, wait_seconds=wait_seconds, timeout_seconds=timeout_seconds, max_bytes=max_bytes
        )


async def browse(page: WebPage | str | ToolError, **arguments: object) -> ToolResult:
    return await browse_tool(FakeBrowser({URL: page})).call({"url": URL, **arguments})


async def test_a_page_is_shown_as_web_fetch_shows_it() -> None:
    result = await browse("# App")
    assert result.text == "https://app.test/ (200, text/html)\n\n# App"
    assert result.data is not None
    assert sorted(result.data) == ["content_type", "final_url", "next_index", "status", "title", "url"]


async def test_a_page_that_had_not_finished_is_timed_out_with_what_it_showed() -> None:
    result = await browse(WebPage(URL, 200, "text/html", "html", text="so far", title="App", unfinished=True))
    assert result.error is not None
    assert result.error.code == "timed_out"
    assert result.error.retryable
    assert "so far" in result.text
    assert result.data is not None
    assert result.data["title"] == "App"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (WebPage(URL, 404, "text/html", "html", text="gone"), "http_error"),
        (WebPage(URL, 429, "text/html", "html", text="slow"), "rate_limited"),
        (WebPage(URL, 200, "image/png", "binary"), "unsupported"),
        (WebPage(URL, 200, "application/pdf", "pdf"), "unsupported"),
        (ToolError("no browser", code="unavailable"), "unavailable"),
    ],
)
async def test_what_is_no_page_has_its_code(page: WebPage | ToolError, expected: str) -> None:
    result = await browse(page)
    assert result.error is not None
    assert result.error.code == expected


async def test_the_wait_is_four_seconds_and_clamped_to_ten() -> None:
    browser = Recording({URL: "x"})
    tool = browse_tool(browser)
    for wait in (None, 0, 2.5, 10, 11, 1e9):
        result = await tool(url=URL, wait_seconds=wait)
        assert not result.is_error
        assert ("10 is the most" in result.text) is (wait is not None and wait > 10)
    assert browser.waits == [4.0, 0.0, 2.5, 10.0, 10.0, 10.0]
    negative = await tool(url=URL, wait_seconds=-1)
    assert negative.error is not None
    assert negative.error.code == "invalid_arguments"


async def test_it_pages_as_web_fetch_does() -> None:
    tool = browse_tool(FakeBrowser({URL: "abcdefghij"}), page_chars=4)
    first = await tool(url=URL)
    assert first.data is not None
    assert first.data["next_index"] == 4
    last = await tool(url=URL, start_index=8)
    assert "\n\nij\n\n" in last.text
    past = await tool(url=URL, start_index=10)
    assert past.error is not None
    assert past.error.code == "invalid_arguments"


async def test_the_subject_is_the_url_as_asked_and_the_risk_is_inspect() -> None:
    tool = browse_tool(FakeBrowser({}))
    assert await tool.subject({"url": "https://APP.test"}) == "https://APP.test"
    assert tool.effects is not None
    assert tool.effects.network
    assert tool.effects.risk == "inspect"
