"""A `Files` port in memory: for tests of tools and of programs that use them, without a disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import TypeVar

from toolkit_core.errors import ToolError
from toolkit_core.ports.files import (
    Content,
    Entry,
    Files,
    FileStat,
    Listing,
    MemoryOpenFile,
    OpenFile,
    Resolved,
    Written,
)
from toolkit_core.text import first_surrogate

T = TypeVar("T")


class MemoryFiles(Files):
    """Files in a dictionary, below one root; no links, no special files.

    Args:
        files: Path relative to the root -> content; text is taken as UTF-8.
        root: The absolute path that the root pretends to have.

    Attributes:
        contents: Path relative to the root -> bytes, as they are now.
    """

    def __init__(self, files: Mapping[str, str | bytes] | None = None, *, root: str = "/workspace") -> None:
        self._root = root.rstrip("/")
        self._ticks: Iterator[int] = count(1)
        self._stats: dict[str, FileStat] = {}
        self.contents: dict[str, bytes] = {}
        for path, content in (files or {}).items():
            self.put(path, content)

    def put(self, path: str, content: str | bytes) -> None:
        """Set a file, as somebody else would change it."""
        self.contents[path] = content.encode("utf-8") if isinstance(content, str) else content
        self._stats[path] = self._stat(path)

    def _stat(self, path: str) -> FileStat:
        tick = next(self._ticks)
        return FileStat(len(self.contents[path]), device=1, inode=tick, mtime_ns=tick, ctime_ns=tick)

    async def resolve(self, path: str) -> Resolved:
        """Judge a path: `..` is taken away as there are no links."""
        if not path or "\0" in path or first_surrogate(path) is not None:
            message = "The path is empty or has a NUL or a lone surrogate."
            raise ToolError(message, code="invalid_arguments", hint="Give another path.")
        absolute = path if path.startswith("/") else f"{self._root}/{path}"
        parts: list[str] = []
        for part in absolute.split("/"):
            if part == "..":
                parts[-1:] = []
            elif part not in ("", "."):
                parts.append(part)
        real = "/" + "/".join(parts)
        if real != self._root and not real.startswith(f"{self._root}/"):
            hint = "Paths are relative to the root."
            raise ToolError(f"{path} is outside the root {self._root}.", code="access_denied", hint=hint)
        return Resolved(absolute, real, True, real[len(self._root) + 1 :] or ".")

    async def read(self, path: str, consume: Callable[[OpenFile], T]) -> T:
        """See `Files.read`."""
        resolved = await self.resolve(path)
        file = self._open(resolved)
        if file is None:
            hint = "List the folder to see its names."
            raise ToolError(f"There is nothing at {resolved.subject}.", code="not_found", hint=hint)
        return consume(file)

    async def replace(self, path: str, produce: Callable[[OpenFile | None], Content]) -> Written:
        """See `Files.replace`."""
        resolved = await self.resolve(path)
        old = self._open(resolved)
        content = bytes(produce(old))
        self.put(resolved.subject, content)
        return Written(resolved, self._stats[resolved.subject], created=old is None)

    async def list(self, path: str, limit: int) -> Listing:
        """See `Files.list`."""
        resolved = await self.resolve(path)
        if not self._is_folder(resolved.subject):
            code = "invalid_arguments" if resolved.subject in self.contents else "not_found"
            raise ToolError(f"{resolved.subject} is no folder.", code=code)
        prefix = "" if resolved.subject == "." else f"{resolved.subject}/"
        names = {name[len(prefix) :] for name in self.contents if name.startswith(prefix)}
        entries = {rest.split("/")[0]: "/" in rest for rest in names}
        listed = [Entry(name, "directory" if entries[name] else "file") for name in sorted(entries)]
        return Listing(tuple(listed[:limit]), len(listed))

    def _is_folder(self, subject: str) -> bool:
        return subject == "." or any(name.startswith(f"{subject}/") for name in self.contents)

    def _open(self, resolved: Resolved) -> MemoryOpenFile | None:
        subject = resolved.subject
        if self._is_folder(subject):
            hint = "Give the path of a file in it."
            raise ToolError(f"{subject} is a folder, not a file.", code="is_a_directory", hint=hint)
        data = self.contents.get(subject)
        return None if data is None else MemoryOpenFile(resolved, data, self._stats[subject])
