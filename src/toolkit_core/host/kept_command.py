"""A command under a keeper, seen from the event loop that started it."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import socket
from collections.abc import Callable
from typing import Final, Protocol

from toolkit_core.host._native import process_tree, supervision
from toolkit_core.host.supervised import Ending, Spec, StartError, Step, SupervisorLostError
from toolkit_core.limits import (
    COMMAND_ANSWER_SECONDS,
    COMMAND_END_MARGIN_SECONDS,
    COMMAND_LOOK_SECONDS,
    COMMAND_START_SECONDS,
)

_STEPS: Final[dict[int, Step]] = {supervision.CHDIR: "chdir", supervision.EXEC: "exec"}
_READ_BYTES: Final = 4096
_Record = tuple[bytes, int, int, int, int]


class Link(Protocol):
    """The supervisor that the command's keeper belongs to."""

    def say(self, message: bytes, descriptors: list[int]) -> None:
        """Tell the supervisor something; nothing is said to a dead or deaf one."""
        ...

    def kill(self) -> None:
        """Kill the supervisor; its keepers end what they keep."""
        ...


class KeptCommand:
    """A command under a keeper, seen from the event loop that started it."""

    def __init__(self, link: Link, channel: socket.socket, spec: Spec, released: Callable[[], None]) -> None:
        channel.setblocking(False)
        self._link, self._channel, self._spec = link, channel, spec
        self._released = released
        self._received, self._ended = b"", False
        self._news = asyncio.Event()
        self._keeper = 0
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(channel, self._receive)

    async def begin(self) -> None:
        """Send the request and wait until a keeper has taken it."""
        try:
            async with asyncio.timeout(COMMAND_START_SECONDS):
                with contextlib.suppress(ConnectionError):
                    await self._loop.sock_sendall(self._channel, _request(self._spec).encode())
                record = await self._record()
                if record is not None:
                    self._keeper = record[1]
                if self._spec.tell_start and record is not None:
                    record = await self._record()
        except TimeoutError as e:
            if self._keeper:
                self.force()
            else:
                self._link.kill()
            reason = "the supervisor does not answer; it was killed"
            raise SupervisorLostError(reason, may_have_run=True) from e
        if record is None:
            await self._settled()
            reason = "its keeper was killed at its start; whether it ran is not known"
            raise SupervisorLostError(reason, may_have_run=True)
        _refuse_failed(record)

    async def ending(self) -> Ending:
        """Wait until nothing of the command is left. A keeper that was stopped is killed at last."""
        limit = self._spec.timeout_seconds + self._spec.grace_seconds + COMMAND_LOOK_SECONDS
        try:
            async with asyncio.timeout(None if math.isinf(limit) else limit):
                record = await self._record()
        except TimeoutError:
            record = await self._overdue_record()
        if record is not None:
            _refuse_failed(record)
            return _ending(record)
        await self._settled()
        return Ending(lost="its keeper was killed")

    async def _overdue_record(self) -> _Record | None:
        """Past its time: a keeper that was stopped is killed now, one that is slow after a margin."""
        until = self._loop.time() + COMMAND_END_MARGIN_SECONDS
        while self._loop.time() < until and process_tree.parent_and_state(self._keeper)[1] not in ("T", "t"):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(COMMAND_LOOK_SECONDS):
                    return await self._record()
        self.force()
        return await self._last_record()

    async def _last_record(self) -> _Record | None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(COMMAND_END_MARGIN_SECONDS):
                return await self._record()
        return None

    def terminate(self) -> None:
        """TERM to its whole tree, after the grace KILL."""
        self._say(supervision.TERMINATE)

    def kill(self) -> None:
        """KILL its whole tree now."""
        self._say(supervision.KILL)

    def force(self) -> None:
        """Kill its keeper; the supervisor then ends what that kept.

        A keeper that has answered, or closed the channel, may be busy with another command already.
        """
        if self._channel.fileno() >= 0:
            self._receive()
        if self._received or self._ended:
            return
        self._link.say(supervision.KEEPER.pack(supervision.KILL_KEEPER, self._keeper), [])

    async def abandon(self) -> None:
        """Kill its whole tree, before or after it was begun, and let go of it once nothing is left."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)  # for a keeper an order to kill, whatever it is doing
        try:
            async with asyncio.timeout(COMMAND_ANSWER_SECONDS):
                while (record := await self._record()) is not None and record[0] != supervision.DONE:
                    self._keeper = record[1] if record[0] == supervision.TAKEN else self._keeper
        except TimeoutError:
            self.force()
            await self._last_record()
            await self._settled()
        finally:
            self.close()

    def close(self) -> None:
        """Let go of it after its end."""
        if self._channel.fileno() >= 0:
            self._loop.remove_reader(self._channel)
            self._channel.close()
            self._released()

    def _say(self, order: bytes) -> None:
        with contextlib.suppress(OSError):
            self._channel.send(order)

    async def _settled(self) -> None:
        """Wait until the supervisor has ended what a killed keeper left."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            self._link.say(supervision.KEEPER.pack(supervision.SETTLED, self._keeper), [theirs.fileno()])
            theirs.close()
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(COMMAND_END_MARGIN_SECONDS):
                    await asyncio.get_running_loop().sock_recv(ours, 1)

    def _receive(self) -> None:
        try:
            part = self._channel.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            part = b""
        self._received += part
        if not part:
            self._ended = True
            self._loop.remove_reader(self._channel)
        self._news.set()

    async def _record(self) -> _Record | None:
        """The keeper's next record; None at the end of the channel. Cancelled, it loses none."""
        size = supervision.RECORD.size
        while len(self._received) < size:
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
        record, self._received = self._received[:size], self._received[size:]
        return supervision.RECORD.unpack(record)


def _request(spec: Spec) -> supervision.Request:
    return supervision.Request(
        argv=tuple(map(os.fsencode, spec.argv)),
        cwd=os.fsencode(spec.cwd),
        environment=tuple(os.fsencode(f"{name}={value}") for name, value in spec.environment.items()),
        targets=tuple(spec.descriptors),
        timeout_seconds=spec.timeout_seconds,
        grace_seconds=spec.grace_seconds,
        terminal=spec.terminal,
        spare_leader=spec.spare_leader,
        tell_start=spec.tell_start,
    )


def _refuse_failed(record: _Record) -> None:
    kind, number, step, *_ = record
    if kind == supervision.FAILED:
        raise StartError(number, os.strerror(number), _STEPS[step])


def _ending(record: _Record) -> Ending:
    _, status, flags, survivors, left = record
    timed_out = bool(flags & supervision.TIMED_OUT)
    lost = "its supervisor was killed" if flags & supervision.LOST else ""
    if status == supervision.NO_STATUS:
        return Ending(None, None, timed_out, survivors, left, lost)
    code = os.waitstatus_to_exitcode(status)
    return Ending(code if code >= 0 else None, -code if code < 0 else None, timed_out, survivors, left, lost)
