"""A page in a real Chromium, driven over DevTools; nothing that it asks for reaches a network."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.support import require
from toolkit_core import ToolError
from toolkit_core.host.browser_process import BrowserProcess, find_browser, start_browser

_DEAD_PORT = 9  # "discard": whatever the browser would send goes nowhere
_KEYS = {"Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), "/": ("Slash", 191, "/"), " ": ("Space", 32, " ")}


class Page:
    """One tab."""

    def __init__(self, send: Any) -> None:
        self.send = send
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.complaints: list[str] = []

    def heard(self, method: str, params: dict[str, Any]) -> None:
        """Keep what a test asks about."""
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])
            self.send("Page.handleJavaScriptDialog", {"accept": False})
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"])[:800])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])

    async def open(self, path: Path, *, fragment: str = "", until: str = "document.body?.matches('.ready')") -> None:
        """Load a file and wait until the page says that it is drawn."""
        await self.send("Page.navigate", {"url": "about:blank"})
        await self.send("Page.navigate", {"url": path.as_uri() + fragment})
        await self.until(until)
        await self.settled()

    async def value(self, expression: str) -> Any:
        """The value of an expression; awaits a promise."""
        sent = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = await self.send("Runtime.evaluate", sent)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, expression: str, *, within_seconds: float = 60) -> None:
        """Wait for an expression to be true."""
        async with asyncio.timeout(within_seconds):
            while not await self.value(f"Boolean({expression})"):
                await asyncio.sleep(0.02)

    async def press(self, *keys: str) -> None:
        """Press keys, each a name of KeyboardEvent.key."""
        for key in keys:
            code, number, text = _KEYS.get(key, (key, 0, ""))
            event = {"key": key, "code": code, "windowsVirtualKeyCode": number}
            down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
            await self.send("Input.dispatchKeyEvent", {**event, **down})
            await self.send("Input.dispatchKeyEvent", {**event, "type": "keyUp"})

    async def type(self, text: str) -> None:
        """Type into whatever has the focus."""
        await self.send("Input.insertText", {"text": text})

    async def settled(self) -> None:
        """Two frames later: whatever was waiting for one has been drawn."""
        await self.value("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))")

    async def look(self, *, width: int, height: int, dark: bool) -> None:
        """The window's size and the colour scheme."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.send("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", {"features": [scheme]})

    async def screenshot(self, path: Path) -> None:
        """A PNG of what is in sight."""
        path.write_bytes(base64.b64decode((await self.send("Page.captureScreenshot", {"format": "png"}))["data"]))


class Chromium:
    """A running browser; each page of it is a tab of its own."""

    def __init__(self, process: BrowserProcess) -> None:
        self._process = process

    @asynccontextmanager
    async def page(self) -> AsyncGenerator[Page]:
        """A new tab, closed at the end."""
        devtools = self._process.devtools
        made = await devtools.send("Target.createTarget", {"url": "about:blank"})
        attached = await devtools.send("Target.attachToTarget", {**made, "flatten": True})
        page = Page(partial(devtools.send, session=attached["sessionId"]))
        devtools.on_event = page.heard
        for domain in ("Page", "Runtime", "Network", "Log"):
            await page.send(f"{domain}.enable")
        await page.look(width=1400, height=900, dark=False)
        yield page
        await devtools.send("Target.closeTarget", made)


@asynccontextmanager
async def chromium() -> AsyncGenerator[Chromium]:
    """A browser; skips (fails in CI) where there is none."""
    try:
        executable = find_browser()
    except ToolError as e:
        require(condition=False, reason=e.message)
        raise
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    process = start_browser(
        executable, proxy_port=_DEAD_PORT, no_sandbox=root, stdout_max_bytes=1000, heard=lambda: None
    )
    try:
        await process.attach()
        yield Chromium(process)
    finally:
        await process.close()
