"""browse over a local Chromium: a new profile, a guarding proxy, one deadline, nothing left."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from toolkit_core.cleanup import finish
from toolkit_core.errors import ToolError
from toolkit_core.host.browser_page import BrowserPage, Dom, NavigationFailedError
from toolkit_core.host.browser_process import BrowserProcess, find_browser, start_browser
from toolkit_core.host.devtools import BrowserGoneError, CommandError
from toolkit_core.host.pages.markdown import to_markdown
from toolkit_core.host.pages.sniffing import kind_of
from toolkit_core.host.proxy import GuardingProxy
from toolkit_core.limits import BROWSE_AT_ONCE, BROWSE_RESERVE_SECONDS
from toolkit_core.ports.web import WebPage

if TYPE_CHECKING:
    from toolkit_core.host.egress import Egress

_POLL_SECONDS: Final = 0.05
_SHOWN: Final = ("http://", "https://", "about:", "blob:http")
_DOM_END: Final = b"</html>"
_RESERVE_SHARE: Final = 4
_GONE_GRACE_SECONDS: Final = 0.2


@dataclass(frozen=True)
class _Task:
    url: str
    raw: bool
    wait_seconds: float
    until: float
    max_chars: int


class ChromiumBrowser:
    """The `Browser` port of this machine, over Chromium or a browser made from it.

    Every call starts a browser over a new profile and ends it. Its requests go through a proxy of ours, which judges
    each as `egress` says: sub-resources, redirects, WebSockets and workers too.

    Args:
        egress: Who may be reached.
        allow_root: As root Chromium only runs without its own sandbox; nothing is started unless this says so.

    Example:
        >>> tool = browse_tool(ChromiumBrowser(egress=Egress()))
    """

    def __init__(self, *, egress: Egress, allow_root: bool = False) -> None:
        self._egress = egress
        self._allow_root = allow_root
        self._free = threading.BoundedSemaphore(BROWSE_AT_ONCE)

    async def render(
        self, url: str, *, raw: bool = False, wait_seconds: float, timeout_seconds: float, max_bytes: int
    ) -> WebPage:
        """Load an address; see the port."""
        loop = asyncio.get_running_loop()
        reserve = min(BROWSE_RESERVE_SECONDS, timeout_seconds / _RESERVE_SHARE)
        until = loop.time() + timeout_seconds - reserve
        target = self._egress.screen(url)
        task = _Task(target.url, raw, wait_seconds, until, max_bytes)
        executable = self._executable()
        try:
            async with asyncio.timeout(timeout_seconds):
                return await self._queued(executable, task)
        except TimeoutError as e:
            raise ToolError(
                f"the browser had nothing to show of {target.url[:200]} within {timeout_seconds:g} s",
                code="timed_out",
                hint="Try again later, or without a browser.",
                retryable=True,
            ) from e

    def _executable(self) -> str:
        if sys.platform == "win32":
            raise ToolError("browsing needs Linux or macOS", code="unavailable")
        executable = find_browser()
        if os.geteuid() == 0 and not self._allow_root:
            raise ToolError(
                "as root Chromium runs only without its sandbox, which this program does not allow",
                code="unavailable",
                hint="Run as another user, or opt in with ChromiumBrowser(allow_root=True).",
            )
        return executable

    async def _queued(self, executable: str, task: _Task) -> WebPage:
        # polled: the number is shared by several event loops, which no asyncio primitive is
        while not self._free.acquire(blocking=False):  # noqa: ASYNC110 - see above
            await asyncio.sleep(_POLL_SECONDS)
        try:
            found = await self._in_browser(executable, task)
        finally:
            self._free.release()
        return found if isinstance(found, WebPage) else await _page(found, raw=task.raw)

    async def _in_browser(self, executable: str, task: _Task) -> Dom | WebPage:
        async with AsyncExitStack() as opened:
            proxy = await opened.enter_async_context(GuardingProxy(self._egress))
            printed = asyncio.Event()
            process = start_browser(
                executable,
                proxy_port=proxy.port,
                no_sandbox=os.geteuid() == 0,
                stdout_max_bytes=task.max_chars,
                heard=printed.set,
            )
            opened.push_async_callback(finish, process.close())
            await process.attach()
            return await _first_of(_drive(process, proxy, task), _printed(process, printed, task))


async def _drive(process: BrowserProcess, proxy: GuardingProxy, task: _Task) -> Dom:
    page = BrowserPage(process.devtools, proxy)
    try:
        await page.open()
        loaded, settled = await page.load(task.url, wait_seconds=task.wait_seconds, until=task.until)
        dom = await page.read(task.max_chars, loaded=loaded, settled=settled)
    except NavigationFailedError as e:
        raise _not_loaded(e, proxy, task) from None
    except (BrowserGoneError, CommandError, LookupError, TypeError, ValueError) as e:  # or speaks another language
        await asyncio.sleep(_GONE_GRACE_SECONDS)  # what it wrote last may still be on its way
        said = f"; it wrote: {process.complaint}" if process.complaint else ""
        raise ToolError(f"the page could not be shown: {e}{said}", code="failed") from e
    if not dom.url.startswith(_SHOWN):
        raise _not_loaded(NavigationFailedError(dom.url, "an error page"), proxy, task)
    if proxy.exhausted:
        raise ToolError("the page received more than a page may, and was given up", code="too_large")
    return dom


def _not_loaded(failure: NavigationFailedError, proxy: GuardingProxy, task: _Task) -> ToolError:
    if failure.reason == "download":
        return ToolError(f"{failure.url[:200]} is a download, not a page", code="unsupported")
    led = "" if failure.url == task.url else f"the page led to {failure.url[:200]}: "
    outcome = proxy.outcome(failure.url)
    if outcome is not None:
        return ToolError(led + outcome.message, code=outcome.code, hint=outcome.hint, retryable=outcome.retryable)
    reason = failure.reason or "the browser could not load it"
    return ToolError(f"{led}{failure.url[:200]} was not loaded: {reason}", code="network_error", retryable=True)


async def _printed(process: BrowserProcess, printed: asyncio.Event, task: _Task) -> WebPage:
    """The page of a TOOLKIT_BROWSER that prints a whole DOM instead of speaking DevTools, as --dump-dom does."""
    while _DOM_END not in process.stdout.data[-100:].rstrip():
        printed.clear()
        await printed.wait()
    html = process.stdout.data.decode("utf-8", "replace")
    dom = Dom(task.url, task.url, "", "text/html", 200, html, cut=False, loaded=True, settled=True)
    return await _page(dom, raw=task.raw)


async def _first_of(first: Any, second: Any) -> Any:
    tasks = [asyncio.ensure_future(first), asyncio.ensure_future(second)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return done.pop().result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _page(dom: Dom, *, raw: bool) -> WebPage:
    fields: dict[str, Any] = {
        "final_url": dom.url.partition("#")[0],
        "status": dom.status or 200,
        "content_type": dom.content_type,
        "size_bytes": len(dom.html),
        "cut": dom.cut,
        "unfinished": not dom.loaded,
        "note": "" if dom.settled or not dom.loaded else "the page still fetched or ran when it was read",
    }
    kind, _ = kind_of(dom.content_type, b"")
    if kind != "html" or raw:
        return WebPage(**fields, kind=kind, text="" if kind == "binary" else dom.html, title=dom.title)
    converted = await to_markdown(dom.html, dom.base)
    return WebPage(**fields, kind=kind, text=converted.text, title=converted.title or dom.title)
