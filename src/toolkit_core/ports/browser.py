"""Browser: what browse needs of a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from toolkit_core.ports.web import WebPage


class Browser(Protocol):
    """Loading one address in a browser and reading its DOM after its scripts ran.

    Raises `ToolError`: `unavailable` (no browser, or it may not run, with what was looked for), `refused_url`
    (the address, or where its scripts led), `network_error`, `timed_out` (nothing could be read; a page that had
    not finished loading comes back marked `unfinished`), `unsupported` (a download), `failed` (the browser ended;
    with the end of what it wrote). When it ends, for whatever reason, so have all processes that it
    started, and its profile is gone.
    """

    async def render(
        self, url: str, *, raw: bool = False, wait_seconds: float, timeout_seconds: float, max_bytes: int
    ) -> WebPage:
        """Load an address.

        Args:
            url: Absolute, http or https.
            raw: The DOM as HTML instead of Markdown.
            wait_seconds: How long scripts may go on once the page has loaded.
            timeout_seconds: For all of it, from the start of the browser on.
            max_bytes: Of the DOM, counted in characters; more is cut and said.
        """
        ...
