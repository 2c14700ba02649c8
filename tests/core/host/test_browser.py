"""A real Chromium: what its pages fetch is judged, and nothing of it is left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.core.host.browsers import leftovers, own_folder
from tests.core.host.web_servers import Net, Respond, Server, answer, by_path, descriptors_settle_at, open_descriptors
from tests.support import require
from toolkit_core import Tool, ToolResult
from toolkit_core.host.browser import ChromiumBrowser
from toolkit_core.host.egress import Connection, Egress
from toolkit_core.tools import browse_tool

pytestmark = [pytest.mark.timeout(180)]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield from own_folder(monkeypatch, tmp_path_factory)


def tool_for(egress: Egress, *, seconds: float = 60) -> Tool:
    return browse_tool(ChromiumBrowser(egress=egress, allow_root=True), timeout_seconds=seconds)


async def browse(
    pages: Mapping[str, bytes | Respond], path: str = "/", *, seconds: float = 60, wait: float = 4, raw: bool = False
) -> ToolResult:
    before = open_descriptors()
    async with Server(by_path(pages)).running() as server:
        tool = tool_for(Net(server.port).egress(), seconds=seconds)
        result = await tool(url=f"http://pub.test{path}", wait_seconds=wait, raw=raw)
    assert await descriptors_settle_at(before + 1)  # the executor's first thread may have opened one
    assert leftovers() == []
    return result


def code(result: ToolResult) -> str:
    assert result.error is not None, result.text[:500]
    return result.error.code


async def forever(head: bytes, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(600)


MADE = (
    b"<title>Made</title><p id=a>empty</p>"
    b"<script>setTimeout(() => a.textContent = 'made by ' + 'script', 3000)</script>"
)


async def test_the_dom_is_read_after_scripts_ran_and_their_timers_do_not_cost_time() -> None:
    result = await browse({"/": answer(MADE)})
    assert result.text == "http://pub.test/ (200, text/html)\n\n# Made\n\nmade by script"
    assert result.data == {
        "url": "http://pub.test/",
        "final_url": "http://pub.test/",
        "status": 200,
        "content_type": "text/html",
        "title": "Made",
        "next_index": None,
    }


async def test_raw_is_the_dom_as_html() -> None:
    result = await browse({"/": answer(b"<!doctype html>" + MADE)}, raw=True)
    assert "<!DOCTYPE html>\n<html><head><title>Made</title>" in result.text
    assert '<p id="a">made by script</p>' in result.text


async def test_what_a_script_fetches_is_waited_for() -> None:
    async def slow(head: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1)
        writer.write(answer(b"slow data"))

    page = b"<p id=a><script>fetch('/slow').then(r => r.text()).then(t => a.textContent = 'got ' + t)</script>"
    assert "got slow data" in (await browse({"/": answer(page), "/slow": slow})).text


@pytest.mark.parametrize(
    "page",
    [
        b"<script>location = '/end'</script>",
        b"<script>setTimeout(() => location = '/end', 2000)</script>",
        b"<meta http-equiv=refresh content='1;url=/end'>",
        b"<body onload=\"document.body.innerHTML = '<form action=/end></form>'; document.forms[0].submit()\">",
    ],
)
async def test_where_a_page_leads_is_followed_and_gets_its_own_time(page: bytes) -> None:
    result = await browse({"/": answer(page), "/end": answer(MADE)})
    assert "made by script" in result.text
    assert result.data is not None
    assert result.data["final_url"].rstrip("?") == "http://pub.test/end"


@pytest.mark.parametrize(
    ("what", "page"),
    [
        ("polls for ever", b"<p>before</p><script>(async () => { for (;;) await fetch('/hang') })()</script>"),
        ("redraws for ever", b"<p>before</p><script>setInterval(() => fetch('/x?' + Math.random()), 1)</script>"),
        ("reloads for ever", b"<p>before</p><script>setTimeout(() => location.reload(), 20)</script>"),
    ],
)
async def test_a_page_that_never_goes_idle_is_read_as_it_stands(what: str, page: bytes) -> None:
    result = await browse({"/": answer(page), "/hang": forever}, wait=1.5, seconds=30)
    assert "before" in result.text or what == "reloads for ever"


async def dripping(head: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>T</title><p>before</p>")
    while True:
        writer.write(b"<p>more</p>")
        await writer.drain()
        await asyncio.sleep(0.3)


@pytest.mark.parametrize(
    ("what", "page"),
    [
        ("an image that never comes", answer(b"<title>T</title><p>before</p><img src=/hang>")),
        ("a script that never ends", answer(b"<title>T</title><p>before</p><script>while (true) {}</script>")),
        ("a body that drips", dripping),
    ],
)
async def test_a_page_that_does_not_finish_is_timed_out_with_the_dom_so_far(what: str, page: bytes | Respond) -> None:
    result = await browse({"/": page, "/hang": forever}, seconds=10)
    assert code(result) == "timed_out"
    assert "before" in result.text, what
    assert result.data is not None
    assert result.data["title"] == "T"


async def test_a_server_that_never_answers_is_timed_out() -> None:
    started = time.monotonic()
    assert code(await browse({"/": forever}, seconds=4)) == "timed_out"
    assert time.monotonic() - started < 25


HOSTILE = """<!doctype html><title>hostile</title><p>page</p>
<link rel=stylesheet href="{to}/css"><link rel=prefetch href="{to}/prefetch"><link rel=preconnect href="{to}">
<link rel=preload as=image href="{to}/preload"><link rel=icon href="{to}/icon"><link rel=manifest href="{to}/manifest">
<link rel=modulepreload href="{to}/module"><script src="{to}/js"></script><img src="{to}/img" srcset="{to}/srcset 2x">
<iframe src="{to}/iframe"></iframe><object data="{to}/object"></object><embed src="{to}/embed">
<video src="{to}/video" poster="{to}/poster"></video><audio src="{to}/audio"></audio>
<svg><image href="{to}/svg"/></svg><style>@import "{to}/import"; p {{ background: url({to}/background) }}
@font-face {{ font-family: f; src: url({to}/font) }} p {{ font-family: f }}</style>
<iframe src="/redirect"></iframe><img src="/redirect">
<script>
const go = f => {{ try {{ f() }} catch (e) {{}} }};
go(() => fetch('{to}/fetch', {{mode: 'no-cors'}}).catch(() => 0));
go(() => fetch('{to}/post', {{method: 'POST', body: 'x', mode: 'no-cors'}}).catch(() => 0));
go(() => {{ const x = new XMLHttpRequest(); x.open('GET', '{to}/xhr'); x.send() }});
go(() => new WebSocket('{ws}/websocket'));
go(() => navigator.sendBeacon('{to}/beacon', 'x'));
go(() => new EventSource('{to}/events'));
go(() => new Worker(URL.createObjectURL(new Blob(["fetch('{to}/worker', {{mode: 'no-cors'}})"]))));
go(() => navigator.serviceWorker.register('/sw.js'));
go(() => import('{to}/import.js').catch(() => 0));
go(() => window.open('{to}/open'));
go(() => {{ const p = new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}},
  {{urls: 'turn:127.0.0.1:{port}?transport=tcp', username: 'u', credential: 'p'}}]}});
  p.createDataChannel('x'); p.createOffer().then(o => p.setLocalDescription(o)) }});
