"""Servers that drip, break off, lie and inflate: each call ends in time, with the right code and nothing left."""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib
from collections.abc import Callable

import pytest

from tests.core.host.web_servers import (
    Net,
    PeakMemory,
    Respond,
    Server,
    answer,
    by_path,
    descriptors_settle_at,
    fixed,
    open_descriptors,
)
from toolkit_core import ToolResult
from toolkit_core.host.egress import Egress
from toolkit_core.host.web import HostWeb
from toolkit_core.limits import WEB_BODY_MAX_BYTES
from toolkit_core.tools import web_fetch_tool

MIB = 1024 * 1024


async def fetch(respond: Respond, *, seconds: float = 15, path: str = "/", raw: bool = False) -> ToolResult:
    """One fetch; afterwards no descriptor is left."""
    await asyncio.to_thread(lambda: None)  # the executor's thread exists before we count
    before = open_descriptors()
    async with Server(respond).running() as server:
        tool = web_fetch_tool(HostWeb(egress=Net(server.port).egress()), timeout_seconds=seconds)
        started = time.monotonic()
        result = await tool(url=f"http://pub.test{path}", raw=raw)
        assert time.monotonic() - started < seconds + 10
    assert await descriptors_settle_at(before)
    return result


def code(result: ToolResult) -> str:
    assert result.error is not None, result.text[:300]
    return result.error.code


def dripping(head: bytes, *, until: int = 10_000) -> Respond:
    async def respond(_: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        for _n in range(until):
            writer.write(b"a")
            await writer.drain()
            await asyncio.sleep(0.05)

    return respond


@pytest.mark.parametrize(
    ("what", "head"),
    [
        ("status line", b"HTTP/1."),
        ("headers", b"HTTP/1.1 200 OK\r\nX-Long: "),
        ("body", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"),
        ("body of a promised length", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99999\r\n\r\n"),
    ],
)
async def test_a_drip_ends_at_the_deadline_of_the_whole_call(what: str, head: bytes) -> None:
    started = time.monotonic()
    result = await fetch(dripping(head), seconds=1.0)
    assert code(result) == "timed_out", what
    assert time.monotonic() - started < 5
    assert result.error is not None
    assert result.error.retryable


async def test_a_server_that_never_answers_times_out() -> None:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    assert code(await fetch(respond, seconds=0.5)) == "timed_out"


async def test_redirects_that_are_each_slow_share_one_deadline() -> None:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.4)
        writer.write(answer(status="302 Found", headers=["Location: /x"]))

    started = time.monotonic()
    assert code(await fetch(respond, seconds=1.2)) == "timed_out"
    assert time.monotonic() - started < 6


async def test_a_resolver_that_hangs_times_out() -> None:
    async def hang(host: str) -> list[str]:
        await asyncio.sleep(60)
        return []

    result = await web_fetch_tool(HostWeb(egress=Egress(resolver=hang)), timeout_seconds=0.3)(url="http://pub.test/")
    assert code(result) == "timed_out"


async def test_a_dial_that_hangs_times_out() -> None:
    net = Net(0)

    async def hang(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        await asyncio.sleep(60)
        raise AssertionError

    egress = Egress(resolver=net.resolve, dial=hang)
    result = await web_fetch_tool(HostWeb(egress=egress), timeout_seconds=0.3)(url="http://pub.test/")
    assert code(result) == "timed_out"


def resetting(after: bytes) -> Respond:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(after)
        await writer.drain()
        await asyncio.sleep(0.05)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(1, 13, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # SO_LINGER 0: close sends a reset
        writer.transport.abort()

    return respond


@pytest.mark.parametrize(
    "after",
    [
        b"",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\nContent-",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    ],
)
async def test_a_reset_at_any_stage_is_a_network_error(after: bytes) -> None:
    result = await fetch(resetting(after))
    assert code(result) == "network_error"
    assert "pub.test" in result.text


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 999999 OK\r\n\r\n",
        b"\x16\x03\x01\x02\x00 not http",
        b"",
    ],
)
async def test_an_answer_that_lies_about_its_length_or_is_no_http_is_a_network_error(raw: bytes) -> None:
    assert code(await fetch(fixed(raw))) == "network_error"


async def test_a_length_shorter_than_the_body_ends_the_body() -> None:
    result = await fetch(
        fixed(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello, and more")
    )
    assert not result.is_error
    assert result.text.endswith("\n\nhello")


async def test_a_refused_connection_is_a_network_error() -> None:
    async with Server(fixed(b"")).running() as server:
        port = server.port
    result = await web_fetch_tool(HostWeb(egress=Net(port).egress()))(url="http://pub.test/")
    assert code(result) == "network_error"
    assert result.error is not None
    assert result.error.retryable


async def test_a_name_that_does_not_resolve_is_a_network_error() -> None:
    async def unknown(host: str) -> list[str]:
        raise OSError(-2, "Name or service not known")

    result = await web_fetch_tool(HostWeb(egress=Egress(resolver=unknown)))(url="http://nowhere.test/")
    assert code(result) == "network_error"
    assert "nowhere.test" in result.text


def _deflate(data: bytes, window: int) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, window)
    return compressor.compress(data) + compressor.flush()


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip": ("gzip", lambda: gzip.compress(b"a" * 100 * MIB)),
    "zlib deflate": ("deflate", lambda: _deflate(b"a" * 100 * MIB, 15)),
    "raw deflate": ("deflate", lambda: _deflate(b"a" * 100 * MIB, -15)),
    "gzip members": ("x-gzip", lambda: gzip.compress(b"a" * MIB) * 100),
}


@pytest.mark.parametrize("name", BOMBS)
async def test_a_bomb_stops_at_the_cap_in_bounded_memory(name: str) -> None:
    coding, make = BOMBS[name]
    body = make()
    assert len(body) < MIB, "CONTROL: a small body that inflates to 100 MiB"
    raw = answer(body, content_type="text/plain", headers=[f"Content-Encoding: {coding}"])
    with PeakMemory() as memory:
        result = await fetch(fixed(raw))
    assert not result.is_error
    assert f"cut at {WEB_BODY_MAX_BYTES:,} bytes" in result.text
    assert memory.grown_kib < 60 * 1024


async def test_an_endless_body_stops_at_the_cap() -> None:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    with PeakMemory() as memory:
        result = await fetch(respond)
    assert not result.is_error
    assert "cut at" in result.text
    assert memory.grown_kib < 60 * 1024


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "compress", "gzip, br"])
async def test_a_coding_that_was_not_asked_for_is_unsupported(coding: str) -> None:
    raw = answer(b"\x00\x01", content_type="text/html", headers=[f"Content-Encoding: {coding}"])
    async with Server(fixed(raw)).running() as server:
        result = await web_fetch_tool(HostWeb(egress=Net(server.port).egress()))(url="http://pub.test/")
    assert code(result) == "unsupported"
    asked = next(line for line in server.heads[0].split(b"\r\n") if line.lower().startswith(b"accept-encoding"))
    assert asked.lower() == b"accept-encoding: gzip, deflate"


