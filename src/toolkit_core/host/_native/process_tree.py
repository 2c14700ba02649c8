"""Linux process trees: adopting orphans, listing descendants, signals that cannot hit a stranger.

Standard library only and light: the supervisor program loads this file by its path, without the package.

Sources: prctl(2), pidfd_open(2), pidfd_send_signal(2), proc_pid_task(5) for `children`, which is incomplete
while siblings exit; callers therefore loop until the kernel says that no child is left.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable, Container

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)
_zero = ctypes.c_ulong(0)


def _prctl(option: int, argument: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(argument), _zero, _zero, _zero) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def adopt_orphans() -> None:
    """Make this process the new parent of descendants whose parent dies (PR_SET_CHILD_SUBREAPER)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def signal_at_parents_death(number: int) -> None:
    """Have this signal sent when the thread that forked this process ends (PR_SET_PDEATHSIG)."""
    _prctl(_PR_SET_PDEATHSIG, number)


def rename(name: bytes) -> None:
    """Change what `ps` and `pkill` see as this process's name, at most 15 bytes."""
    buffer = ctypes.create_string_buffer(name[:15])
    _prctl(_PR_SET_NAME, ctypes.addressof(buffer))


def children(pid: int) -> list[int]:
    """Direct children of a process, zombies included; empty when it is gone."""
    if not _HAS_CHILDREN_FILE:
        return [child for child in _all_pids() if parent_and_state(child)[0] == pid]
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children", "rb") as listing:
                found.extend(int(word) for word in listing.read().split())
        except OSError:  # the thread ended meanwhile
            continue
    return found


def _all_pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:  # no /proc in this chroot
        return []


def parent_and_state(pid: int) -> tuple[int, str]:
    """The parent's pid and the state letter of proc_pid_stat(5); (0, "") when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
    except OSError:
        return 0, ""
    return int(fields[1]), fields[0].decode("ascii")


def ended_children() -> tuple[list[tuple[int, int]], bool]:
    """Reap: pid and wait status of every child that ended, and whether any child is left."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if pid == 0:
            return ended, True
        ended.append((pid, status))


def is_alive(pid: int) -> bool:
    """Whether the process runs or is stopped; a zombie does not count."""
    return parent_and_state(pid)[1] not in ("", "Z", "X", "x")


def descendants(root: int, spare: Container[int] = ()) -> dict[int, int]:
    """Every living descendant, its parent's pid as value, parents first; `spare` and what is below it left out."""
    found: dict[int, int] = {}
    queue = [root]
    for parent in queue:
        for child in children(parent):
            if child not in found and child != root and child not in spare:
                found[child] = parent
                queue.append(child)
    return {pid: parent for pid, parent in found.items() if is_alive(pid)}


def open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the kernel has none (before 5.3)."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def send(pid: int, number: int, accepted_parents: Container[int]) -> bool:
    """Signal a process, only while its parent is an accepted one.

    Between the listing and the signal a process may end and its number be given to a stranger; a stranger
    has another parent, and the pidfd keeps meaning the process that was judged. False when it is gone, not
    ours, or may not be signalled (another user's).
    """
    handle = open_pidfd(pid)
    try:
        if parent_and_state(pid)[0] not in accepted_parents:
            return False
        if handle is None:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True


def signal_tree(root: int, *numbers: int, spare: int = 0) -> None:
    """Send signals, one after another, to every descendant of `root`, not to itself and not to `spare`."""
    tree = descendants(root)
    accepted = {root, *tree}
    for pid in tree.keys() - {spare}:
        for number in numbers:
            send(pid, number, accepted)


def end_descendants(reap: Callable[[], bool], *, deadline: float, spare: Container[int] = ()) -> set[int]:
    """Kill everything below this process, which must adopt orphans; returns the pids that were killed.

    Each round stops what it finds until a listing shows nothing new (a stopped process starts no other), then
    kills what it stopped. Rounds go on until `reap`, which collects ended children, says that no child is
    left, with `spare` until a listing is empty, or until `deadline` (time.monotonic): a process of another
    user or in uninterruptible sleep stays.
    """
    killed: set[int] = set()
    pause_seconds = 0.0005
    while not reap():
        frozen = _freeze(os.getpid(), spare, deadline)
        accepted = {os.getpid(), *frozen}
        killed.update(pid for pid in frozen if send(pid, signal.SIGKILL, accepted))
        if time.monotonic() >= deadline:
            break
        time.sleep(pause_seconds)
        pause_seconds = min(pause_seconds * 2, 0.02)
    return killed


def _freeze(root: int, spare: Container[int], deadline: float) -> dict[int, int]:
    frozen: dict[int, int] = {}
    while time.monotonic() < deadline:
        seen = descendants(root, spare)
        new = {pid: parent for pid, parent in seen.items() if pid not in frozen}
        if not new:
            break
        accepted = {root, *seen}
        for pid in new:
            send(pid, signal.SIGSTOP, accepted)
        frozen.update(new)
    return frozen


_HAS_CHILDREN_FILE = os.path.exists(f"/proc/self/task/{os.getpid()}/children")