go(() => {{ const a = document.createElement('a'); a.href = '/x'; a.ping = '{to}/ping'; document.body.append(a); }});
</script>"""


class Forbidden:
    """A server on loopback that counts whoever connects, over TCP and UDP."""

    def __init__(self) -> None:
        self.hits = 0

    def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hits += 1
        writer.write(answer(b"secret"))
        writer.close()


class Datagrams(asyncio.DatagramProtocol):
    def __init__(self, forbidden: Forbidden) -> None:
        self._forbidden = forbidden

    def datagram_received(self, data: bytes, addr: object) -> None:
        self._forbidden.hits += 1


async def hits_of(allow_private: list[str], host: str) -> int:
    """How often the page reaches a loopback server by every means it has."""
    forbidden = Forbidden()
    listening = await asyncio.start_server(forbidden.connect, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    udp, _ = await loop.create_datagram_endpoint(lambda: Datagrams(forbidden), local_addr=("127.0.0.1", port))
    page = HOSTILE.format(to=f"http://{host}:{port}", ws=f"ws://{host}:{port}", port=port).encode()
    pages: dict[str, bytes | Respond] = {
        "/": answer(page),
        "/redirect": answer(status="302 Found", headers=[f"Location: http://{host}:{port}/redirected"]),
        "/sw.js": answer(
            f"fetch('http://{host}:{port}/sw', {{mode: 'no-cors'}})".encode(), content_type="text/javascript"
        ),
    }
    async with Server(by_path(pages)).running() as server:
        net = Net(server.port, {"rebind.test": [["127.0.0.1"]]})

        async def dial(address: str, to_port: int) -> Connection:
            if address.startswith("127."):
                return await asyncio.open_connection(address, to_port)
            return await net.dial(address, to_port)

        egress = Egress(resolver=net.resolve, dial=dial, allow_private=allow_private)
        result = await tool_for(egress)(url="http://pub.test/", wait_seconds=4)
    assert "page" in result.text, result.text
    udp.close()
    listening.close()
    assert leftovers() == []
    return forbidden.hits


async def test_control_without_the_guard_the_forbidden_server_is_hit() -> None:
    assert await hits_of(["127.0.0.0/8"], "127.0.0.1") > 10


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "rebind.test", "[::ffff:127.0.0.1]"])
async def test_no_sub_resource_reaches_a_forbidden_server_by_any_means(host: str) -> None:
    assert await hits_of([], host) == 0


@pytest.mark.parametrize(
    "page",
    [
        answer(status="302 Found", headers=["Location: http://127.0.0.1/x"]),
        answer(status="302 Found", headers=["Location: https://127.0.0.1/x"]),
        answer(b"<script>location = 'http://127.0.0.1/x'</script>"),
        answer(b"<script>location = 'https://intranet/x'</script>"),
        answer(b"<meta http-equiv=refresh content='0;url=http://169.254.169.254/'>"),
        answer(b"<script>setTimeout(() => location = 'http://2130706433/', 500)</script>"),
    ],
)
async def test_a_page_that_leads_to_a_forbidden_address_is_refused(page: bytes) -> None:
    result = await browse({"/": page})
    assert code(result) == "refused_url", result.text
    assert "the page led to" in result.text


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "chrome://version", "data:text/html,x", "http://127.0.0.1/", "about:blank"]
)
async def test_a_forbidden_address_starts_no_browser(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> object:
        raise AssertionError("a browser was started")

    monkeypatch.setattr("toolkit_core.host.browser.start_browser", start)
    assert code(await tool_for(Egress())(url=url)) == "refused_url"


async def test_a_page_cannot_lead_to_a_file() -> None:
    for script in (b"location = 'file:///etc/passwd'", b"window.open('file:///etc/passwd', '_self')"):
        page = b"<p>still here</p><iframe src='file:///etc/passwd'></iframe><script>" + script + b"</script>"
        result = await browse({"/": answer(page)})
        assert "root:" not in result.text


async def test_a_download_is_refused_and_written_nowhere() -> None:
    attachment = answer(
        b"payload", content_type="text/plain", headers=["Content-Disposition: attachment; filename=x.txt"]
    )
    result = await browse({"/": attachment})
    assert code(result) == "unsupported"
    assert "download" in result.text
    started_by_script = b"<p>page</p><script>location = '/file'</script>"
    result = await browse({"/": answer(started_by_script), "/file": attachment})
    assert "page" in result.text
    for folder in (Path.home(), Path.home() / "Downloads", Path.cwd()):
        assert not (folder / "toolkit-download.txt").exists()


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (answer(b"<p>gone</p>", status="404 Not Found"), "http_error"),
        (answer(b"<p>later</p>", status="429 Slow"), "rate_limited"),
        (answer(b"<p>login</p>", status="401 No", headers=["WWW-Authenticate: Basic realm=x"]), "http_error"),
        (answer(b"%PDF-1.4\n", content_type="application/pdf"), "unsupported"),
        (answer(b"\x89PNG\r\n\x1a\n", content_type="image/png"), "unsupported"),
        (b"", "network_error"),
    ],
)
async def test_what_is_no_page_has_its_code(page: bytes, expected: str) -> None:
    assert code(await browse({"/": page})) == expected


async def test_json_is_shown_as_text() -> None:
    result = await browse({"/": answer(b'{"a": 1}', content_type="application/json")})
    assert result.text == 'http://pub.test/ (200, application/json)\n\n{"a": 1}'


async def test_dialogs_passwords_and_redefined_builtins_do_not_hold_it_up() -> None:
    page = b"""<title>T</title><p id=a>x</p><script>
    alert(1); confirm(2); prompt(3);
    Object.defineProperty(Element.prototype, 'outerHTML', {get() { return 'forged' }});
    JSON.stringify = () => 'forged'; String.prototype.slice = () => 'forged'; window.onbeforeunload = () => 'stay';
    a.textContent = 'after \\ud800 dialogs'; new Image().src = '/secret';
    </script>"""
    secret = answer(b"", status="401 No", headers=["WWW-Authenticate: Basic realm=x"])
    result = await browse({"/": answer(page), "/secret": secret})
    assert "after \ufffd dialogs" in result.text
    assert "forged" not in result.text


async def test_a_dom_beyond_the_cap_is_cut() -> None:
    page = b"<p id=a><script>a.textContent = 'word '.repeat(600000)</script>"
    async with Server(by_path({"/": answer(page)})).running() as server:
        browser = ChromiumBrowser(egress=Net(server.port).egress(), allow_root=True)
        result = await browse_tool(browser, max_bytes=1_000_000, timeout_seconds=60)(url="http://pub.test/")
    assert "cut at 1,000," in result.text
    assert not result.is_error


async def test_a_wait_beyond_the_most_is_clamped_and_said() -> None:
    result = await browse({"/": answer(b"<p>x")}, wait=99)
    assert "wait_seconds was 99; 10 is the most" in result.text


async def test_only_the_page_s_own_hosts_are_asked_for() -> None:
    """Chromium's own calls (updates, accounts) are refused by the proxy: they have no password, or a known host."""
    async with Server(by_path({"/": answer(b"<p>x")})).running() as server:
        net = Net(server.port)
        await tool_for(net.egress())(url="http://pub.test/")
    assert set(net.looked_up) == {"pub.test"}


