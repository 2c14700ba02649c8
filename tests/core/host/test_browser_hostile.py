"""Pages that fill memory, crash, flood and forge: each ends in words, in time, with nothing left."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.host.browsers import leftovers, own_folder
from tests.core.host.web_servers import Net, Server, answer
from toolkit_core.host.browser import ChromiumBrowser
from toolkit_core.tools import browse_tool


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from own_folder(monkeypatch, tmp_path_factory)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("what", "script"),
    [
        ("fills memory", "const a = []; for (;;) a.push(new Array(1e6).fill(Math.random()))"),
        ("kills itself", "location = 'chrome://crash'"),
        ("floods requests", "for (let n = 0; n < 3000; n++) fetch('/x?' + n).catch(() => 0)"),
        ("opens windows", "for (let n = 0; n < 200; n++) window.open('/x?' + n)"),
        ("makes frames", "document.body.innerHTML = '<iframe src=/x></iframe>'.repeat(100)"),
        (
            "grows the DOM for ever",
            "setInterval(() => { for (let n = 0; n < 1e4; n++) document.body.append('x'.repeat(100)) }, 1)",
        ),
        ("prints for ever", "setInterval(() => { for (let n = 0; n < 1e3; n++) console.log('x'.repeat(1e4)) }, 1)"),
        (
            "freezes what we use",
            "Object.freeze(Object.prototype); delete window.performance; document.write('<plaintext>')",
        ),
    ],
)
async def test_a_hostile_script_ends_in_words_and_leaves_nothing(what: str, script: str) -> None:
    page = f"<title>T</title><p>before</p><body><script>{script}</script>".encode()

    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(page if head.startswith(b"GET / ") else b"sub"))

    async with Server(respond).running() as server:
        browser = ChromiumBrowser(egress=Net(server.port).egress(), allow_root=True)
        started = time.monotonic()
        result = await browse_tool(browser, timeout_seconds=10)(url="http://pub.test/", wait_seconds=1)
        assert time.monotonic() - started < 25
    if result.is_error:
        assert result.error is not None
        assert result.error.code in ("timed_out", "failed", "network_error", "refused_url"), result.text
    assert leftovers() == []
