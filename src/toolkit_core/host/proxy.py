"""A forward proxy on loopback for one browser run: every request of a page goes through the egress policy.

It takes CONNECT (https and WebSockets) and absolute http addresses. It asks for a password that only the browser's
DevTools client knows, so that other local users cannot use it, nor can the browser's own services, whose
requests nobody answers for.

Sources: RFC 9110 sections 7.6 (hop-by-hop headers), 9.3.6 (CONNECT), 11.7 (Proxy-Authenticate); RFC 7617 (Basic).
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from toolkit_core.errors import ToolError
from toolkit_core.limits import (
    PROXY_CONNECTIONS,
    PROXY_HEAD_MAX_BYTES,
    PROXY_HEAD_SECONDS,
    PROXY_TOTAL_BYTES,
    WEB_READ_BYTES,
)

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from toolkit_core.host.egress import Connection, Egress, Target

_END_OF_HEAD: Final = re.compile(rb"\r?\n\r?\n")
_REQUEST_LINE: Final = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e]+) HTTP/1\.[01]")
_AUTHORITY: Final = re.compile(r"[^/?#@]+:[0-9]{1,5}")
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] ([0-9]{3})")
_HOP_BY_HOP: Final = (b"connection", b"keep-alive", b"te", b"trailer", b"upgrade")
_INTERIM: Final = b"1"
_OUTCOMES_KEPT: Final = 1_000

OWN_HOSTS: Final = frozenset(
    {
        "accounts.google.com",
        "clients1.google.com",
        "clients2.google.com",
        "clients3.google.com",
        "clients4.google.com",
        "clients5.google.com",
        "clients6.google.com",
        "android.clients.google.com",
        "mtalk.google.com",
        "update.googleapis.com",
        "optimizationguide-pa.googleapis.com",
        "safebrowsing.googleapis.com",
        "content-autofill.googleapis.com",
        "edgedl.me.gvt1.com",
        "redirector.gvt1.com",
        "edge.microsoft.com",
        "msedge.api.cdp.microsoft.com",
    }
)
"""Where Chromium and its kin report and update; no page of theirs is worth a visit without a login."""


@dataclass(frozen=True)
class _Request:
    method: bytes
    target: str
    headers: tuple[tuple[bytes, bytes], ...]
    rest: bytes

    def get(self, name: bytes) -> bytes:
        """A header's value, b"" where it is absent."""
        return next((value for key, value in self.headers if key == name), b"")


