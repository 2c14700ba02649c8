"""The `Files` port over this machine."""

from __future__ import annotations

import heapq
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from toolkit_core.errors import ToolError
from toolkit_core.host.atomic_write import Old, Target, holds, put
from toolkit_core.host.folders import Folder, Moved, make_folder, open_folder, sweep
from toolkit_core.host.hop import Stop, in_thread
from toolkit_core.host.judged import Judged, judged_now, open_judged, refuse_special
from toolkit_core.host.locking import lock_against_others
from toolkit_core.host.open_file import HostOpenFile, file_stat
from toolkit_core.host.os_errors import let_go, system_refused
from toolkit_core.host.resolve import AnyPath, Outside, Roots
from toolkit_core.host.similar_names import missing
from toolkit_core.limits import IN_PLACE_ATTEMPTS, SWEPT_FOLDERS
from toolkit_core.ports.files import Content, Entry, FileKind, Files, Listing, OpenFile, Resolved, Written
from toolkit_core.text import one_line_name
from toolkit_core.turns import Turns

T = TypeVar("T")

_READ_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY

_writers: Final = Turns()
"""One for the process: two sets of tools over the same folder must not write one file at once either."""

os.register_at_fork(after_in_child=_writers.forget)


class HostFiles(Files):
    """Files below one or more roots of this machine.

    Containment is decided on what was really opened (see `toolkit_core.host.judged`); nothing outside the roots
    is read, written, listed or named. A write is atomic and, with `fsync`, lasts once it returned.

    Args:
        cwd: The root; relative paths start here.
        extra_roots: Further folders that may be reached, by absolute paths.
        outside: "refuse" raises `access_denied`; "policy" lets paths outside through, for programs that gate
            every call themselves.
        fsync: Whether a write waits until the disk has it.
        hidden: Real paths that are refused, as for `Roots`.

    Raises:
        ValueError: A root is empty, missing or no folder.
    """

    def __init__(
        self,
        cwd: AnyPath,
        *,
        extra_roots: Sequence[AnyPath] = (),
        outside: Outside = "refuse",
        fsync: bool = True,
        hidden: Sequence[str] = (),
    ) -> None:
        self._roots = Roots(cwd, extra_roots, outside, hidden=hidden)
        self._fsync = fsync
        self._swept: dict[tuple[int, int], None] = {}

    @property
    def root(self) -> str:
        """The absolute real path of the root."""
        return self._roots.root

    @property
    def roots(self) -> Roots:
        """All roots, and the judge of paths."""
        return self._roots

    async def resolve(self, path: str) -> Resolved:
        """Where a path leads; see `Files.resolve`."""
        return self._roots.resolve(path)

    async def read(self, path: str, consume: Callable[[OpenFile], T]) -> T:
        """Open a regular file and run `consume` on it in a worker thread; see `Files.read`."""
        return await in_thread(lambda stop: _said("read", path, lambda: self._read(path, consume, stop)))

    async def replace(self, path: str, produce: Callable[[OpenFile | None], Content]) -> Written:
        """Replace a file atomically by what `produce` makes of it; see `Files.replace`."""
        for _ in range(IN_PLACE_ATTEMPTS):
            real = self._roots.resolve(path).real
            async with _writers.turn(real):
                with suppress(Moved):
                    return await in_thread(
                        lambda stop, real=real: _said("written", path, lambda: self._replace(path, real, produce, stop))
                    )
        message = f"{one_line_name(path)} is being replaced all the time; nothing was written."
        raise ToolError(message, code="stale_file", hint="Read the file again, then decide.", retryable=True)

    async def list(self, path: str, limit: int) -> Listing:
        """The first entries of a folder by name; see `Files.list`."""
        return await in_thread(lambda stop: _said("listed", path, lambda: self._list(path, limit, stop)))

    def _open(self, path: str) -> Judged:
        try:
            return open_judged(self._roots, path)
        except ToolError as e:
            if e.code == "not_found" and not e.hint:
                raise missing(self._roots, path, e.message) from None
            raise

    def _read(self, path: str, consume: Callable[[OpenFile], T], stop: Stop) -> T:
        with self._open(path) as judged:
            shown = one_line_name(judged.path.subject)
            if judged.is_directory:
                raise is_a_directory(shown)
            if not judged.is_file:
                raise refuse_special(judged)
            try:
                descriptor = judged.reopen(_READ_FLAGS)
                try:
                    return consume(HostOpenFile(judged.path, descriptor, stop))
                finally:
                    let_go(descriptor)
            except OSError as e:
                raise system_refused(e, shown, "read") from e

    def _list(self, path: str, limit: int, stop: Stop) -> Listing:
        with self._open(path) as judged:
            shown = one_line_name(judged.path.subject)
            if not judged.is_directory:
                hint = "Give the path of the folder that it lies in."
                raise ToolError(f"{shown} is not a folder.", code="invalid_arguments", hint=hint)
            try:
                descriptor = judged.reopen(os.O_RDONLY | os.O_DIRECTORY)
                try:
                    return _first_entries(descriptor, limit, stop)
                finally:
                    let_go(descriptor)
            except OSError as e:
                raise system_refused(e, shown, "listed") from e

    def _replace(self, path: str, real: str, produce: Callable[[OpenFile | None], Content], stop: Stop) -> Written:
        resolved = self._roots.resolve(path)
        if resolved.real != real:
            raise Moved
        _refuse_folder(path, resolved)
        parent, name = os.path.split(real)
        folder = open_folder(self._roots, parent)
        try:
            if folder is None:
                return self._create_below(resolved, produce, stop)
            return self._replace_in(folder, name, resolved, produce, stop)
        finally:
            if folder is not None:
                folder.close()

    def _create_below(self, resolved: Resolved, produce: Callable[[OpenFile | None], Content], stop: Stop) -> Written:
        """Write a file whose folder is missing; the folder is made only once there is content."""
        content = produce(None)
        parent, name = os.path.split(resolved.real)
        folder = make_folder(self._roots, parent, sync=self._fsync)
        try:
            return self._put(folder, name, resolved, None, content, stop)
        except BaseException:
            folder.unmake()
            raise
        finally:
            folder.close()

    def _replace_in(
        self, folder: Folder, name: str, resolved: Resolved, produce: Callable[[OpenFile | None], Content], stop: Stop
    ) -> Written:
        self._sweep_once(folder)
        old = self._open_old(folder, name, resolved, stop)
        if old is None:
            return self._put(folder, name, resolved, None, produce(None), stop)
        try:
            if not holds(folder.descriptor, name, old.status):
                raise Moved  # replaced while its lock was waited for
            try:
                content = produce(old)
            except OSError as e:
                raise system_refused(e, one_line_name(resolved.subject), "read") from e
            return self._put(folder, name, resolved, old, content, stop)
        finally:
            let_go(old.descriptor)

    def _open_old(self, folder: Folder, name: str, resolved: Resolved, stop: Stop) -> HostOpenFile | None:
        """The file to replace, opened by its name in the judged folder; None where there is none."""
        shown = one_line_name(resolved.subject)
        flags = getattr(os, "O_PATH", _READ_FLAGS) | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with judged_now(os.open(name, flags, dir_fd=folder.descriptor), resolved) as judged:
                self._refuse_other_than_file(judged)
                readable = judged.reopen(_READ_FLAGS)
        except FileNotFoundError:
            return None
        except OSError as e:
            raise system_refused(e, shown, "opened") from e
        try:
            lock_against_others(readable, stop)
            return HostOpenFile(resolved, readable, stop, watch=True)
        except BaseException:
            let_go(readable)
            raise

    def _refuse_other_than_file(self, judged: Judged) -> None:
        if judged.is_directory:
            raise is_a_directory(one_line_name(judged.path.subject))
        if stat.S_ISLNK(judged.stat.st_mode) and self._roots.locate(judged.path.real).real != judged.path.real:
            raise Moved  # no circle of links, which leads nowhere, but one put there just now
        if not judged.is_file:
            raise refuse_special(judged, "written")

    def _put(
        self,
        folder: Folder,
        name: str,
        resolved: Resolved,
        old: HostOpenFile | None,
        content: Content,
        stop: Stop,
    ) -> Written:
        shown = one_line_name(resolved.subject)
        before = None if old is None else Old(old.descriptor, old.status, old.unchanged)
        folder.judge(self._roots, shown)
        try:
            status, copy = put(Target(folder, name, shown, before), content, stop, sync=self._fsync)
        except OSError as e:
            raise system_refused(e, shown, "written") from e
        kept = None if copy is None else self._roots.subject(os.path.join(folder.real, copy))
        return Written(resolved, file_stat(status), created=old is None, recovery_copy=kept)

    def _sweep_once(self, folder: Folder) -> None:
        """Before its first write to a folder; the same file's leftovers are found at every write anyway."""
        status = os.fstat(folder.descriptor)
        key = (status.st_dev, status.st_ino)
        if key in self._swept:
            return
        if len(self._swept) >= SWEPT_FOLDERS:
            self._swept.clear()
        self._swept[key] = None
        sweep(folder)


