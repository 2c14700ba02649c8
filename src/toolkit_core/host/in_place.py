"""Changing a file in place, where its name is a mount point: with a recovery copy, since nothing is atomic here."""

from __future__ import annotations

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
    copy = recovery_name(name)
    _keep(folder, copy, old, sync=sync)
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


def recovery_name(name: str) -> str:
    """The name of the copy: the file's, hidden and marked, cut where it would be too long."""
    raw = os.fsencode(name)[: NAME_MAX_BYTES - len(RECOVERY_SUFFIX) - 1]
    return f".{os.fsdecode(raw)}{RECOVERY_SUFFIX}"


def _keep(folder: Folder, copy: str, old: int, *, sync: bool) -> None:
    with temporary(folder, copy, private=True) as kept:
        _copy_bytes(old, kept.descriptor)
        kept.take_over(old, os.fstat(old))
        if sync:
            os.fsync(kept.descriptor)
        os.rename(kept.name, copy, src_dir_fd=folder.descriptor, dst_dir_fd=folder.descriptor)
    if sync:
        folder.sync()


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
