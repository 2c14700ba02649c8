"""Replacing a file so that its name holds the old bytes or the new ones, and nobody else's work is lost.

The new bytes are complete and synced beside the target before its name changes (rename(2), link(2)). An existing
target is exchanged with the new file (renameat2(2)), so that what really lay at the name can be looked at
afterwards: had somebody replaced it at the last moment, it is put back and the write fails as `stale_file`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ToolError
from toolkit_core.host._native.renaming import exchange, rename_to_free_name
from toolkit_core.host.in_place import write_in_place
from toolkit_core.host.temporary import Temporary, temporary
from toolkit_core.limits import IN_PLACE_ATTEMPTS

if TYPE_CHECKING:
    from toolkit_core.host.folders import Folder
    from toolkit_core.host.hop import Stop
    from toolkit_core.ports.files import Content

_ONLY_IN_PLACE: Final = frozenset({errno.EBUSY, errno.EXDEV})
"""A mount point cannot be renamed over (rename(2))."""

_NO_HARD_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


@dataclass
class Old:
    """The file to replace, open for reading.

    Attributes:
        descriptor: Of the file.
        status: When it was opened.
        unchanged: Whether it still holds what was read of it; looks at the bytes where times cannot tell. Its
            argument: whether the file was renamed since, which changes its ctime.
    """

    descriptor: int
    status: os.stat_result
    unchanged: Callable[[bool], bool]


@dataclass
class Target:
    """A name in an open folder, and what lay there when the write began (None: nothing)."""

    folder: Folder
    name: str
    shown: str
    old: Old | None


def put(target: Target, content: Content, stop: Stop, *, sync: bool) -> tuple[os.stat_result, str | None]:
    """Put new content in place.

    Returns:
        The new file's status, and the name of the recovery copy where the file was changed in place.

    Raises:
        OSError: The system refused; nothing is changed and no temporary is left.
        ToolError: `stale_file`; `io_error`: it is written, but may not last.
    """
    if target.old is not None:
        _refuse_read_only(target)
    with temporary(target.folder, target.name, private=target.old is not None) as new:
        new.write(content, stop)
        if target.old is not None:
            new.take_over(target.old.descriptor, target.old.status)
        if sync:
            os.fsync(new.descriptor)
        stop.check()
        try:
            _rename(target, new)
        except OSError as e:
            if target.old is None or e.errno not in _ONLY_IN_PLACE:
                raise
            return write_in_place(target.folder, target.name, target.old.descriptor, content, sync=sync)
        status = os.fstat(new.descriptor)
    if sync:
        _make_last(target)
    return status, None


def _make_last(target: Target) -> None:
    try:
        target.folder.sync()
    except OSError as e:
        message = f"{target.shown} was written, but the disk did not confirm that it lasts: {e.strerror}."
        hint = "Read the file again, and have the disk looked at."
        raise ToolError(message, code="io_error", hint=hint) from e


def stale(shown: str) -> ToolError:
    """Somebody else changed the file while it was being written."""
    message = f"{shown} was changed by somebody else during this call; nothing was written."
    return ToolError(message, code="stale_file", hint="Read the file again, then decide.", retryable=True)


def _rename(target: Target, new: Temporary) -> None:
    if target.old is None:
        _put_at_free_name(target, new)
    else:
        _replace(target, target.old, new)


def _put_at_free_name(target: Target, new: Temporary) -> None:
    folder = target.folder.descriptor
    try:
        try:
            os.link(new.name, target.name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as e:
            if e.errno not in _NO_HARD_LINKS:
                raise
            if not rename_to_free_name(folder, new.name, target.name):
                _claim_name(folder, target.name)
                os.rename(new.name, target.name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileExistsError:
        raise stale(target.shown) from None
    new.remove()


def _claim_name(folder: int, name: str) -> None:
    """Without hard links and exclusive renames: an empty file holds the name for a moment."""
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder))


def _replace(target: Target, old: Old, new: Temporary) -> None:
    folder = target.folder.descriptor
    if not (holds(folder, target.name, old.status) and old.unchanged(False)):
        raise stale(target.shown)
    try:
        exchanged = exchange(folder, new.name, target.name)
    except FileNotFoundError:
        raise stale(target.shown) from None
    if not exchanged:
        os.rename(new.name, target.name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    if not (holds(folder, new.name, old.status) and old.unchanged(True)):
        _put_back(folder, target.name, new)
        raise stale(target.shown)


def _put_back(folder: int, name: str, new: Temporary) -> None:
    """Give the name back to what somebody put there, and again if they replaced it once more meanwhile."""
    mine = os.fstat(new.descriptor)
    for _ in range(IN_PLACE_ATTEMPTS):
        try:
            exchange(folder, new.name, name)
        except FileNotFoundError:  # they removed the name since, and that stands
            return
        if os.path.samestat(os.stat(new.name, dir_fd=folder, follow_symlinks=False), mine):
            return


def holds(folder: int, name: str, status: os.stat_result) -> bool:
    """Whether a name in an open folder holds the very file of that status."""
    try:
        return os.path.samestat(os.stat(name, dir_fd=folder, follow_symlinks=False), status)
    except FileNotFoundError:
        return False


def _refuse_read_only(target: Target) -> None:
    """A rename needs no permission on the file itself; a write does, and that is what the caller means."""
    own_ids = os.access in os.supports_effective_ids
    if os.access(target.name, os.W_OK, dir_fd=target.folder.descriptor, effective_ids=own_ids):
        return
    try:  # for the reason; the file is not touched
        os.close(os.open(target.name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=target.folder.descriptor))
    except OSError as e:
        if e.errno not in (errno.ETXTBSY, errno.ENOENT):  # a running program may be replaced; what is gone is stale
            raise