def _said(doing: str, path: str, work: Callable[[], T]) -> T:
    """The work; a refusal of the system that nobody expected there (a status, a name looked at once more) in words."""
    try:
        return work()
    except OSError as e:
        raise system_refused(e, one_line_name(path), doing) from e


def is_a_directory(shown: str) -> ToolError:
    """The path names a folder where a file is meant."""
    hint = "Give the path of a file in it."
    return ToolError(f"{shown} is a folder, not a file.", code="is_a_directory", hint=hint)


def _refuse_folder(path: str, resolved: Resolved) -> None:
    shown = one_line_name(resolved.subject)
    if os.path.isdir(resolved.real):
        raise is_a_directory(shown)
    if path.rsplit("/", 1)[-1] in ("", ".", ".."):
        message = f"The path {one_line_name(path)!r} names a folder by its end; a file is meant here."
        raise ToolError(message, code="invalid_arguments", hint="Give the path of the file itself.")


def _first_entries(descriptor: int, limit: int, stop: Stop) -> Listing:
    kinds: dict[str, FileKind] = {}
    total = 0
    with os.scandir(descriptor) as entries:
        for entry in entries:
            total += 1
            kinds[entry.name] = _kind(entry)
            if len(kinds) > max(limit, 1) * 16:
                stop.check()
                kinds = {name: kinds[name] for name in heapq.nsmallest(limit, kinds)}
    return Listing(tuple(Entry(name, kinds[name]) for name in heapq.nsmallest(limit, kinds)), total)


def _kind(entry: os.DirEntry[str]) -> FileKind:
    if entry.is_symlink():
        return "link"
    if entry.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if entry.is_file(follow_symlinks=False) else "other"
