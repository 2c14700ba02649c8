"""One page in a browser over the DevTools protocol: load it, let its scripts run, read its DOM.

Scripts run in virtual time: once the page has loaded, timers fire without waiting while nothing is fetched, so that
four seconds of a page's time take a fraction of one. The DOM is read in a world of its own, whose objects the
page's scripts cannot have changed.

Source: chromedevtools.github.io/devtools-protocol, domains Page, Fetch, Emulation, Runtime, Target.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from toolkit_core.host.devtools import BrowserGoneError, CommandError, DevTools, Message
from toolkit_core.limits import BROWSE_DOM_SLICE_CHARS

if TYPE_CHECKING:
    from toolkit_core.host.proxy import GuardingProxy

_SUMMARY: Final = """(() => {
  const html = globalThis.toolkitDom = ((root, type) => {
    if (!root) return '';
    if (!/html/.test(type) && !/xml/.test(type)) return document.body ? document.body.textContent : '';
    const doctype = document.doctype ? '<!DOCTYPE ' + document.doctype.name + '>\\n' : '';
    return doctype + root.outerHTML;
  })(document.documentElement, document.contentType).slice(0, MAX + 1);
  const entry = performance.getEntriesByType('navigation')[0];
  return JSON.stringify({url: location.href, base: document.baseURI, title: document.title, type: document.contentType,
    status: entry ? entry.responseStatus : 0, length: html.length});
})()"""
_CLOCK: Final = "String(performance.now() - performance.getEntriesByType('navigation')[0].loadEventEnd)"
_STUCK_SECONDS: Final = 1.0
"""A page that does not answer for so long has a script that does not end."""
_ENOUGH: Final = 0.95
"""Of the time that scripts are given: a page's clock is coarse."""
_ENDS: Final = {"gone": "the browser has ended", "Inspector.targetCrashed": "the page crashed"}
_NAVIGATIONS: Final = 10
_ATTEMPTS: Final = 3
_DOWNLOAD: Final = "download"


@dataclass(frozen=True)
class Dom:
    """A document as it stands.

    Attributes:
        url: Where it is.
        base: What its relative addresses are relative to.
        title: Its title.
        content_type: As the browser takes it.
        status: The HTTP status; 0 where there was none.
        html: The DOM, or the text of a document that is not HTML.
        cut: The DOM was longer.
        loaded: Whether it had loaded, and its scripts had had their time.
        settled: Whether nothing was being fetched any more.
    """

    url: str
    base: str
    title: str
    content_type: str
    status: int
    html: str
    cut: bool
    loaded: bool
    settled: bool


@dataclass
class NavigationFailedError(Exception):
    """The page's main document, or where it led, could not be loaded."""

    url: str
    reason: str


