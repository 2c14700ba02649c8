"""What the tests of commands share: processes that can be recognised, and waiting for them to go."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import time
from pathlib import Path

_numbers = itertools.count(random.randrange(10**6, 10**7))


class Sleeper:
    """A `sleep` that no other test has: found by its command line, whatever its parent or environment."""

    def __init__(self) -> None:
        self.seconds = f"600.{os.getpid()}{next(_numbers)}"
        self.command = f"sleep {self.seconds}"

    def pids(self) -> list[int]:
        """Processes of that command line that are alive."""
        return [pid for pid in all_pids() if self._is_mine(pid) and state_of(pid) not in ("", "Z", "X")]

    def _is_mine(self, pid: int) -> bool:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return words[:2] == [b"sleep", self.seconds.encode()]

    def gone(self, within_seconds: float = 10.0) -> bool:
        """Whether none is left, waiting a bounded time."""
        until = time.monotonic() + within_seconds
        while self.pids() and time.monotonic() < until:
            time.sleep(0.02)
        return not self.pids()

    async def started(self, count: int = 1, within_seconds: float = 20.0) -> None:
        """Wait until so many run."""
        until = time.monotonic() + within_seconds
        while len(self.pids()) < count:
            assert time.monotonic() < until, f"{self.command} did not start"
            await asyncio.sleep(0.02)


def all_pids() -> list[int]:
    """Every process that this one can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def state_of(pid: int) -> str:
    """The state letter of proc_pid_stat(5); "" when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return ""


def parent_of(pid: int) -> int:
    """The parent's pid; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def descendants() -> set[int]:
    """Living processes below this one."""
    parents = {pid: parent_of(pid) for pid in all_pids()}
    below: set[int] = set()
    grew = True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in below | {os.getpid()}} - below
        grew = bool(more)
        below |= more
    return {pid for pid in below if state_of(pid) not in ("", "Z", "X")}


def open_descriptors() -> int:
    """How many descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))


HOSTILE = """
import os, signal, sys, time
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.execve("/bin/sleep", ["sleep", sys.argv[1]], {})
"""
"""Forks twice, calls setsid twice, ignores TERM and HUP, clears its environment and becomes a sleep."""
