"""Where a deepagents backend works: this machine, or a sandbox client."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit_core.errors import ToolError
from toolkit_core.ports.sandbox import SandboxClient, SupportsRemove
from toolkit_core.sandboxes.client_files import ClientFiles
from toolkit_core.sandboxes.client_search import search_of

if TYPE_CHECKING:
    from toolkit_core.ports.commands import CommandResult
    from toolkit_core.ports.files import Files
    from toolkit_core.ports.search import Search
    from toolkit_core.tool import Tool

_REMOVE_SECONDS = 120.0


@dataclass(frozen=True)
class Plane:
    """One place with files, search and commands.

    Attributes:
        root: Absolute folder that everything stays below.
        files: Its files.
        search: Finding files there.
        edit_tool: The toolkit's edit_file over the same files.
        run: Runs a command with a limit in seconds, in the root.
        remove: Removes an absolute path.
    """

    root: str
    files: Files
    search: Search
    edit_tool: Tool[Any]
    run: Callable[[str, float], Awaitable[CommandResult]]
    remove: Callable[[str], Awaitable[None]]


def plane_of(target: object, root: str | None) -> Plane:
    """The plane of a folder of this machine, or of a sandbox client.

    Raises:
        ValueError: The folder is missing, or a root was given for a folder of this machine.
        TypeError: It is neither.
    """
    if isinstance(target, str | os.PathLike):
        if root is not None:
            raise ValueError("root is for a sandbox; a folder of this machine is its own root")
        return _host_plane(os.fspath(target))
    if not isinstance(target, SandboxClient):
        raise TypeError(f"a backend works in a folder or a sandbox client, not in {type(target).__name__}")
    if target.filesystem == "shared":
        return _shared_plane(target, root)
    return _separate_plane(target, root)


def _host_plane(folder: str) -> Plane:
    from toolkit_core import HostCommands

    commands = HostCommands(folder)

    async def run(command: str, timeout_seconds: float) -> CommandResult:
        return await commands.run(command, timeout_seconds=timeout_seconds)

    return _over_host_files(folder, run)


def _shared_plane(client: SandboxClient, root: str | None) -> Plane:
    """Commands in the sandbox, files on the host, where they are the same."""
    folder = root or getattr(client, "root", None)
    if not isinstance(folder, str):
        raise TypeError(f"{type(client).__name__} does not say which folder it works in: give root=")

    async def run(command: str, timeout_seconds: float) -> CommandResult:
        return await client.run(command, timeout_seconds=timeout_seconds)

    return _over_host_files(folder, run)


def _over_host_files(folder: str, run: Callable[[str, float], Awaitable[CommandResult]]) -> Plane:
    from toolkit_core import HostFiles, HostSearch
    from toolkit_core.tools import edit_file_tool

    files, search = HostFiles(folder), HostSearch(folder)

    async def remove(path: str) -> None:
        await _remove_by_command(path, files, files.root, run)

    return Plane(files.root, files, search, edit_file_tool(files), run, remove)


async def _remove_by_command(
    path: str, files: Files, root: str, run: Callable[[str, float], Awaitable[CommandResult]]
) -> None:
    """Remove a path inside the root; of a link the link itself, never what it leads to.

    The folder that holds it is judged and named by its real path, so that no link is followed on the way.
    """
    spelled = path.rstrip("/") or "/"
    holder, name = posixpath.split(spelled)
    judged = await files.resolve(holder)
    target = posixpath.join(judged.real, name)
    if name in ("", ".", "..") or target == root or not judged.inside:
        raise ToolError(f"{path} cannot be removed: only what lies below {root} can", code="access_denied")
    quoted = shlex.quote(target)
    missing, failed = 64, 65
    command = f"[ -e {quoted} ] || [ -L {quoted} ] || exit {missing}; rm -rf -- {quoted} || exit {failed}"
    result = await run(command, _REMOVE_SECONDS)
    if result.exit_code == missing:
        raise ToolError(f"there is no {path}", code="not_found")
    if result.exit_code != 0:
        said = result.stderr.decode("utf-8", "backslashreplace").strip()
        raise ToolError(f"{path} could not be removed whole: {said or 'the command ended early'}", code="io_error")


def _separate_plane(client: SandboxClient, root: str | None) -> Plane:
    """Everything through the client."""
    from toolkit_core.tools import edit_file_tool

    folder = posixpath.normpath(root or getattr(client, "root", None) or "/")
    files = ClientFiles(client, folder, confined=True)

    async def run(command: str, timeout_seconds: float) -> CommandResult:
        return await client.run(command, cwd=folder, timeout_seconds=timeout_seconds)

    async def remove(path: str) -> None:
        if isinstance(client, SupportsRemove) and (await files.resolve(path)).real != folder:
            await client.remove((await files.resolve(path)).real)
        else:
            await _remove_by_command(path, files, folder, run)

    return Plane(folder, files, search_of(client, folder, confined=True), edit_file_tool(files), run, remove)
