"""A plane's files by name: one find(1), then the same rules as on the host.

POSIX find but for `-maxdepth`, which GNU, BusyBox and the BSDs have.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ToolError
from toolkit_core.sandboxes.plane_output import whole_output
from toolkit_core.shell_words import arguments, assigned
from toolkit_core.text import decoded, one_line_name
from toolkit_core.tree_search import InMemorySearch

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolkit_core.ports.sandbox import SandboxClient

_NO_FOLDER: Final = 64
_TREE: Final = """\
cd -- "$p" || exit {no_folder}
find . {depth} {prune} \\( -type d -exec printf 'd%s\\0' {{}} + \\) -o \\( -type f -exec printf 'f%s\\0' {{}} + \\) \
-o \\( -type l -exec printf 'l%s\\0' {{}} + \\)
printf '\\0'
"""
_TIMES: Final = """\
cd -- "$p" || exit {no_folder}
find . {depth} {prune} \\( -type d -printf 'd%T@ %p\\0' \\) -o \\( -type f -printf 'f%T@ %p\\0' \\) \
-o \\( -type l -printf 'l%T@ %p\\0' \\)
printf '\\0'
"""
_RULES: Final = """\
g='for f; do [ -f "$f" ] && [ ! -L "$f" ] && [ -r "$f" ] || continue
printf "%s\\\\0%d\\\\0" "$f" "$(wc -c <"$f")"; cat -- "$f"; done'
[ $# = 0 ] || sh -c "$g" sh "$@"
find . {depth} {prune} -name .gitignore -type f -exec sh -c "$g" sh {{}} +
exit 0
"""


@dataclass(frozen=True)
class PlaneTree:
    """What was found below a folder; all paths are relative to the root that the tree is made for.

    Attributes:
        files: Path -> its content for a .gitignore, else nothing.
        folders: Folders.
        times: Path -> seconds since the epoch, where they were asked for.
        unreadable: Folders that could not be read.
        incomplete: The time was over before all was listed.
    """

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    folders: set[str] = field(default_factory=set[str])
    times: dict[str, float] = field(default_factory=dict[str, float])
    unreadable: int = 0
    incomplete: bool = False

    def search(self, root: str) -> InMemorySearch:
        """A search over it."""
        return InMemorySearch(self.files, root=root, folders=self.folders)


async def list_tree(
    client: SandboxClient,
    root: str,
    start: str,
    *,
    skipped: Collection[str],
    max_depth: int | None,
    rules: bool,
    times: bool,
    timeout_seconds: float,
) -> PlaneTree | None:
    """List what lies below a folder; None where there is no such folder.

    Args:
        client: The sandbox.
        root: Absolute folder that paths are relative to.
        start: Folder below it to list, relative; "" for the root.
        skipped: Names that are not entered nor listed.
        max_depth: How far down.
        rules: Whether .gitignore files are fetched, those of the folders above the start too.
        times: Whether modification times are.
        timeout_seconds: For the whole of it.
    """
    depth = "" if max_depth is None else f"-maxdepth {max_depth}"
    prune = _prune(skipped)
    names = start.split("/") if start else []
    above = ["/".join(("/".join(names[:count]), ".gitignore")).lstrip("/") for count in range(len(names))]
    base = f"{root.rstrip('/')}/{start}".rstrip("/") or "/"
    lines = [
        assigned("p", base),
        (_TIMES if times else _TREE).format(depth=depth, prune=prune, no_folder=_NO_FOLDER),
        arguments([f"{root.rstrip('/')}/{path}" for path in above]) if rules else "",
        _RULES.format(depth=depth, prune=prune) if rules else "exit 0",
    ]
    output, result = await whole_output(client, "\n".join(lines), timeout_seconds=timeout_seconds)
    if result.exit_code == _NO_FOLDER:
        return None
    if result.exit_code != 0 and not result.timed_out:
        raise _failed(result.stderr)
    complaints = result.stderr.decode("utf-8", "backslashreplace")
    if times and "-printf" in complaints:
        raise ToolError("This sandbox's find cannot sort by time.", code="unsupported", hint="Sort by path.")
    tree = PlaneTree(unreadable=complaints.count("Permission denied"), incomplete=result.timed_out)
    _parse(tree, output, root, f"{start}/" if start else "", times=times)
    return tree


def _prune(skipped: Collection[str]) -> str:
    if not skipped:
        return ""
    names = " -o ".join(f"-name {shlex.quote(name)}" for name in sorted(skipped))
    return f"\\( {names} \\) -prune -o"


def _parse(tree: PlaneTree, output: bytes, root: str, prefix: str, *, times: bool) -> None:
    listing, _, rules = output.partition(b"\0\0")
    if not output.startswith(b"\0"):
        for record in listing.split(b"\0"):
            _add(tree, record, prefix, times=times)
    while rules:
        path, _, rest = rules.partition(b"\0")
        size, _, rest = rest.partition(b"\0")
        if not size.isdigit():
            break
        name = decoded(path)
        inner = prefix + name[2:] if name.startswith("./") else name[len(root.rstrip("/")) + 1 :]
        tree.files[inner] = rest[: int(size)]
        rules = rest[int(size) :]


def _add(tree: PlaneTree, record: bytes, prefix: str, *, times: bool) -> None:
    kind, text = record[:1], decoded(record[1:])
    stamp = ""
    if times:
        stamp, _, text = text.partition(" ")
    if not text.startswith("./"):  # the start itself, or a piece of a listing that was cut
        if text == "." and prefix:
            tree.folders.add(prefix.rstrip("/"))
        return
    path = prefix + text[2:]
    if times:
        tree.times[path] = float(stamp)
    if kind == b"d":
        tree.folders.add(path)
    elif path not in tree.files:
        tree.files[path] = b"" if kind == b"f" else _LINK


_LINK: Final = b"\0link"
"""The content of what is listed and never searched."""


def is_link(tree: PlaneTree, path: str) -> bool:
    """Whether a listed path is a symbolic link."""
    return tree.files.get(path) is _LINK


def _failed(stderr: bytes) -> ToolError:
    said = stderr.decode("utf-8", "backslashreplace").strip().splitlines()
    reason = one_line_name(said[-1]) if said else "no message"
    return ToolError(f"The sandbox could not be searched: {reason}.", code="unavailable", hint="It needs find.")
