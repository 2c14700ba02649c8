"""Ending a browser and the helper processes of the web room, with all that they started.

Sources: kill(2), killpg(3), proc_pid_cmdline(5).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

_POLL_SECONDS = 0.02


async def end_child(process: asyncio.subprocess.Process) -> None:
    """Kill one child that starts no others, and reap it; nothing where it has ended."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):  # it ended just now
            process.kill()
    await process.wait()


async def end_browser(pid: int, profile: str, *, within_seconds: float) -> bool:
    """Kill a process group's leader, its group, and every process that names the profile; reap the leader.

    Args:
        pid: The leader, a child of this process whose group id is its own pid.
        profile: The absolute path of its profile folder, which the command line or the environment (as HOME) of
            each of its helpers holds, those too that left the group.
        within_seconds: How long to go on while something is left.

    Returns:
        Whether nothing is left.
    """
    deadline = time.monotonic() + within_seconds
    reaped = False
    while True:
        _signal_group(pid, reaped)
        reaped = reaped or _reap(pid)
        left = _carrying(profile)
        for other in left:
            _signal(other)
        if reaped and not left:
            return True
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)


def _signal_group(pid: int, reaped: bool) -> None:
    """The group may outlive its leader; once that is reaped, its number belongs to the group while it has members."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        if not reaped:
            _signal(pid)


def _signal(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _reap(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _carrying(profile: str) -> list[int]:
    """Living processes that name the profile in their command line or environment; none where there is no /proc."""
    wanted = os.fsencode(profile)
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        if pid != os.getpid() and any(wanted in _read(entry / name) for name in ("cmdline", "environ")):
            found.append(pid)
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # ended meanwhile, or another user's
        return b""
