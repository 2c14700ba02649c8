"""What the system refused, as a `ToolError`."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from toolkit_core.errors import ErrorCode, ToolError

_CODES: dict[int, ErrorCode] = {
    errno.ENOTDIR: "not_found",
    errno.EISDIR: "is_a_directory",
    errno.ENAMETOOLONG: "invalid_arguments",
}

_NOT_FOUND = ("opened", "read", "listed")
"""Here ENOENT says that the path is missing; a filesystem may also refuse to make files with it (/proc)."""

_HINTS: dict[int, str] = {
    errno.ENOTDIR: "A part of the path before its last name is a file, not a folder.",
    errno.ELOOP: "The links in the path lead in a circle.",
    errno.ENOSPC: "Free space on that filesystem first.",
    errno.EDQUOT: "Free space within the quota first.",
    errno.EFBIG: "The process may not write files of that size.",
    errno.EROFS: "That filesystem is mounted read-only.",
    errno.EACCES: "The user of this process lacks the permission.",
    errno.EPERM: "The user of this process lacks the permission.",
}


def system_refused(error: OSError, shown: str, doing: str) -> ToolError:
    """An operating system's refusal: `io_error` with its errno text, or the code that says it better.

    Args:
        error: What the system raised.
        shown: The path as the model may see it.
        doing: What was attempted, such as "read" or "written".
    """
    number = error.errno or 0
    name = errno.errorcode.get(number, "unknown errno")
    reason = os.strerror(number) if number else str(error)
    code = _CODES.get(number, "io_error")
    if number == errno.ENOENT and doing in _NOT_FOUND:
        return ToolError(f"There is nothing at {shown}.", code="not_found")
    message = f"{shown} cannot be {doing}: {reason} ({name})."
    return ToolError(message, code=code, hint=_HINTS.get(number, ""), retryable=number in (errno.EAGAIN, errno.EINTR))


def let_go(descriptor: int) -> None:
    """Close a descriptor through which nothing was written.

    Such a close may fail on a network filesystem; the descriptor is gone all the same (close(2)), nothing was lost,
    and what else must be closed or removed after it still is.
    """
    with suppress(OSError):
        os.close(descriptor)
