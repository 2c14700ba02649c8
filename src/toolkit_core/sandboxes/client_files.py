"""The `Files` port over any sandbox client."""

from __future__ import annotations

import asyncio
import posixpath
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from toolkit_core.errors import ErrorCode, ToolError
from toolkit_core.limits import (
    CLIENT_BLOCK_BYTES,
    CLIENT_FILE_MAX_BYTES,
    CLIENT_INLINE_BYTES,
    CLIENT_PROBE_SECONDS,
    CLIENT_RANGED_FILE_BYTES,
    NAME_MAX_BYTES,
    PATH_MAX_BYTES,
)
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
from toolkit_core.ports.sandbox import SupportsList, SupportsReadRange
from toolkit_core.sandboxes.plane_output import whole_output
from toolkit_core.sandboxes.plane_paths import look, put
from toolkit_core.shell_words import assigned
from toolkit_core.text import decoded, one_line_name, raw_name, shown_name
from toolkit_core.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from toolkit_core.ports.files import FileKind
    from toolkit_core.ports.sandbox import PathStatus, SandboxClient

T = TypeVar("T")

_LIST: Final = """\
cd -- "$p" || exit 1
for f in * .[!.]* ..?*; do
  if [ -L "$f" ]; then k=l; elif [ -d "$f" ]; then k=d; elif [ -f "$f" ]; then k=f; elif [ -e "$f" ]; then k=o
  else continue; fi
  printf '%s%s\\0' "$k" "$f"
done
"""
_KINDS: Final[dict[bytes, FileKind]] = {b"l": "link", b"d": "directory", b"f": "file", b"o": "other"}
_CODES: Final[dict[str, ErrorCode]] = {"Not a directory": "not_found", "File name too long": "invalid_arguments"}
_NAMES: Final = {
    "Not a directory": " (ENOTDIR)",
    "File name too long": " (ENAMETOOLONG)",
    "Permission denied": " (EACCES)",
    "Too many levels of symbolic links": " (ELOOP)",
}
_HINTS: Final = {
    "Not a directory": "A part of the path before its last name is a file, not a folder.",
    "Permission denied": "The user of the sandbox lacks the permission.",
    "Too many levels of symbolic links": "The links in the path lead in a circle.",
}