@pytest.mark.parametrize("cut", [1, 5, 15, -1, -8])
async def test_a_gzip_body_that_ends_early_or_is_broken_is_no_success(cut: int) -> None:
    whole = gzip.compress(b"hello " * 1000)
    raw = answer(whole[:cut], content_type="text/plain", headers=["Content-Encoding: gzip"])
    assert code(await fetch(fixed(raw))) == "network_error"


async def test_gzip_members_in_a_row_with_padding_are_read_whole() -> None:
    body = gzip.compress(b"one ") + gzip.compress(b"two ") + gzip.compress(b"three") + b"\0" * 512

    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        raw = answer(body, content_type="text/plain", headers=["Content-Encoding: gzip"])
        for at in range(0, len(raw), 7):
            writer.write(raw[at : at + 7])
            await writer.drain()
            await asyncio.sleep(0)

    assert (await fetch(respond)).text.endswith("one two three")


async def test_20_mb_of_headers_are_refused_in_bounded_memory() -> None:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for n in range(20 * 1024):
            writer.write(b"X-%d: " % n + b"y" * 1000 + b"\r\n")
            await writer.drain()

    with PeakMemory() as memory:
        assert code(await fetch(respond)) == "network_error"
    assert memory.grown_kib < 30 * 1024


async def test_an_endless_row_of_interim_answers_times_out() -> None:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)
            await writer.drain()

    assert code(await fetch(respond, seconds=1.0)) == "timed_out"


async def test_ten_redirects_are_followed_and_an_eleventh_is_not() -> None:
    def chain(length: int) -> Respond:
        async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
            at = int(head.split(b" ")[1].strip(b"/") or b"0")
            done = at == length
            writer.write(answer(b"arrived") if done else answer(status="302 Found", headers=[f"Location: /{at + 1}"]))

        return respond

    assert "arrived" in (await fetch(chain(10))).text
    result = await fetch(chain(11))
    assert code(result) == "http_error"
    assert "10 redirects" in result.text


