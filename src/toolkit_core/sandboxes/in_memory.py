"""A sandbox that exists only in this process: deterministic, for tests and for planes without a machine."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ToolError
from toolkit_core.limits import PLANE_DEFAULT_ROOT
from toolkit_core.ports.commands import CommandResult
from toolkit_core.ports.files import Entry
from toolkit_core.ports.sandbox import PathStatus
from toolkit_core.sandboxes.client_files import ClientFiles, plane_folder
from toolkit_core.sandboxes.client_search import check_text, placed, starts_at_a_file
from toolkit_core.text import one_line_name
from toolkit_core.tree_search import InMemorySearch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit_core.ports.commands import StreamName
    from toolkit_core.ports.files import Resolved
    from toolkit_core.ports.sandbox import Filesystem
    from toolkit_core.ports.search import GlobFound, GlobQuery, GrepFound, GrepQuery

_NOT_FOUND: Final = CommandResult(127, None, b"", b"command not found\n")


@dataclass(frozen=True)
class MemoryCommand:
    """A command as the handler of an `InMemorySandbox` gets it.

    Attributes:
        command: The command line.
        cwd: The absolute folder that it starts in.
        timeout_seconds: Its limit.
        environment: Variables that it was given.
        files: The files as they are, absolute path -> content; a handler may change them.
    """

    command: str
    cwd: str
    timeout_seconds: float
    environment: Mapping[str, str]
    files: dict[str, bytes]


Answer = CommandResult | str | None
"""A result, its standard output (exit code 0), or None for an unknown command."""

Handler = Callable[[MemoryCommand], Answer | Awaitable[Answer]]


@dataclass
class _State:
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    folders: set[str] = field(default_factory=set[str])
    ticks: dict[str, int] = field(default_factory=dict[str, int])

    def copy(self) -> _State:
        return _State(dict(self.files), set(self.folders), dict(self.ticks))


class InMemorySandbox:
    """A `SandboxClient` in a dictionary: files, search, snapshots; commands are answered by a handler.

    Args:
        files: Path -> content, relative paths from `root`; text is taken as UTF-8.
        root: The folder that exists from the start.
        commands: What runs commands; None: every command exits with 127, as one that nobody knows.

    Attributes:
        calls: Every command that was run.

    Example:
        >>> sandbox = InMemorySandbox({"a.txt": "one"}, commands=lambda call: "hello" if call.command == "hi" else None)
    """

    def __init__(
        self,
        files: Mapping[str, str | bytes] | None = None,
        *,
        root: str = PLANE_DEFAULT_ROOT,
        commands: Handler | None = None,
    ) -> None:
        self._root = plane_folder(root)
        self._handler = commands
        self._state = _State(folders={self._root})
        self._clock = count(1)
        self._numbers = count(1)
        self._snapshots: dict[str, _State] = {}
        self.calls: list[MemoryCommand] = []
        for path, content in (files or {}).items():
            self.put(path, content)

    @property
    def filesystem(self) -> Filesystem:
        """Separate: its files are nobody else's."""
        return "separate"

    @property
    def root(self) -> str:
        """Where relative paths start."""
        return self._root

    @property
    def posix_shell(self) -> bool:
        """No: what cannot be done without a shell there is not offered."""
        return False

    @property
    def files(self) -> dict[str, bytes]:
        """The files as they are, absolute path -> content."""
        return self._state.files

    def put(self, path: str, content: str | bytes) -> None:
        """Set a file, as somebody else would change it; relative paths start at the root."""
        self._put(self._absolute(path), content.encode() if isinstance(content, str) else content)

    async def run(
        self,
        command: str,
        *,
        cwd: str = "",
        timeout_seconds: float = 120.0,
        environment: Mapping[str, str] | None = None,
        on_output: Callable[[StreamName, bytes], None] | None = None,
    ) -> CommandResult:
        """What the handler answers; 127 where it knows nothing."""
        folder = self._absolute(cwd) if cwd else self._root
        if not self._is_folder(folder):
            code = "invalid_arguments" if folder in self.files else "not_found"
            raise ToolError(f"cwd {one_line_name(cwd or folder)} is not a folder.", code=code)
        call = MemoryCommand(command, folder, timeout_seconds, dict(environment or {}), self.files)
        self.calls.append(call)
        answer = self._handler(call) if self._handler is not None else None
        if inspect.isawaitable(answer):
            answer = await answer
        result = CommandResult(0, None, answer.encode(), b"") if isinstance(answer, str) else answer or _NOT_FOUND
        if on_output is not None and result.stdout:
            on_output("stdout", result.stdout)
        if on_output is not None and result.stderr:
            on_output("stderr", result.stderr)
        return result

    async def read_bytes(self, path: str) -> bytes:
        """A whole file."""
        status = await self.stat(path)
        if status.kind == "directory":
            raise ToolError(f"{one_line_name(path)} is a folder, not a file.", code="is_a_directory")
        if status.kind == "missing":
            raise ToolError(f"There is nothing at {one_line_name(path)}.", code="not_found")
        return self.files[status.real]

    async def write_bytes(self, path: str, content: bytes) -> None:
        """Replace a whole file, its folders made."""
        self._put(self._absolute(path), bytes(content))

    async def stat(self, path: str) -> PathStatus:
        """What is at a path; there are no links."""
        real = self._absolute(path)
        if real in self.files:
            # A path below a file, or one with a slash at its end, does not exist (ENOTDIR).
            trouble = "Not a directory" if path.endswith("/") else ""
            kind = "missing" if trouble else "file"
            size = len(self.files[real])
            return PathStatus(real, kind, size, 0o644, f"1:{self._tick(real)}:0:{size}::", trouble)
        if self._is_folder(real):
            return PathStatus(real, "directory")
        above = real
        while (above := above.rpartition("/")[0]) and above not in self.files:
            pass
        return PathStatus(real, "missing", trouble="Not a directory" if above else "")

    async def replace_bytes(self, path: str, content: bytes, *, expected: PathStatus) -> PathStatus:
        """Put a file in place; `stale_file` where it is not what was seen there."""
        now = await self.stat(path)
        if now.kind != expected.kind or now.identity != expected.identity:
            message = f"{one_line_name(path)} was changed by somebody else meanwhile; nothing was written."
            raise ToolError(message, code="stale_file", hint="Read the file again, then decide.", retryable=True)
        await self.write_bytes(path, content)
        return await self.stat(path)

    async def read_range(self, path: str, offset: int, size: int) -> bytes:
        """A part of a file."""
        return (await self.read_bytes(path))[offset : offset + size]

    async def list_directory(self, path: str) -> Sequence[Entry]:
        """All entries of a folder."""
        folder = self._absolute(path)
        if not self._is_folder(folder):
            raise ToolError(f"There is no folder {one_line_name(path)}.", code="not_found")
        prefix = folder.rstrip("/") + "/"
        found: dict[str, bool] = {}
        for known, is_folder in self._all():
            if known.startswith(prefix) and known != folder:
                name, slash, _ = known[len(prefix) :].partition("/")
                found[name] = found.get(name, False) or bool(slash) or is_folder
        return [Entry(name, "directory" if found[name] else "file") for name in sorted(found)]

    async def remove(self, path: str) -> None:
        """Remove a file or a folder with what is in it."""
        target = self._absolute(path)
        prefix = target.rstrip("/") + "/"
        gone = [known for known, _ in self._all() if known == target or known.startswith(prefix)]
        if not gone:
            raise ToolError(f"There is nothing at {one_line_name(path)}.", code="not_found")
        for known in gone:
            self._state.files.pop(known, None)
            self._state.folders.discard(known)

    async def make_folder(self, path: str) -> bool:
        """Make a folder, and those above it; False where it was there."""
        folder = self._absolute(path)
        if self._is_folder(folder):
            return False
        self._make_folders(f"{folder}/.")
        return True

    def search(self, cwd: str) -> _MemorySearch:
        """A search over the files as they are at each call."""
        return _MemorySearch(self, cwd)

    async def snapshot(self) -> str:
        """Keep the present state: "snapshot-1", "snapshot-2" and so on."""
        name = f"snapshot-{next(self._numbers)}"
        self._snapshots[name] = self._state.copy()
        return name

    async def restore(self, snapshot_id: str) -> None:
        """Go back to a kept state."""
        if snapshot_id not in self._snapshots:
            raise ToolError(f"There is no snapshot {snapshot_id!r}.", code="not_found")
        self._state = self._snapshots[snapshot_id].copy()

    def below(self, root: str) -> InMemorySearch:
        """A search over what lies below a folder."""
        prefix = root.rstrip("/") + "/"
        files = {path[len(prefix) :]: data for path, data in self.files.items() if path.startswith(prefix)}
        folders = [path[len(prefix) :] for path in self._state.folders if path.startswith(prefix)]
        return InMemorySearch(files, root=root, folders=folders)

    def _put(self, path: str, content: bytes) -> None:
        if self._is_folder(path):
            raise ToolError(f"{one_line_name(path)} is a folder, not a file.", code="is_a_directory")
        self._make_folders(path)
        self._state.files[path] = content
        self._state.ticks[path] = next(self._clock)

    def _make_folders(self, path: str) -> None:
        """The folders above a path."""
        above = path
        while above := above.rpartition("/")[0]:
            if above in self.files:
                raise ToolError(f"{one_line_name(above)} is a file, not a folder.", code="not_found")
            self._state.folders.add(above)

    def _tick(self, path: str) -> int:
        return self._state.ticks.get(path, 0)

    def _all(self) -> list[tuple[str, bool]]:
        return [*((path, False) for path in self.files), *((path, True) for path in self._state.folders)]

    def _is_folder(self, path: str) -> bool:
        return path == "/" or path in self._state.folders

    def _absolute(self, path: str) -> str:
        if not path or "\0" in path:
            raise ToolError("The path is empty or has a NUL character.", code="invalid_arguments")
        parts: list[str] = []
        for part in (path if path.startswith("/") else f"{self._root}/{path}").split("/"):
            if part == "..":
                parts[-1:] = []
            elif part not in ("", "."):
                parts.append(part)
        return "/" + "/".join(parts)


