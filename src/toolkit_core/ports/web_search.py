"""Web search: what web_search needs of a search service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class SearchHit:
    """One result: plain text, no markup."""

    title: str
    url: str
    snippet: str = ""


@dataclass(frozen=True)
class SearchAnswer:
    """What a service found, best first, and its own answer where it gives one."""

    hits: tuple[SearchHit, ...]
    answer: str = ""


class WebSearchProvider(Protocol):
    """A search service.

    Raises `ToolError` when it gives no answer: `rate_limited`, `unavailable` (no key, a key refused),
    `http_error`, `network_error`, `timed_out`, `refused_url`, `invalid_result` never; a page that is not a list
    of results is a failure, not an empty answer. No message holds the key.
    """

    @property
    def name(self) -> str:
        """What it is called in results and errors."""
        ...

    async def search(self, query: str, limit: int) -> SearchAnswer:
        """Up to `limit` results; none means that the service says there are none."""
        ...
