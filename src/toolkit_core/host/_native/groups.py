"""Process groups, for machines without a supervisor: what can be signalled as one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys


def signal_group(leader: int, *, kill: bool) -> bool:
    """Signal a process and all in its group (POSIX) or below it (Windows); False when there is none.

    TERM, or KILL with `kill`; Windows knows only the latter (`taskkill /T /F`).
    """
    if sys.platform == "win32":
        taskkill = ["taskkill", "/T", "/F", "/PID", str(leader)]
        return subprocess.run(taskkill, capture_output=True, check=False).returncode == 0  # noqa: S603 - fixed words
    try:
        os.killpg(leader, signal.SIGKILL if kill else signal.SIGTERM)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def group_exists(leader: int) -> bool:
    """Whether a process of the group is left (POSIX; False on Windows, where it cannot be asked)."""
    if sys.platform == "win32":
        return False
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # macOS says so of a group of zombies
        return False
    return True
