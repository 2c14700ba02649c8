"""Files and search of a sandbox client with a filesystem of its own, over nothing but the client's methods."""

from __future__ import annotations

import asyncio
import posixpath
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from toolkit_core.errors import ToolError
from toolkit_core.glob_pattern import BadGlobError, parse_glob
from toolkit_core.ports.files import (
    Content,
    Entry,
    Files,
    FileStat,
    Listing,
    OpenFile,
    Resolved,
    Written,
)  # fmt: skip
from toolkit_core.ports.sandbox import SandboxClient, SupportsList, SupportsSearch
from toolkit_core.ports.search import GlobFound, GlobQuery, GrepFound, GrepQuery, Row, Search
from toolkit_core.turns import Turns

if TYPE_CHECKING:
    from toolkit_core.ports.commands import CommandResult

T = TypeVar("T")

_SECONDS: Final = 60.0
_LIST_FOLDER: Final = (
    'cd -- {path} && for f in * .[!.]* ..?*; do if [ -d "$f" ]; then printf "d%s\\0" "$f"; '
    'elif [ -e "$f" ] || [ -L "$f" ]; then printf "f%s\\0" "$f"; fi; done'
)
"""POSIX sh, since a sandbox may have no find(1) with -printf."""

_GREP_ROW: Final = re.compile(r"(?P<path>.*?):(?P<line>[0-9]+):(?P<text>.*)")


@dataclass(frozen=True)
class BytesFile:
    """A whole file that was fetched."""

    path: Resolved
    content: bytes
    mode: int = 0o644

    @property
    def stat(self) -> FileStat:
        """Its size; the client tells no times."""
        return FileStat(len(self.content), self.mode)

    def read_at(self, offset: int, size: int) -> bytes:
        """At most `size` bytes from `offset`."""
        return self.content[offset : offset + size]


class ClientFiles(Files):
    """The `Files` port over a client: whole files, no links known."""

    def __init__(self, client: SandboxClient, root: str) -> None:
        self._client, self._root = client, root
        self._turns = Turns()

    async def resolve(self, path: str) -> Resolved:
        """Judge a path by its spelling: the sandbox is the boundary, the root keeps things in their place."""
        if not path or "\0" in path:
            raise ToolError("the path is empty or holds a NUL", code="invalid_arguments")
        absolute = posixpath.normpath(posixpath.join(self._root, path))
        inside = self._root == "/" or absolute == self._root or absolute.startswith(f"{self._root}/")
        if not inside:
            hint = f"Give a path below {self._root}."
            raise ToolError(f"{path} is outside the root {self._root}", code="access_denied", hint=hint)
        return Resolved(absolute, absolute, inside, posixpath.relpath(absolute, self._root))

    async def read(self, path: str, consume: Callable[[OpenFile], T]) -> T:
        """Fetch the file, then run `consume` in a worker thread."""
        resolved = await self.resolve(path)
        return await asyncio.to_thread(consume, await self._fetched(resolved))

    async def replace(self, path: str, produce: Callable[[OpenFile | None], Content]) -> Written:
        """Replace a whole file; callers of this object are serialised, others are not known."""
        resolved = await self.resolve(path)
        async with self._turns.turn(resolved.real):
            try:
                old = await self._fetched(resolved)
            except ToolError as e:
                if e.code != "not_found":
                    raise
                old = None
            made = await asyncio.to_thread(produce, old)
            content = bytes(made)
            await self._client.write_bytes(resolved.real, content)
        return Written(resolved, FileStat(len(content)), created=old is None)

    async def list(self, path: str, limit: int) -> Listing:
        """The entries by name."""
        resolved = await self.resolve(path)
        entries = sorted(await self._entries(resolved), key=lambda entry: entry.name)
        return Listing(tuple(entries[:limit]), len(entries))

    async def _fetched(self, resolved: Resolved) -> BytesFile:
        quoted = shlex.quote(resolved.real)
        probe = (
            f"[ -d {quoted} ] && exit 64; [ -e {quoted} ] || exit 65; [ -f {quoted} ] || exit 66; ls -ld -- {quoted}"
        )
        found = await self._client.run(probe, timeout_seconds=_SECONDS)
        refusals = {
            64: ("is_a_directory", "is a directory"),
            65: ("not_found", "does not exist"),
            66: ("not_a_file", "is no regular file"),
        }
        if found.exit_code in refusals:
            code, words = refusals[found.exit_code]
            raise ToolError(f"{resolved.absolute} {words}", code=code)  # pyright: ignore[reportArgumentType]  (codes)
        mode = 0o444 if b"r" in found.stdout[1:10] or found.exit_code != 0 else 0
        return BytesFile(resolved, await self._client.read_bytes(resolved.real), mode)

    async def _entries(self, resolved: Resolved) -> list[Entry]:
        if isinstance(self._client, SupportsList):
            return list(await self._client.list_directory(resolved.real))
        command = _LIST_FOLDER.format(path=shlex.quote(resolved.real))
        found = await self._client.run(command, timeout_seconds=_SECONDS)
        if found.exit_code != 0:
            raise ToolError(f"there is no folder {resolved.absolute}", code="not_found")
        names = [name.decode("utf-8", "surrogateescape") for name in found.stdout.split(b"\0") if name]
        return [Entry(name[1:], "directory" if name[0] == "d" else "file") for name in names]


