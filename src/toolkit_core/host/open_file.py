"""A regular file of this machine, open for reading, and whether it stayed what it was."""

from __future__ import annotations

import os
import time
from hashlib import sha256
from typing import TYPE_CHECKING

from toolkit_core.limits import FILE_BLOCK_BYTES, RACY_CLOCK_NS
from toolkit_core.ports.files import FileStat, Resolved

if TYPE_CHECKING:
    from toolkit_core.host.hop import Stop


class HostOpenFile:
    """An `OpenFile` over a descriptor, which its owner closes."""

    def __init__(self, path: Resolved, descriptor: int, stop: Stop, *, watch: bool = False) -> None:
        self._path, self._descriptor, self._stop = path, descriptor, stop
        self._status = os.fstat(descriptor)
        self._stat = file_stat(self._status)
        self._digest = sha256() if watch and self._may_change_unseen() else None
        self._digested = 0

    @property
    def path(self) -> Resolved:
        """Where it lies."""
        return self._path

    @property
    def stat(self) -> FileStat:
        """As it was when it was opened."""
        return self._stat

    @property
    def status(self) -> os.stat_result:
        """The same as the system gives it."""
        return self._status

    @property
    def descriptor(self) -> int:
        """The descriptor."""
        return self._descriptor

    def read_at(self, offset: int, size: int) -> bytes:
        """At most `size` bytes from `offset`. Raises OSError, and `Stopped` once the call was cancelled."""
        self._stop.check()
        if not size:  # only whether the call goes on
            return b""
        data = os.pread(self._descriptor, size, offset)
        if self._digest is not None and offset == self._digested:
            self._digest.update(data)
            self._digested += len(data)
        return data

    def unchanged(self, renamed: bool) -> bool:
        """Whether it is as it was when it was opened; `renamed`: a rename, which changes ctime, is known."""
        now = os.fstat(self._descriptor)
        before = self._status
        if (now.st_size, now.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            return False
        if not renamed:  # the bytes are looked at once it cannot be replaced any more
            return now.st_ctime_ns == before.st_ctime_ns
        return self._digest is None or self._digest_now() == self._digest.digest()

    def _may_change_unseen(self) -> bool:
        """Changed so lately that one more change within the same tick of the clock leaves the times as they are."""
        return time.time_ns() - max(self._status.st_mtime_ns, self._status.st_ctime_ns) < RACY_CLOCK_NS

    def _digest_now(self) -> bytes:
        digest, offset = sha256(), 0
        while offset < self._digested:
            block = os.pread(self._descriptor, min(FILE_BLOCK_BYTES, self._digested - offset), offset)
            if not block:
                break
            digest.update(block)
            offset += len(block)
        return digest.digest()


def file_stat(status: os.stat_result) -> FileStat:
    """The system's status as the port has it."""
    return FileStat(
        size_bytes=status.st_size,
        mode=status.st_mode & 0o7777,
        device=status.st_dev,
        inode=status.st_ino,
        mtime_ns=status.st_mtime_ns,
        ctime_ns=status.st_ctime_ns,
    )
