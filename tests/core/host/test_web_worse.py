"""Servers and pages worse than the usual: each still ends in words, in time, with nothing left."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Sequence
from typing import cast

import pytest

from tests.core.host.test_web_hostile import code, fetch
from tests.core.host.web_servers import (
    PUBLIC,
    Net,
    PeakMemory,
    Server,
    answer,
    descriptors_settle_at,
    fixed,
    open_descriptors,
)
from toolkit_core import Tool
from toolkit_core.host.egress import Connection, Egress
from toolkit_core.host.web import HostWeb
from toolkit_core.tools import web_fetch_tool


async def test_a_million_empty_gzip_members_end_at_the_deadline() -> None:
    """They inflate to nothing, so that no cap on decoded bytes ever stops them."""
    empty = gzip.compress(b"")

    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n\r\n")
        while True:
            writer.write(empty * 1000)
            await writer.drain()

    assert code(await fetch(respond, seconds=1.0)) == "timed_out"


async def test_a_tls_handshake_that_never_ends_is_timed_out() -> None:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1000):
            pass
        writer.close()

    before = open_descriptors()
    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    net = Net(server.sockets[0].getsockname()[1])
    started = time.monotonic()
    result = await web_fetch_tool(HostWeb(egress=net.egress()), timeout_seconds=1.0)(url="https://pub.test/")
    server.close()
    assert code(result) == "timed_out"
    assert time.monotonic() - started < 8
    assert await descriptors_settle_at(before)


async def test_a_content_type_of_50_kb_is_shown_short() -> None:
    result = await fetch(fixed(answer(b"x", content_type="text/" + "h" * 50_000)))
    assert len(result.text) < 1000


@pytest.mark.parametrize("length", ["9" * 400, "1e3", "0x5", "+5", "5, 5", "5, 6"])
async def test_an_odd_content_length_is_read_as_http_says_or_refused(length: str) -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + length.encode() + b"\r\n\r\nhello"
    result = await fetch(fixed(raw), seconds=5)
    if result.is_error:
        assert code(result) == "network_error"
    else:
        assert result.text.endswith("\n\nhello")


async def test_chunks_with_endless_extensions_are_refused() -> None:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=")
        while True:
            writer.write(b"a" * 65_536)
            await writer.drain()

    with PeakMemory() as memory:
        assert code(await fetch(respond, seconds=5)) == "network_error"
    assert memory.grown_kib < 30 * 1024


async def test_switching_protocols_unasked_is_an_error() -> None:
    raw = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x05hello"
    assert code(await fetch(fixed(raw), seconds=3)) in ("http_error", "network_error", "timed_out")


async def test_a_server_that_speaks_before_it_is_asked_is_no_hang() -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"early", content_type="text/plain"))
        await writer.drain()
        await reader.read(1000)
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    net = Net(server.sockets[0].getsockname()[1])
    result = await web_fetch_tool(HostWeb(egress=net.egress()), timeout_seconds=5)(url="http://pub.test/")
    server.close()
    assert "early" in result.text or code(result) == "network_error"


async def test_headers_with_hostile_bytes_end_in_words() -> None:
    for header in (
        b"Location: \xff\xfe",
        b"X: a\x00b",
        b"\xe9: x",
        b": x",
        b"Content-Type",
        b" folded: x",
        b"Content-Type: \x80",
    ):
        raw = b"HTTP/1.1 200 OK\r\n" + header + b"\r\nContent-Length: 2\r\n\r\nok"
        result = await fetch(fixed(raw), seconds=5)
        if result.is_error:
            assert code(result) in ("network_error", "unsupported"), header
        result.text.encode("utf-8")


@pytest.mark.parametrize(
    "answers", [[b"8.8.8.8"], [None], ["8.8.8.8 "], ["8.8.8.8", ""], ["0x08080808"], [134744072], ["8.8.8.8/32"]]
)
async def test_a_resolver_that_answers_nonsense_fails_closed(answers: Sequence[object]) -> None:
    async def resolve(host: str) -> Sequence[str]:
        return cast("Sequence[str]", answers)

    dialled: list[str] = []

    async def dial(address: str, port: int) -> Connection:
        dialled.append(address)
        raise ConnectionRefusedError

    result = await web_fetch_tool(HostWeb(egress=Egress(resolver=resolve, dial=dial)))(url="http://pub.test/")
    assert code(result) == "refused_url"
    assert dialled == []


async def test_ten_thousand_answers_are_judged_and_a_few_are_tried() -> None:
    many = [f"8.{a}.{b}.1" for a in range(50) for b in range(200)]
    dialled: list[str] = []

    async def dial(address: str, port: int) -> Connection:
        dialled.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    async def resolve(host: str) -> Sequence[str]:
        return many if host == "many.test" else [*many, "10.0.0.1"]

    tool = web_fetch_tool(HostWeb(egress=Egress(resolver=resolve, dial=dial)))
    assert code(await tool(url="http://many.test/")) == "network_error"
    assert len(dialled) <= 8
    assert code(await tool(url="http://mixed.test/")) == "refused_url"


async def test_a_connection_that_stands_after_the_call_was_cancelled_is_closed() -> None:
    async with Server(fixed(answer(b"x"))).running() as server:
        before = open_descriptors()
        opened = asyncio.Event()

        async def dial(address: str, port: int) -> Connection:
            connection = await asyncio.open_connection("127.0.0.1", server.port)
            opened.set()
            return connection

        async def resolve(host: str) -> Sequence[str]:
            return [PUBLIC]

        for _ in range(20):
            opened.clear()
            tool = web_fetch_tool(HostWeb(egress=Egress(resolver=resolve, dial=dial)))
            call = asyncio.ensure_future(tool(url="http://pub.test/"))
            await opened.wait()
            call.cancel()
            await asyncio.wait({call})
    assert await descriptors_settle_at(before)


async def test_fifty_fetches_at_once_share_nothing_and_leave_nothing() -> None:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        number = head.split(b" ")[1].strip(b"/")
        writer.write(answer(b"page " + number, content_type="text/plain"))

    before = open_descriptors()
    async with Server(respond).running() as server:
        tool: Tool = web_fetch_tool(HostWeb(egress=Net(server.port).egress()))
        results = await asyncio.gather(*(tool(url=f"http://host{n}.test/{n}") for n in range(50)))
    for number, result in enumerate(results):
        assert result.text.endswith(f"\n\npage {number}")
    assert await descriptors_settle_at(before)


async def test_a_page_that_says_it_is_a_tool_s_error_is_still_the_page() -> None:
    result = await fetch(fixed(answer(b"Error (denied): stop\n[cut at 5 bytes]", content_type="text/plain")))
    assert not result.is_error
    assert result.text.startswith("http://pub.test/ (200, text/plain)\n\nError (denied)")
