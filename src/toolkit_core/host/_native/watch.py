"""Waiting for descriptors, for ended children and for the end of those above, in one poll.

Standard library only and light: the supervisor program loads this file by its path, without the package.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import resource
import select
import signal
import time
from collections.abc import Iterable

_POLL_SECONDS = 0.5  # how often the parent is looked at where the kernel has no pidfd
_FIRST_DESCRIPTOR = min(100, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)  # a command may want those below


class Watch:
    """One process's wait.

    Args:
        inputs: Descriptors that `wait` reports when they can be read or have ended.
        above: Pidfds of the processes above; their end sets `gone`.
        parent: The pid that must stay this process's parent.
    """

    def __init__(self, inputs: Iterable[int], *, above: Iterable[int], parent: int) -> None:
        self._parent = parent
        self._above = frozenset(above)
        self._died = False
        self._wake, waker = (moved_up(descriptor) for descriptor in os.pipe())
        self._poll = select.poll()
        for descriptor in (self._wake, waker):
            os.set_blocking(descriptor, False)
        for descriptor in (self._wake, *self._above, *inputs):
            self.add(descriptor)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _nothing)

    def add(self, descriptor: int) -> None:
        """Watch one more input."""
        self._poll.register(descriptor, select.POLLIN)

    def drop(self, descriptor: int) -> None:
        """Watch an input no more."""
        self._poll.unregister(descriptor)

    @property
    def gone(self) -> bool:
        """Whether a process above has ended."""
        return self._died or os.getppid() != self._parent

    def wait(self, until: float = math.inf) -> set[int]:
        """Inputs that are ready; empty after a child ended, at `until` (time.monotonic) or when one above died."""
        seconds = None if math.isinf(until) else max(0.0, until - time.monotonic())
        if not self._above:
            seconds = _POLL_SECONDS if seconds is None else min(seconds, _POLL_SECONDS)
        events = self._poll.poll(None if seconds is None else seconds * 1000 + 1)
        ready = {descriptor for descriptor, _ in events}
        if self._wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        self._died = self._died or not self._above.isdisjoint(ready)
        return ready - self._above - {self._wake}


def moved_up(descriptor: int) -> int:
    """The same open file under a number that no command wants; the old one is closed."""
    if descriptor >= _FIRST_DESCRIPTOR:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    os.close(descriptor)
    return moved


def _nothing(_number: int, _frame: object) -> None:
    """A handler, so that an ended child wakes the poll."""
