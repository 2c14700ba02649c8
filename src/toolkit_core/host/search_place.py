"""Where a search starts: opened, judged, with the ignore rules that reach it from the folders above."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolkit_core.host.judged import Judged, open_judged, refuse_special
from toolkit_core.host.os_errors import system_refused
from toolkit_core.host.walk import IGNORE_FILE, OPEN_FOLDER, open_below, read_rules
from toolkit_core.ignore_rules import IgnoreScope, skipped_names, spells_out_ignored
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from collections.abc import Generator

    from toolkit_core.glob_pattern import GlobPattern
    from toolkit_core.host.resolve import Roots

_O_PATH: Final = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)


@dataclass(frozen=True)
class Place:
    """An open start of a search.

    Attributes:
        root: Descriptor of the root that holds it.
        start: Descriptor of the folder that is searched; of a file only good for naming it.
        inner: The names that lead from the root to it; none of them is a link.
        is_file: It is a regular file.
        shown: What stands before a path from the root when it is shown: "" or an absolute folder with its slash.
        scope: The ignore rules of the folders above it.
        ignored: It lies in an ignored place, or everything in it is ignored.
        hidden: Paths from the root that a sandbox hides.
    """

    root: int
    start: int
    inner: tuple[str, ...]
    is_file: bool
    shown: str
    scope: IgnoreScope | None
    ignored: bool
    hidden: frozenset[str] = frozenset()

    @property
    def prefix(self) -> str:
        """From the root to the searched folder: "" or ending with `/`."""
        folders = self.inner[:-1] if self.is_file else self.inner
        return "".join(f"{name}/" for name in folders)

    @property
    def argument(self) -> str:
        """The start for a program that runs in the root."""
        return "./" + "/".join(self.inner) if self.inner else "."

    def need_readable(self) -> None:
        """Raise OSError for a file that cannot be opened: an engine would say that nothing in it matches."""
        if self.is_file:
            os.close(open_below(self.root, self.inner, os.O_RDONLY | os.O_NONBLOCK))

    def skipped(self, pattern: GlobPattern | None, *, include_ignored: bool) -> frozenset[str]:
        """The names that are always left out, but for those that the path or the pattern spells out."""
        return frozenset() if include_ignored else skipped_names(self.inner, pattern)

    def names_ignored(self, pattern: GlobPattern | None) -> bool:
        """Whether a file filter spells out a name that is ignored."""
        if pattern is None or self.is_file:
            return False
        rules = read_rules(self.start)
        scope = self.scope if rules is None else IgnoreScope(rules, len(self.prefix), self.scope)
        return scope is not None and spells_out_ignored(scope, self.prefix, pattern)

    def has_uncommon_rules(self) -> bool:
        """Whether its own .gitignore is no plain file, or it or one above is read otherwise by others than by git."""
        above = self.scope
        while above is not None:
            if above.rules.uncommon:
                return True
            above = above.outer
        try:
            os.stat(IGNORE_FILE, dir_fd=self.start, follow_symlinks=False)
        except OSError:
            return False
        rules = None if self.is_file else read_rules(self.start)
        return not self.is_file and (rules is None or rules.uncommon)


@contextmanager
def open_place(roots: Roots, path: str) -> Generator[Place]:
    """Open where a search starts, judged by what was opened.

    Raises:
        ToolError: `not_found`, `access_denied`, `not_a_file` (a FIFO, a device), `invalid_arguments`, `io_error`.
    """
    with open_judged(roots, path) as judged:
        if not judged.is_directory and not judged.is_file:
            raise refuse_special(judged, "searched")
        real, is_file = judged.path.real, judged.is_file
        root, shown = _root_of(roots, real, is_file=is_file)
        descriptors = [os.open(root, OPEN_FOLDER)]
        try:
            start = judged.descriptor if is_file else _opened_folder(judged)
            if not is_file:
                descriptors.append(start)
            tail = real[len(root.rstrip("/")) + 1 :]
            inner = tuple(tail.split("/")) if tail else ()
            scope, ignored = _scope_above(descriptors[0], inner, is_file=is_file)
            above = root.rstrip("/") + "/"
            hidden = frozenset(path[len(above) :] for path in roots.hidden() if path.startswith(above))
            yield Place(descriptors[0], start, inner, is_file, shown, scope, ignored, hidden)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)


def _opened_folder(judged: Judged) -> int:
    try:
        return judged.reopen(OPEN_FOLDER & ~os.O_NOFOLLOW)
    except OSError as e:  # named as it is: the caller's path may be only its beginning
        raise system_refused(e, one_line_name(judged.path.subject), "searched") from e


def _root_of(roots: Roots, real: str, *, is_file: bool) -> tuple[str, str]:
    for root in roots.roots:
        if real == root or real.startswith(root.rstrip("/") + "/"):
            return root, "" if root == roots.root else root.rstrip("/") + "/"
    folder = os.path.dirname(real) if is_file else real
    return folder, folder.rstrip("/") + "/"


def _scope_above(root: int, inner: tuple[str, ...], *, is_file: bool) -> tuple[IgnoreScope | None, bool]:
    """The rules of the folders above the start, and whether they ignore it."""
    scope: IgnoreScope | None = None
    prefix, ignored = "", False
    for index, name in enumerate(inner):
        scope = _with_rules_of(root, inner[:index], prefix, scope)
        last = index == len(inner) - 1
        if scope is not None and scope.ignores(prefix + name, name, folder=not (last and is_file)):
            ignored = True
        prefix += f"{name}/"
    if scope is not None and inner and not is_file and not ignored:
        ignored = scope.ignores_all_inside(prefix.rstrip("/"))
    return scope, ignored


def _with_rules_of(root: int, parts: tuple[str, ...], prefix: str, scope: IgnoreScope | None) -> IgnoreScope | None:
    try:
        folder = open_below(root, parts, OPEN_FOLDER) if parts else os.dup(root)
    except OSError:  # swapped or gone: the search itself will say so
        return scope
    try:
        rules = read_rules(folder)
    finally:
        os.close(folder)
    return scope if rules is None else IgnoreScope(rules, len(prefix), scope)


class Judge:
    """Whether reported files are still regular files inside the root, no link on the way to them.

    The folders of the last file stay open, so that a file beside or near it costs a system call or three.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._open: list[tuple[str, int]] = []

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._leave(0)

    def is_file(self, path: str) -> bool:
        """Judge one path from the root."""
        *folders, name = path.split("/")
        try:
            folder = self._enter(folders)
            return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
        except (OSError, ValueError):
            return False

    def _enter(self, folders: list[str]) -> int:
        """The descriptor of a folder; those that it shares with the one before are open already."""
        shared = 0
        for name, (opened, _) in zip(folders, self._open, strict=False):
            if name != opened:
                break
            shared += 1
        self._leave(shared)
        for name in folders[shared:]:
            if name in ("", ".", ".."):
                raise ValueError(name)
            above = self._open[-1][1] if self._open else self._root
            self._open.append((name, os.open(name, _O_PATH | OPEN_FOLDER, dir_fd=above)))
        return self._open[-1][1] if self._open else self._root

    def _leave(self, keep: int) -> None:
        while len(self._open) > keep:
            os.close(self._open.pop()[1])
