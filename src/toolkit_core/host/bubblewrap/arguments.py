"""The argument list of bubblewrap: what a confined command sees, in the order in which it is mounted.

Options travel NUL-separated through a descriptor (bwrap(1), `--args`), so that hidden names show in no process
list. Later mounts lie over earlier ones: writable folders, then what is read-only in them, then what is hidden.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolkit_core.limits import SANDBOX_RUN_BYTES, SANDBOX_SHM_BYTES, SANDBOX_TMP_BYTES, SANDBOX_VAR_TMP_BYTES

ARGUMENTS_FD = 3
FILTER_FD = 4
STATUS_FD = 5
RECORD_FD = 6
FIRST_DATA_FD = 7

_NAMESPACES = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
)
_CONFINEMENT = ("--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--new-session")
_KERNEL_FILES = (
    # Root without capabilities still owns these: through a fresh /proc it could write core_pattern.
    "sys",
    "irq",
    "bus",
    "fs",
    "acpi",
    "scsi",
    "driver",
    "dynamic_debug",
    "mtrr",
    "pressure",
    "tty",
    "sysrq-trigger",
)
_SYSTEM_LINKS = ("/run/current-system", "/run/opengl-driver")
"""Where NixOS keeps every program: links in /run, which is private here."""


@dataclass(frozen=True)
class Layout:
    """What one command may see and change. All paths are absolute and real, and exist.

    Attributes:
        writable: Folders (or files) that stay writable, the workspace first.
        read_only: What is read-only inside them.
        hidden: Folders and files that cannot be read.
        working_directory: Where the command starts.
        network: Whether it has the host's network.
        extra_files: Contents to show read-only at an absolute path below /run.
    """

    writable: tuple[str, ...]
    working_directory: str
    read_only: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    network: bool = False
    extra_files: tuple[tuple[str, bytes], ...] = ()


def within(path: str, folder: str) -> bool:
    """Whether an absolute, normal path is the folder or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _by_depth(paths: Iterable[str]) -> list[str]:
    return sorted(set(paths), key=lambda path: (path.count("/"), path))


def outermost(paths: Iterable[str]) -> list[str]:
    """Those that lie in no other of them."""
    kept: list[str] = []
    for path in _by_depth(paths):
        if not any(within(path, folder) for folder in kept):
            kept.append(path)
    return kept


def pins(layout: Layout) -> list[str]:
    """Writable folders on the way to a mount: bound onto themselves, so that none can be renamed away.

    A mount point cannot be renamed, but the folder above it can, and then the next command finds the protected
    or hidden file at a path that nobody guards.
    """
    found: set[str] = set()
    for path in (*layout.writable, *layout.read_only, *layout.hidden):
        for root in layout.writable:
            parent = os.path.dirname(path)
            while parent != root and within(parent, root):
                found.add(parent)
                parent = os.path.dirname(parent)
    return _by_depth(found - set(layout.writable))


def _private_folders() -> list[str]:
    options: list[str] = []
    sizes = (("/tmp", SANDBOX_TMP_BYTES), ("/var/tmp", SANDBOX_VAR_TMP_BYTES), ("/run", SANDBOX_RUN_BYTES))  # noqa: S108 - mount points, not files
    for folder, size in sizes:
        if os.path.isdir(folder) and not os.path.islink(folder):
            mode = "0755" if folder == "/run" else "1777"
            options += ["--perms", mode, "--size", str(size), "--tmpfs", folder]
    return options


def _base(layout: Layout) -> list[str]:
    options = [*_NAMESPACES, *(() if layout.network else ("--unshare-net",)), *_CONFINEMENT]
    options += ["--ro-bind", "/", "/", "--dev", "/dev"]
    options += ["--perms", "1777", "--size", str(SANDBOX_SHM_BYTES), "--tmpfs", "/dev/shm"]  # noqa: S108 - a mount point
    options += ["--proc", "/proc"]
    for name in _KERNEL_FILES:
        if os.path.exists(f"/proc/{name}"):
            options += ["--ro-bind", f"/proc/{name}", f"/proc/{name}"]
    options += _private_folders()
    for link in _SYSTEM_LINKS:
        if os.path.islink(link):
            options += ["--symlink", os.readlink(link), link]
    return options + _name_service(layout.network)


def _name_service(network: bool) -> list[str]:
    """With the network on, the resolver's configuration, which is often a link into /run."""
    real = os.path.realpath("/etc/resolv.conf")
    return ["--ro-bind-try", real, real] if network and within(real, "/run") else []


def _hidden(paths: Sequence[str], data: dict[int, bytes]) -> list[str]:
    options: list[str] = []
    for path in outermost(paths):
        if os.path.isdir(path):
            options += ["--perms", "0000", "--tmpfs", path, "--remount-ro", path]
        else:
            descriptor = FIRST_DATA_FD + len(data)
            data[descriptor] = b""
            options += ["--perms", "0000", "--ro-bind-data", str(descriptor), path]
    return options


def build(layout: Layout, *, filter_program: bytes) -> tuple[bytes, dict[int, bytes]]:
    """The options as bwrap reads them from a descriptor, and the descriptors that they name.

    Raises ValueError without a filter: with no network namespace and no filter, Unix sockets of the host answer.
    """
    if not filter_program:
        raise ValueError("a sandbox without a system call filter leaves Unix sockets open: no arguments are built")
    data: dict[int, bytes] = {}
    options = _base(layout)
    for path, content in layout.extra_files:
        descriptor = FIRST_DATA_FD + len(data)
        data[descriptor] = content
        options += ["--perms", "0444", "--ro-bind-data", str(descriptor), path]
    for path in _by_depth((*layout.writable, *pins(layout))):
        options += ["--bind", path, path]
    for path in _by_depth(layout.read_only):
        # It existed when the run was recorded; one that the host removed since needs no protection.
        options += ["--ro-bind-try", path, path]
    options += _hidden(layout.hidden, data)
    if os.path.isdir("/run"):
        options += ["--remount-ro", "/run"]
    options += ["--chdir", layout.working_directory, "--seccomp", str(FILTER_FD), "--json-status-fd", str(STATUS_FD)]
    arguments = b"".join(os.fsencode(option) + b"\0" for option in options)
    return arguments, {ARGUMENTS_FD: arguments, FILTER_FD: filter_program, **data}
