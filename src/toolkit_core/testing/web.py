"""Fakes of the web ports: pages, a browser and search services that answer as a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.ports.web import WebPage
from toolkit_core.ports.web_search import SearchAnswer, SearchHit

if TYPE_CHECKING:
    from toolkit_core.ports.web import OnBytes


class FakeWeb:
    """A `WebFetch` of pages by address.

    Args:
        pages: What is answered: a page, Markdown as text (an HTML page with status 200), or a `ToolError` to raise.

    Attributes:
        asked: The addresses that were asked for, in order.

    Example:
        >>> tool = web_fetch_tool(FakeWeb({"https://docs.test/": "# Welcome"}))
    """

    def __init__(self, pages: Mapping[str, WebPage | str | ToolError]) -> None:
        self._pages = dict(pages)
        self.asked: list[str] = []

    async def fetch(
        self,
        url: str,
        *,
        raw: bool = False,
        timeout_seconds: float,
        max_bytes: int,
        on_bytes: OnBytes | None = None,
    ) -> WebPage:
        """The page of an address; `network_error` for one that is not there."""
        page = self._answer(url)
        if on_bytes is not None:
            on_bytes(page.size_bytes or len(page.text), None)
        return page

    def _answer(self, url: str) -> WebPage:
        self.asked.append(url)
        answer = self._pages.get(url)
        if isinstance(answer, ToolError):
            raise answer
        if answer is None:
            raise ToolError(f"the fake web has no page {url}", code="network_error")
        if isinstance(answer, WebPage):
            return answer
        return WebPage(url, 200, "text/html", "html", text=answer, size_bytes=len(answer))


class FakeBrowser(FakeWeb):
    """A `Browser` of pages by address, as `FakeWeb` has them."""

    async def render(
        self, url: str, *, raw: bool = False, wait_seconds: float, timeout_seconds: float, max_bytes: int
    ) -> WebPage:
        """The page of an address; `network_error` for one that is not there."""
        return self._answer(url)


class FakeSearchProvider:
    """A `WebSearchProvider` with fixed results, or one that fails.

    Args:
        name: What it is called.
        answer: Its results, or the `ToolError` that it raises.

    Attributes:
        asked: Query and limit of every search.
    """

    def __init__(self, name: str, answer: Sequence[SearchHit] | SearchAnswer | Exception = ()) -> None:
        self._name = name
        self._answer = answer
        self.asked: list[tuple[str, int]] = []

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    async def search(self, query: str, limit: int) -> SearchAnswer:
        """The fixed answer, cut to the limit."""
        self.asked.append((query, limit))
        if isinstance(self._answer, Exception):
            raise self._answer
        if isinstance(self._answer, SearchAnswer):
            return self._answer
        return SearchAnswer(tuple(self._answer[:limit]))