async def test_a_redirect_to_itself_ends() -> None:
    result = await fetch(by_path({"/": answer(status="307 Temporary Redirect", headers=["Location: /"])}))
    assert code(result) == "http_error"


@pytest.mark.parametrize(
    "location", ["http://[", "http://a:b@c/", "\x80\xff", "http://exa mple/", "//", ":", "http://pub.test:99999/"]
)
async def test_a_malformed_location_is_no_traceback(location: str) -> None:
    raw = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: " + location.encode("latin-1") + b"\r\n\r\n"
    result = await fetch(fixed(raw))
    assert code(result) in ("refused_url", "http_error", "network_error")


@pytest.mark.parametrize(
    "charset",
    [
        "idna",
        "base64",
        "zlib",
        "rot13",
        "hex",
        "unicode_escape",
        "utf-7",
        "punycode",
        "undefined",
        "mbcs",
        "../../x",
        "\x00",
        "a" * 9000,
        '"',
        "raw_unicode_escape",
        "uu",
        "bz2",
    ],
)
async def test_a_hostile_charset_is_read_as_something_else(charset: str) -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nContent-Type: text/plain; charset="
    result = await fetch(fixed(raw + charset.replace("\x00", "%00").encode("latin-1") + b"\r\n\r\nh\xc3\xa9llo"))
    assert not result.is_error, result.text
    assert result.text.endswith("héllo")


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("attributes", b"<p " + b" ".join(b"a%d=1" % n for n in range(100_000)) + b">inner text"),
        ("nested", b"<div>" * 100_000 + b"inner text"),
        ("nested and closed", b"<span>" * 100_000 + b"inner text" + b"</span>" * 100_000),
        ("separators", b"<p>inner text" + b"/" * 100_000),
        ("opening brackets", b"inner text" + b"<" * 100_000),
        ("unclosed scripts", b"inner text" + b"<script" * 100_000),
        ("comments", b"inner text" + b"<!--" * 100_000),
    ],
)
async def test_hostile_html_ends_in_time(name: str, page: bytes) -> None:
    started = time.monotonic()
    result = await fetch(fixed(answer(page)), seconds=20)
    assert not result.is_error, (name, result.text[:200])
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("wide table", b"<table><tr>" + b"<td>x" * 400_000 + b"<tr><td>y" * 200_000),
        ("long base", b"<base href='/" + b"a" * 2_000_000 + b"/'>" + b"<a href=x>y</a>" * 100_000),
    ],
)
async def test_html_that_would_fill_memory_is_refused_or_cut(name: str, page: bytes) -> None:
    with PeakMemory() as memory:
        result = await fetch(fixed(answer(page)), seconds=4)
    assert memory.grown_kib < 150 * 1024, name
    assert len(result.text) < 60_000
    if result.is_error:
        assert code(result) in ("too_large", "timed_out")


async def test_the_event_loop_goes_on_while_a_page_is_read() -> None:
    page = b"<title>t</title>" + b"<p>some text <a href=x>link</a> and more text</p>\n" * 20_000
    chunks = b"".join(b"1\r\nx\r\n" for _ in range(30_000))

    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        if b"/chunks" in head:
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
                + chunks
                + b"0\r\n\r\n"
            )
        else:
            writer.write(answer(page))

    async with Server(respond).running() as server:
        tool = web_fetch_tool(HostWeb(egress=Net(server.port).egress()))
        await tool(url="http://pub.test/")
        gaps: list[float] = []

        async def beat() -> None:
            last = time.thread_time()
            while True:
                await asyncio.sleep(0.001)
                gaps.append(time.thread_time() - last)
                last = time.thread_time()

        heart = asyncio.ensure_future(beat())
        for path in ("/", "/chunks"):
            result = await tool(url=f"http://pub.test{path}")
            assert not result.is_error
        heart.cancel()
    assert max(gaps) < 0.5, "the processor time of one turn, whatever else the machine does"


async def test_cancelling_closes_the_connection_first() -> None:
    arrived = asyncio.Event()
    closed = asyncio.Event()

    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        try:
            while True:
                writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n")
                await writer.drain()
                await asyncio.sleep(0.01)
        except OSError:
            closed.set()
            raise

    async with Server(respond).running() as server:
        tool = web_fetch_tool(HostWeb(egress=Net(server.port).egress()))
        before = open_descriptors()
        call = asyncio.ensure_future(tool(url="http://pub.test/"))
        await arrived.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(5):
            await closed.wait()
        assert await descriptors_settle_at(before)
