"""Moving what a command planted out of the workspace, never following a link.

Every step goes through descriptors of folders opened without following links, since another confined command
may be swapping names in the same workspace at the same time.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from toolkit_core.host.bubblewrap.trust import Survey, is_repository, repository_parts
from toolkit_core.limits import QUARANTINE_COPY_BYTES, QUARANTINE_COPY_ENTRIES

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PATH_ONLY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass
class Swept:
    """What was done after a command, paths relative to the root."""

    moved: list[str] = field(default_factory=list[str])
    restored: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])
    stuck: list[str] = field(default_factory=list[str])

    def note(self, place: str) -> str:
        """One sentence for each kind; empty where nothing happened."""
        texts: list[str] = []
        if self.moved:
            texts.append(
                f"The command created {_names(self.moved)}: configuration that agents, editors, shells or git obey. "
                f"It was moved to {place}."
            )
        if self.restored:
            texts.append(f"The command replaced the link {_names(self.restored)}; it was restored.")
        if self.changed:
            texts.append(
                f"{_names(self.changed)} was replaced by another program while the command ran, and was not "
                "protected from then on: look at it before you rely on it."
            )
        if self.stuck:
            texts.append(
                f"{_names(self.stuck)} was created by the command and could NOT be moved away: look at it before "
                "any other program uses this folder."
            )
        return " ".join(texts)


def _names(paths: Sequence[str]) -> str:
    shown = ", ".join(_printable(path) for path in paths[:10])
    return shown if len(paths) <= 10 else f"{shown} and {len(paths) - 10} more"


def _printable(path: str) -> str:
    """A name as one word: a planted one may hold line breaks or bytes that are not text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace").encode("unicode_escape").decode("ascii")


@contextlib.contextmanager
def _opened(name: str, *, folder: int | None = None) -> Generator[int]:
    descriptor = os.open(name, _PATH_ONLY, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _let_in(folder: int) -> None:
    """Give the owner back the rights that a command took away; the folder was judged to be one already."""
    path = f"/proc/self/fd/{folder}"
    mode = stat.S_IMODE(os.stat(path).st_mode)
    os.chmod(path, mode | stat.S_IRWXU)


@contextlib.contextmanager
def _entered(folder: int) -> Generator[None]:
    """The folder searchable and writable for a moment, its mode as before afterwards."""
    path = f"/proc/self/fd/{folder}"
    before = stat.S_IMODE(os.stat(path).st_mode)
    if before & stat.S_IRWXU == stat.S_IRWXU or os.access(path, os.W_OK | os.X_OK):
        yield
        return
    with contextlib.suppress(OSError):  # another user's folder: the move then fails and is reported
        _let_in(folder)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.chmod(path, before)


def _locate(root: int, parts: Sequence[str]) -> tuple[int, str] | None:
    """The folder (a new descriptor) and the name to move: the path's end, or the first link on the way to it."""
    folder = os.dup(root)
    for index, part in enumerate(parts):
        try:
            found = os.lstat(part, dir_fd=folder)
        except FileNotFoundError:
            os.close(folder)
            return None
        last = index == len(parts) - 1
        if last or not stat.S_ISDIR(found.st_mode):
            if not last and not stat.S_ISLNK(found.st_mode):
                os.close(folder)
                return None
            return folder, part
        try:
            inner = os.open(part, _PATH_ONLY, dir_fd=folder)
        finally:
            os.close(folder)
        folder = inner
    os.close(folder)
    return None


def _move(folder: int, name: str, destination: str) -> None:
    """Rename into the quarantine; across filesystems first out of the way, then copied, then removed."""
    if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
        # Moving a folder rewrites its `..`: the kernel wants write permission on the folder itself.
        with contextlib.suppress(OSError), _opened(name, folder=folder) as moving:
            if not os.access(f"/proc/self/fd/{moving}", os.W_OK | os.X_OK):
                _let_in(moving)
    try:
        os.rename(name, destination, src_dir_fd=folder)
    except OSError as e:
        if e.errno != errno.EXDEV:
            raise
        aside = f".quarantined-{os.urandom(8).hex()}"
        os.rename(name, aside, src_dir_fd=folder, dst_dir_fd=folder)
        _Copy().entry(folder, aside, destination)
        with contextlib.suppress(OSError):  # under this name it is inert, and the copy exists
            _remove(folder, aside)


def _remove(folder: int, name: str) -> None:
    if stat.S_ISDIR(os.lstat(name, dir_fd=folder).st_mode):
        shutil.rmtree(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)


class _Copy:
    """A bounded copy of files, folders and links; devices, FIFOs and sockets are left out."""

    def __init__(self) -> None:
        self._bytes_left = QUARANTINE_COPY_BYTES
        self._entries_left = QUARANTINE_COPY_ENTRIES

    def entry(self, folder: int, name: str, destination: str) -> None:
        self._entries_left -= 1
        if self._entries_left < 0:
            return
        kind = os.lstat(name, dir_fd=folder).st_mode
        if stat.S_ISLNK(kind):
            os.symlink(os.readlink(name, dir_fd=folder), destination)
        elif stat.S_ISDIR(kind):
            self._folder(folder, name, destination)
        elif stat.S_ISREG(kind):
            self._file(folder, name, destination)

    def _folder(self, folder: int, name: str, destination: str) -> None:
        os.mkdir(destination, 0o700)
        with _opened(name, folder=folder) as path_only:
            with contextlib.suppress(OSError):
                _let_in(path_only)
            inner = os.open(".", _FOLDER, dir_fd=path_only)
        try:
            for child in os.listdir(inner):
                self.entry(inner, child, os.path.join(destination, child))
        finally:
            os.close(inner)

    def _file(self, folder: int, name: str, destination: str) -> None:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(source).st_mode):
                return
            with open(destination, "xb", opener=_private) as target:
                while self._bytes_left > 0 and (block := os.read(source, min(1 << 20, self._bytes_left))):
                    target.write(block)
                    self._bytes_left -= len(block)
        finally:
            os.close(source)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


