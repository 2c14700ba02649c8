"""The supervisor: one small single-threaded process that outlives its owner just long enough to end everything.

Run by path as `python -I -S supervisor_program.py WORK LINK OWNER OWNER_PIDFD`. It keeps some keepers ready,
each of which runs one command at a time and adopts its orphans, so that children that called setsid or forked
twice stay attributed to their command. Supervisor and keepers both watch the owner: a pidfd, and the end of
their sockets. A keeper that is killed leaves its orphans to the supervisor; a supervisor that is killed is
noticed by its keepers.
"""

from __future__ import annotations

import gc
import math
import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from toolkit_core.host._native import process_tree, supervision
    from toolkit_core.host._native.keeper import Keeper, Pool
    from toolkit_core.host._native.watch import Watch, moved_up
else:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import process_tree
    import supervision
    from keeper import Keeper, Pool
    from watch import Watch, moved_up

_IDLE_KEEPERS = 4  # a warm one starts a command in half the time of a fork; each takes some 2 MB
_SHUTDOWN_SECONDS = 10.0  # a process in uninterruptible sleep must not keep the supervisor for ever
_CALM_SECONDS = 0.05  # keepers are forked ahead when nothing happened for so long, not between two commands
_FORK_PAUSE_SECONDS = 0.1  # after EAGAIN: the machine is out of processes


class Supervisor:
    """Forks keepers, and ends what they cannot end any more."""

    def __init__(self, work: socket.socket, link: socket.socket, owner: int, above: list[int]) -> None:
        self._work = work
        self._link = link
        self._above = above
        self._pool = Pool(_IDLE_KEEPERS)
        self._watch = Watch([link.fileno(), self._pool.news], above=above[:1], parent=owner)
        self._idle: set[int] = set()
        self._keepers: set[int] = set()
        self._questions: list[tuple[int, int]] = []
        self._scratch: set[bytes] = set()

    def serve(self) -> None:
        """Until the owner is gone or has closed the link; then nothing is left."""
        calm = False
        while not self._watch.gone:
            pause = self._fill(_IDLE_KEEPERS if calm else 1)
            ready = self._watch.wait(time.monotonic() + pause)
            calm = not ready
            if self._pool.news in ready:
                self._pool.read_news(self._idle)
            if self._link.fileno() in ready and not self._receive():
                break
            self._collect()
        self._shut_down()

    def _fill(self, wanted: int) -> float:
        """Fork keepers until so many are idle; returns how long to wait before the next look, in seconds."""
        while len(self._idle) < wanted:
            try:
                pid = os.fork()
            except OSError:
                return _FORK_PAUSE_SECONDS
            if pid == 0:
                self._become_keeper()
            self._keepers.add(pid)
            self._idle.add(pid)
        return _CALM_SECONDS if len(self._idle) < _IDLE_KEEPERS else math.inf

    def _become_keeper(self) -> NoReturn:
        try:
            self._link.close()
            Keeper(self._work, self._pool, self._above).serve()
            os._exit(0)
        finally:
            os._exit(1)

    def _receive(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(
                self._link, supervision.MAX_DATAGRAM_BYTES, supervision.MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
        except OSError:  # ECONNRESET: the owner left something unread
            return False
        kind = data[:1]
        if kind == supervision.KILL_KEEPER:
            self._kill(supervision.KEEPER.unpack(data)[1])
        elif kind == supervision.SETTLED and descriptors:
            keeper = supervision.KEEPER.unpack(data)[1]
            if keeper == 0:  # it died before it gave its number; its end is a matter of microseconds
                time.sleep(_FORK_PAUSE_SECONDS)
            self._questions.append((keeper, descriptors[0]))
        elif kind == supervision.ADD_SCRATCH:
            self._scratch.add(data[1:])
        elif kind == supervision.FORGET_SCRATCH:
            self._scratch.discard(data[1:])
        return bool(data)

    def _kill(self, keeper: int) -> None:
        if keeper in self._keepers:
            os.kill(keeper, signal.SIGKILL)

    def _collect(self) -> None:
        """Reap; where a keeper was killed, end its orphans before its owner hears of it."""
        lost = False
        for pid, status in process_tree.ended_children()[0]:
            if pid in self._keepers:
                self._keepers.discard(pid)
                if status != 0:
                    lost = True
                    self._return_seat_of(pid)
                self._idle.discard(pid)
        if lost:
            self._end_orphans()
        waiting = [question for question in self._questions if question[0] in self._keepers]
        for _, descriptor in set(self._questions) - set(waiting):
            os.close(descriptor)
        self._questions = waiting

    def _return_seat_of(self, keeper: int) -> None:
        self._pool.read_news(self._idle)
        if keeper in self._idle:
            self._pool.return_seat()

    def _end_orphans(self) -> None:
        """Whatever must not be killed is below a keeper; all else here is an orphan."""
        deadline = time.monotonic() + _SHUTDOWN_SECONDS
        process_tree.end_descendants(self._no_orphan, deadline=deadline, spare=self._keepers)

    def _no_orphan(self) -> bool:
        return not process_tree.descendants(os.getpid(), self._keepers)

    def _shut_down(self) -> None:
        for pid in self._keepers:
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + _SHUTDOWN_SECONDS
        process_tree.end_descendants(lambda: not process_tree.ended_children()[1], deadline=deadline)
        if self._scratch:
            import shutil

            for folder in self._scratch:
                shutil.rmtree(folder, ignore_errors=True)


def main(work: int, link: int, owner: int, owner_pidfd: int) -> None:
    """Set the process up and serve; -1 for a pidfd that the kernel does not have."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a thread of the owner may have blocked SIGCHLD
    process_tree.adopt_orphans()
    process_tree.rename(b"toolkit-keeper")
    own_pidfd = process_tree.open_pidfd(os.getpid())
    above = [] if owner_pidfd < 0 or own_pidfd is None else [moved_up(owner_pidfd), moved_up(own_pidfd)]
    ours = socket.socket(fileno=moved_up(work)), socket.socket(fileno=moved_up(link))
    supervisor = Supervisor(*ours, owner, above)
    gc.disable()  # forked keepers share these pages; a collection would copy them
    gc.freeze()
    supervisor.serve()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:5]))
