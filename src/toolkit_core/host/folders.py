"""Folders by descriptor: opened and judged, made one below the other, swept of what a killed write left."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ToolError
from toolkit_core.host.judged import real_path_now
from toolkit_core.host.os_errors import let_go, system_refused
from toolkit_core.host.resolve import followed
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from toolkit_core.host.resolve import Roots

TEMPORARY_PREFIX: Final = ".toolkit-tmp-"
"""How the names of unfinished writes start; a locked one belongs to a write that goes on."""

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


_NO_FOLDER_SYNC: Final = frozenset({errno.EINVAL, errno.EBADF, errno.EROFS, errno.ENOTSUP, errno.ENOSYS})
"""Some filesystems refuse fsync on folders, as all do on one opened by O_PATH; the names are then theirs to keep."""


class Moved(Exception):  # noqa: N818 - a signal between the modules here, never shown
    """A path leads elsewhere than a moment ago: look again."""


@dataclass
class Folder:
    """An open folder, judged to lie at `real`.

    Attributes:
        descriptor: Of the folder.
        real: Its real path.
        top: The folder that the first missing one was made in; None where none was missing.
        made: The names of those that were made below it, each in the one before.
    """

    descriptor: int
    real: str
    top: int | None = None
    made: list[str] = field(default_factory=list[str])

    def close(self) -> None:
        """Close all descriptors."""
        let_go(self.descriptor)
        if self.top is not None:
            let_go(self.top)

    def unmake(self) -> None:
        """Remove the folders that were made, where they are empty still."""
        for depth in reversed(range(len(self.made))):
            with suppress(OSError):
                self._remove(depth)

    def _remove(self, depth: int) -> None:
        """Step down anew each time: one descriptor a level might be too many."""
        parent = os.dup(self.top if self.top is not None else self.descriptor)
        try:
            for name in self.made[:depth]:
                below = os.open(name, _FOLDER_FLAGS, dir_fd=parent)
                let_go(parent)
                parent = below
            os.rmdir(self.made[depth], dir_fd=parent)
        finally:
            let_go(parent)

    def judge(self, roots: Roots, shown: str) -> None:
        """Look once more where it lies, since the first look it may have been moved.

        Raises:
            ToolError: `access_denied`: it is outside the roots now.
            Moved: It is elsewhere inside.
        """
        now = real_path_now(self.descriptor, self.real)
        if now == self.real:
            return
        if now is not None and not roots.contains(now) and roots.contains(self.real):
            message = f"The folder of {shown} was moved outside the root {one_line_name(roots.root)}."
            raise ToolError(message, code="access_denied")
        raise Moved

    def sync(self) -> None:
        """Make the names in it last. Raises OSError: the disk failed."""
        try:
            os.fsync(self.descriptor)
        except OSError as e:
            if e.errno not in _NO_FOLDER_SYNC:
                raise


def open_folder(roots: Roots, real: str) -> Folder | None:
    """Open an existing folder by its real path, and judge it; None where it is missing.

    Raises:
        Moved: Something else lies there by now.
        ToolError: `access_denied`, `io_error`, `not_a_file` (a part of the path is a file).
    """
    try:
        descriptor = _opened(real)
    except FileNotFoundError:
        return None
    except OSError as e:
        if followed(real) != real:
            raise Moved from e
        shown = one_line_name(roots.subject(real))
        if e.errno == errno.ENOTDIR:
            message = f"{shown} is a file or lies below one, so it holds no files."
            raise ToolError(message, code="not_a_file") from e
        raise system_refused(e, shown, "opened") from e
    folder = Folder(descriptor, real)
    try:
        folder.judge(roots, one_line_name(roots.subject(real)))
    except BaseException:
        folder.close()
        raise
    return folder


def _opened(real: str) -> int:
    """Opened for reading, so that it can be synced; a folder that may not be listed is used by O_PATH."""
    try:
        return os.open(real, _FOLDER_FLAGS)
    except PermissionError:
        return os.open(real, _FOLDER_FLAGS | getattr(os, "O_PATH", 0))


def make_folder(roots: Roots, real: str, *, sync: bool) -> Folder:
    """Open a folder, missing ones made.

    Raises:
        Moved: Somebody changes the path meanwhile.
        ToolError: `io_error`, `access_denied`, `not_a_file`; what was made by then is removed.
    """
    missing: list[str] = []
    above = real
    while (found := open_folder(roots, above)) is None:
        above, name = os.path.split(above)
        if not name or os.path.lexists(os.path.join(above, name)):
            raise Moved
        missing.append(name)
    try:
        for name in reversed(missing):
            _descend(found, name, sync=sync)
    except OSError as e:
        found.unmake()
        found.close()
        raise system_refused(e, one_line_name(roots.subject(real)), "made") from e
    return found


def _descend(folder: Folder, name: str, *, sync: bool) -> None:
    try:
        os.mkdir(name, dir_fd=folder.descriptor)
    except FileExistsError:
        pass  # somebody else made it just now
    else:
        folder.top = os.dup(folder.descriptor) if folder.top is None else folder.top
        folder.made.append(name)
        if sync:
            folder.sync()
    below = os.open(name, _FOLDER_FLAGS, dir_fd=folder.descriptor)
    let_go(folder.descriptor)
    folder.descriptor, folder.real = below, os.path.join(folder.real, name)


def sweep(folder: Folder) -> None:
    """Remove what killed writes left in a folder: temporaries that nobody has locked."""
    with suppress(OSError), os.scandir(folder.descriptor) as entries:
        leftovers = [entry.name for entry in entries if entry.name.startswith(TEMPORARY_PREFIX)]
        for name in leftovers:
            remove_leftover(folder, name)


def remove_leftover(folder: Folder, name: str) -> bool:
    """Remove one temporary unless a write still holds its lock; whether the name is free now."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder.descriptor)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(name, dir_fd=folder.descriptor)
    except OSError:  # locked: its writer lives
        return False
    finally:
        let_go(descriptor)
    return True