class _Sweep:
    """One pass over one root."""

    def __init__(self, survey: Survey, place: str, swept: Swept) -> None:
        self._survey = survey
        self._place = place
        self._swept = swept

    def run(self) -> None:
        try:
            root = os.open(self._survey.root, _PATH_ONLY)
        except OSError:
            return  # the root is gone: nothing is live in it
        try:
            with _entered(root):
                for path in (*filter(self._may_be_new(root), self._survey.absent), *self._new_repository()):
                    self._move_out(root, path)
                for path, text in self._survey.links.items():
                    self._restore(root, path, text)
                for path, identity in self._survey.present.items():
                    self._verify(root, path, identity)
        finally:
            os.close(root)

    def _relative(self, path: str) -> str:
        return path[len(os.path.join(self._survey.root, "")) :]

    def _may_be_new(self, root: int) -> Callable[[str], bool]:
        """Most of the many names are absent still, which one look at the root itself tells."""

        def judge(path: str) -> bool:
            relative = self._relative(path)
            if "/" in relative:  # a folder on the way may have become a link
                return True
            try:
                os.lstat(relative, dir_fd=root)
            except OSError as e:
                return e.errno != errno.ENOENT
            return True

        return judge

    def _new_repository(self) -> list[str]:
        """What made the root itself a git repository, HEAD first: without it the rest is harmless."""
        before, now = self._survey.parts, repository_parts(self._survey.root)
        if is_repository(before) or not is_repository(now):
            return []
        new = [name for name in ("HEAD", "commondir", "objects", "refs") if name in now and name not in before]
        return [os.path.join(self._survey.root, name) for name in (new[:1] if "HEAD" in new else new)]

    def _move_out(self, root: int, path: str) -> bool:
        relative = self._relative(path)
        try:
            located = _locate(root, relative.split("/"))
            if located is None:
                return False
            folder, name = located
            try:
                with _entered(folder):
                    _move(folder, name, os.path.join(self._made_place(), relative.replace("/", "__")))
            finally:
                os.close(folder)
        except FileNotFoundError:
            return False
        except OSError:
            self._swept.stuck.append(relative)
            return False
        self._swept.moved.append(relative)
        return True

    def _made_place(self) -> str:
        os.makedirs(self._place, mode=0o700, exist_ok=True)
        return self._place

    def _restore(self, root: int, path: str, text: str) -> None:
        relative = self._relative(path)
        try:
            if os.readlink(relative, dir_fd=root) == text:
                return
        except OSError:
            pass
        if os.path.lexists(path) and not self._move_out(root, path):
            return
        try:
            os.symlink(text, relative, dir_fd=root)
        except OSError:
            self._swept.stuck.append(relative)
        else:
            self._swept.restored.append(relative)

    def _verify(self, root: int, path: str, identity: tuple[int, int]) -> None:
        relative = self._relative(path)
        try:
            found = os.lstat(relative, dir_fd=root)
        except OSError:
            return
        if (found.st_dev, found.st_ino) != identity:
            self._swept.changed.append(relative)


def sweep(survey: Survey, place: str) -> Swept:
    """Move what is new into `place` (made when needed), restore links, and say what changed. Never raises OSError.

    The processes that could still write must be dead, or be followed by a sweep of their own.
    """
    swept = Swept()
    try:
        _Sweep(survey, place, swept).run()
    except OSError as e:
        swept.stuck.append(f"{survey.root} ({e.strerror})")
    return swept
