"""The `Search` port over a client that runs commands in a POSIX shell.

Names come from find(1) and are judged here, by the rules that hold on the host; content is matched there, by
ripgrep where there is one, else by grep(1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.glob_pattern import BadGlobError, GlobPattern, parse_filter, parse_glob
from toolkit_core.ignore_rules import skipped_names
from toolkit_core.limits import SEARCH_BUDGET_SECONDS
from toolkit_core.ports.sandbox import SandboxClient, SupportsSearch
from toolkit_core.sandboxes.client_files import ClientFiles
from toolkit_core.sandboxes.client_grep import count_binary, grep_files
from toolkit_core.sandboxes.plane_paths import look
from toolkit_core.sandboxes.plane_tree import PlaneTree, is_link, list_tree
from toolkit_core.text import first_surrogate, one_line_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit_core.ports.files import Resolved
    from toolkit_core.ports.search import GlobFound, GlobQuery, GrepFound, GrepQuery, Search


def search_of(client: SandboxClient, cwd: str, *, confined: bool = False) -> Search:
    """The client's own search where it has one, else find and ripgrep or grep by commands.

    Args:
        client: The sandbox.
        cwd: The absolute folder that relative paths start at.
        confined: Refuse searches that start outside `cwd`.
    """
    if not isinstance(client, SupportsSearch):
        return ClientSearch(client, cwd, confined=confined)
    own = client.search(cwd)
    return _Confined(own, ClientFiles(client, cwd, confined=True)) if confined else own


class _Confined:
    """A search whose start is judged first."""

    def __init__(self, search: Search, files: ClientFiles) -> None:
        self._search, self._files = search, files

    async def resolve(self, path: str) -> Resolved:
        return await self._files.resolve(path)

    async def glob(self, query: GlobQuery) -> GlobFound:
        await self._files.resolve((await placed(query, self._files)).path)
        return await self._search.glob(query)

    async def grep(self, query: GrepQuery) -> GrepFound:
        await self._files.resolve(query.path)
        return await self._search.grep(query)


@dataclass(frozen=True)
class _Place:
    """Where a search starts: `start` is relative to `root`, `shown` stands before what is found."""

    root: str
    start: str
    shown: str
    is_file: bool


class ClientSearch:
    """Finding files in a sandbox with a filesystem of its own, by commands.

    Args:
        client: The sandbox; it needs a POSIX shell, find, and rg or grep.
        cwd: The absolute folder that relative paths start at.
        confined: Refuse what really lies outside `cwd`.
        budget_seconds: What one search may take.
    """

    def __init__(
        self,
        client: SandboxClient,
        cwd: str,
        *,
        confined: bool = False,
        budget_seconds: float = SEARCH_BUDGET_SECONDS,
    ) -> None:
        self._client = client
        self._files = ClientFiles(client, cwd, confined=confined)
        self._budget_seconds = budget_seconds

    async def resolve(self, path: str) -> Resolved:
        """Judge the folder or file that a search starts from."""
        return await self._files.resolve(path)

    async def glob(self, query: GlobQuery) -> GlobFound:
        """Find files, links and folders by name."""
        check_text("pattern", query.pattern)
        query = await placed(query, self._files)
        pattern = parsed(parse_glob, query.pattern)
        place = await self._place(query.path)
        if place.is_file:
            raise starts_at_a_file(query.path)
        inner = replace(query, path=f"{place.root.rstrip('/')}/{place.start}")
        found, tree = await self._glob(inner, pattern, place, explain=False)
        if not found.paths:
            found, tree = await self._glob(inner, pattern, place, explain=True)
            found = replace(found, literal=await self._is_literal(query))
        return _shown(found, tree, place)

    async def grep(self, query: GrepQuery) -> GrepFound:
        """Find lines by content."""
        check_text("pattern", query.pattern)
        check_text("glob", query.glob)
        if query.glob:
            parsed(parse_filter, query.glob)
        place = await self._place(query.path)
        tree = await self._tree_to_search(query, place)
        search = tree.search(place.root)
        named = not query.include_ignored and search.names_ignored(place.start, query.glob)
        wanted: list[str] = []
        ignored = 0
        for path, is_ignored in search.searched(place.start, query.glob, everything=query.include_ignored):
            if not is_link(tree, path):
                ignored += is_ignored
                if not is_ignored:
                    wanted.append(path)
        found = await grep_files(self._client, query, place.root, wanted, place.shown, self._budget_seconds)
        found = replace(
            found,
            skipped_unreadable=found.skipped_unreadable + tree.unreadable,
            named_ignored=named,
            incomplete=found.incomplete or ("the listing" if tree.incomplete else ""),
        )
        if found.rows or found.counts or found.incomplete:
            return found
        if not query.include_ignored and not named:
            ignored += await self._count_skipped(query, place)
        binary = found.skipped_binary
        if found.engine == "ripgrep":
            binary = max(binary, await count_binary(self._client, query, place.root, wanted, self._budget_seconds))
        return replace(found, skipped_ignored=ignored, skipped_binary=binary)

    async def _place(self, path: str) -> _Place:
        resolved, status = await self._files.look(path)
        if status.kind == "missing":
            reason = f": {status.trouble}" if status.trouble else ""
            raise ToolError(f"There is nothing at {one_line_name(path)}{reason}.", code="not_found")
        if status.kind == "other":
            raise ToolError(f"{one_line_name(path)} is a special file; it was not opened.", code="not_a_file")
        is_file = status.kind == "file"
        if resolved.inside:
            root = resolved.real[: len(resolved.real) - len(resolved.subject)] if resolved.subject != "." else None
            base = resolved.real if root is None else root.rstrip("/") or "/"
            return _Place(base, resolved.real[len(base.rstrip("/")) + 1 :], "", is_file)
        if is_file:
            folder, _, name = resolved.real.rpartition("/")
            return _Place(folder or "/", name, f"{folder}/", is_file)
        return _Place(resolved.real, "", f"{resolved.real.rstrip('/')}/", is_file)

    async def _glob(
        self, query: GlobQuery, pattern: GlobPattern, place: _Place, *, explain: bool
    ) -> tuple[GlobFound, PlaneTree]:
        """One listing and what of it fits; to explain an empty answer, all that could have been meant is listed."""
        folders, rest = pattern.split_folder()
        start = place.start if explain else "/".join([*([place.start] if place.start else []), *folders])
        depth = None
        if not explain and not pattern.has_any_depth:
            depth = max(len(parts) for parts in rest.alternatives)
        skipped = () if query.include_ignored else skipped_names(place.start.split("/"), pattern)
        if explain:
            skipped = () if ".git" not in skipped else (".git",)
        tree = await list_tree(
            self._client,
            place.root,
            start,
            skipped=skipped,
            max_depth=depth,
            rules=not query.include_ignored,
            times=query.sort == "modified",
            timeout_seconds=self._budget_seconds,
        )
        tree = tree or PlaneTree(folders={place.start} if place.start else set())
        if query.sort == "modified":
            return await _newest(tree, query, place), tree
        return await tree.search(place.root).glob(query), tree

    async def _tree_to_search(self, query: GrepQuery, place: _Place) -> PlaneTree:
        if place.is_file:
            return PlaneTree({place.start: b""})
        pattern = parsed(parse_filter, query.glob) if query.glob else None
        tree = await self._list(query, place, skipped_names(place.start.split("/"), pattern))
        if tree is None:
            raise ToolError(f"There is nothing at {one_line_name(query.path)}.", code="not_found")
        return tree

    async def _list(self, query: GrepQuery, place: _Place, skipped: frozenset[str]) -> PlaneTree | None:
        return await list_tree(
            self._client,
            place.root,
            place.start,
            skipped=() if query.include_ignored else skipped,
            max_depth=None,
            rules=not query.include_ignored,
            times=False,
            timeout_seconds=self._budget_seconds,
        )

    async def _count_skipped(self, query: GrepQuery, place: _Place) -> int:
        """Files in folders that were not even listed, `.git` apart."""
        if place.is_file:
            return 0
        tree = await self._list(query, place, frozenset({".git"}))
        if tree is None:
            return 0
        entries = tree.search(place.root).searched(place.start, query.glob, everything=False)
        hidden = [path for path, is_ignored in entries if is_ignored and not is_link(tree, path)]
        return sum("node_modules" in path.split("/") for path in hidden)

    async def _is_literal(self, query: GlobQuery) -> bool:
        """Whether the pattern, taken as a plain name, exists."""
        if not any(c in query.pattern for c in "[{*?\\") or ".." in query.pattern:
            return False
        resolved = await self._files.resolve(f"{query.path}/{query.pattern.lstrip('/')}")
        return (await look(self._client, resolved.absolute)).kind != "missing"


async def placed(query: GlobQuery, files: ClientFiles) -> GlobQuery:
    """The same search with leading `..` and a leading `/` moved from the pattern to the path."""
    text, path = query.pattern, query.path
    if text.startswith("/"):
        root = files.root
        if root != "/" and f"{text}/".startswith(f"{root}/"):
            return replace(query, pattern=text[len(root) :].lstrip("/") or "**", path=root)
        parts = [part for part in text.split("/") if part]
        fixed = 0
        while fixed < len(parts) - 1 and not any(c in parts[fixed] for c in "*?[{\\"):
            fixed += 1
        return replace(query, pattern="/".join(parts[fixed:]) or "*", path="/" + "/".join(parts[:fixed]))
    parts = text.split("/")
    if ".." in parts:
        last = len(parts) - parts[::-1].index("..")
        path, parts = "/".join((path, *parts[:last])).removeprefix("./"), parts[last:]
        if any(c in path for c in "*?[{"):
            raise ToolError(
                "The pattern has '..' behind a part with pattern characters.",
                code="invalid_arguments",
                hint="Give the folder to start from as the path.",
            )
    return replace(query, pattern="/".join(parts) or "*", path=path)


def starts_at_a_file(path: str) -> ToolError:
    """A search by name was given a file to start from."""
    return ToolError(
        f"{one_line_name(path)} is a file; a search by name starts from a folder.",
        code="invalid_arguments",
        hint="Give the folder as the path and the name as the pattern.",
    )


def parsed(parse: Callable[[str], GlobPattern], text: str) -> GlobPattern:
    """A pattern, or `invalid_arguments` with what is wrong with it."""
    try:
        return parse(text)
    except BadGlobError as e:
        raise ToolError(f"{one_line_name(text)!r} is no usable glob pattern: {e}.", code="invalid_arguments") from e


def check_text(what: str, text: str) -> None:
    """Refuse what no text file and no name holds: NUL, a lone surrogate."""
    if "\0" in text:
        message = f"The {what} has a NUL character at index {text.index(chr(0))}; no text file and no name holds one."
        raise ToolError(message, code="invalid_arguments")
    place = first_surrogate(text)
    if place is not None:
        message = f"The {what} has a lone surrogate U+{ord(text[place]):04X} at index {place}."
        raise ToolError(message, code="invalid_arguments")


async def _newest(tree: PlaneTree, query: GlobQuery, place: _Place) -> GlobFound:
    every = replace(query, limit=max(1, len(tree.files) + len(tree.folders)), sort="path")
    found = await tree.search(place.root).glob(every)
    paths = sorted(found.paths, key=lambda path: (-tree.times.get(path.rstrip("/"), 0.0), path))
    return replace(found, paths=tuple(paths[: query.limit]), truncated=len(paths) > query.limit)


def _shown(found: GlobFound, tree: PlaneTree, place: _Place) -> GlobFound:
    return replace(
        found,
        paths=tuple(place.shown + path for path in found.paths),
        unreadable=tree.unreadable,
        incomplete="the listing" if tree.incomplete else "",
    )
