"""A walk below an open folder that cannot leave it: folders are opened from their parents, no link is followed.

A folder that is swapped for a link meanwhile is not entered (O_NOFOLLOW, open(2)). Names come in order, so that a
walk that stops at a limit has seen the first ones of the whole tree.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from toolkit_core.glob_pattern import Step
from toolkit_core.ignore_rules import IgnoreRules, IgnoreScope, Suspects
from toolkit_core.limits import IGNORE_FILE_MAX_BYTES, SEARCH_OPEN_FOLDERS
from toolkit_core.ports.files import FileKind

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

OPEN_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
IGNORE_FILE: Final = ".gitignore"


Found = tuple[str, FileKind, bool, int]
"""An entry that matches: its path from the folder where the walk started; "file", "directory" or "link" (FIFOs,
sockets and devices are left out); whether it or a folder above it is ignored (only with `show_ignored`); its
modification time in nanoseconds (only with `times`). A plain tuple, since there are many."""


@dataclass
class Walk:
    """What a walk heeds, and what it counted.

    Attributes:
        skipped: Names left out wherever they stand, unless the pattern spells them out.
        heed: Whether .gitignore files count at all.
        show_ignored: Enter and yield what is ignored, marked; `.git` stays out.
        times: Yield modification times.
        files_only: Yield regular files alone.
        hidden: Paths, from where the prefix starts, that are neither yielded nor entered.
        check: Called once a folder; raises to end the walk.
        unreadable: Folders that could not be read.
        entries: Entries that were looked at.
        uncommon: Whether a .gitignore was met that others may read otherwise, or that is no plain file.
    """

    skipped: frozenset[str] = frozenset()
    heed: bool = True
    show_ignored: bool = False
    times: bool = False
    files_only: bool = False
    hidden: frozenset[str] = frozenset()
    check: Callable[[], None] = field(default=lambda: None)
    unreadable: int = 0
    entries: int = 0
    uncommon: bool = False

    def run(self, folder: int, step: Step, scope: IgnoreScope | None, *, prefix: str = "") -> Generator[Found]:
        """Every matching entry below an open folder, in order of path.

        Args:
            folder: Its descriptor; it stays open and the caller's.
            step: The pattern's state in it.
            scope: The ignore rules of the folders above, for paths that begin with `prefix`.
            prefix: From the folder that the rules are relative to: "" or ending with `/`.
        """
        return _Descent(self, folder, prefix).run(step, scope)


_Entry = tuple[str, FileKind | None, Step | None, bool, int]
"""Name, what it is where it matches, the state inside it where it is entered, ignored, time."""


@dataclass(slots=True)
class _Frame:
    """One folder of the descent: what is left of it."""

    path: str
    entries: list[_Entry]
    scope: IgnoreScope | None
    ignored: bool
    descriptor: int | None = None


class _Descent:
    def __init__(self, walk: Walk, top: int, prefix: str) -> None:
        self._walk, self._top, self._prefix = walk, top, prefix
        self._frames: list[_Frame] = []

    def run(self, step: Step, scope: IgnoreScope | None) -> Generator[Found]:
        try:
            self._enter(os.open(".", OPEN_FOLDER, dir_fd=self._top), "", step, scope, False)
            while self._frames:
                frame = self._frames[-1]
                path, entries = frame.path, frame.entries
                while entries:
                    name, kind, inner, ignored, mtime_ns = entries.pop()
                    if kind is not None:
                        yield path + name, kind, ignored, mtime_ns
                    if inner is not None:
                        self._descend(frame, name, inner, ignored)
                        break
                else:
                    self._leave()
        finally:
            while self._frames:
                self._leave()

    def _leave(self) -> None:
        frame = self._frames.pop()
        if frame.descriptor is not None:
            os.close(frame.descriptor)

    def _descend(self, frame: _Frame, name: str, step: Step, ignored: bool) -> None:
        path = f"{frame.path}{name}/"
        try:
            if frame.descriptor is not None:
                descriptor = os.open(name, OPEN_FOLDER, dir_fd=frame.descriptor)
            else:
                descriptor = open_below(self._top, path.rstrip("/").split("/"), OPEN_FOLDER)
        except FileNotFoundError:
            return
        except OSError:  # swapped for a link or a file, or not permitted
            self._walk.unreadable += 1
            return
        self._enter(descriptor, path, step, frame.scope, ignored)

    def _enter(self, descriptor: int, path: str, step: Step, scope: IgnoreScope | None, ignored: bool) -> None:
        frame = _Frame(path, [], scope, ignored, descriptor)
        self._frames.append(frame)
        self._walk.check()
        folders: list[os.DirEntry[str]] = []
        hits: list[os.DirEntry[str]] = []
        try:
            has_rules = self._list(descriptor, step, folders, hits)
        except OSError:
            self._walk.unreadable += 1
            return
        if has_rules and self._walk.heed and not ignored:
            rules = read_rules(descriptor)
            self._walk.uncommon |= rules is None or rules.uncommon
            if rules is not None:
                frame.scope = IgnoreScope(rules, len(self._prefix + path), scope)
        self._choose(frame, step, folders, hits)
        if len(self._frames) > SEARCH_OPEN_FOLDERS or not folders:
            os.close(descriptor)
            frame.descriptor = None

    def _list(self, descriptor: int, step: Step, folders: list[os.DirEntry[str]], hits: list[os.DirEntry[str]]) -> bool:
        """Sort a folder's entries into folders and matching others; whether it has a .gitignore."""
        accepts, has_rules = step.accepts, False
        others = 0
        with os.scandir(descriptor) as listing:
            for entry in listing:
                name = entry.name
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry)
                    continue
                others += 1
                if accepts(name):
                    hits.append(entry)
                if name == IGNORE_FILE:
                    has_rules = True
        self._walk.entries += others + len(folders)
        return has_rules

    def _choose(self, frame: _Frame, step: Step, folders: list[os.DirEntry[str]], hits: list[os.DirEntry[str]]) -> None:
        """The entries to yield and to enter, in falling order of name."""
        scope = None if frame.ignored else frame.scope
        suspects = _nothing if scope is None else scope.suspects(self._prefix + frame.path)
        if hits:
            self._choose_hits(frame, step, hits, suspects)
        if folders:
            self._choose_folders(frame, step, folders, suspects)
        if len(frame.entries) > 1:
            frame.entries.sort(key=_name, reverse=True)

    def _choose_hits(self, frame: _Frame, step: Step, hits: list[os.DirEntry[str]], suspects: Suspects) -> None:
        walk, choose, hidden = self._walk, frame.entries.append, frame.ignored
        skipped, links, times = walk.skipped, not walk.files_only, walk.times
        for entry in hits:
            name = entry.name
            if walk.hidden and f"{self._prefix}{frame.path}{name}" in walk.hidden:
                continue
            kind: FileKind = "file"
            if not entry.is_file(follow_symlinks=False):
                if not links or not entry.is_symlink():
                    continue
                kind = "link"
            ignored: bool | None = hidden
            if name in skipped or suspects(name):
                ignored = self._is_ignored(frame, step, name, folder=False)
                if ignored is None:
                    continue
            choose((name, kind, None, ignored, _mtime_ns(entry) if times else 0))

    def _choose_folders(self, frame: _Frame, step: Step, folders: list[os.DirEntry[str]], suspects: Suspects) -> None:
        walk = self._walk
        for entry in folders:
            name = entry.name
            if walk.hidden and f"{self._prefix}{frame.path}{name}" in walk.hidden:
                continue
            hit: FileKind | None = "directory" if not walk.files_only and step.accepts(name) else None
            inner = step.enter(name)
            if hit is None and inner is None:
                continue
            ignored: bool | None = frame.ignored
            if name in walk.skipped or suspects(name):
                ignored = self._is_ignored(frame, step, name, folder=True)
                if ignored is None:
                    continue
            if frame.scope is not None and not ignored and step.names(name):
                ignored = frame.scope.ignores_all_inside(f"{self._prefix}{frame.path}{name}")
            frame.entries.append((name, hit, inner, ignored, _mtime_ns(entry) if walk.times and hit else 0))

    def _is_ignored(self, frame: _Frame, step: Step, name: str, *, folder: bool) -> bool | None:
        """Whether an entry counts as ignored; None where it is left out."""
        walk = self._walk
        if name in walk.skipped and not step.names(name):
            return True if walk.show_ignored and name != ".git" else None
        path = f"{self._prefix}{frame.path}{name}"
        if frame.ignored or frame.scope is None or not frame.scope.ignores(path, name, folder=folder):
            return frame.ignored
        return True if walk.show_ignored or step.names(name) else None


def _name(entry: _Entry) -> str:
    return entry[0]


def _nothing(name: str) -> bool:
    return False


def _mtime_ns(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:  # gone meanwhile
        return 0


def open_below(top: int, parts: Sequence[str], flags: int) -> int:
    """Open a path below an open folder part by part; a link anywhere is an error. Raises OSError."""
    descriptor = top
    try:
        for part in parts[:-1]:
            deeper = os.open(part, OPEN_FOLDER, dir_fd=descriptor)
            if descriptor != top:
                os.close(descriptor)
            descriptor = deeper
        return os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
    finally:
        if descriptor != top:
            os.close(descriptor)


def read_rules(folder: int) -> IgnoreRules | None:
    """The rules of an open folder's .gitignore; None where it has none, or one that is no plain file.

    A link is not followed, as git itself does not (gitignore(5)).
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(IGNORE_FILE, flags, dir_fd=folder)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        blocks: list[bytes] = []
        size = 0
        while size < IGNORE_FILE_MAX_BYTES and (block := os.read(descriptor, 65_536)):
            blocks.append(block)
            size += len(block)
        return IgnoreRules.parse(b"".join(blocks))
    except OSError:
        return None
    finally:
        os.close(descriptor)
