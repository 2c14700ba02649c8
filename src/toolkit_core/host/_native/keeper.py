"""The keeper of a command: starts it, keeps its time, and leaves nothing of it behind.

A fork of the supervisor that takes one command after another. It adopts the orphans of its command, so
whatever that does (setsid, forking twice, a cleared environment), its processes stay below this one. Standard
library only and light: the supervisor program loads this file by its path, without the package.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit_core.host._native import process_tree, supervision
    from toolkit_core.host._native.watch import Watch, moved_up
else:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import process_tree
    import supervision
    from watch import Watch, moved_up

_LINGER_SECONDS = 0.2  # a `tee` behind a process substitution ends by itself right after the shell
_KILL_SECONDS = 5.0  # longer than a kernel takes; what is left then is another user's or in D state
_NEWS = struct.Struct("=cI")
_RUNNING, _LINGERING, _ENDING = range(3)

_DEFAULT_AGAIN = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGPIPE", "SIGXFSZ", "SIGUSR1", "SIGUSR2", "SIGCHLD")
)


class Pool:
    """How supervisor and keepers agree on who is idle: a pipe of news, and a pipe that holds one byte a seat.

    A keeper that wants to wait for a further command takes a seat, and gives it back with its next command;
    without a free seat it ends. So a burst leaves as many processes as one command does.
    """

    def __init__(self, seats: int) -> None:
        self.news, self._tell = (moved_up(descriptor) for descriptor in os.pipe())
        self._take_seat, self._give_seat = (moved_up(descriptor) for descriptor in os.pipe())
        for descriptor in (self.news, self._take_seat):
            os.set_blocking(descriptor, False)
        os.write(self._give_seat, b"." * seats)

    def sit_down(self) -> bool:
        """Take a seat, as a keeper; False when none is free."""
        try:
            seat = os.read(self._take_seat, 1)
        except BlockingIOError:
            return False
        os.write(self._tell, _NEWS.pack(b"+", os.getpid()))
        return bool(seat)

    def stand_up(self) -> None:
        """Give the seat back, as a keeper."""
        os.write(self._tell, _NEWS.pack(b"-", os.getpid()))
        self.return_seat()

    def return_seat(self) -> None:
        """Give a seat back."""
        os.write(self._give_seat, b".")

    def read_news(self, idle: set[int]) -> None:
        """Bring the set of idle keepers up to date, as the supervisor."""
        try:
            news = os.read(self.news, 512 * _NEWS.size)
        except BlockingIOError:
            return
        for kind, pid in _NEWS.iter_unpack(news):
            (idle.add if kind == b"+" else idle.discard)(pid)


class Keeper:
    """One keeper.

    Args:
        work: Where commands come from.
        pool: Where it says that it is idle.
        above: Pidfds of owner and supervisor.
    """

    def __init__(self, work: socket.socket, pool: Pool, above: list[int]) -> None:
        self._work = work
        self._pool = pool
        self._supervisor = os.getppid()
        process_tree.adopt_orphans()
        signal.set_wakeup_fd(-1)  # the supervisor's
        self._watch = Watch([], above=above, parent=self._supervisor)

    def serve(self) -> None:
        """Take commands until there is no seat to wait on, or nobody above."""
        while self._pool.sit_down():
            process_tree.signal_at_parents_death(signal.SIGKILL)
            if os.getppid() != self._supervisor:
                return
            _, descriptors, _, _ = socket.recv_fds(
                self._work, supervision.MAX_DATAGRAM_BYTES, supervision.MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
            process_tree.signal_at_parents_death(signal.SIGCONT)  # to end the command then, even if it was stopped
            self._pool.stand_up()
            if not descriptors or not self._take(descriptors):
                return

    def _take(self, descriptors: list[int]) -> bool:
        """Keep one command; False when this keeper cannot keep another."""
        with socket.socket(fileno=moved_up(descriptors[0])) as channel:
            self._watch.add(channel.fileno())
            try:
                return _Command(channel, descriptors[1:], self._watch).keep()
            finally:
                self._watch.drop(channel.fileno())


class _Command:
    """One command, from its request to its last process."""

    def __init__(self, channel: socket.socket, descriptors: list[int], watch: Watch) -> None:
        self._channel = channel
        self._descriptors = descriptors
        self._watch = watch
        self._program = 0
        self._status = supervision.NO_STATUS
        self._flags = 0

    def keep(self) -> bool:
        """The whole life of a command; True when nothing of it is left."""
        supervision.tell(self._channel, supervision.TAKEN, os.getpid())
        request = supervision.receive_request(self._channel)
        if request is None or not self._start(request):
            for descriptor in self._descriptors:
                os.close(descriptor)
            return True
        if request.tell_start:
            supervision.tell(self._channel, supervision.STARTED)
        killed = self._wait(request)
        left = 0 if self._all_ended() else len(process_tree.descendants(os.getpid()))
        killed.discard(self._program)
        supervision.tell(self._channel, supervision.DONE, self._status, self._flags, len(killed), left)
        return left == 0 and not self._watch.gone

    def _start(self, request: supervision.Request) -> bool:
        step = supervision.CHDIR
        try:
            os.chdir(request.cwd)
            step = supervision.EXEC
            self._program = self._spawn(request)
        except OSError as e:
            supervision.tell(self._channel, supervision.FAILED, e.errno or 0, step)
            return False
        finally:
            os.chdir("/")  # the keeper must not pin the folder
        return True

    def _spawn(self, request: supervision.Request) -> int:
        self._place(request.targets)
        try:
            return os.posix_spawn(
                request.argv[0],
                request.argv,
                dict(entry.split(b"=", 1) for entry in request.environment),
                file_actions=_controlling_terminal(os.ttyname(0)) if request.terminal else [],
                setsid=True,
                setsigmask=(),
                setsigdef=_DEFAULT_AGAIN,
            )
        finally:
            _let_go(request.targets)

    def _place(self, targets: tuple[int, ...]) -> None:
        """Put the descriptors where the command expects them, whatever numbers they came with."""
        if max(targets, default=0) > 2:
            self._descriptors = [moved_up(descriptor) for descriptor in self._descriptors]
        for target in targets:
            descriptor = self._descriptors.pop(0)
            os.dup2(descriptor, target, inheritable=True)
            os.close(descriptor)

    def _wait(self, request: supervision.Request) -> set[int]:
        """Until nothing is left of the command; returns what had to be killed."""
        phase, until = _RUNNING, time.monotonic() + request.timeout_seconds
        while not self._all_ended():
            if phase == _RUNNING and self._status != supervision.NO_STATUS:
                phase, until = _LINGERING, time.monotonic() + _LINGER_SECONDS
            order = self._order(until)
            expired = time.monotonic() >= until
            if order == supervision.KILL or (expired and phase != _RUNNING):
                return process_tree.end_descendants(self._all_ended, deadline=time.monotonic() + _KILL_SECONDS)
            if phase == _RUNNING and (expired or order == supervision.TERMINATE):
                self._flags |= 0 if order else supervision.TIMED_OUT
                phase, until = _ENDING, time.monotonic() + request.grace_seconds
                spared = self._program if request.spare_leader else 0
                process_tree.signal_tree(os.getpid(), signal.SIGTERM, signal.SIGCONT, spare=spared)
        return set()

    def _order(self, until: float) -> bytes:
        """What the owner says next, b"" for nothing; its end, or the supervisor's, is an order to kill."""
        ready = self._watch.wait(until)
        if self._watch.gone:
            self._flags |= supervision.LOST
            return supervision.KILL
        if not ready:
            return b""
        try:
            said = self._channel.recv(1)
        except OSError:
            said = b""
        return said or supervision.KILL

    def _all_ended(self) -> bool:
        """Collect ended children; True when the kernel says that there is none left."""
        ended, children_left = process_tree.ended_children()
        for pid, status in ended:
            if pid == self._program:
                self._status = status
        return not children_left


def _controlling_terminal(name: str) -> list[Any]:
    """Opened by the leader of a new session, a terminal becomes its controlling one (tty_ioctl(4))."""
    opened = (os.POSIX_SPAWN_OPEN, 0, name, os.O_RDWR, 0)
    return [opened, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]


def _let_go(targets: tuple[int, ...]) -> None:
    """Close the command's descriptors here, so that its pipes end when it does."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for target in targets:
        if target <= 2:
            os.dup2(null, target, inheritable=True)
        else:
            os.close(target)
    os.close(null)