class ClientSearch(Search):
    """The `Search` port by find(1) and grep(1) in the sandbox; nothing is ignored."""

    def __init__(self, client: SandboxClient, files: ClientFiles, root: str) -> None:
        self._client, self._files, self._root = client, files, root

    async def resolve(self, path: str) -> Resolved:
        """As the files do."""
        return await self._files.resolve(path)

    async def glob(self, query: GlobQuery) -> GlobFound:
        """Every path below the folder that matches the pattern, sorted."""
        try:
            pattern = parse_glob(query.pattern)
        except BadGlobError as e:
            raise ToolError(str(e), code="invalid_arguments") from e
        resolved = await self.resolve(query.path)
        folders, others = await self._walk(resolved, "-type d"), await self._walk(resolved, "! -type d")
        matching = [f"{name}/" for name in folders if pattern.matches(name, folder=True)]
        matching += [name for name in others if pattern.matches(name)]
        prefix = "" if resolved.subject == "." else f"{resolved.subject}/"
        paths = sorted(prefix + name for name in matching)
        return GlobFound(tuple(paths[: query.limit]), truncated=len(paths) > query.limit)

    async def _walk(self, resolved: Resolved, kind: str) -> list[str]:
        found = await self._run(f"cd -- {shlex.quote(resolved.real)} && find . {kind} -exec printf '%s\\0' {{}} +")
        names = [name.decode("utf-8", "backslashreplace") for name in found.stdout.split(b"\0")]
        return [name[2:] for name in names if name.startswith("./")]

    async def grep(self, query: GrepQuery) -> GrepFound:
        """Lines of text files that hold the text, in order of path and line."""
        try:
            wanted = parse_glob(query.glob, any_depth=True) if query.glob else None
        except BadGlobError as e:
            raise ToolError(str(e), code="invalid_arguments") from e
        resolved = await self.resolve(query.path)
        how = "-F" if query.fixed_strings else "-E"
        pattern = shlex.quote(query.pattern)
        command = f"cd -- {shlex.quote(self._root)} && grep -rnHI {how} -e {pattern} -- {shlex.quote(resolved.subject)}"
        found = await self._run(command, fine=(0, 1))
        rows = [row for line in found.stdout.decode("utf-8", "backslashreplace").split("\n") if (row := _row(line))]
        if wanted is not None:
            rows = [row for row in rows if wanted.matches(row.path)]
        rows.sort(key=lambda row: (row.path, row.line))
        cut = len(rows) > query.limit or found.stdout_cut > 0
        return GrepFound(tuple(rows[: query.limit]), truncated=cut, engine="grep")

    async def _run(self, command: str, fine: tuple[int, ...] = (0,)) -> CommandResult:
        result = await self._client.run(command, timeout_seconds=_SECONDS)
        if result.exit_code not in fine:
            said = result.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
            missing = bool(said) and ("No such file" in said[-1] or "can't cd" in said[-1])
            raise ToolError(said[-1] if said else "the search ended early", code="not_found" if missing else "io_error")
        return result


def _row(line: str) -> Row | None:
    found = _GREP_ROW.fullmatch(line)
    return (
        None
        if found is None
        else Row(found["path"].removeprefix("./"), int(found["line"]), found["text"].removesuffix("\r"))
    )


def search_of(client: SandboxClient, files: ClientFiles, root: str) -> Search:
    """The client's own search where it has one, else find and grep."""
    return _OwnSearch(client, files) if isinstance(client, SupportsSearch) else ClientSearch(client, files, root)


class _OwnSearch(Search):
    def __init__(self, client: SupportsSearch, files: ClientFiles) -> None:
        self._client, self._files = client, files

    async def resolve(self, path: str) -> Resolved:
        return await self._files.resolve(path)

    async def glob(self, query: GlobQuery) -> GlobFound:
        return await self._client.glob(query)

    async def grep(self, query: GrepQuery) -> GrepFound:
        return await self._client.grep(query)
