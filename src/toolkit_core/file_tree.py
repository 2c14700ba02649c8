"""A tree of files that exist only in a dict, walked by the rules of a walk on disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from toolkit_core.ignore_rules import IgnoreRules, IgnoreScope, skipped_names, spells_out_ignored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from toolkit_core.glob_pattern import GlobPattern, Step


class Found(NamedTuple):
    """An entry that matches: its path from the root, whether it is a folder, whether it is ignored."""

    path: str
    folder: bool
    ignored: bool


@dataclass
class FileTree:
    """The files, and the folders that follow from them; "" is the root.

    Attributes:
        files: Path from the root -> content.
        folders: Folders that may hold nothing.
    """

    files: Mapping[str, bytes]
    folders: Iterable[str] = ()

    def __post_init__(self) -> None:
        self._entries: dict[str, dict[str, bool]] = {"": {}}
        for folder in self.folders:
            self._add_folder(folder)
        for path in self.files:
            above, _, name = path.rpartition("/")
            self._add_folder(above)
            self._entries[above][name] = False

    def _add_folder(self, path: str) -> None:
        below = ""
        while path not in self._entries:
            self._entries[path] = {below: True} if below else {}
            path, _, below = path.rpartition("/")
        if below:
            self._entries[path][below] = True

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder."""
        return path in self._entries

    def scope(self, start: str) -> tuple[IgnoreScope | None, bool]:
        """The rules of the folders above the start, and whether they ignore it or everything in it."""
        scope: IgnoreScope | None = None
        prefix, ignored = "", False
        for name in start.split("/") if start else ():
            scope = self._with_rules(prefix, scope)
            folder = self.is_folder(prefix + name)
            ignored = ignored or (scope is not None and scope.ignores(prefix + name, name, folder=folder))
            prefix += f"{name}/"
        if scope is not None and self.is_folder(start):
            ignored = ignored or scope.ignores_all_inside(start)
        return scope, ignored

    def names_ignored(self, start: str, pattern: GlobPattern) -> bool:
        """Whether a file filter spells out a name that is ignored."""
        prefix = f"{start}/" if start else ""
        scope = self._with_rules(prefix, self.scope(start)[0])
        return scope is not None and spells_out_ignored(scope, prefix, pattern)

    def walk(
        self, start: str, pattern: GlobPattern, *, named: GlobPattern | None, heed: bool, everything: bool
    ) -> Iterator[Found]:
        """Every matching entry below a folder, ignored ones marked.

        Args:
            start: The folder.
            pattern: Relative to it.
            named: The pattern whose spelled-out names are never skipped.
            heed: Whether .gitignore files count.
            everything: Nothing is skipped.
        """
        skipped = frozenset[str]() if everything else skipped_names(start.split("/"), named)
        scope = self.scope(start)[0] if heed else None
        prefix = f"{start}/" if start else ""
        yield from self._walk(prefix, pattern.start, scope, False, skipped, heed)

    def _walk(
        self, prefix: str, step: Step, scope: IgnoreScope | None, hidden: bool, skipped: frozenset[str], heed: bool
    ) -> Iterator[Found]:
        if heed:
            scope = self._with_rules(prefix, scope)
        for name, folder in sorted(self._entries[prefix.rstrip("/")].items()):
            path, named = prefix + name, step.names(name)
            is_hidden, inner_heed = hidden, heed
            if not named and name in skipped:
                is_hidden = True
            elif heed and scope is not None and scope.ignores(path, name, folder=folder):
                is_hidden, inner_heed = hidden or not named, False
            elif heed and scope is not None and folder and named and scope.ignores_all_inside(path):
                inner_heed = False
            if step.accepts(name):
                yield Found(path, folder, is_hidden)
            inner = step.enter(name) if folder else None
            if inner is not None:
                yield from self._walk(f"{path}/", inner, scope, is_hidden, skipped, inner_heed)

    def _with_rules(self, prefix: str, scope: IgnoreScope | None) -> IgnoreScope | None:
        content = self.files.get(f"{prefix}.gitignore")
        return scope if content is None else IgnoreScope(IgnoreRules.parse(content), len(prefix), scope)
