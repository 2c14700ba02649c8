"""Local servers that misbehave as a test says, and a policy whose approved connections arrive there."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from toolkit_core.host.egress import Connection, Egress

PUBLIC = "93.184.216.34"

Respond = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """A server on loopback; `respond` gets the whole head of a request."""

    def __init__(self, respond: Respond, tls: ssl.SSLContext | None = None) -> None:
        self._respond, self._tls = respond, tls
        self.heads: list[bytes] = []
        self.port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def paths(self) -> list[str]:
        return [head.split(b" ")[1].decode("latin-1") for head in self.heads]

    def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                await self._respond(head, writer)
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[Server, None]:
        server = await asyncio.start_server(self.connect, "127.0.0.1", 0, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in list(self._tasks):
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)


def answer(
    body: bytes = b"", *, status: str = "200 OK", content_type: str | None = "text/html", headers: Sequence[str] = ()
) -> bytes:
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("utf-8") + body


def fixed(raw: bytes) -> Respond:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    return respond


def by_path(pages: Mapping[str, bytes | Respond]) -> Respond:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        page = pages.get(head.split(b" ")[1].decode("latin-1").partition("?")[0], answer(b"", status="404 Not Found"))
        if isinstance(page, bytes):
            writer.write(page)
        else:
            await page(head, writer)

    return respond


class Net:
    """A scripted resolver, and a dial beneath the check that leads approved addresses to a local server."""

    def __init__(self, port: int, answers: Mapping[str, Sequence[Sequence[str]]] | None = None) -> None:
        self.port = port
        self._answers = {host: list(rounds) for host, rounds in (answers or {}).items()}
        self.looked_up: list[str] = []
        self.dialled: list[tuple[str, int]] = []

    async def resolve(self, host: str) -> Sequence[str]:
        self.looked_up.append(host)
        rounds = self._answers.get(host)
        if rounds is None:
            return [PUBLIC]
        return rounds.pop(0) if len(rounds) > 1 else rounds[0]

    async def dial(self, address: str, port: int) -> Connection:
        self.dialled.append((address, port))
        return await asyncio.open_connection("127.0.0.1", self.port)

    def egress(
        self,
        *,
        allow_domains: Sequence[str] = (),
        block_domains: Sequence[str] = (),
        allow_private: Sequence[str] = (),
    ) -> Egress:
        return Egress(
            allow_domains=allow_domains,
            block_domains=block_domains,
            allow_private=allow_private,
            resolver=self.resolve,
            dial=self.dial,
        )


class PeakMemory:
    """How much the resident memory of this process grew at its peak inside `with` (proc_pid_clear_refs(5))."""

    grown_kib = 0

    def __enter__(self) -> PeakMemory:
        Path("/proc/self/clear_refs").write_text("5")
        self._before = self._field("VmRSS")
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.grown_kib = self._field("VmHWM") - self._before

    @staticmethod
    def _field(name: str) -> int:
        status = Path("/proc/self/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith(name + ":")).split()[1])


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def descriptors_settle_at(count: int) -> bool:
    """Whether the open descriptors come back to a number; transports close in a later turn of the loop."""
    for _ in range(100):
        if open_descriptors() <= count:
            return True
        await asyncio.sleep(0.02)
    return False
