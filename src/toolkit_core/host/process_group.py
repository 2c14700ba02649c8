"""Keeping commands without a supervisor (macOS, Windows, a frozen program): best effort.

A command leads its own session; that group is ended at the timeout and on return. On POSIX a tiny shell
watches for the owner's death and kills the group. Children that call setsid escape; THREAT_MODEL.md says so.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from typing import Final

from toolkit_core.host._native.groups import group_exists, signal_group
from toolkit_core.host.supervised import Ending, Spec, StartError

_POLL_SECONDS: Final = 0.01
_LINGER_SECONDS: Final = 0.2  # as in _native/keeper.py
_WINDOWS_NEW_GROUP: Final = 0x00000200  # CREATE_NEW_PROCESS_GROUP; subprocess has the name only on Windows
_WATCHDOG: Final = 'read _ || true; kill -9 "-$1" 2>/dev/null'  # dash takes no `--`


def start(spec: Spec) -> GroupCommand:
    """Start a command in a session of its own. Raises `StartError`."""
    if not os.path.isdir(spec.cwd):
        raise StartError(2, os.strerror(2), "chdir")
    streams = {0: subprocess.DEVNULL, **spec.descriptors}
    windows = sys.platform == "win32"
    try:
        process: subprocess.Popen[bytes] = subprocess.Popen(  # noqa: S603 - running what it is told is its purpose
            spec.argv,
            cwd=spec.cwd,
            env=dict(spec.environment),
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            start_new_session=not windows,
            creationflags=_WINDOWS_NEW_GROUP if windows else 0,
        )
    except OSError as e:
        raise StartError(e.errno or 0, e.strerror or str(e), "exec") from e
    return GroupCommand(process, spec)


class GroupCommand:
    """A command that a thread of this process waits for."""

    def __init__(self, process: subprocess.Popen[bytes], spec: Spec) -> None:
        self._process = process
        self._spec = spec
        self._order = ""
        self._loop = asyncio.get_running_loop()
        self._ending: asyncio.Future[Ending] = self._loop.create_future()
        self._watchdog = _watchdog(process.pid)
        threading.Thread(target=self._keep, name="toolkit-keeper", daemon=True).start()

    async def ending(self) -> Ending:
        """Wait until its group has ended."""
        return await asyncio.shield(self._ending)

    def terminate(self) -> None:
        """TERM to its group, after the grace KILL."""
        self._order = self._order or "terminate"

    def kill(self) -> None:
        """KILL its group now."""
        self._order = "kill"

    def force(self) -> None:
        """KILL its group; the thread that keeps it cannot be stopped."""
        self.kill()

    def close(self) -> None:
        """Let go of it after its end."""
        self.kill()

    def _keep(self) -> None:
        timed_out = self._wait_for_leader()
        survivors = self._end_group()
        _stop(self._watchdog)
        code = self._process.wait()
        ending = Ending(
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            timed_out=timed_out,
            survivors_killed=survivors,
        )
        try:
            self._loop.call_soon_threadsafe(self._set, ending)
        except RuntimeError:  # the loop was closed
            return

    def _set(self, ending: Ending) -> None:
        if not self._ending.done():
            self._ending.set_result(ending)

    def _wait_for_leader(self) -> bool:
        """Until the shell has ended, by itself or not; True when the timeout was the reason."""
        until = time.monotonic() + self._spec.timeout_seconds
        ending = timed_out = False
        while self._process.poll() is None:
            expired = time.monotonic() >= until
            if self._order == "kill" or (ending and expired):
                signal_group(self._process.pid, kill=True)
                self._process.wait()
            elif not ending and (expired or self._order):
                ending, timed_out = True, not self._order
                until = time.monotonic() + self._spec.grace_seconds
                signal_group(self._process.pid, kill=sys.platform == "win32")
            time.sleep(_POLL_SECONDS)
        return timed_out

    def _end_group(self) -> int:
        """Kill what the shell left in its group; counts as one, since a group cannot be counted everywhere."""
        until = time.monotonic() + _LINGER_SECONDS
        while group_exists(self._process.pid) and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        return int(group_exists(self._process.pid) and signal_group(self._process.pid, kill=True))


def _watchdog(group: int) -> subprocess.Popen[bytes] | None:
    """A shell that kills the group when the pipe from this process ends."""
    if sys.platform == "win32":
        return None
    return subprocess.Popen(  # noqa: S603 - fixed words
        ["/bin/sh", "-c", _WATCHDOG, "sh", str(group)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _stop(watchdog: subprocess.Popen[bytes] | None) -> None:
    if watchdog is not None:
        watchdog.kill()
        watchdog.wait()
        if watchdog.stdin is not None:
            watchdog.stdin.close()
