"""Whether a manifest may be applied at all: everything is judged before anything is done."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from toolkit_core.errors import ToolError
from toolkit_core.limits import MANIFEST_ENTRIES_MAX, MANIFEST_PATH_MAX_CHARS, NAME_MAX_BYTES, PATH_MAX_BYTES
from toolkit_core.text import first_surrogate, one_line_name
from toolkit_core.workspace.manifest import FileEntry, GitRepo, LocalDir, LocalFile, WorkspaceManifest

if TYPE_CHECKING:
    from toolkit_core.workspace.manifest import Entry

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_SCP: Final = re.compile(r"(?:[A-Za-z0-9._][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?![:/]*:)[^\s:]\S*")
_CONTROL: Final = re.compile(r"[\x00-\x20\x7f]")
_BAD_REF: Final = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\.lock(?:/|$)|/\.|^\.|[/.]$|^/|^@$")


@dataclass(frozen=True)
class Judged:
    """A manifest that may be applied: absolute paths of the workspace, each with its entry."""

    root: str
    entries: tuple[tuple[str, str, Entry], ...]


def judge(manifest: WorkspaceManifest, target_root: str, *, has_host_files: bool, allow_file_urls: bool) -> Judged:
    """The entries with normal paths.

    Raises:
        ToolError: `invalid_arguments` or `unsupported`, with every reason there is.
    """
    root = _root(target_root)
    problems: list[str] = []
    for name, value in (("environment", manifest.environment), ("permissions", manifest.permissions)):
        if _asks_something(value):
            problems.append(f"{name}: nothing here can enforce it; leave it out")
    if len(manifest.entries) > MANIFEST_ENTRIES_MAX:
        problems.append(f"entries: {len(manifest.entries):,}; at most {MANIFEST_ENTRIES_MAX:,} are taken")
        raise _refused(problems)
    entries: list[tuple[str, str, Entry]] = []
    for path, entry in manifest.entries.items():
        try:
            entries.append((path, f"{root.rstrip('/')}/{normal_path(path)}", entry))
            _judge_entry(entry, has_host_files=has_host_files, allow_file_urls=allow_file_urls)
        except ValueError as e:
            problems.append(f"{one_line_name(path)[:200]!r}: {e}")
    problems += _clashes(entries)
    if problems:
        raise _refused(problems)
    return Judged(root, tuple(entries))


def normal_path(path: str) -> str:
    r"""A relative path with its `.` and empty parts dropped; in linear time.

    Raises:
        ValueError: Empty, NUL, a lone surrogate, absolute (POSIX, backslash or drive), `..`, the root itself.
    """
    if not path:
        raise ValueError("the path is empty")
    if len(path) > MANIFEST_PATH_MAX_CHARS:
        raise ValueError(f"the path has {len(path):,} characters")
    if "\0" in path or first_surrogate(path) is not None:
        raise ValueError("the path has a NUL or a lone surrogate")
    if path.startswith(("/", "\\")) or _DRIVE.match(path):
        raise ValueError("the path is absolute; it must be relative to the workspace")
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError("the path has '..'")
    if not parts:
        raise ValueError("the path is the workspace itself")
    if any(len(part.encode()) > NAME_MAX_BYTES for part in parts) or len("/".join(parts).encode()) > PATH_MAX_BYTES:
        raise ValueError("the path is too long for a filesystem")
    return "/".join(parts)


def check_git_url(url: str, *, allow_file: bool = False) -> None:
    """Refuse what git would not clone from a plain repository: options, helper transports, other protocols.

    git-clone(1), git-remote-helpers(7): `ext::` runs a command, a leading `-` is an option.

    Raises:
        ValueError: Says why.
    """
    if url.startswith("-"):
        raise ValueError("the git URL starts with '-'")
    if _CONTROL.search(url) or first_surrogate(url) is not None:
        raise ValueError("the git URL has a space or a control character")
    if "::" in url.partition("/")[0] or url.partition("://")[0].endswith(":"):
        raise ValueError("the git URL names a helper transport")
    scheme, found, rest = url.partition("://")
    if not found:
        if not _SCP.fullmatch(url):
            raise ValueError("the git URL has no scheme: https, ssh, or user@host:path")
    elif scheme.lower() == "file":
        _check_file_url(rest, allow_file=allow_file)
    else:
        _check_remote_url(url, scheme.lower())


def _check_file_url(rest: str, *, allow_file: bool) -> None:
    if not allow_file:
        raise ValueError("file URLs are refused unless allow_file_urls is set")
    if not rest.startswith("/"):
        raise ValueError("the file URL names a host, or no absolute path")


def _check_remote_url(url: str, scheme: str) -> None:
    if scheme not in ("https", "ssh"):
        raise ValueError(f"the git URL's scheme {scheme[:40]!r} is none of https and ssh")
    parts = urlsplit(url)
    if not parts.hostname or parts.hostname.startswith("-") or (parts.username or "").startswith("-"):
        raise ValueError("the git URL has no host, or one that starts with '-'")
    if scheme == "https" and parts.password:
        raise ValueError("the git URL holds a password, which would stay in the workspace")


def check_git_ref(ref: str) -> None:
    """Refuse what is no name of a branch or tag (git-check-ref-format(1)).

    Raises:
        ValueError: Says why.
    """
    if ref.startswith("-"):
        raise ValueError("the git ref starts with '-'")
    if not ref or len(ref) > NAME_MAX_BYTES or _BAD_REF.search(ref) or first_surrogate(ref) is not None:
        raise ValueError("the git ref is no name of a branch or tag")


def content_of(entry: FileEntry) -> bytes:
    """The bytes of a file entry. Raises ValueError."""
    if entry.encoding == "base64":
        try:
            return base64.b64decode(entry.content, validate=True)
        except binascii.Error as e:
            raise ValueError(f"its content is no base64: {e}") from e
    at = first_surrogate(entry.content)
    if at is not None:
        raise ValueError(f"its content has a lone surrogate at index {at}")
    return entry.content.encode()


def _judge_entry(entry: Entry, *, has_host_files: bool, allow_file_urls: bool) -> None:
    if isinstance(entry, FileEntry):
        content_of(entry)
    elif isinstance(entry, LocalFile | LocalDir):
        if not has_host_files:
            raise ValueError("a local entry needs a port to this machine's files: give host_files=")
        if "\0" in entry.source:
            raise ValueError("its source has a NUL")
    elif isinstance(entry, GitRepo):
        check_git_url(entry.url, allow_file=allow_file_urls)
        if entry.ref is not None:
            check_git_ref(entry.ref)


def _asks_something(value: dict[str, object]) -> bool:
    """Judged over all values: an empty list asks nothing, everything else does."""
    return any(not (isinstance(one, list | tuple) and not one) for one in value.values())


def _clashes(entries: list[tuple[str, str, Entry]]) -> list[str]:
    """Two entries for one place, or a place below a file."""
    problems: list[str] = []
    kinds: dict[str, Entry] = {}
    for spelled, path, entry in entries:
        if path in kinds:
            problems.append(f"{one_line_name(spelled)[:200]!r}: another entry has the same place")
        kinds[path] = entry
    files = {path for path, entry in kinds.items() if isinstance(entry, FileEntry | LocalFile)}
    for spelled, path, _ in entries:
        above = path
        while above := above.rpartition("/")[0]:
            if above in files:
                problems.append(f"{one_line_name(spelled)[:200]!r}: it lies below a file")
                break
    return problems


def _root(target_root: str) -> str:
    if not target_root.startswith("/") or "\0" in target_root or len(target_root) > MANIFEST_PATH_MAX_CHARS:
        raise ToolError(
            "target_root is no absolute path of the workspace's filesystem.",
            code="invalid_arguments",
            hint="Give one that starts with /.",
        )
    parts = [part for part in target_root.replace("\\", "/").split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ToolError("target_root has '..'.", code="invalid_arguments")
    return "/" + "/".join(parts)


def _refused(problems: list[str]) -> ToolError:
    shown = "\n".join(problems[:50])
    more = f"\n... and {len(problems) - 50} more" if len(problems) > 50 else ""
    return ToolError(
        f"The manifest is refused; nothing was applied:\n{shown}{more}",
        code="invalid_arguments",
        hint="Mend all of it, then apply it again.",
    )