class ClientFiles(Files):
    """Files of a sandbox with a filesystem of its own. Writes are atomic: a temporary file, then a rename.

    The sandbox is the boundary: a path outside `cwd` is read and written like any other, unless `confined`.

    Args:
        client: The sandbox.
        cwd: The absolute folder of the sandbox that relative paths start at.
        confined: Refuse, as `access_denied`, what really lies outside `cwd`.

    Raises:
        ValueError: `cwd` is no absolute path.
    """

    def __init__(self, client: SandboxClient, cwd: str, *, confined: bool = False) -> None:
        self._client = client
        self._cwd = plane_folder(cwd)
        self._confined = confined
        self._turns = Turns()
        self._real_cwd: str | None = None

    @property
    def root(self) -> str:
        """The folder that relative paths start at."""
        return self._cwd

    async def resolve(self, path: str) -> Resolved:
        """Where a path leads in the sandbox; see `Files.resolve`."""
        return (await self.look(path))[0]

    async def read(self, path: str, consume: Callable[[OpenFile], T]) -> T:
        """Fetch a file and run `consume` on it; a large one is fetched in parts where the sandbox can."""
        resolved, status = await self.look(path)
        _refuse_other_than_file(resolved, status)
        return await self._consume(resolved, status, consume)

    async def replace(self, path: str, produce: Callable[[OpenFile | None], Content]) -> Written:
        """Replace a file atomically; writers through this object are serialised, others end in `stale_file`."""
        # By the spelling: two spellings of one file are told apart by what `put` finds there, as `stale_file`.
        async with self._turns.turn(posixpath.normpath(posixpath.join(self._cwd, path))):
            resolved, status = await self.look(path)
            _refuse_folder_spelling(path, resolved, status)
            made, created = await self._produced(resolved, status, produce)
            content = await off_loop(lambda: bytes(made), len(made))
            after = await put(self._client, status, content)
        return Written(resolved, _stat(after), created=created)

    async def list(self, path: str, limit: int) -> Listing:
        """The first entries of a folder by name."""
        resolved, status = await self.look(path)
        shown = one_line_name(resolved.subject)
        if status.kind == "missing":
            raise _missing(shown, status)
        if status.kind == "unknown" and not isinstance(self._client, SupportsList):
            raise ToolError("This sandbox cannot list folders.", code="unsupported")
        if status.kind not in ("directory", "unknown"):
            raise ToolError(f"{shown} is not a folder.", code="invalid_arguments")
        entries = sorted(await self._entries(resolved), key=lambda entry: entry.name)
        return Listing(tuple(entries[:limit]), len(entries))

    async def look(self, path: str) -> tuple[Resolved, PathStatus]:
        """Where a path leads, and what is there. Raises what `resolve` does."""
        _check_path(path)
        absolute = posixpath.join(self._cwd, path)
        _check_path(absolute)
        if self._real_cwd is None:
            self._real_cwd = (await look(self._client, self._cwd)).real
        status = await self._status(absolute)
        root = self._real_cwd
        inside = root == "/" or status.real == root or status.real.startswith(f"{root}/")
        inner = status.real[len(root.rstrip("/")) + 1 :] if inside else status.real
        if self._confined and not inside:
            message = f"{one_line_name(path)} is outside the root {one_line_name(self._cwd)}."
            tail = [part for part in path.split("/") if part not in ("", ".", "..")]
            hint = f"Paths are relative to the root: try {one_line_name('/'.join(tail) or '.')!r}."
            raise ToolError(message, code="access_denied", hint=hint)
        return Resolved(absolute, status.real, inside, shown_name(inner) or "."), status

    async def _status(self, absolute: str) -> PathStatus:
        r"""What is there; a name that was shown with `\xff` stands for the byte where only that file exists."""
        status = await look(self._client, absolute)
        if status.kind == "missing" and (plain := posixpath.normpath(status.real)) != status.real:
            # `..` behind a folder that is missing: it leads back, as on the host.
            status = await look(self._client, plain)
        raw = raw_name(absolute) if status.kind == "missing" else None
        if raw is None:
            return status
        named = await look(self._client, raw)
        return status if named.kind == "missing" else named

    async def _produced(
        self, resolved: Resolved, status: PathStatus, produce: Callable[[OpenFile | None], Content]
    ) -> tuple[Content, bool]:
        """The new content, and whether there is no such file yet."""
        if status.kind == "missing" and not status.trouble:
            return produce(None), True
        _refuse_other_than_file(resolved, status, doing="written")
        if status.kind == "unknown":
            try:
                await self._client.read_bytes(resolved.real)
            except ToolError as e:
                if e.code != "not_found":
                    raise
                return produce(None), True
        return await self._consume(resolved, status, produce), False

    async def _consume(self, resolved: Resolved, status: PathStatus, consume: Callable[[OpenFile], T]) -> T:
        if status.size_bytes > CLIENT_RANGED_FILE_BYTES and isinstance(self._client, SupportsReadRange):
            ranged = _RangedFile(resolved, _stat(status), self._client)
            return await asyncio.to_thread(consume, ranged)
        data = await self._whole(resolved, status)
        file = MemoryOpenFile(resolved, data, _stat(status, len(data)))
        return await off_loop(lambda: consume(file), len(data))

    async def _whole(self, resolved: Resolved, status: PathStatus) -> bytes:
        shown = one_line_name(resolved.subject)
        if status.size_bytes > CLIENT_FILE_MAX_BYTES:
            raise ToolError(
                f"{shown} has {status.size_bytes:,} bytes; this sandbox hands files over whole, "
                f"and at most {CLIENT_FILE_MAX_BYTES:,} are held.",
                code="too_large",
                hint="Work on a part of it, with a command in the sandbox.",
            )
        data = await self._client.read_bytes(resolved.real)
        if not isinstance(data, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]  (a remote may err)
            raise ToolError(f"{shown} came as {type(data).__name__}, not as bytes.", code="io_error")
        if len(data) < status.size_bytes and (await look(self._client, resolved.real)).size_bytes > len(data):
            message = f"{shown} has {status.size_bytes:,} bytes, and only {len(data):,} of them arrived."
            raise ToolError(message, code="io_error", hint="Try again.", retryable=True)
        return data

    async def _entries(self, resolved: Resolved) -> list[Entry]:
        if isinstance(self._client, SupportsList):
            return list(await self._client.list_directory(resolved.real))
        script = f"{assigned('p', resolved.real)}\n{_LIST}"
        output, result = await whole_output(self._client, script, timeout_seconds=CLIENT_PROBE_SECONDS)
        if result.exit_code != 0:
            said = result.stderr.decode("utf-8", "backslashreplace").strip()
            raise ToolError(f"{one_line_name(resolved.subject)} cannot be listed: {said}", code="io_error")
        names = [name for name in output.split(b"\0") if name]
        return [Entry(decoded(name[1:]), _KINDS.get(name[:1], "other")) for name in names]


