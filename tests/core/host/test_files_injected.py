"""Every system call that a file tool makes fails once: recorded from a real run, then made to fail one by one."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import require
from toolkit_core import ToolError, ToolResult
from toolkit_core.host import atomic_write
from toolkit_core.host.files import HostFiles
from toolkit_core.host.folders import TEMPORARY_PREFIX
from toolkit_core.tools import edit_file_tool, read_file_tool, write_file_tool

OLD, NEW = "old = 1\nrest\n", "old = 2\nrest\n"
CALLS = [
    "open",
    "close",
    "read",
    "pread",
    "preadv",
    "write",
    "pwrite",
    "fstat",
    "stat",
    "lstat",
    "link",
    "symlink",
    "rename",
    "replace",
    "unlink",
    "rmdir",
    "mkdir",
    "fsync",
    "fdatasync",
    "readlink",
    "lseek",
    "fchmod",
    "chmod",
    "fchown",
    "chown",
    "listxattr",
    "getxattr",
    "setxattr",
    "removexattr",
    "access",
    "scandir",
    "listdir",
    "dup",
    "ftruncate",
    "truncate",
    "utime",
    "copy_file_range",
    "sendfile",
]
NATIVE = ("exchange", "rename_to_free_name")
"""renameat2 has no function in os; these two of the library stand for it."""

Operation = Callable[[HostFiles], Awaitable[ToolResult[Any]]]


async def listed(files: HostFiles) -> ToolResult[Any]:
    """A folder's entries, as a result like the others'."""
    try:
        return ToolResult.ok(str(await files.list(".", 10)), {})
    except ToolError as e:
        return ToolResult.failure(e.info)


OPERATIONS: dict[str, Operation] = {
    "read": lambda files: read_file_tool(files)(path="a.txt"),
    "list": listed,
    "edit": lambda files: edit_file_tool(files)(path="a.txt", edits=[{"old_text": "old = 1", "new_text": "old = 2"}]),
    "overwrite": lambda files: write_file_tool(files)(path="a.txt", content=NEW),
    "create": lambda files: write_file_tool(files)(path="b.txt", content=NEW),
    "create in a new folder": lambda files: write_file_tool(files)(path="x/y/b.txt", content=NEW),
}
HARMLESS = frozenset({"io_error", "access_denied", "stale_file", "not_found", "unavailable"})


class Injector:
    """Counts the calls that host modules make, and lets one of them fail."""

    def __init__(self, at: int | None, number: int) -> None:
        self.calls: list[str] = []
        self._at, self._errno = at, number

    def wrap(self, name: str, real: Callable[..., Any], *, native: bool) -> Callable[..., Any]:
        """The function with a trap."""

        def call(*args: Any, **kwargs: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "")  # pyright: ignore[reportPrivateUsage]  (who calls)
            if not native and not caller.startswith("toolkit_core.host."):
                return real(*args, **kwargs)
            self.calls.append(f"{name} in {caller.rpartition('.')[2]}")
            if len(self.calls) - 1 != self._at:
                return real(*args, **kwargs)
            if name == "close":  # the kernel lets go of the descriptor all the same (close(2))
                real(*args, **kwargs)
            raise OSError(self._errno, os.strerror(self._errno))

        return call


@contextmanager
def injected(at: int | None, number: int = errno.EIO) -> Generator[Injector]:
    """With the `at`-th call failing; None: only counted."""
    injector = Injector(at, number)
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            real = getattr(os, name, None)
            if real is not None:
                wrapped = injector.wrap(name, real, native=False)
                for capabilities in (os.supports_dir_fd, os.supports_effective_ids, os.supports_follow_symlinks):
                    if real in capabilities:
                        patch.setattr(os, name, real)
                        capabilities.add(wrapped)
                patch.setattr(os, name, wrapped)
        for name in NATIVE:
            patch.setattr(atomic_write, name, injector.wrap(name, getattr(atomic_write, name), native=True))
        yield injector


def workspace(folder: Path) -> Path:
    folder.mkdir()
    (folder / "a.txt").write_text(OLD)
    return folder


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def kept(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


async def run(
    operation: str, folder: Path, at: int | None, number: int = errno.EIO
) -> tuple[ToolResult[Any], list[str]]:
    files = HostFiles(folder)
    with injected(at, number) as injector:
        result = await OPERATIONS[operation](files)
    return result, injector.calls


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_control_the_calls_of_a_real_run_are_recorded(operation: str, tmp_path: Path) -> None:
    result, calls = await run(operation, workspace(tmp_path / "w"), None)
    assert result.error is None
    assert len(calls) > 3


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ENOSPC])
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_whichever_call_fails_nothing_is_lost_and_nothing_is_left(
    operation: str, number: int, tmp_path: Path
) -> None:
    require(Path("/proc/self/fd").exists(), "descriptors are counted in /proc")
    result, calls = await run(operation, workspace(tmp_path / "whole"), None)
    assert result.error is None
    done = kept(tmp_path / "whole")
    for at in range(len(calls)):
        folder = workspace(tmp_path / str(at))
        before = descriptors()
        result, _ = await run(operation, folder, at, number)
        where = f"{operation}: call {at} ({calls[at]}): {result}"
        assert descriptors() == before, where
        left = kept(folder)
        if calls[at] == "unlink in temporary":  # what cannot be removed stays; the file's next write removes it
            left = {name: text for name, text in left.items() if TEMPORARY_PREFIX not in name}
        assert left in ({"a.txt": OLD}, done), where
        if result.error is None:
            assert left == done, where
        else:
            assert result.error.code in HARMLESS, where
