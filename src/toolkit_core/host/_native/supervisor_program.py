"""The supervisor: one small single-threaded process that outlives its owner just long enough to end everything.

Run by path as `python -I -S supervisor_program.py SOCKET OWNER OWNER_PIDFD`. For each command it forks a keeper,
which adopts the command's orphans (children that called setsid or forked twice stay attributed to their
command), keeps its timeout, and kills what is left when the shell ends. Supervisor and keepers both watch the
owner: a pidfd, and the end of their socket. A keeper that is killed leaves its orphans to the supervisor; a
supervisor that is killed is noticed by its keepers.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from toolkit_core.host._native import process_tree, supervision
    from toolkit_core.host._native.keeper import Keeper
    from toolkit_core.host._native.watch import Watch
else:
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    import process_tree
    import supervision
    from keeper import Keeper
    from watch import Watch

_SHUTDOWN_SECONDS = 10.0  # a process in uninterruptible sleep must not keep the supervisor for ever


class Supervisor:
    """Forks keepers, and ends what they cannot end any more."""

    def __init__(self, link: socket.socket, watch: Watch, above: list[int]) -> None:
        self._link = link
        self._watch = watch
        self._above = above
        self._keepers: dict[int, tuple[int, socket.socket]] = {}
        self._scratch: set[bytes] = set()

    def serve(self) -> None:
        """Until the owner is gone or has closed the socket; then nothing is left."""
        while not self._watch.gone:
            if self._watch.wait() and not self._receive():
                break
            self._collect()
        self._shut_down()

    def _receive(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(
                self._link, supervision.MAX_DATAGRAM_BYTES, supervision.MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
            )
        except OSError:  # ECONNRESET: the owner left unread answers
            return False
        if not data:
            return False
        kind = data[:1]
        if kind == supervision.RUN and descriptors:
            self._start(supervision.SERIAL.unpack(data)[1], descriptors)
        elif kind == supervision.KILL_KEEPER:
            self._kill(supervision.SERIAL.unpack(data)[1])
        elif kind == supervision.ADD_SCRATCH:
            self._scratch.add(data[1:])
        elif kind == supervision.FORGET_SCRATCH:
            self._scratch.discard(data[1:])
        return True

    def _start(self, serial: int, descriptors: list[int]) -> None:
        channel = socket.socket(fileno=descriptors.pop(0))
        try:
            pid = os.fork()
        except OSError as e:
            supervision.tell(channel, supervision.FAILED, e.errno or 0, supervision.FORK)
            channel.close()
        else:
            if pid == 0:
                self._become_keeper(channel, descriptors)
            self._keepers[pid] = serial, channel
        for descriptor in descriptors:
            os.close(descriptor)

    def _become_keeper(self, channel: socket.socket, descriptors: list[int]) -> NoReturn:
        try:
            self._link.close()
            for _, other in self._keepers.values():
                other.close()
            Keeper(channel, descriptors, self._above).keep(os.getppid())
            os._exit(0)
        finally:
            os._exit(1)

    def _kill(self, serial: int) -> None:
        for pid, (known, _) in self._keepers.items():
            if known == serial:
                os.kill(pid, signal.SIGKILL)

    def _collect(self) -> None:
        """Reap; where a keeper was killed, end its orphans before its owner hears of it."""
        lost: list[socket.socket] = []
        for pid, status in process_tree.ended_children()[0]:
            _, channel = self._keepers.pop(pid, (0, None))
            if channel is not None and status != 0:
                lost.append(channel)
            elif channel is not None:
                channel.close()
        if lost:
            self._report_lost(lost)

    def _report_lost(self, lost: list[socket.socket]) -> None:
        """End what no keeper keeps. Whoever must not be killed is below a keeper, so all others are orphans."""
        deadline = time.monotonic() + _SHUTDOWN_SECONDS
        process_tree.end_descendants(self._no_orphan_left, deadline=deadline, spare=self._keepers)
        for channel in lost:
            supervision.tell(channel, supervision.DONE, supervision.NO_STATUS, supervision.LOST)
            channel.close()

    def _no_orphan_left(self) -> bool:
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


def main(link: int, owner: int, owner_pidfd: int) -> None:
    """Set the process up and serve; -1 for a pidfd that the kernel does not have."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    process_tree.adopt_orphans()
    process_tree.rename(b"toolkit-keeper")
    own_pidfd = process_tree.open_pidfd(os.getpid())
    above = [] if owner_pidfd < 0 or own_pidfd is None else [owner_pidfd, own_pidfd]
    watch = Watch([link], above=above[:1], parent=owner)
    gc.disable()  # forked keepers share these pages; a collection would copy them
    gc.freeze()
    Supervisor(socket.socket(fileno=link), watch, above).serve()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:4]))