async def test_ten_at_once_each_return_a_page_or_time_out_and_nothing_is_left() -> None:
    before = open_descriptors()
    async with Server(by_path({"/": answer(MADE)})).running() as server:
        tool = tool_for(Net(server.port).egress(), seconds=20)
        results = await asyncio.gather(*(tool(url="http://pub.test/") for _ in range(10)))
    for result in results:
        assert "made by script" in result.text or code(result) == "timed_out"
    assert leftovers() == []
    assert await descriptors_settle_at(before + 8)


@pytest.mark.parametrize("after_seconds", [0.0, 0.05, 0.3, 1.0])
async def test_cancelled_it_has_ended_the_browser_first(after_seconds: float) -> None:
    async with Server(by_path({"/": forever})).running() as server:
        call = asyncio.ensure_future(tool_for(Net(server.port).egress())(url="http://pub.test/"))
        await asyncio.sleep(after_seconds)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert leftovers() == []


OWNER = """
import asyncio
from toolkit_core.host.browser import ChromiumBrowser
from toolkit_core.host.egress import Egress

async def main():
    async def resolve(host): return ["93.184.216.34"]
    async def dial(address, port):
        print("dialled", flush=True)
        await asyncio.sleep(600)
    browser = ChromiumBrowser(egress=Egress(resolver=resolve, dial=dial), allow_root=True)
    await browser.render("http://pub.test/", wait_seconds=1, timeout_seconds=600, max_bytes=1000)

asyncio.run(main())
"""


async def test_when_its_owner_is_killed_the_browser_ends(folder: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(folder)}
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER, stdout=asyncio.subprocess.PIPE, env=environment
    )
    assert owner.stdout is not None
    assert await owner.stdout.readline() == b"dialled\n"
    assert any("user-data-dir" in line or ":" in line for line in leftovers()), "CONTROL: it runs"
    owner.send_signal(signal.SIGKILL)
    await owner.wait()
    async with asyncio.timeout(20):
        while any(": " in line for line in leftovers()):
            await asyncio.sleep(0.1)


async def test_as_root_it_needs_the_program_s_consent() -> None:
    require(os.geteuid() == 0, "only root meets this refusal")
    result = await browse_tool(ChromiumBrowser(egress=Egress()))(url="http://pub.test/")
    assert code(result) == "unavailable"
    assert "allow_root=True" in result.text
    assert "root" in result.text


async def test_a_long_temporary_folder_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chromium makes a socket below its profile, and a socket's path has 108 bytes at most."""
    deep = tmp_path / ("d" * 80)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    async with Server(by_path({"/": answer(MADE)})).running() as server:
        result = await tool_for(Net(server.port).egress())(url="http://pub.test/")
    assert "made by script" in result.text
    assert list(deep.iterdir()) == []
