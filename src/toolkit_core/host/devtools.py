"""The DevTools protocol over two pipes: commands, their answers, events.

Source: chromedevtools.github.io/devtools-protocol; with --remote-debugging-pipe messages are JSON ended by NUL, read
by the browser from descriptor 3 and written to 4.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from toolkit_core.limits import BROWSE_MESSAGE_MAX_BYTES

Message = dict[str, Any]
OnEvent = Callable[[str, Message], None]


class BrowserGoneError(Exception):
    """The browser closed its end, or sent what no browser sends."""


class CommandError(Exception):
    """The browser refused a command."""


class _Incoming(asyncio.Protocol):
    """Splits what the browser writes into messages."""

    def __init__(self, take: Callable[[bytes], None], gone: Callable[[], None]) -> None:
        self._take, self._gone = take, gone
        self._parts: list[bytes] = []
        self._size = 0

    def data_received(self, data: bytes) -> None:
        """Take whole messages, keep the rest."""
        *whole, rest = data.split(b"\0")
        for end in whole:
            self._take(b"".join([*self._parts, end]))
            self._parts, self._size = [], 0
        self._parts.append(rest)
        self._size += len(rest)
        if self._size > BROWSE_MESSAGE_MAX_BYTES:
            self._parts, self._size = [], 0
            self._gone()

    def connection_lost(self, exc: Exception | None) -> None:
        """The browser has ended."""
        self._gone()


class DevTools:
    """A client on one event loop. Descriptors are owned from `open` on and closed by `close`.

    Attributes:
        on_event: Called with the name and the parameters of every event; with the name "gone" when the browser has
            closed its end.
    """

    def __init__(self) -> None:
        self._next = 0
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._transports: list[asyncio.BaseTransport] = []
        self._writer: asyncio.WriteTransport | None = None
        self._is_gone = False
        self.on_event: OnEvent = lambda method, params: None

    async def open(self, read_fd: int, write_fd: int) -> None:
        """Speak over two pipe ends."""
        loop = asyncio.get_running_loop()
        reading, writing = os.fdopen(read_fd, "rb", 0), os.fdopen(write_fd, "wb", 0)
        self._transports.append((await loop.connect_read_pipe(lambda: _Incoming(self._take, self._lose), reading))[0])
        self._writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, writing)
        self._transports.append(self._writer)

    def close(self) -> None:
        """Close both ends; a browser that reads from the pipe ends by itself."""
        for transport in self._transports:
            if transport.is_closing():
                continue
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
            else:
                transport.close()
        self._lose()

    def send(
        self, method: str, params: Mapping[str, Any] | None = None, *, session: str = ""
    ) -> asyncio.Future[Message]:
        """Send a command; the future holds its result, `CommandError` or `BrowserGoneError`."""
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_retrieve)
        if self._is_gone or self._writer is None:
            answer.set_exception(BrowserGoneError("the browser has ended"))
            return answer
        self._next += 1
        message: Message = {"id": self._next, "method": method, "params": dict(params or {})}
        if session:
            message["sessionId"] = session
        self._waiting[self._next] = answer
        self._writer.write(json.dumps(message).encode("ascii") + b"\0")
        return answer

    def _take(self, data: bytes) -> None:
        try:
            message = json.loads(data)
            if "id" in message:
                self._settle(message)
            else:
                self.on_event(message["method"], message["params"])
        except (ValueError, RecursionError, LookupError, TypeError, AttributeError):  # it speaks another language
            self._lose()

    def _settle(self, message: Message) -> None:
        answer = self._waiting.pop(message["id"], None)
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(CommandError(str(message["error"])[:500]))
        else:
            answer.set_result(message.get("result") or {})

    def _lose(self) -> None:
        if self._is_gone:
            return
        self._is_gone = True
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(BrowserGoneError("the browser has ended"))
        self.on_event("gone", {})


def _retrieve(answer: asyncio.Future[Message]) -> None:
    """Mark the exception as seen: many commands are sent without waiting for their answer."""
    if not answer.cancelled():
        answer.exception()
