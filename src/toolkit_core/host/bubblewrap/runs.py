"""Which confined commands run in a workspace, and what it held before the first of them.

The record is a file outside the workspace, changed under a file lock: commands that overlap share one baseline,
whether they belong to one process or to several, and what a command planted whose owner was killed is moved away
when the next one starts.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import stat
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit_core.host.bubblewrap.arguments import within
from toolkit_core.host.bubblewrap.quarantine import Swept, sweep
from toolkit_core.host.bubblewrap.trust import Survey, survey
from toolkit_core.limits import SANDBOX_LOCK_SECONDS

_LOCK_PAUSE_SECONDS = 0.002
_log = logging.getLogger("toolkit_core")
_FOLDER_NAME = "toolkit-core-sandbox"


def _candidates() -> Iterator[str]:
    state = os.environ.get("XDG_STATE_HOME", "")
    home = os.path.expanduser("~")
    if os.path.isabs(state):
        yield os.path.join(state, _FOLDER_NAME)
    elif os.path.isabs(home):
        yield os.path.join(home, ".local", "state", _FOLDER_NAME)
    for folder in ("/var/tmp", "/tmp"):  # noqa: S108 - judged by _is_ours
        yield os.path.join(folder, f"{_FOLDER_NAME}-{os.getuid()}")


def _is_ours(folder: str) -> bool:
    """Made, owned by this user, closed to others, and no link: a stranger may have been first in /var/tmp."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def state_folder(writable: Sequence[str]) -> str | None:
    """A private folder of this user that no confined command can write, or None."""
    for candidate in _candidates():
        real = os.path.realpath(candidate)
        if not any(within(real, root) for root in writable) and _is_ours(candidate):
            return real
    return None


def _started(pid: int) -> str:
    """When a process started, in clock ticks since boot (proc_pid_stat(5), field 22); empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode("ascii")
    except (OSError, IndexError):
        return ""


def _lock(descriptor: int) -> None:
    """Raises TimeoutError (an OSError) when somebody holds it for too long."""
    deadline = time.monotonic() + SANDBOX_LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds the record's lock") from None
            time.sleep(_LOCK_PAUSE_SECONDS)
        else:
            return


@dataclass(frozen=True)
class Run:
    """One command that is recorded as running, and the state to return to after it."""

    token: str
    survey: Survey
    recovered: str


class Record:
    """The running commands of one writable folder."""

    def __init__(self, state: str, root: str) -> None:
        self._root = root
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:20]
        self._state = state
        self._file = os.path.join(state, f"{name}.json")
        # A few locks for all workspaces: a lock's file can never be removed safely.
        self._lock = os.path.join(state, f"lock-{name[0]}")
        self._quarantine = os.path.join(state, "quarantine", name)

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        os.makedirs(self._state, mode=0o700, exist_ok=True)
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _read(self) -> tuple[list[dict[str, Any]], Survey | None]:
        try:
            with open(self._file, encoding="ascii") as file:
                value = json.load(file)
            return list(value["runs"]), Survey.from_json(value["survey"])
        except FileNotFoundError:
            return [], None
        except (OSError, ValueError, KeyError, TypeError):
            return [], None  # written by another version: the next survey replaces it

    def _write(self, runs: Sequence[dict[str, Any]], before: Survey) -> None:
        if not runs:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._file)
            return
        new = f"{self._file}.new"
        with open(new, "w", encoding="ascii") as file:
            json.dump({"runs": list(runs), "survey": before.to_json()}, file)
        os.replace(new, self._file)

    def _place(self, token: str) -> str:
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        return os.path.join(self._quarantine, f"{moment}-{token[:12]}")

    def begin(self) -> Run:
        """Record a command that is about to start. Raises OSError where the record cannot be kept."""
        token = os.urandom(16).hex()
        me = {"token": token, "pid": os.getpid(), "started": _started(os.getpid())}
        with self._locked():
            runs, before = self._read()
            alive = [run for run in runs if _started(run["pid"]) == run["started"]]
            recovered = ""
            if before is not None and len(alive) < len(runs):
                place = self._place(token)
                recovered = sweep(before, place).note(place)
            if before is None or not alive:
                before = survey(self._root)
            self._write([*alive, me], before)
        return Run(token, before, recovered)

    def forget_if_gone(self) -> None:
        """Remove it where the folder is gone and so are all that ran in it. Raises OSError."""
        if os.path.lexists(self._root):
            return
        with self._locked():
            runs, before = self._read()
            if before is not None and not any(_started(run["pid"]) == run["started"] for run in runs):
                self._write([], before)

    def end(self, run: Run) -> str:
        """Sweep after a command whose processes are dead; returns the note."""
        place = self._place(run.token)
        swept: Swept | None = None
        try:
            with self._locked():
                swept = sweep(run.survey, place)
                runs, before = self._read()
                self._write([other for other in runs if other["token"] != run.token], before or run.survey)
        except OSError:
            _log.warning("the record of commands in %s could not be changed", self._root, exc_info=True)
        if swept is None:  # without the lock it is swept all the same
            swept = sweep(run.survey, place)
        return " ".join(part for part in (run.recovered, swept.note(place)) if part)


def forget_gone(state: str) -> None:
    """Remove the records of folders that are gone, which no later command in them can remove any more."""
    with contextlib.suppress(OSError), os.scandir(state) as entries:
        for name in [entry.name for entry in entries if entry.name.endswith(".json")]:
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                with open(os.path.join(state, name), encoding="ascii") as file:
                    root = str(json.load(file)["survey"]["root"])
                Record(state, root).forget_if_gone()