class _RangedFile:
    """A file that stays in the sandbox: `read_at` runs in a thread and fetches blocks through the event loop."""

    def __init__(self, path: Resolved, stat: FileStat, client: SupportsReadRange) -> None:
        self._path, self._stat, self._client = path, stat, client
        self._loop = asyncio.get_running_loop()
        self._block_at, self._block = 0, b""

    @property
    def path(self) -> Resolved:
        """Where it lies."""
        return self._path

    @property
    def stat(self) -> FileStat:
        """As it was when it was looked at."""
        return self._stat

    def read_at(self, offset: int, size: int) -> bytes:
        """At most `size` bytes from `offset`, at least one before the end."""
        inner = offset - self._block_at
        if not 0 <= inner < len(self._block):
            fetch: Awaitable[bytes] = self._client.read_range(self._path.real, offset, max(size, CLIENT_BLOCK_BYTES))
            self._block = asyncio.run_coroutine_threadsafe(_awaited(fetch), self._loop).result()
            self._block_at, inner = offset, 0
            if not self._block and offset < self._stat.size_bytes:
                message = f"{one_line_name(self._path.subject)} ended at {offset:,} of {self._stat.size_bytes:,} bytes."
                raise ToolError(message, code="io_error", hint="Try again.", retryable=True)
        return self._block[inner : inner + size]


async def _awaited(work: Awaitable[bytes]) -> bytes:
    return await work


async def off_loop(work: Callable[[], T], size_bytes: int) -> T:
    """Run work in a thread where it may take long and there are threads."""
    if size_bytes <= CLIENT_INLINE_BYTES or sys.platform == "emscripten":
        return work()
    return await asyncio.to_thread(work)


def plane_folder(cwd: str) -> str:
    """An absolute POSIX folder of a plane, its `.` and double slashes gone. Raises ValueError."""
    if not cwd.startswith("/") or "\0" in cwd:
        raise ValueError(f"{cwd!r} is no absolute folder of the sandbox")
    return "/" + "/".join(part for part in cwd.split("/") if part not in ("", "."))


def _stat(status: PathStatus, size_bytes: int | None = None) -> FileStat:
    """No times that could be trusted: a change of content is told by its hash."""
    device, _, rest = status.identity.partition(":")
    numbers = [device, *rest.split(":")[:2]]
    known = [int(number) if number.isdigit() else 0 for number in numbers] + [0, 0]
    size = status.size_bytes if size_bytes is None else size_bytes
    return FileStat(size, status.mode, known[0], known[1], known[2] * 1_000_000_000)


def _missing(shown: str, status: PathStatus) -> ToolError:
    if not status.trouble:
        return ToolError(f"There is nothing at {shown}.", code="not_found")
    trouble, code = status.trouble, _CODES.get(status.trouble, "io_error")
    message = f"{shown} cannot be opened: {trouble}{_NAMES.get(trouble, '')}."
    return ToolError(message, code=code, hint=_HINTS.get(trouble, ""))


def _refuse_other_than_file(resolved: Resolved, status: PathStatus, doing: str = "read") -> None:
    shown = one_line_name(resolved.subject)
    if status.kind == "missing":
        raise _missing(shown, status)
    if status.kind == "directory":
        raise ToolError(f"{shown} is a folder, not a file.", code="is_a_directory")
    if status.kind == "other":
        raise ToolError(f"{shown} is a special file, not a file; it was not opened.", code="not_a_file")
    if not status.readable:
        message = f"{shown} cannot be {doing}: Permission denied (EACCES)."
        raise ToolError(message, code="io_error", hint=_HINTS["Permission denied"])


def _refuse_folder_spelling(path: str, resolved: Resolved, status: PathStatus) -> None:
    if status.kind == "directory":
        raise ToolError(f"{one_line_name(resolved.subject)} is a folder, not a file.", code="is_a_directory")
    if path.rsplit("/", 1)[-1] in ("", ".", ".."):
        message = f"The path {one_line_name(path)!r} names a folder by its end; a file is meant here."
        raise ToolError(message, code="invalid_arguments", hint="Give the path of the file itself.")
    if status.trouble == "Not a directory":
        above = one_line_name(posixpath.dirname(resolved.subject))
        raise ToolError(f"{above} is a file or lies below one, so it holds no files.", code="not_a_file")


def _check_path(path: str) -> None:
    if not path:
        raise ToolError("The path is empty.", code="invalid_arguments", hint="Use '.' for the root folder.")
    if "\0" in path:
        hint = "No file name holds it; give the path without it."
        message = f"The path has a NUL character at index {path.index(chr(0))}."
        raise ToolError(message, code="invalid_arguments", hint=hint)
    try:
        data = path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as e:
        message = f"The path has a lone surrogate U+{ord(path[e.start]):04X} at index {e.start}; no file name holds it."
        raise ToolError(message, code="invalid_arguments", hint="Send the whole character.") from None
    if len(data) > PATH_MAX_BYTES:
        message = f"The path is {len(data):,} bytes long; the system takes at most {PATH_MAX_BYTES:,}."
        raise ToolError(message, code="invalid_arguments", hint="Give a shorter path, with fewer or shorter folders.")
    longest = max(map(len, data.split(b"/")))
    if longest > NAME_MAX_BYTES:
        message = f"A name in the path is {longest:,} bytes long; the system takes at most {NAME_MAX_BYTES}."
        raise ToolError(message, code="invalid_arguments", hint="Give a shorter name.")
