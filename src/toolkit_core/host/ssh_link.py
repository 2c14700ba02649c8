"""Connections to one SSH host: made when needed, shared, replaced when they are lost."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import asyncssh

from toolkit_core.errors import ToolError
from toolkit_core.limits import (
    SSH_CONNECT_ATTEMPTS,
    SSH_CONNECT_SECONDS,
    SSH_CONNECTIONS_MAX,
    SSH_KEEPALIVE_SECONDS,
    SSH_SESSIONS_PER_CONNECTION,
)

if TYPE_CHECKING:
    from asyncssh import SFTPClient, SSHClientChannel, SSHClientConnection

    from toolkit_core.host.keeper_run import KeeperRun


class Session(asyncssh.SSHClientSession[bytes]):
    """Hands what a channel brings to a keeper's run."""

    def __init__(self, run: KeeperRun) -> None:
        self._run = run

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """More of a stream."""
        if datatype is None:
            self._run.feed_stdout(data)
        else:
            self._run.feed_stderr(data)

    def exit_status_received(self, status: int) -> None:
        """The keeper has ended."""
        self._run.exit_status = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        """The keeper was killed."""
        self._run.exit_signal = signal

    def connection_lost(self, exc: Exception | None) -> None:
        """The channel has ended."""
        self._run.close()


@dataclass
class Line:
    """One connection and how many work on it."""

    connection: SSHClientConnection
    users: int = 0
    sftp: asyncio.Task[SFTPClient] | None = None

    @property
    def usable(self) -> bool:
        """Whether it is open."""
        return not self.connection.is_closed()

    async def start(self, run: KeeperRun, words: str) -> SSHClientChannel[bytes]:
        """Start a command line on a channel of its own. Raises asyncssh's errors and OSError."""
        # The package's own types leave the encoding open, which decides between bytes and str.
        connection = cast("Any", self.connection)
        channel, _ = await connection.create_session(lambda: Session(run), words, encoding=None)
        return cast("SSHClientChannel[bytes]", channel)

    async def files(self) -> SFTPClient:
        """Its file transfer session, one for all."""
        if self.sftp is None or (self.sftp.done() and (self.sftp.cancelled() or self.sftp.exception() is not None)):
            self.sftp = asyncio.ensure_future(self.connection.start_sftp_client())
        return await asyncio.shield(self.sftp)


class Link:
    """A few connections; everything here runs on one loop.

    Args:
        host: Name or address.
        options: For `asyncssh.connect`.
        max_connections: At most so many at once.
    """

    def __init__(self, host: str, options: Mapping[str, Any], *, max_connections: int = SSH_CONNECTIONS_MAX) -> None:
        self._host, self._options, self._max = host, dict(options), max_connections
        self._lines: list[Line] = []
        self._changed: asyncio.Condition | None = None
        self._process = 0

    @asynccontextmanager
    async def line(self) -> AsyncGenerator[Line]:
        """A connection with room for one more session, for the time of the `async with`.

        Raises:
            ToolError: `unavailable`: no connection, or the host is not the known one.
        """
        changed = self._condition()
        async with changed:
            line = self._free()
            while line is None:
                if len(self._lines) < self._max:
                    line = Line(await self._connected())
                    self._lines.append(line)
                else:
                    await changed.wait()
                    line = self._free()
            line.users += 1
        try:
            yield line
        finally:
            line.users -= 1
            async with changed:
                changed.notify()

    async def aclose(self) -> None:
        """Close all connections: what runs on them ends there."""
        lines, self._lines = self._lines, []
        for line in lines:
            line.connection.close()
        for line in lines:
            try:
                async with asyncio.timeout(2.0):
                    await line.connection.wait_closed()
            except TimeoutError:
                line.connection.abort()

    def _condition(self) -> asyncio.Condition:
        if self._changed is None or self._process != os.getpid():
            # After a fork the connections are the parent's.
            self._lines, self._process, self._changed = [], os.getpid(), asyncio.Condition()
        return self._changed

    def _free(self) -> Line | None:
        self._lines = [line for line in self._lines if line.usable]
        with_room = [line for line in self._lines if line.users < SSH_SESSIONS_PER_CONNECTION]
        return min(with_room, key=lambda line: line.users, default=None)

    async def _connected(self) -> SSHClientConnection:
        for attempt in range(SSH_CONNECT_ATTEMPTS):
            try:
                return await asyncssh.connect(
                    self._host,
                    connect_timeout=SSH_CONNECT_SECONDS,
                    login_timeout=SSH_CONNECT_SECONDS,
                    keepalive_interval=SSH_KEEPALIVE_SECONDS,
                    **self._options,
                )
            except (asyncssh.Error, OSError, TimeoutError) as e:
                lost = isinstance(e, asyncssh.ConnectionLost | ConnectionResetError)
                if not lost or attempt + 1 == SSH_CONNECT_ATTEMPTS:
                    raise self._refused(e) from e
        raise AssertionError

    def _refused(self, error: Exception) -> ToolError:
        reason = getattr(error, "reason", "") or str(error) or type(error).__name__
        retryable, hint = True, "Nothing was run. Check that the host is up and reachable."
        if isinstance(error, asyncssh.HostKeyNotVerifiable):
            reason = f"its host key is not the known one ({reason})"
            retryable, hint = False, "Nothing was run. Add the right key of the host to the known_hosts file."
        elif isinstance(error, asyncssh.PermissionDenied):
            retryable, hint = False, "Nothing was run. Check the user name and its key."
        message = f"There is no connection to {self._host}: {reason}."
        return ToolError(message, code="unavailable", hint=hint, retryable=retryable)
