"""A session's scratch folder: where its commands put temporary files and caches."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Generator
from typing import Final

from toolkit_core.host.supervisor import shared
from toolkit_core.limits import SCRATCH_SESSIONS_MAX

_PREFIX: Final = "toolkit-scratch-"


class Scratch:
    """The scratch folders of a set of sessions, bounded in number; private to the user (mode 0700).

    Removed at `close`, when many other sessions came since, and by the supervisor when this process dies while a
    command runs. What a process left that was killed between commands is removed by the next one.
    """

    _swept = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folders: OrderedDict[str, str] = OrderedDict()
        self._in_use: dict[str, int] = {}
        self._process = os.getpid()

    @contextlib.contextmanager
    def folder(self, session: str) -> Generator[str]:
        """The session's folder, made on first use, kept at least as long as the block runs. Raises OSError."""
        with self._lock:
            self._forget_parents()
            path = self._existing(session) or self._make(session)
            self._folders.move_to_end(session)
            self._in_use[session] = self._in_use.get(session, 0) + 1
            unused = self._surplus()
        if unused:
            _remove_aside(unused)
        try:
            yield path
        finally:
            with self._lock:
                self._in_use[session] = self._in_use.get(session, 1) - 1
                if self._in_use[session] <= 0:
                    del self._in_use[session]

    def close(self) -> None:
        """Remove all folders."""
        with self._lock:
            self._forget_parents()
            folders = list(self._folders.values())
            self._folders.clear()
        _remove(folders)

    def _existing(self, session: str) -> str | None:
        path = self._folders.get(session)
        return path if path is not None and os.path.isdir(path) and not os.path.islink(path) else None

    def _make(self, session: str) -> str:
        if session in self._folders:  # a command removed it, or put a link in its place
            _remove([self._folders[session]])
        if not Scratch._swept:
            Scratch._swept = True
            _sweep()
        path = self._folders[session] = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")
        shared.scratch(path, keep=True)
        return path

    def _surplus(self) -> list[str]:
        idle = [session for session in self._folders if session not in self._in_use]
        return [self._folders.pop(session) for session in idle[: max(0, len(self._folders) - SCRATCH_SESSIONS_MAX)]]

    def _forget_parents(self) -> None:
        """After a fork the folders are the parent's."""
        if self._process != os.getpid():
            self.__init__()


def _sweep() -> None:
    """Remove the folders of this user's processes that are no more."""
    with os.scandir(tempfile.gettempdir()) as entries:
        left = [entry for entry in entries if entry.name.startswith(_PREFIX) and entry.is_dir(follow_symlinks=False)]
    for entry in left:
        pid = entry.name.removeprefix(_PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            if entry.stat(follow_symlinks=False).st_uid == os.getuid() and pid.isdigit() and not _alive(int(pid)):
                _remove_tree(entry.path)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _remove_aside(folders: list[str]) -> None:
    try:
        threading.Thread(target=_remove, args=(folders,), daemon=True).start()
    except RuntimeError:  # the system gives no more threads
        _remove(folders)


def _remove(folders: list[str]) -> None:
    for path in folders:
        if os.path.islink(path):
            os.unlink(path)
        else:
            _remove_tree(path)
        shared.scratch(path, keep=False)


def _remove_tree(path: str) -> None:
    """Read-only folders in it (a module cache, say) are made writable first."""
    shutil.rmtree(path, ignore_errors=True)
    if os.path.lexists(path):
        for folder, _, _ in os.walk(path):
            with contextlib.suppress(OSError):
                os.chmod(folder, 0o700)
        shutil.rmtree(path, ignore_errors=True)