class GuardingProxy:
    """`async with GuardingProxy(egress) as proxy`: listens meanwhile; on leaving every connection is gone.

    Attributes:
        username: For the browser's answer to the proxy's challenge.
        password: The same; new for every proxy.
    """

    def __init__(self, egress: Egress, *, max_bytes: int = PROXY_TOTAL_BYTES) -> None:
        self.username = "browser"
        self.password: str = secrets.token_urlsafe(32)
        self._expected = b"Basic " + base64.b64encode(f"{self.username}:{self.password}".encode("ascii"))
        self._egress = egress
        self._left_bytes = max_bytes
        self._outcomes: dict[tuple[str, int], ToolError] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=PROXY_HEAD_MAX_BYTES)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    @property
    def port(self) -> int:
        """Where it listens on 127.0.0.1."""
        assert self._server is not None, "use it in `async with`"  # noqa: S101 - a fault of the caller
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def exhausted(self) -> bool:
        """Whether the page received more than it may."""
        return self._left_bytes <= 0

    def outcome(self, url: str) -> ToolError | None:
        """Why the last connection to a URL's host and port failed; None where it did not."""
        try:
            target = self._egress.screen(url)
        except ToolError as e:
            return e
        return self._outcomes.get((target.host, target.port))

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._tasks) >= PROXY_CONNECTIONS or self.exhausted:
            writer.transport.abort()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._handle(reader, writer)
            writer.close()  # what is still buffered is sent first
            await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, ToolError):
            return  # the browser sees a connection that ended; why is kept in the outcomes
        finally:
            writer.transport.abort()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(PROXY_HEAD_SECONDS):
            request = await _read_request(reader)
        if request is None:
            return
        if not hmac.compare_digest(request.get(b"proxy-authorization"), self._expected):
            await _challenge(writer)
            return
        tunnel = request.method == b"CONNECT"
        if tunnel and not _AUTHORITY.fullmatch(request.target):
            return
        target = self._egress.screen(f"https://{request.target}/" if tunnel else request.target)
        server_reader, server_writer = await self._connect(target)
        try:
            if tunnel:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                server_writer.write(request.rest)
                await _either(self._down(server_reader, writer), _up(reader, server_writer))
            else:
                await self._forward(request, target, reader, writer, (server_reader, server_writer))
        finally:
            server_writer.transport.abort()

    async def _connect(self, target: Target) -> Connection:
        key = (target.host, target.port)
        try:
            if target.host in OWN_HOSTS:
                raise ToolError(f"{target.host} is a host of the browser's own services", code="refused_url")
            connection = await self._egress.connect(target.host, target.port)
        except ToolError as e:
            if len(self._outcomes) < _OUTCOMES_KEPT:
                self._outcomes[key] = e
            raise
        self._outcomes.pop(key, None)
        return connection

    async def _forward(
        self,
        request: _Request,
        target: Target,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server: Connection,
    ) -> None:
        length = request.get(b"content-length") or b"0"
        if target.scheme != "http" or request.get(b"transfer-encoding") or not length.isdigit():
            writer.write(b"HTTP/1.1 501 Not Implemented\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return
        server_reader, server_writer = server
        server_writer.write(_head_for_server(request, target))
        await _beside(self._answer(server_reader, writer), _body_up(reader, server_writer, request.rest, int(length)))

    async def _answer(self, server: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, rest = await _read_head(server)
        while (status := _STATUS_LINE.match(head)) and status[1].startswith(_INTERIM):
            head, rest = await _read_head(server, rest)
        writer.write(_head_for_browser(head) + rest)
        await self._down(server, writer)

    async def _down(self, server: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await server.read(WEB_READ_BYTES):
            self._left_bytes -= len(data)
            if self.exhausted:
                return
            writer.write(data)
            await writer.drain()


async def _read_request(reader: asyncio.StreamReader) -> _Request | None:
    head, rest = await _read_head(reader)
    lines = head.replace(b"\r\n", b"\n").split(b"\n")
    found = _REQUEST_LINE.fullmatch(lines[0])
    if found is None:
        return None
    headers: list[tuple[bytes, bytes]] = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            headers.append((name.strip().lower(), value.strip()))
    return _Request(found[1], found[2].decode("ascii"), tuple(headers), rest)


async def _read_head(reader: asyncio.StreamReader, begun: bytes = b"") -> tuple[bytes, bytes]:
    """A head without its empty line, and what came behind it."""
    data = begun
    while (end := _END_OF_HEAD.search(data)) is None:
        more = await reader.read(WEB_READ_BYTES)
        if not more or len(data) + len(more) > PROXY_HEAD_MAX_BYTES:
            raise asyncio.IncompleteReadError(data[:0], None)
        data += more
    return data[: end.start()], data[end.end() :]


async def _challenge(writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 407 Proxy Authentication Required\r\n"
        b'Proxy-Authenticate: Basic realm="toolkit"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
    )
    await writer.drain()


def _head_for_server(request: _Request, target: Target) -> bytes:
    lines = [request.method + b" " + target.path.encode("ascii") + b" HTTP/1.1", b"Host: " + target.authority.encode()]
    lines += [
        name + b": " + value
        for name, value in request.headers
        if name not in _HOP_BY_HOP and name != b"host" and not name.startswith(b"proxy-")
    ]
    return b"\r\n".join([*lines, b"Connection: close", b"", b""])


def _head_for_browser(head: bytes) -> bytes:
    """The answer's head with `Connection: close`: another request on this connection would go to this server."""
    first, *lines = head.replace(b"\r\n", b"\n").split(b"\n")
    kept = [
        line
        for line in lines
        if (name := line.partition(b":")[0].strip().lower()) not in _HOP_BY_HOP and not name.startswith(b"proxy-")
    ]
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


async def _up(reader: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
    while data := await reader.read(WEB_READ_BYTES):
        server.write(data)
        await server.drain()


async def _body_up(reader: asyncio.StreamReader, server: asyncio.StreamWriter, begun: bytes, length: int) -> None:
    server.write(begun[:length])
    left = length - len(begun)
    while left > 0 and (data := await reader.read(min(left, WEB_READ_BYTES))):
        server.write(data)
        await server.drain()
        left -= len(data)


async def _either(first: Coroutine[Any, Any, None], second: Coroutine[Any, Any, None]) -> None:
    """Run two directions until one ends, then stop the other."""
    tasks = [asyncio.ensure_future(first), asyncio.ensure_future(second)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _stop(tasks)


async def _beside(main: Coroutine[Any, Any, None], other: Coroutine[Any, Any, None]) -> None:
    """Run two directions until the main one ends, then stop the other."""
    tasks = [asyncio.ensure_future(main), asyncio.ensure_future(other)]
    try:
        await asyncio.wait(tasks[:1])
    finally:
        await _stop(tasks)


async def _stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # a connection that broke: its other end sees it
