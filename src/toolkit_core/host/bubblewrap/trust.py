"""What of a writable root must not change: trust inputs as they lie on the disk, and where they lead."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from toolkit_core.host.bubblewrap.arguments import within
from toolkit_core.limits import TRUST_SCAN_ENTRIES
from toolkit_core.trust_inputs import TRUST_INPUTS

_REPOSITORY_PARTS = ("HEAD", "commondir", "config", "config.worktree", "hooks", "objects", "refs")
"""Together in one folder they make that folder a git repository (gitrepository-layout(5))."""

_NOT_OBEYED = frozenset({"objects", "refs", "logs", "lfs", "annex"})
"""Parts of `.git` that hold data alone, hard-linked by every `git clone` of a local path."""

_HOOKS_PATH = re.compile(rb"^\s*hookspath\s*=\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
_POINTER_MAX_BYTES = 64 * 1024


@dataclass(frozen=True)
class Survey:
    """Trust inputs of one root, before any command ran. Paths are absolute.

    Attributes:
        root: The writable folder, real.
        present: What is there, to its device and inode: read-only while a command runs.
        links: Those that are symbolic links, to their text: restored afterwards.
        absent: What is not there: moved away where a command creates it.
        parts: Names at the root that a git repository's folder has (HEAD, objects and so on): a root that is no
            repository must not become one.
    """

    root: str
    present: dict[str, tuple[int, int]]
    links: dict[str, str]
    absent: tuple[str, ...]
    parts: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "root": self.root,
            "present": {path: list(identity) for path, identity in self.present.items()},
            "links": self.links,
            "absent": list(self.absent),
            "parts": list(self.parts),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Survey:
        """The inverse."""
        present = {str(path): (int(pair[0]), int(pair[1])) for path, pair in value["present"].items()}
        return cls(value["root"], present, dict(value["links"]), tuple(value["absent"]), tuple(value["parts"]))


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


def repository_parts(root: str) -> tuple[str, ...]:
    """Names of a repository's folder that lie directly in `root`."""
    return tuple(name for name in _REPOSITORY_PARTS if os.path.lexists(os.path.join(root, name)))


def is_repository(parts: Iterable[str]) -> bool:
    """Whether git would take a folder with these names for a repository (a bare one)."""
    has = set(parts)
    return "HEAD" in has and ("commondir" in has or {"objects", "refs"} <= has)


def _first_bytes(path: str) -> bytes:
    """The start of a regular file; nothing of anything else, which is not opened for real."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(descriptor, _POINTER_MAX_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _joined(folder: str, raw: bytes) -> str | None:
    text = raw.strip().strip(b'"')
    if not text or b"\0" in text:
        return None
    return os.path.realpath(os.path.join(folder, os.path.expanduser(os.fsdecode(text))))


def git_folders(root: str) -> Iterator[str]:
    """Where git goes from here: the folder that a `.git` file names, and the common one of a worktree."""
    entry = os.path.join(root, ".git")
    folder = os.path.realpath(entry)
    first = _first_bytes(entry)
    if first.startswith(b"gitdir:"):
        target = _joined(root, first[len(b"gitdir:") :].split(b"\n")[0])
        if target is None:
            return
        folder = target
        yield folder
    common = _joined(folder, _first_bytes(os.path.join(folder, "commondir")))
    if common is not None:
        yield common
    for config in dict.fromkeys([os.path.join(folder, "config"), os.path.join(common or folder, "config")]):
        for match in _HOOKS_PATH.finditer(_first_bytes(config)):
            hooks = _joined(root, match.group(1))
            if hooks is not None:
                yield hooks


def _inner_links(path: str) -> Iterator[str]:
    """Where links directly inside a trust folder lead (`.git/hooks` to `../hooks`, say)."""
    try:
        with os.scandir(path) as entries:
            links = [entry.path for entry in entries if entry.is_symlink()]
    except OSError:
        return
    for link in links[:TRUST_SCAN_ENTRIES]:
        yield os.path.realpath(link)


def _candidates(root: str) -> list[str]:
    named = [os.path.join(root, name) for name in TRUST_INPUTS]
    if is_repository(repository_parts(root)):
        named += [os.path.join(root, name) for name in _REPOSITORY_PARTS]
    led: list[str] = list(git_folders(root))
    for path in named:
        found = _lstat(path)
        if found is None:
            continue
        if stat.S_ISLNK(found.st_mode):
            led.append(os.path.realpath(path))
        elif stat.S_ISDIR(found.st_mode):
            led += _inner_links(path)
    # A pointer can only ever protect more, and never the root itself: that would stop all work in it.
    return list(dict.fromkeys(named + [path for path in led if within(path, root) and path != root]))


def survey(root: str) -> Survey:
    """Look at a root's trust inputs, their links, and what `.git` points to inside the root."""
    present: dict[str, tuple[int, int]] = {}
    links: dict[str, str] = {}
    absent: list[str] = []
    for path in _candidates(root):
        found = _lstat(path)
        if found is None:
            absent.append(path)
        elif stat.S_ISLNK(found.st_mode):
            links[path] = os.readlink(path)
        else:
            present[path] = (found.st_dev, found.st_ino)
    return Survey(root, present, links, tuple(absent), repository_parts(root))


def _doubtful(found: os.stat_result) -> bool:
    return stat.S_ISLNK(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_nlink > 1)


def _files_below(folder: str) -> Iterator[os.stat_result]:
    pending = [folder]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    if entry.name not in _NOT_OBEYED:
                        pending.append(entry.path)
                else:
                    yield found


def plain(paths: Iterable[str]) -> bool:
    """Whether no trust input, nor a file in one, is a link or has a second name.

    False too where that cannot be seen: a folder that cannot be read, or one with too many files.
    """
    seen = 0
    try:
        for path in paths:
            found = _lstat(path)
            if found is None:
                continue
            if _doubtful(found):
                return False
            for inner in _files_below(path) if stat.S_ISDIR(found.st_mode) else ():
                seen += 1
                if seen > TRUST_SCAN_ENTRIES or _doubtful(inner):
                    return False
    except OSError:
        return False
    return True
