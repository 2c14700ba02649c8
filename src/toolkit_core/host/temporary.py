"""The unfinished file of a write: beside its target, locked while the write lives, gone afterwards."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from toolkit_core.host.folders import TEMPORARY_PREFIX, Folder, remove_leftover
from toolkit_core.host.os_errors import let_go
from toolkit_core.limits import FILE_BLOCK_BYTES, WRITE_BLOCK_BYTES

if TYPE_CHECKING:
    from toolkit_core.host.hop import Stop
    from toolkit_core.ports.files import Content

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE_MODE: Final = 0o600
_NEW_MODE: Final = 0o666
_NAMES: Final = 100
"""Names tried beside each other: as many processes may write the same file at once."""

_SMALL_BYTES: Final = 65_536
"""Copying less costs less than a system call of its own would."""

_KEPT_ATTRIBUTES: Final = ("user.", "system.posix_acl_access", "security.selinux")
"""xattr(7): what an owner sets. Capabilities are not carried over, the kernel drops them on a write too."""


class Temporary:
    """An open temporary file: `name` in its folder, `descriptor` for reading and writing."""

    folder: Folder
    name: str
    descriptor: int

    def __init__(self, folder: Folder, name: str, descriptor: int) -> None:
        self.folder, self.name, self.descriptor = folder, name, descriptor

    def write(self, content: Content, stop: Stop) -> None:
        """Write everything. Raises OSError, and `Stopped` between blocks."""
        write_all(self.descriptor, content, stop)

    def take_over(self, old: int, status: os.stat_result) -> None:
        """Give it the owner, mode bits and attributes of the file that it replaces, as far as permitted."""
        mine = os.fstat(self.descriptor)
        mode = status.st_mode & 0o7777
        if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
            try:
                os.fchown(self.descriptor, status.st_uid, status.st_gid)
            except OSError:  # only root gives files away; set-id bits must not pass to another owner
                mode &= 0o1777
        _copy_attributes(old, self.descriptor)
        os.fchmod(self.descriptor, mode)

    def remove(self) -> None:
        """Remove its name; what holds it by now may be the old file."""
        with suppress(FileNotFoundError):
            os.unlink(self.name, dir_fd=self.folder.descriptor)


@contextmanager
def temporary(folder: Folder, target: str, *, private: bool) -> Generator[Temporary]:
    """A temporary file for a target of that name; removed at the end unless it was renamed.

    Its name follows from the target's, so that a later write of the same file finds and removes what a killed
    one left. `private`: nobody else can read it before it has the mode of the file that it replaces; otherwise
    it has what the umask leaves of 0666.
    """
    made = _create(folder, target, _PRIVATE_MODE if private else _NEW_MODE)
    try:
        yield made
    finally:
        with suppress(OSError):
            made.remove()
        os.close(made.descriptor)


def write_all(descriptor: int, content: Content, stop: Stop) -> None:
    """Write all pieces at the descriptor's position, many with one system call.

    Raises:
        OSError: The system refused.
        Stopped: Between blocks, once the call was cancelled.
    """
    small = bytearray()
    for part in (content,) if isinstance(content, bytes) else content.parts:
        if len(part) < _SMALL_BYTES:
            small += part
            if len(small) >= FILE_BLOCK_BYTES:
                _write(descriptor, [memoryview(small)], stop)
                small = bytearray()
            continue
        whole = memoryview(part)
        _write(descriptor, [memoryview(small), whole[:WRITE_BLOCK_BYTES]], stop)
        small = bytearray()
        for at in range(WRITE_BLOCK_BYTES, len(whole), WRITE_BLOCK_BYTES):
            _write(descriptor, [whole[at : at + WRITE_BLOCK_BYTES]], stop)
    _write(descriptor, [memoryview(small)], stop)


def _write(descriptor: int, parts: list[memoryview], stop: Stop) -> None:
    """Write parts with one system call (writev(2)), or more where it takes less."""
    while parts := [part for part in parts if part]:
        stop.check()
        written = os.writev(descriptor, parts)
        for index, part in enumerate(parts):
            taken = min(written, len(part))
            parts[index] = part[taken:]
            written -= taken


def temporary_name(target: str, number: int = 0) -> str:
    """The name of the n-th temporary of a target."""
    digest = sha256(os.fsencode(target)).hexdigest()[:16]
    return f"{TEMPORARY_PREFIX}{digest}" + (f"-{number}" if number else "")


def _create(folder: Folder, target: str, mode: int) -> Temporary:
    for number in range(_NAMES):
        name = temporary_name(target, number)
        for _ in range(2):
            try:
                descriptor = os.open(name, _FLAGS, mode, dir_fd=folder.descriptor)
            except FileExistsError:
                if not remove_leftover(folder, name):
                    break
                continue
            made = Temporary(folder, name, descriptor)
            if _is_mine(made):
                return made
            let_go(descriptor)
    raise OSError(17, f"{_NAMES} unfinished writes of the file exist")


def _lock(descriptor: int) -> bool:
    """Mark the temporary as one whose writer lives; False where a sweep took it for a leftover just before."""
    with suppress(OSError):  # a filesystem without locks: then nobody can lock it to sweep it either
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return os.fstat(descriptor).st_nlink > 0


def _is_mine(made: Temporary) -> bool:
    try:
        return _lock(made.descriptor)
    except BaseException:
        with suppress(OSError):
            made.remove()
        let_go(made.descriptor)
        raise


def _copy_attributes(old: int, new: int) -> None:
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):
        for name in os.listxattr(old):
            if name.startswith(_KEPT_ATTRIBUTES):
                with suppress(OSError):
                    os.setxattr(new, name, os.getxattr(old, name))