class BrowserPage:
    """A tab, from a started browser to its DOM."""

    def __init__(self, devtools: DevTools, proxy: GuardingProxy) -> None:
        self._devtools, self._proxy = devtools, proxy
        self._session = ""
        self._frame = ""
        self._loading = True
        self._navigations = 0
        self._expired = False
        self._committed = False
        self._failure: str | None = None
        self._ended = ""
        self._changed = asyncio.Event()
        devtools.on_event = self._on_event

    async def open(self) -> None:
        """Attach to the browser's tab and forbid what a reader does not need."""
        targets = await self._devtools.send("Target.getTargets")
        pages = [target for target in targets["targetInfos"] if target["type"] == "page"]
        target = pages[0] if pages else await self._devtools.send("Target.createTarget", {"url": "about:blank"})
        attached = await self._devtools.send("Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
        self._session = attached["sessionId"]
        await self._devtools.send("Browser.setDownloadBehavior", {"behavior": "deny"})
        await self._command("Inspector.enable")
        await self._command("Page.enable")
        await self._command("Fetch.enable", {"handleAuthRequests": True, "patterns": [{"urlPattern": "*"}]})
        self._frame = (await self._command("Page.getFrameTree"))["frameTree"]["frame"]["id"]

    async def load(self, url: str, *, wait_seconds: float, until: float) -> tuple[bool, bool]:
        """Go to an address and let it run, at most until a time of the event loop's clock.

        Returns:
            Whether the page loaded, and whether it came to rest.

        Raises:
            NavigationFailedError: The address could not be loaded, or was a download.
        """
        navigation = self._devtools.send("Page.navigate", {"url": url}, session=self._session)
        navigation.add_done_callback(lambda _: self._changed.set())
        if not await self._until(lambda: self._has_loaded(navigation), until):
            return False, False
        await self._raise_failure(url, navigation)
        settled = wait_seconds <= 0 or await self._run(wait_seconds, until)
        await self._raise_failure(url, navigation)
        return not self._loading, settled

    async def read(self, max_chars: int, *, loaded: bool, settled: bool) -> Dom:
        """The document as it stands. A script that never ends is ended first."""
        self._set_clock("pause")
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self._read(max_chars, loaded=loaded, settled=settled)
            except CommandError:  # it was led elsewhere just now
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    async def _read(self, max_chars: int, *, loaded: bool, settled: bool) -> Dom:
        world = await self._world()
        found = json.loads(await self._evaluate(_SUMMARY.replace("MAX", str(max_chars)), world))
        length = min(int(found["length"]), max_chars)
        parts = [
            await self._evaluate(f"toolkitDom.slice({at}, {min(at + BROWSE_DOM_SLICE_CHARS, length)})", world)
            for at in range(0, length, BROWSE_DOM_SLICE_CHARS)
        ]
        return Dom(
            url=found["url"],
            base=found["base"],
            title=" ".join(_text(found["title"]).split()),
            content_type=found["type"],
            status=int(found["status"]),
            html=_text("".join(parts)),
            cut=int(found["length"]) > max_chars,
            loaded=loaded,
            settled=settled,
        )

    async def _run(self, wait_seconds: float, until: float) -> bool:
        """Give the scripts their virtual time; whether it was over before as much real time was.

        A budget belongs to a page: where scripts lead elsewhere, the new page gets its own once it has loaded. An
        expiry may still be the old page's, so the page's own clock is asked.
        """
        for _ in range(_NAVIGATIONS):
            navigations = self._navigations
            limit = min(until, asyncio.get_running_loop().time() + wait_seconds)
            self._grant(wait_seconds)
            await self._until(lambda before=navigations: self._ended_or_moved(before), limit)
            if self._failure is not None:
                return True
            if self._navigations != navigations:
                if not await self._loaded_anew(wait_seconds, until):
                    return False
            elif not self._expired:
                return False
            elif await self._page_clock() >= wait_seconds * _ENOUGH:
                return True
        return False

    async def _loaded_anew(self, wait_seconds: float, until: float) -> bool:
        """Wait for the page that scripts led to; its clock must not stand still meanwhile."""
        while self._loading and self._failure is None:
            if self._expired:
                self._grant(wait_seconds)
            if not await self._until(lambda: not self._loading or self._expired or self._failure is not None, until):
                return False
        return True

    def _grant(self, seconds: float) -> None:
        self._expired = False
        self._set_clock("pauseIfNetworkFetchesPending", budget=seconds * 1000)

    def _ended_or_moved(self, navigations: int) -> bool:
        return self._expired or self._failure is not None or self._navigations != navigations

    async def _page_clock(self) -> float:
        """Virtual seconds since the page had loaded; many where it does not say."""
        try:
            async with asyncio.timeout(_STUCK_SECONDS):
                return float(await self._evaluate(_CLOCK, await self._world())) / 1000
        except (CommandError, TimeoutError, ValueError):
            return float("inf")

    def _set_clock(self, policy: str, **options: float) -> None:
        """Not awaited: a page whose script never ends does not answer."""
        asked = {"policy": policy, **options}
        self._devtools.send("Emulation.setVirtualTimePolicy", asked, session=self._session)

    def _has_loaded(self, navigation: asyncio.Future[Message]) -> bool:
        if self._failure is not None or (navigation.done() and _refusal(navigation)):
            return True
        return self._committed and not self._loading

    async def _raise_failure(self, url: str, navigation: asyncio.Future[Message]) -> None:
        reason = _refusal(navigation) if navigation.done() else ""
        if reason == _DOWNLOAD:
            raise NavigationFailedError(url, reason)
        if reason:  # the error page, which follows, tells where redirects had led
            now = asyncio.get_running_loop().time()
            await self._until(lambda: self._failure is not None, now + _STUCK_SECONDS)
        if self._failure is not None:
            raise NavigationFailedError(self._failure, reason)
        if reason:
            raise NavigationFailedError(url, reason)

    async def _until(self, condition: Any, until: float) -> bool:
        loop = asyncio.get_running_loop()
        while not condition():
            if self._ended:
                raise BrowserGoneError(self._ended)
            left = until - loop.time()
            if left <= 0:
                return False
            self._changed.clear()
            try:
                async with asyncio.timeout(left):
                    await self._changed.wait()
            except TimeoutError:
                return False
        return True

    async def _command(self, method: str, params: dict[str, Any] | None = None) -> Message:
        return await self._devtools.send(method, params, session=self._session)

    async def _world(self) -> int:
        """An execution context of our own, which a script that does not end must first let us make."""
        asked = {"frameId": self._frame}
        created = self._devtools.send("Page.createIsolatedWorld", asked, session=self._session)
        await asyncio.wait({created}, timeout=_STUCK_SECONDS)
        while not created.done():
            if self._ended:
                raise BrowserGoneError(self._ended)
            self._end_scripts()
            await asyncio.wait({created}, timeout=_STUCK_SECONDS / 4)
        return int(created.result()["executionContextId"])

    async def _evaluate(self, expression: str, world: int) -> str:
        asked = {"expression": expression, "contextId": world, "returnByValue": True}
        for attempt in range(1, _ATTEMPTS + 1):
            answer = self._devtools.send("Runtime.evaluate", asked, session=self._session)
            await asyncio.wait({answer}, timeout=attempt * 2 * _STUCK_SECONDS)
            if answer.done() and "exceptionDetails" not in answer.result():
                return str(answer.result()["result"].get("value", ""))
            if self._ended:
                raise BrowserGoneError(self._ended)
            self._end_scripts()
        raise CommandError("the page does not let itself be read")

    def _end_scripts(self) -> None:
        """End the script that runs now, and stop the clock that would start the next."""
        self._devtools.send("Runtime.terminateExecution", session=self._session)
        self._set_clock("pause")

    def _on_event(self, method: str, params: Message) -> None:
        if method == "Fetch.requestPaused":
            self._devtools.send("Fetch.continueRequest", {"requestId": params["requestId"]}, session=self._session)
        elif method == "Fetch.authRequired":
            self._authenticate(params)
        elif method == "Page.javascriptDialogOpening":
            self._devtools.send("Page.handleJavaScriptDialog", {"accept": False}, session=self._session)
        elif method == "Page.frameNavigated":
            self._navigated(params["frame"])
        elif (
            method in ("Page.frameStartedLoading", "Page.frameStoppedLoading") and params.get("frameId") == self._frame
        ):
            self._loading = method == "Page.frameStartedLoading"
            self._navigations += self._loading
        elif method == "Emulation.virtualTimeBudgetExpired":
            self._expired = True
        elif method in _ENDS:
            self._ended = _ENDS[method]
        else:
            return
        self._changed.set()

    def _authenticate(self, params: Message) -> None:
        """Our proxy gets its password; a server that asks for one gets none, so that its page is shown."""
        answer: dict[str, Any] = {"response": "CancelAuth"}
        if params["authChallenge"].get("source") == "Proxy":
            answer = {
                "response": "ProvideCredentials",
                "username": self._proxy.username,
                "password": self._proxy.password,
            }
        self._devtools.send(
            "Fetch.continueWithAuth",
            {"requestId": params["requestId"], "authChallengeResponse": answer},
            session=self._session,
        )

    def _navigated(self, frame: Message) -> None:
        if frame.get("parentId"):
            return
        self._frame = frame["id"]
        self._committed = True
        self._failure = frame.get("unreachableUrl") or None


def _refusal(navigation: asyncio.Future[Message]) -> str:
    """Why the browser did not go there, "" where it did."""
    if navigation.exception() is not None:
        return str(navigation.exception())
    answer = navigation.result()
    return _DOWNLOAD if answer.get("isDownload") else str(answer.get("errorText") or "")


def _text(value: str) -> str:
    """Lone surrogates, which JavaScript's strings may hold, become U+FFFD; pairs become the character."""
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
