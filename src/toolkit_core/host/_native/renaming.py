"""renameat2(2) of Linux and renameatx_np(2) of macOS: exchange two names, or rename only to a free name."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache
from typing import Any, Final

_UNSUPPORTED: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP})

if sys.platform == "darwin":
    _CALL, _EXCHANGE, _NOREPLACE = "renameatx_np", 2, 4  # RENAME_SWAP, RENAME_EXCL of <sys/stdio.h>
else:
    _CALL, _EXCHANGE, _NOREPLACE = "renameat2", 2, 1  # RENAME_EXCHANGE, RENAME_NOREPLACE of <linux/fs.h>


def exchange(folder: int, one: str, other: str) -> bool:
    """Exchange two names of an open folder atomically.

    Returns:
        False where the system or the filesystem cannot.

    Raises:
        OSError: It can, and refused: ENOENT, EBUSY (a mount point), EXDEV, ...
    """
    return _rename(folder, one, other, _EXCHANGE)


def rename_to_free_name(folder: int, one: str, other: str) -> bool:
    """Rename inside an open folder unless the new name exists (OSError EEXIST); False where it cannot."""
    return _rename(folder, one, other, _NOREPLACE)


def _rename(folder: int, one: str, other: str, flags: int) -> bool:
    function = _function()
    if function is None:
        return False
    result = function(folder, os.fsencode(one), folder, os.fsencode(other), flags)
    if result == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), other)


@cache
def _function() -> Any:
    """The C function; None where the C library lacks it (glibc before 2.28, other systems)."""
    function = getattr(ctypes.CDLL(None, use_errno=True), _CALL, None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
        function.restype = ctypes.c_int
    return function
