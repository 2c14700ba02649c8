"""Process handles of a sandbox: its first process, held by a pidfd so that no later process is mistaken for it.

bubblewrap is reaped before its pid namespace is dead; a pidfd becomes readable once the namespace's first process,
and with it every other, has ended (pidfd_open(2), pid_namespaces(7)).
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import select
import signal
from collections.abc import Mapping, Sequence


def memfd(content: bytes, name: str = "toolkit") -> int:
    """A descriptor that reads `content` from its start; the caller closes it."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def hold_first_process(pid: int) -> int | None:
    """A pidfd of a pid namespace's first process, or None when it is gone or the number is another's by now."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return None
    if _is_first_in_its_namespace(pid):
        return descriptor
    os.close(descriptor)
    return None


def _is_first_in_its_namespace(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            levels = next((line.split()[1:] for line in file if line.startswith("NSpid:")), list[str]())
    except OSError:
        return False
    return len(levels) > 1 and levels[-1] == "1"


def _is_over(pidfd: int) -> bool:
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(0))


async def end_namespace(pidfd: int, *, within_seconds: float) -> bool:
    """Kill a namespace's first process and wait until all of it is dead; False where that took too long."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    deadline = asyncio.get_running_loop().time() + within_seconds
    pause = 0.0005
    while not _is_over(pidfd):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.02)
    return True


_CLEAR_OF_TARGETS = 100
"""Descriptors are first duplicated above this, so that none is overwritten before its turn."""
_COMPLAINT_BYTES = 64 * 1024


def run_to_end(
    argv: Sequence[str], environment: Mapping[str, str], descriptors: Mapping[int, int], *, within_seconds: float
) -> tuple[int | None, bytes]:
    """Start a program with descriptors at exact numbers and no others, and wait for it, blocking.

    Returns its exit status (negative for a signal, None where it had to be killed at the deadline) and what it
    wrote to standard error. Raises OSError where it cannot be started.
    """
    opened: list[int] = []

    def keep(descriptor: int) -> int:
        opened.append(descriptor)
        return descriptor

    try:
        complaints = keep(os.memfd_create("stderr", os.MFD_CLOEXEC))
        null = keep(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
        actions: list[tuple[int, int, int]] = []
        for target, source in {0: null, 1: null, 2: complaints, **descriptors}.items():
            raised = keep(fcntl.fcntl(source, fcntl.F_DUPFD_CLOEXEC, _CLEAR_OF_TARGETS))
            actions.append((os.POSIX_SPAWN_DUP2, raised, target))
        pid = os.posix_spawn(argv[0], tuple(argv), environment, file_actions=actions, setsid=True)
        try:
            status = _wait(pid, within_seconds)
        except OSError:  # it could not be watched
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        size = os.fstat(complaints).st_size
        return status, os.pread(complaints, min(size, _COMPLAINT_BYTES), 0)
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _wait(pid: int, within_seconds: float) -> int | None:
    """Its exit status once it ended, None where it was killed. Raises OSError, and leaves it running then."""
    pidfd = os.pidfd_open(pid)
    try:
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        in_time = bool(poller.poll(within_seconds * 1000))
        if not in_time:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return status if in_time else None
    finally:
        os.close(pidfd)
