"""An open file as bytes in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from toolkit_core.ports.files import OpenFile


def read_whole(file: OpenFile, max_bytes: int) -> bytes:
    """All bytes of a file, in one piece where its size is true; counted as they come, whatever the size says.

    Raises:
        ToolError: `too_large`.
        OSError: Reading failed.
    """
    if file.stat.size_bytes > max_bytes:
        raise _too_large(file, max_bytes)
    data = file.read_at(0, file.stat.size_bytes + 1)
    if len(data) == file.stat.size_bytes:
        return data
    parts, size = [data], len(data)
    while more := file.read_at(size, max_bytes + 1 - size):
        parts.append(more)
        size += len(more)
        if size > max_bytes:
            raise _too_large(file, max_bytes)
    return b"".join(parts)


def _too_large(file: OpenFile, max_bytes: int) -> ToolError:
    size = f"{file.stat.size_bytes:,} bytes" if file.stat.size_bytes > max_bytes else f"more than {max_bytes:,} bytes"
    message = f"{one_line_name(file.path.subject)} has {size}; at most {max_bytes:,} are read at once."
    return ToolError(message, code="too_large", hint="Work on a part of it, with a program that streams.")
