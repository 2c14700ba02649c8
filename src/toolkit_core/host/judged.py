"""Opening a path and judging what was opened: the descriptor's real path decides, not the string.

The first open is O_PATH (open(2)), which runs no driver and blocks on no FIFO. What it holds is judged by its
real path (/proc/self/fd on Linux, F_GETPATH on macOS) and its type; only then the same inode is opened for real.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.host.os_errors import let_go, system_refused
from toolkit_core.host.resolve import followed
from toolkit_core.limits import OPEN_ATTEMPTS
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from toolkit_core.host.resolve import Roots
    from toolkit_core.ports.files import Resolved

_O_PATH = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_FIRST_FLAGS = _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_DELETED = " (deleted)"


@dataclass
class Judged:
    """An open descriptor, where it really lies, and what it is. Closes at the end of its `with`."""

    descriptor: int
    path: Resolved
    stat: os.stat_result

    def __enter__(self) -> Judged:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        let_go(self.descriptor)

    @property
    def is_directory(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.stat.st_mode)

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.stat.st_mode)

    def reopen(self, flags: int) -> int:
        """A descriptor of the very same inode with other flags. Raises OSError."""
        return reopened(self.descriptor, self.path.real, flags)


def judged_now(descriptor: int, path: Resolved) -> Judged:
    """A descriptor that was opened by a judged name. Raises OSError; then it is closed."""
    try:
        return Judged(descriptor, path, os.fstat(descriptor))
    except BaseException:
        let_go(descriptor)
        raise


def open_judged(roots: Roots, path: str) -> Judged:
    """Open a path without side effects, whatever it is, and judge what was opened.

    Raises:
        ToolError: `access_denied` (what was opened lies outside the roots, also when it was swapped after the
            check), `not_found`, `invalid_arguments`, `io_error`.
    """
    for _ in range(OPEN_ATTEMPTS):
        expected = roots.resolve(path)
        try:
            descriptor = os.open(expected.real, _FIRST_FLAGS)
        except OSError as e:
            if roots.resolve(path).real != expected.real:
                continue  # swapped between the check and the open
            raise system_refused(e, one_line_name(expected.subject), "opened") from e
        judged = _judge(roots, path, expected, descriptor)
        if judged is not None and not stat.S_ISLNK(judged.stat.st_mode):
            return judged
        if judged is not None:
            let_go(descriptor)
            if roots.resolve(path).real == expected.real:  # followed as far as links lead
                circle = OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                raise system_refused(circle, one_line_name(expected.subject), "opened")
    message = f"{one_line_name(path)} is being replaced all the time; it could not be opened."
    raise ToolError(message, code="io_error", hint="Try again.", retryable=True)


def descriptor_path(descriptor: int) -> str | None:
    """The real path of an open descriptor; None where it has none any more or the system cannot tell."""
    if sys.platform == "darwin":
        import fcntl

        return os.fsdecode(fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    try:
        shown = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # no /proc here
        return None
    return shown if shown.startswith("/") else None


def refuse_special(judged: Judged, verb: str = "read") -> ToolError:
    """The error for what is neither a file nor a folder."""
    shown, mode = one_line_name(judged.path.subject), judged.stat.st_mode
    if stat.S_ISLNK(mode):
        return system_refused(OSError(errno.ELOOP, os.strerror(errno.ELOOP)), shown, verb)
    kind = next((name for test, name in _SPECIAL if test(mode)), "special file")
    hint = "Only regular files are read and written; give the path of one."
    return ToolError(f"{shown} is a {kind}, not a file; it was not opened.", code="not_a_file", hint=hint)


_SPECIAL = (
    (stat.S_ISFIFO, "FIFO (named pipe)"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "character device"),
    (stat.S_ISBLK, "block device"),
)


def _judge(roots: Roots, path: str, expected: Resolved, descriptor: int) -> Judged | None:
    """What a descriptor holds; None when it vanished and the path must be looked up again."""
    try:
        status = os.fstat(descriptor)
        real = real_path_now(descriptor, expected.real)
        if real is None:
            let_go(descriptor)
            return None
        found = expected if real == expected.real else roots.resolved(real, absolute=expected.absolute)
        if found.inside != expected.inside and (roots.outside == "refuse" or expected.inside):
            message = f"{one_line_name(path)} was swapped for something outside the root {one_line_name(roots.root)}."
            raise ToolError(message, code="access_denied", hint="Use a path that stays inside the root.")
        roots.check_visible(found.real, path)
        return Judged(descriptor, found, status)
    except BaseException:
        let_go(descriptor)
        raise


def real_path_now(descriptor: int, expected: str) -> str | None:
    """The real path of what a descriptor holds, expected at a path; None where it has no name any more."""
    real = descriptor_path(descriptor)
    if real is not None and real == expected and not real.endswith(_DELETED):
        return real
    # No /proc, or a name that ends like the mark of a deleted file: the name must hold the very same inode.
    candidate = followed(expected) if real is None else real
    try:
        same = os.path.samestat(os.lstat(candidate), os.fstat(descriptor))
    except OSError:
        same = False
    return candidate if same else None


def reopened(descriptor: int, real: str, flags: int) -> int:
    """A descriptor of the very same inode with other flags. Raises OSError (ESTALE: its name holds another)."""
    flags |= os.O_CLOEXEC
    try:
        return os.open(f"/proc/self/fd/{descriptor}", flags)
    except (FileNotFoundError, NotADirectoryError):  # no /proc here: by name, and compared
        again = os.open(real, flags | os.O_NOFOLLOW)
    if os.path.samestat(os.fstat(again), os.fstat(descriptor)):
        return again
    let_go(again)
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
