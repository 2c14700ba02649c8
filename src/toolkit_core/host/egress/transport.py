"""HTTP over connections that the egress policy made: httpcore with a network backend of our own.

The backend gets the host name, so that Host, SNI and the certificate check stay those of the name, while the
connection goes to the address that was judged. A rewritten URL would key the pool by address, and a second
host would reuse the first one's TLS connection without a certificate check.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import certifi
import httpcore

from toolkit_core.cleanup import finish
from toolkit_core.errors import ToolError
from toolkit_core.limits import WEB_READ_BYTES

if TYPE_CHECKING:
    from toolkit_core.host.egress.policy import Connection, Egress
    from toolkit_core.host.egress.urls import Target

Headers = Sequence[tuple[str, str]]


def default_tls() -> ssl.SSLContext:
    """Certificates checked against certifi's roots and the system's, which hold a company's own."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_default_certs()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Stream(httpcore.AsyncNetworkStream):
    """An asyncio connection as httpcore reads and writes it. Timeouts are the caller's, over the whole call."""

    def __init__(self, connection: Connection) -> None:
        self._reader, self._writer = connection
        self._beneath: asyncio.StreamWriter | None = None

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The next bytes, b"" at the end."""
        try:
            return await self._reader.read(min(max_bytes, WEB_READ_BYTES))
        except OSError as e:
            raise httpcore.ReadError(_reason(e)) from e

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send all bytes."""
        try:
            self._writer.write(buffer)
            await self._writer.drain()
        except OSError as e:
            raise httpcore.WriteError(_reason(e)) from e

    async def aclose(self) -> None:
        """Close at once: nothing that the peer does can hold it up."""
        self._writer.transport.abort()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """TLS on this connection, the certificate checked for the name."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=WEB_READ_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport = await loop.start_tls(
                self._writer.transport, protocol, ssl_context, server_hostname=server_hostname
            )
        except ssl.SSLCertVerificationError as e:
            self._writer.transport.abort()
            raise ToolError(
                f"the certificate of {server_hostname} was not accepted: {e.verify_message}", code="network_error"
            ) from e
        except OSError as e:
            self._writer.transport.abort()
            raise httpcore.ConnectError(f"no TLS connection: {_reason(e)}") from e
        except BaseException:
            self._writer.transport.abort()
            raise
        if transport is None:
            raise httpcore.ConnectError("no TLS connection: the server closed it")
        protocol.connection_made(transport)
        self._beneath = self._writer  # collected, it would close the connection under TLS
        self._reader, self._writer = reader, asyncio.StreamWriter(transport, protocol, reader, loop)
        return self

    def get_extra_info(self, info: str) -> Any:
        """What httpcore asks about the connection; only the TLS object matters."""
        if info == "is_readable":
            return self._reader.at_eof()
        return self._writer.get_extra_info(info)


class PinnedBackend(httpcore.AsyncNetworkBackend):
    """Makes every connection through an egress policy."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Resolve, judge and connect."""
        return Stream(await self._egress.connect(host, port))

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Never: a Unix socket is no public host."""
        raise ToolError("Unix sockets are not reached", code="refused_url")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@asynccontextmanager
async def open_answer(
    egress: Egress,
    target: Target,
    tls: ssl.SSLContext,
    *,
    method: str = "GET",
    headers: Headers = (),
    body: bytes | None = None,
) -> AsyncGenerator[httpcore.Response, None]:
    """Send one request, on a connection of its own, and give the answer while its body can be read.

    No redirects, no cookies, no environment: what is sent is what is given. On leaving the connection is gone.

    Raises:
        ToolError: `refused_url`, `network_error` (with what the connection did).
    """
    pool = httpcore.AsyncConnectionPool(
        ssl_context=tls, network_backend=PinnedBackend(egress), max_connections=1, max_keepalive_connections=0
    )
    url = httpcore.URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
    try:
        with network_errors(target):
            answer = await pool.handle_async_request(
                httpcore.Request(method, url, headers=[("Host", target.authority), *headers], content=body)
            )
        yield answer
    finally:
        await finish(pool.aclose())


class network_errors:  # noqa: N801 - a context manager, read as a verb
    """Tells what a connection did in words of ours."""

    def __init__(self, target: Target) -> None:
        self._host = target.host

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, httpcore.ProtocolError):
            raise ToolError(
                f"the answer of {self._host} does not keep to HTTP: {error}", code="network_error", retryable=True
            ) from error
        if isinstance(error, httpcore.NetworkError | httpcore.TimeoutException | OSError):
            raise ToolError(
                f"the connection to {self._host} failed: {error or type(error).__name__}",
                code="network_error",
                hint="The server may be down; try again later.",
                retryable=True,
            ) from error


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or str(error)
    return error.strerror or str(error) or type(error).__name__
