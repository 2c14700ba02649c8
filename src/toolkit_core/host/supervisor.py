"""The owner's side of the supervisor: one small process that ends commands even when this process is killed.

Started for a command, shared by every event loop and thread, restarted when it was killed, left to the parent
after a fork, and stopped when its last user has closed or no command has run for a moment. What it does stands
in `_native/supervisor_program.py`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import errno
import os
import shutil
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Final

from toolkit_core.cleanup import finish
from toolkit_core.host._native import supervision
from toolkit_core.host.kept_command import KeptCommand
from toolkit_core.host.supervised import Spec, SupervisorLostError
from toolkit_core.limits import (
    COMMAND_START_SECONDS,
    SUPERVISOR_IDLE_SECONDS,
    SUPERVISOR_STOP_SECONDS,
)

_PROGRAM: Final = os.path.join(os.path.dirname(supervision.__file__), "supervisor_program.py")
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
    """One supervisor process and the sockets to it."""

    def __init__(self) -> None:
        self._work, work = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._link, link = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except BaseException:
            self._work.close()
            work.close()
            raise
        try:
            self.process: subprocess.Popen[bytes] = _spawn(work, link)
        except OSError as e:
            self._close_sockets()
            raise SupervisorLostError(f"the supervisor process cannot be started: {e}") from e
        finally:
            work.close()
            link.close()
        self._work.setblocking(False)
        self._link.setblocking(False)
        self.identity: tuple[object, ...] = _identity()

    async def run(self, channel: socket.socket, descriptors: Sequence[int]) -> None:
        """Hand a command's descriptors over. Raises ConnectionError, nothing started."""
        deadline = asyncio.get_running_loop().time() + COMMAND_START_SECONDS
        while not _send(self._work, supervision.RUN, [channel.fileno(), *descriptors]):
            if asyncio.get_running_loop().time() > deadline:
                self.process.kill()
                raise ConnectionAbortedError("the supervisor does not take commands; it was killed")
            await asyncio.sleep(_RETRY_SECONDS)

    def say(self, message: bytes, descriptors: list[int]) -> None:
        """Tell the supervisor something; nothing is said to a dead or deaf one."""
        with contextlib.suppress(ConnectionError):
            _send(self._link, message, descriptors)

    def kill(self) -> None:
        """Kill the supervisor; its keepers end what they keep."""
        self.process.kill()

    def close(self) -> None:
        """Let it end everything and itself; killed when it takes too long."""
        self._close_sockets()
        try:
            self.process.wait(SUPERVISOR_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def forget(self) -> None:
        """In a forked child: it is the parent's."""
        self._close_sockets()
        self.process.returncode = 0

    def _close_sockets(self) -> None:
        self._work.close()
        self._link.close()


def _send(to: socket.socket, message: bytes, descriptors: list[int]) -> bool:
    """Send a datagram; False when there is no room for it now."""
    try:
        socket.send_fds(to, [message], descriptors)
    except BlockingIOError:
        return False
    except OSError as e:
        if e.errno in (errno.EBADF, errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):
            raise ConnectionAbortedError("the supervisor is gone") from e
        raise
    return True


def _spawn(work: socket.socket, link: socket.socket) -> subprocess.Popen[bytes]:
    interpreter = _interpreter()
    if interpreter is None:
        raise SupervisorLostError("this program is no Python interpreter that could run the supervisor")
    owner = _own_pidfd()
    try:
        words = [str(number) for number in (work.fileno(), link.fileno(), os.getpid(), owner)]
        return subprocess.Popen(  # noqa: S603 - our own interpreter and program, no shell
            [interpreter, "-I", "-S", _PROGRAM, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
            start_new_session=True,
            pass_fds=[work.fileno(), link.fileno()] + [owner] * (owner >= 0),
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
        self._running = 0
        self._retirement: threading.Timer | None = None

    def enter(self) -> None:
        """A command is about to be handed over: the supervisor stays."""
        with self._lock:
            self._running += 1
            if self._retirement is not None:
                self._retirement.cancel()
                self._retirement = None

    def exit(self) -> None:
        """A command is over. A supervisor that nobody needs for a moment ends: an idle program has no children."""
        with self._lock:
            self._running -= 1
            if self._running > 0 or self._link is None:
                return
            self._retirement = threading.Timer(SUPERVISOR_IDLE_SECONDS, self._retire)
            self._retirement.daemon = True
            try:
                self._retirement.start()
            except RuntimeError:  # the system gives no more threads to wait in
                self._retirement = None
            else:
                return
        self._retire()

    def _retire(self) -> None:
        with self._lock:
            link = None
            if self._running == 0:
                link, self._link = self._link, None
        if link is not None:
            link.close()

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
                    link.say(supervision.ADD_SCRATCH + os.fsencode(folder), [])
            return link

    def use(self, user: object) -> None:
        """Count a user; the supervisor lives until the last one has left."""
        with self._lock:
            self._users.add(user)

    def leave(self, user: object) -> None:
        """A user has closed; blocks while the supervisor ends if it was the last."""
        with self._lock:
            self._users.discard(user)
            link = None
            if not self._users:
                link, self._link = self._link, None
        if link is not None:
            link.close()

    def scratch(self, folder: str, *, keep: bool) -> None:
        """Have a folder removed when this process dies, or no more."""
        with self._lock:
            (self._scratch.add if keep else self._scratch.discard)(folder)
            if self._link is not None:
                kind = supervision.ADD_SCRATCH if keep else supervision.FORGET_SCRATCH
                self._link.say(kind + os.fsencode(folder), [])

    def end(self) -> None:
        """End the supervisor and every command; remove the scratch folders that nobody closed."""
        with self._lock:
            self._end()
            for folder in self._scratch:
                shutil.rmtree(folder, ignore_errors=True)
            self._scratch.clear()

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
        StartError: The system refused; nothing ran.
        SupervisorLostError: No supervisor can be had, or it died before the command was seen to start.
    """
    ours, theirs = socket.socketpair()
    shared.enter()
    with theirs:
        try:
            link = await _hand_over(theirs, list(spec.descriptors.values()))
        except BaseException:
            ours.close()
            shared.exit()
            raise
    command = KeptCommand(link, ours, spec, shared.exit)
    try:
        await command.begin()
    except BaseException:
        await finish(command.abandon())
        raise
    return command


async def _hand_over(channel: socket.socket, descriptors: Sequence[int]) -> _Link:
    link = shared.current() or await asyncio.to_thread(shared.ensure)
    try:
        await link.run(channel, descriptors)
    except ConnectionError:  # it was killed since, and nothing was started
        link.kill()
        link = await asyncio.to_thread(shared.ensure)
        try:
            await link.run(channel, descriptors)
        except ConnectionError as e:
            raise SupervisorLostError("the supervisor process was killed twice in a row") from e
    return link
