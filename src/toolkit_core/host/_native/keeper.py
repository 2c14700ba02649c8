"""The keeper of one command: starts it, keeps its time, and leaves nothing of it behind.

A fork of the supervisor. It adopts the command's orphans, so whatever the command does (setsid, forking
twice, a cleared environment), its processes stay below this one. Standard library only and light: the
supervisor program loads this file by its path, without the package.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit_core.host._native import process_tree, supervision
    from toolkit_core.host._native.watch import Watch
else:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import process_tree
    import supervision
    from watch import Watch

_LINGER_SECONDS = 0.2  # a `tee` behind a process substitution ends by itself right after the shell
_KILL_SECONDS = 5.0  # longer than a kernel takes; what is left then is another user's or in D state

_RUNNING, _LINGERING, _ENDING = range(3)

_DEFAULT_AGAIN = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGPIPE", "SIGXFSZ", "SIGUSR1", "SIGUSR2", "SIGCHLD")
)


class Keeper:
    """Keeps one command.

    Args:
        channel: To the owner; its end is an order to kill.
        descriptors: What the command gets, in the order of the request's targets.
        above: Pidfds of supervisor and owner.
    """

    def __init__(self, channel: socket.socket, descriptors: list[int], above: list[int]) -> None:
        self._channel = channel
        self._descriptors = descriptors
        self._above = above
        self._shell = 0
        self._status = supervision.NO_STATUS
        self._flags = 0

    def keep(self, supervisor: int) -> None:
        """The whole life of a command. Returns when nothing of it is left, or nothing more can be done."""
        request = supervision.receive_request(self._channel)
        if request is None:
            return
        signal.set_wakeup_fd(-1)  # the supervisor's; its number may become one of the command's
        process_tree.adopt_orphans()
        if not self._start(request):
            return
        self._watch = Watch([self._channel.fileno()], above=self._above, parent=supervisor)
        supervision.tell(self._channel, supervision.STARTED, self._shell)
        killed = self._wait(request)
        left = 0 if self._all_ended() else len(process_tree.descendants(os.getpid()))
        killed.discard(self._shell)
        supervision.tell(self._channel, supervision.DONE, self._status, self._flags, len(killed), left)

    def _start(self, request: supervision.Request) -> bool:
        step = supervision.CHDIR
        try:
            os.chdir(request.cwd)
            step = supervision.EXEC
            self._shell = self._spawn(request)
        except (OSError, NotImplementedError) as e:
            number = e.errno or 0 if isinstance(e, OSError) else 0
            supervision.tell(self._channel, supervision.FAILED, number, step)
            return False
        os.chdir("/")  # the keeper must not pin the folder
        return True

    def _spawn(self, request: supervision.Request) -> int:
        self._place(request.targets)
        actions = _controlling_terminal(os.ttyname(0)) if request.terminal else []
        environment = dict(entry.split(b"=", 1) for entry in request.environment)
        try:
            return os.posix_spawn(
                request.argv[0],
                request.argv,
                environment,
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=_DEFAULT_AGAIN,
            )
        finally:
            self._let_go(request.targets)

    def _place(self, targets: tuple[int, ...]) -> None:
        """Put the descriptors where the command expects them, whatever numbers they came with."""
        base = max(targets, default=2) + 1
        self._above = [_moved(descriptor, base) for descriptor in self._above]
        self._channel = socket.socket(fileno=_moved(self._channel.detach(), base))
        for descriptor, target in zip([_moved(d, base) for d in self._descriptors], targets, strict=True):
            os.dup2(descriptor, target, inheritable=True)
            os.close(descriptor)

    def _let_go(self, targets: tuple[int, ...]) -> None:
        """Close the command's descriptors here, so that its pipes end when it does."""
        null = os.open(os.devnull, os.O_RDWR)
        for target in targets:
            os.dup2(null, target, inheritable=False)
        os.close(null)

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
                spared = self._shell if request.spare_leader else 0
                process_tree.signal_tree(os.getpid(), signal.SIGTERM, signal.SIGCONT, spare=spared)
        return set()

    def _order(self, until: float) -> bytes:
        """What the owner says, b"" for nothing; its end, or the supervisor's, is an order to kill."""
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
            if pid == self._shell:
                self._status = status
        return not children_left


def _controlling_terminal(name: str) -> list[Any]:
    """Opened by the leader of a new session, a terminal becomes its controlling one (tty_ioctl(4))."""
    opened = (os.POSIX_SPAWN_OPEN, 0, name, os.O_RDWR, 0)
    return [opened, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]


def _moved(descriptor: int, base: int) -> int:
    if descriptor >= base:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, base)
    os.close(descriptor)
    return moved