class _MemorySearch:
    """`Search` over the files of an `InMemorySandbox`."""

    def __init__(self, sandbox: InMemorySandbox, cwd: str) -> None:
        self._sandbox = sandbox
        self._files = ClientFiles(sandbox, cwd)

    async def resolve(self, path: str) -> Resolved:
        """Judge the folder or file that a search starts from."""
        return await self._files.resolve(path)

    async def glob(self, query: GlobQuery) -> GlobFound:
        """Find files and folders by name."""
        check_text("pattern", query.pattern)
        query = await placed(query, self._files)
        root, shown = await self._base(query.path)
        resolved, status = await self._files.look(query.path)
        path = resolved.real
        if status.kind == "missing":
            raise ToolError(f"There is nothing at {one_line_name(query.path)}.", code="not_found")
        if status.kind == "file":
            raise starts_at_a_file(query.path)
        found = await self._sandbox.below(root).glob(replace(query, path=path))
        return replace(found, paths=tuple(shown + name for name in found.paths))

    async def grep(self, query: GrepQuery) -> GrepFound:
        """Find lines by content, with Python's `re`."""
        check_text("pattern", query.pattern)
        check_text("glob", query.glob)
        root, shown = await self._base(query.path)
        resolved, status = await self._files.look(query.path)
        path = resolved.real
        if status.kind == "missing":
            raise ToolError(f"There is nothing at {one_line_name(query.path)}.", code="not_found")
        found = await self._sandbox.below(root).grep(replace(query, path=path))
        rows = tuple(row._replace(path=shown + row.path) for row in found.rows)
        counts = tuple((shown + name, number) for name, number in found.counts)
        return replace(found, rows=rows, counts=counts, engine="memory")

    async def _base(self, path: str) -> tuple[str, str]:
        """The folder that paths are shown from, and what stands before them."""
        resolved = await self._files.resolve(path)
        if resolved.inside:
            return self._files.root, ""
        real = resolved.real
        if real in self._sandbox.files:
            real = real.rpartition("/")[0] or "/"
        return real, f"{real.rstrip('/')}/"
