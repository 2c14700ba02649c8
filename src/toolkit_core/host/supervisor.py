"""The owner's side of the supervisor: one small process that ends commands even when this process is killed.

Started on the first command, shared by every event loop and thread, restarted when it was killed, left to the
parent after a fork, and stopped when its last user has closed. What it does stands in
`_native/supervisor_program.py`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import errno
import itertools
import math
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Final

from toolkit_core.cleanup import finish
from toolkit_core.host._native import supervision
from toolkit_core.host.supervised import Ending, Spec, StartFailed, Step, SupervisorLost
from toolkit_core.limits import COMMAND_END_MARGIN_SECONDS, COMMAND_START_SECONDS, SUPERVISOR_STOP_SECONDS

_PROGRAM: Final = os.path.join(os.path.dirname(supervision.__file__), "supervisor_program.py")
_STEPS: Final[dict[int, Step]] = {supervision.CHDIR: "chdir", supervision.EXEC: "exec", supervision.FORK: "fork"}
_KEPT_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH")
_RETRY_SECONDS: Final = 0.005


def supported() -> bool:
    """Whether this machine can have a supervisor: Linux, and a Python interpreter that can be started."""
    return sys.platform == "linux" and _interpreter() is not None and os.path.isfile(_PROGRAM)


def _interpreter() -> str | None:
    """This interpreter; None in a frozen or embedded program, whose executable is something else."""
    name = os.path.basename(sys.executable or "").lower()
    is_python = name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)
    return sys.executable if is_python else None


class _Link:
    """One supervisor process and the socket to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.process = _spawn(theirs)
        except OSError as e:
            ours.close()
            raise SupervisorLost(f"the supervisor process cannot be started: {e}") from e
        finally:
            theirs.close()
        ours.setblocking(False)
        self._socket = ours
        self._serials = itertools.count(1)
        self.identity = _identity()

    async def run(self, channel: socket.socket, descriptors: Sequence[int]) -> int:
        """Hand a command's descriptors over; returns its serial number. Raises ConnectionError, nothing started."""
        serial = next(self._serials)
        message = supervision.SERIAL.pack(supervision.RUN, serial)
        deadline = asyncio.get_running_loop().time() + COMMAND_START_SECONDS
        while not self._send(message, [channel.fileno(), *descriptors]):
            if asyncio.get_running_loop().time() > deadline:
                self.process.kill()
                raise ConnectionAbortedError("the supervisor does not take commands; it was killed")
            await asyncio.sleep(_RETRY_SECONDS)
        return serial

    def say(self, message: bytes) -> None:
        """Tell the supervisor something; nothing is said to a dead or deaf one."""
        with contextlib.suppress(ConnectionError):
            self._send(message, [])

    def _send(self, message: bytes, descriptors: list[int]) -> bool:
        try:
            socket.send_fds(self._socket, [message], descriptors)
        except BlockingIOError:
            return False
        except OSError as e:
            if e.errno in (errno.EBADF, errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):
                raise ConnectionAbortedError("the supervisor is gone") from e
            raise
        return True

    def close(self) -> None:
        """Let it end everything and itself; killed when it takes too long."""
        self._socket.close()
        try:
            self.process.wait(SUPERVISOR_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def forget(self) -> None:
        """In a forked child: it is the parent's."""
        self._socket.close()
        self.process.returncode = 0


def _spawn(link: socket.socket) -> subprocess.Popen[bytes]:
    interpreter = _interpreter()
    if interpreter is None:
        raise SupervisorLost("this program is no Python interpreter that could run the supervisor")
    owner = _own_pidfd()
    try:
        words = [str(link.fileno()), str(os.getpid()), str(owner)]
        return subprocess.Popen(  # noqa: S603 - our own interpreter and program, no shell
            [interpreter, "-I", "-S", _PROGRAM, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
            start_new_session=True,
            pass_fds=[link.fileno()] + [owner] * (owner >= 0),
        )
    finally:
        if owner >= 0:
            os.close(owner)


def _own_pidfd() -> int:
    try:
        return os.pidfd_open(os.getpid())
    except OSError:  # before Linux 5.3, or refused by a container's filter: the supervisor looks at its parent
        return -1


def _identity() -> tuple[object, ...]:
    """Commands must not run with rights that this process has given up since."""
    return os.getresuid(), os.getresgid(), tuple(os.getgroups())


class _Shared:
    """The process's supervisor, if there is one, and who uses it."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._link: _Link | None = None
        self._users: weakref.WeakSet[object] = weakref.WeakSet()
        self._scratch: set[str] = set()

    def current(self) -> _Link | None:
        """The supervisor, when one runs with this process's identity."""
        link = self._link
        if link is None or link.process.poll() is not None or link.identity != _identity():
            return None
        return link

    def ensure(self) -> _Link:
        """The supervisor, started if need be; blocks for some milliseconds then."""
        with self._lock:
            link = self.current()
            if link is None:
                self._end()
                self._link = link = _Link()
                for folder in self._scratch:
                    link.say(supervision.ADD_SCRATCH + os.fsencode(folder))
            return link

    def use(self, user: object) -> None:
        """Count a user; the supervisor lives until the last one has left."""
        self._users.add(user)

    def leave(self, user: object) -> None:
        """A user has closed; blocks while the supervisor ends if it was the last."""
        with self._lock:
            self._users.discard(user)
            if not self._users:
                self._end()

    def scratch(self, folder: str, *, keep: bool) -> None:
        """Have a folder removed when this process dies, or no more."""
        with self._lock:
            (self._scratch.add if keep else self._scratch.discard)(folder)
            if self._link is not None:
                kind = supervision.ADD_SCRATCH if keep else supervision.FORGET_SCRATCH
                self._link.say(kind + os.fsencode(folder))

    def end(self) -> None:
        """End the supervisor and every command."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def after_fork(self) -> None:
        """In a forked child: start anew."""
        if self._link is not None:
            self._link.forget()
        self._reset()


shared: Final = _Shared()
atexit.register(shared.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=shared.after_fork)


async def start(spec: Spec) -> KeptCommand:
    """Start a command under a keeper.

    Raises:
        StartFailed: The system refused; nothing ran.
        SupervisorLost: No supervisor can be had, or it died before the command was seen to start.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            link, serial = await _hand_over(theirs, list(spec.descriptors.values()))
        except BaseException:
            ours.close()
            raise
    command = KeptCommand(link, serial, ours, spec)
    try:
        await command.begin()
    except BaseException:
        await finish(command.abandon())
        raise
    return command


async def _hand_over(channel: socket.socket, descriptors: Sequence[int]) -> tuple[_Link, int]:
    for last in (False, True):
        link = shared.current() or await asyncio.to_thread(shared.ensure)
        try:
            return link, await link.run(channel, descriptors)
        except ConnectionError as e:  # it was killed since; nothing was started
            if last:
                raise SupervisorLost("the supervisor process was killed twice in a row") from e
            link.process.kill()
    raise AssertionError  # not reached


class KeptCommand:
    """A command under a keeper, seen from the event loop that started it."""

    def __init__(self, link: _Link, serial: int, channel: socket.socket, spec: Spec) -> None:
        channel.setblocking(False)
        self._link, self._serial, self._channel, self._spec = link, serial, channel, spec
        self._received = b""
        self.pid = 0

    async def begin(self) -> None:
        """Send the request and wait until the command runs."""
        try:
            async with asyncio.timeout(COMMAND_START_SECONDS):
                await asyncio.get_running_loop().sock_sendall(self._channel, _request(self._spec).encode())
                record = await self._record()
        except TimeoutError as e:
            self._link.process.kill()
            raise SupervisorLost("the supervisor does not answer; it was killed") from e
        except ConnectionError:
            record = None
        if record is None or record[0] == supervision.DONE:
            raise SupervisorLost("the supervisor process was killed; whether the command ran is not known")
        kind, first, second, *_ = record
        if kind == supervision.FAILED:
            raise StartFailed(first, os.strerror(first), _STEPS[second])
        self.pid = first

    async def ending(self) -> Ending:
        """Wait until nothing of the command is left. A stopped or hung keeper is killed and replaced."""
        limit = self._spec.timeout_seconds + self._spec.grace_seconds + COMMAND_END_MARGIN_SECONDS
        for seconds, give_up in ((limit, self._kill_keeper), (COMMAND_END_MARGIN_SECONDS, self._link.process.kill)):
            try:
                async with asyncio.timeout(None if math.isinf(seconds) else seconds):
                    return _ending(await self._record())
            except TimeoutError:
                give_up()
        return Ending(lost="its supervisor did not answer and was killed")

    def terminate(self) -> None:
        """TERM to its whole tree, after the grace KILL."""
        self._say(supervision.TERMINATE)

    def kill(self) -> None:
        """KILL its whole tree now."""
        self._say(supervision.KILL)

    async def abandon(self) -> None:
        """Kill its whole tree and let go of it once nothing is left."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)  # for a keeper an order to kill, whatever it is doing
        try:
            while await self._record() is not None:
                pass
        finally:
            self.close()

    def close(self) -> None:
        """Let go of it after its end."""
        self._channel.close()

    def _say(self, order: bytes) -> None:
        with contextlib.suppress(OSError):
            self._channel.send(order)

    def _kill_keeper(self) -> None:
        self._link.say(supervision.SERIAL.pack(supervision.KILL_KEEPER, self._serial))

    async def _record(self) -> tuple[bytes, int, int, int, int] | None:
        loop = asyncio.get_running_loop()
        size = supervision.RECORD.size
        while len(self._received) < size:
            try:
                part = await loop.sock_recv(self._channel, size - len(self._received))
            except ConnectionError:
                part = b""
            if not part:
                return None
            self._received += part
        record, self._received = self._received, b""
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
    )


def _ending(record: tuple[bytes, int, int, int, int] | None) -> Ending:
    if record is None:
        return Ending(lost="its keeper and its supervisor were killed")
    _, status, flags, survivors, left = record
    lost = "its supervisor was killed" if flags & supervision.LOST else ""
    if status == supervision.NO_STATUS:
        return Ending(None, None, bool(flags & supervision.TIMED_OUT), survivors, left, lost)
    code = os.waitstatus_to_exitcode(status)
    timed_out = bool(flags & supervision.TIMED_OUT)
    return Ending(code if code >= 0 else None, -code if code < 0 else None, timed_out, survivors, left, lost)
