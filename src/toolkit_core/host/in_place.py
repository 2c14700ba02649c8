"""Changing a file in place, where its name is a mount point: with a recovery copy, since nothing is atomic here."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ToolError
from toolkit_core.host.hop import Stop
from toolkit_core.host.judged import reopened
from toolkit_core.host.temporary import temporary, write_all
from toolkit_core.limits import FILE_BLOCK_BYTES, NAME_MAX_BYTES
from toolkit_core.ports.files import Content, Pieces

if TYPE_CHECKING:
    from toolkit_core.host.folders import Folder

RECOVERY_SUFFIX: Final = ".toolkit-recovery"
_COPIES: Final = 1_000
_copies: Final[set[tuple[int, int]]] = set()
"""Device and inode of the copies that this process made: the next write of the same file may replace its own."""


def write_in_place(
    folder: Folder, name: str, old: int, content: Content, *, sync: bool
) -> tuple[os.stat_result, str | None]:
    """Keep the old bytes beside the file, then overwrite it; it is not interrupted, and undone where it fails.

    Returns:
        The file's status and the name of the copy, which stays.

    Raises:
        OSError: The system refused; the old bytes are back in place and the copy is gone.
        ToolError: `io_error`: the old bytes could not be put back; the text names the copy.
    """
    copy = _keep(folder, name, old, sync=sync)
    descriptor = reopened(old, os.path.join(folder.real, name), os.O_WRONLY)
    try:
        _overwrite(descriptor, content)
        if sync:
            os.fsync(descriptor)
        return os.fstat(descriptor), copy
    except OSError as e:
        _undo(folder, copy, descriptor, e)
        raise
    finally:
        os.close(descriptor)


def recovery_name(name: str, number: int = 0) -> str:
    """The name of a copy: the file's, hidden and marked, cut where it would be too long."""
    suffix = f"{RECOVERY_SUFFIX}-{number}" if number else RECOVERY_SUFFIX
    raw = os.fsencode(name)[: NAME_MAX_BYTES - len(suffix) - 1]
    return f".{os.fsdecode(raw)}{suffix}"


def _keep(folder: Folder, name: str, old: int, *, sync: bool) -> str:
    """Copy the old bytes beside the file; the name of the copy."""
    with temporary(folder, recovery_name(name), private=True) as kept:
        _copy_bytes(old, kept.descriptor)
        kept.take_over(old, os.fstat(old))
        if sync:
            os.fsync(kept.descriptor)
        copy = _own_name(folder, name)
        os.rename(kept.name, copy, src_dir_fd=folder.descriptor, dst_dir_fd=folder.descriptor)
        status = os.fstat(kept.descriptor)
        if len(_copies) >= _COPIES:
            _copies.clear()
        _copies.add((status.st_dev, status.st_ino))
    if sync:
        folder.sync()
    return copy


def _own_name(folder: Folder, name: str) -> str:
    """A free name, or that of a copy that this process made: what else lies there, a killed write's copy too, stays."""
    for number in range(_COPIES):
        copy = recovery_name(name, number)
        try:
            status = os.stat(copy, dir_fd=folder.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return copy
        if (status.st_dev, status.st_ino) in _copies:
            return copy
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _overwrite(descriptor: int, content: Content) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    write_all(descriptor, content, Stop())
    os.ftruncate(descriptor, len(content))


def _undo(folder: Folder, copy: str, descriptor: int, reason: OSError) -> None:
    kept = os.open(copy, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.descriptor)
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        _copy_bytes(kept, descriptor)
        os.ftruncate(descriptor, os.fstat(kept).st_size)
    except OSError as e:
        message = f"The file could not be written ({reason.strerror}), nor its old content put back ({e.strerror})."
        hint = f"The old content is in {copy} in the same folder."
        raise ToolError(message, code="io_error", hint=hint) from reason
    finally:
        os.close(kept)
    os.unlink(copy, dir_fd=folder.descriptor)


def _copy_bytes(source: int, destination: int) -> None:
    offset = 0
    while block := os.pread(source, FILE_BLOCK_BYTES, offset):
        write_all(destination, Pieces([block]), Stop())
        offset += len(block)
