"""The browser's proxy: who may use it, what it judges, what it passes on."""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress

import pytest

from tests.core.host.web_servers import (
    Net,
    Respond,
    Server,
    answer,
    by_path,
    descriptors_settle_at,
    fixed,
    open_descriptors,
)
from toolkit_core.host.proxy import OWN_HOSTS, GuardingProxy


def password(proxy: GuardingProxy) -> bytes:
    token = base64.b64encode(f"{proxy.username}:{proxy.password}".encode())
    return b"Proxy-Authorization: Basic " + token + b"\r\n"


async def ask(proxy: GuardingProxy, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(request)
    async with asyncio.timeout(10):
        received = b""
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                received += data
    writer.close()
    return received


async def test_without_its_password_nobody_is_served() -> None:
    async with Server(fixed(answer(b"page"))).running() as server:
        net = Net(server.port)
        async with GuardingProxy(net.egress()) as proxy:
            wrong = b"Proxy-Authorization: Basic " + base64.b64encode(b"browser:guess") + b"\r\n"
            for head in (b"", wrong, b"Proxy-Authorization: \r\n", b"Proxy-Authorization: Basic \xff\r\n"):
                for line in (b"GET http://pub.test/ HTTP/1.1\r\n", b"CONNECT pub.test:443 HTTP/1.1\r\n"):
                    got = await ask(proxy, line + b"Host: pub.test\r\n" + head + b"\r\n")
                    assert got.startswith(b"HTTP/1.1 407 ")
            good = await ask(proxy, b"GET http://pub.test/ HTTP/1.1\r\n" + password(proxy) + b"\r\n")
    assert good.endswith(b"page")
    assert len(net.dialled) == 1
    assert b"Proxy-Authorization" not in server.heads[0]


async def test_it_listens_on_loopback_alone_and_its_password_is_new_every_time() -> None:
    async with GuardingProxy(Net(1).egress()) as one, GuardingProxy(Net(1).egress()) as two:
        assert one.password != two.password
        assert len(one.password) > 30
        assert one.password not in repr(one)
        for address in ("127.0.0.2", "::1"):
            with pytest.raises(OSError):  # noqa: PT011 - whatever the system says
                await asyncio.open_connection(address, one.port)


@pytest.mark.parametrize(
    "line",
    [
        b"CONNECT 127.0.0.1:443 HTTP/1.1",
        b"CONNECT [::1]:443 HTTP/1.1",
        b"CONNECT localhost:443 HTTP/1.1",
        b"CONNECT 2130706433:443 HTTP/1.1",
        b"CONNECT private.test:443 HTTP/1.1",
        b"CONNECT mixed.test:443 HTTP/1.1",
        b"CONNECT pub.test:22 HTTP/1.1",
        b"CONNECT pub.test@127.0.0.1:443 HTTP/1.1",
        b"CONNECT pub.test/:443 HTTP/1.1",
        b"GET http://127.0.0.1/ HTTP/1.1",
        b"GET http://private.test/ HTTP/1.1",
        b"GET http://169.254.169.254/latest HTTP/1.1",
        b"GET file:///etc/passwd HTTP/1.1",
        b"GET /relative HTTP/1.1",
        b"GET https://pub.test/ HTTP/1.1",
        b"GET http://user@pub.test/ HTTP/1.1",
        b"nonsense",
        b"\xff\xfe\x00",
        b"",
    ],
)
async def test_what_is_not_public_is_not_connected_to(line: bytes) -> None:
    async with Server(fixed(answer(b"secret"))).running() as server:
        net = Net(server.port, {"private.test": [["10.0.0.1"]], "mixed.test": [["8.8.8.8", "127.0.0.1"]]})
        async with GuardingProxy(net.egress()) as proxy:
            got = await ask(proxy, line + b"\r\n" + password(proxy) + b"\r\n")
    assert b"secret" not in got
    assert server.heads == []


@pytest.mark.parametrize("host", sorted(OWN_HOSTS))
async def test_the_browser_s_own_hosts_are_refused(host: str) -> None:
    async with Server(fixed(answer(b"update"))).running() as server:
        net = Net(server.port)
        async with GuardingProxy(net.egress()) as proxy:
            assert await ask(proxy, f"CONNECT {host}:443 HTTP/1.1\r\n".encode() + password(proxy) + b"\r\n") == b""
    assert net.dialled == []


async def test_an_answer_closes_its_connection_so_that_the_next_request_is_judged_anew() -> None:
    raw = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=9\r\nContent-Length: 2\r\n\r\nok"

    async def stays_open(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + raw)
        await writer.drain()
        await asyncio.sleep(0.3)

    async with Server(stays_open).running() as server:
        net = Net(server.port)
        async with GuardingProxy(net.egress()) as proxy:
            first = b"GET http://pub.test/ HTTP/1.1\r\nConnection: keep-alive\r\n" + password(proxy) + b"\r\n"
            got = await ask(proxy, first + b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"Connection: close" in got
    assert b"eep-" not in got
    assert got.endswith(b"\r\n\r\nok")
    assert len(server.heads) == 1
    assert b"127.0.0.1" not in server.heads[0]
    assert b"Connection: close" in server.heads[0]


async def test_a_body_is_passed_on_to_its_length_and_not_beyond() -> None:
    got: list[bytes] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        got.append(await reader.read(100))
        await asyncio.sleep(0.1)
        writer.write(answer(b"thanks"))
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with GuardingProxy(Net(server.sockets[0].getsockname()[1]).egress()) as proxy:
        head = b"POST http://pub.test/ HTTP/1.1\r\nContent-Length: 5\r\n" + password(proxy) + b"\r\n"
        assert (await ask(proxy, head + b"helloGET http://127.0.0.1/ HTTP/1.1\r\n\r\n")).endswith(b"thanks")
        chunked = b"POST http://pub.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + password(proxy) + b"\r\n"
        assert b"501" in await ask(proxy, chunked + b"0\r\n\r\n")
    server.close()
    assert got[0] == b"hello"


async def test_a_tunnel_carries_both_ways_and_the_end_of_a_large_answer_arrives() -> None:
    whole = b"x" * 3_000_000

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got = await reader.readexactly(5)
        writer.write(got + whole)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with GuardingProxy(Net(server.sockets[0].getsockname()[1]).egress()) as proxy:
        got = await ask(proxy, b"CONNECT pub.test:443 HTTP/1.1\r\n" + password(proxy) + b"\r\nhello")
    server.close()
    assert got == b"HTTP/1.1 200 Connection established\r\n\r\nhello" + whole


async def test_what_a_page_receives_is_bounded() -> None:
    async def endless(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async with (
        Server(endless).running() as server,
        GuardingProxy(Net(server.port).egress(), max_bytes=1_000_000) as proxy,
    ):
        got = await ask(proxy, b"GET http://pub.test/ HTTP/1.1\r\n" + password(proxy) + b"\r\n")
        assert proxy.exhausted
        assert await ask(proxy, b"GET http://pub.test/ HTTP/1.1\r\n" + password(proxy) + b"\r\n") == b""
    assert len(got) < 1_100_000


async def test_why_a_connection_failed_is_told_and_forgotten_when_it_works_again() -> None:
    async with Server(by_path({"/": answer(b"page")})).running() as server:
        net = Net(server.port, {"turns.test": [["10.0.0.1"], ["8.8.8.8"]]})
        async with GuardingProxy(net.egress()) as proxy:
            request = b"GET http://turns.test/ HTTP/1.1\r\n" + password(proxy) + b"\r\n"
            await ask(proxy, request)
            outcome = proxy.outcome("http://turns.test/")
            assert outcome is not None
            assert outcome.code == "refused_url"
            await ask(proxy, request)
            assert proxy.outcome("http://turns.test/") is None


async def test_leaving_it_closes_every_connection() -> None:
    async def silent(head: bytes, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    serving: Respond = silent
    before = open_descriptors()
    async with Server(serving).running() as server:
        async with GuardingProxy(Net(server.port).egress()) as proxy:
            request = b"GET http://pub.test/ HTTP/1.1\r\n" + password(proxy) + b"\r\n"
            opened = [await asyncio.open_connection("127.0.0.1", proxy.port) for _ in range(20)]
            for number, (_, writer) in enumerate(opened):
                writer.write(request if number % 2 else request[:20])
            await asyncio.sleep(0.2)
        for reader, writer in opened:
            async with asyncio.timeout(5):
                with suppress(ConnectionError):
                    assert await reader.read() == b""
            writer.close()
    assert await descriptors_settle_at(before)
