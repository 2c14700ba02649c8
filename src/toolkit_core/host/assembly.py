"""The parts that the composition leaves put together: built-in tools over this machine."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolkit_core.host.commands import HostCommands
from toolkit_core.host.documents import PdfDocuments
from toolkit_core.host.files import HostFiles
from toolkit_core.host.processes import HostProcesses
from toolkit_core.host.search import HostSearch
from toolkit_core.host.web import HostWeb
from toolkit_core.limits import Limits
from toolkit_core.ports.sandbox import SandboxClient, SupportsProcesses, SupportsSearch, SupportsWrap
from toolkit_core.sandboxes.client_commands import ClientCommands
from toolkit_core.sandboxes.client_files import ClientFiles, plane_folder
from toolkit_core.sandboxes.client_processes import ClientProcesses
from toolkit_core.tools import (
    ReadRecord,
    edit_file_tool,
    glob_tool,
    grep_tool,
    process_read_tool,
    process_start_tool,
    process_stop_tool,
    process_write_tool,
    read_file_tool,
    shell_tool,
    web_fetch_tool,
    web_search_tool,
    with_editor,
    write_file_tool,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit_core.host.egress import Egress
    from toolkit_core.host.environment import EnvironmentChoice
    from toolkit_core.host.resolve import AnyPath, Outside
    from toolkit_core.ports.commands import Commands
    from toolkit_core.ports.editor import Editor
    from toolkit_core.ports.files import Files
    from toolkit_core.ports.processes import Processes
    from toolkit_core.ports.search import Search
    from toolkit_core.ports.web_search import WebSearchProvider
    from toolkit_core.tool import Tool

Closer = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Parts:
    """Some tools, and what must be closed after them."""

    tools: tuple[Tool[Any], ...] = ()
    closers: tuple[Closer, ...] = ()

    def __add__(self, other: Parts) -> Parts:
        return Parts(self.tools + other.tools, self.closers + other.closers)


@dataclass(frozen=True)
class Place:
    """Where tools work: made absolute once, from what a caller wrote.

    Attributes:
        cwd: The root.
        extra_roots: Further folders that paths may lie in.
        outside: Whether paths outside the roots are refused, or left to a program's policy.
        sandbox: Where commands run, and files lie where its filesystem is separate.
        limits: The numbers.
    """

    cwd: str
    extra_roots: tuple[str, ...] = ()
    outside: Outside = "refuse"
    sandbox: SandboxClient | None = None
    limits: Limits = field(default_factory=Limits)

    @staticmethod
    def of(
        cwd: AnyPath,
        *,
        extra_roots: Sequence[AnyPath] = (),
        outside: Outside = "refuse",
        sandbox: SandboxClient | None = None,
        limits: Limits | None = None,
    ) -> Place:
        """`~` expanded, the rest relative to the process's folder; a separate sandbox's cwd is taken as it is.

        Raises:
            ValueError: An empty cwd, or one that is no absolute folder of a separate sandbox.
        """
        if not os.fspath(cwd):
            raise ValueError("cwd is empty: name the folder that the tools work in")
        if sandbox is not None and sandbox.filesystem == "separate":
            if extra_roots:
                raise ValueError("extra_roots are folders of this machine; a separate sandbox has none of them")
            return Place(_plane_cwd(os.fspath(cwd), sandbox), (), outside, sandbox, limits or Limits())
        roots = tuple(map(absolute, extra_roots))
        return Place(absolute(cwd), roots, outside, sandbox, limits or Limits())

    @property
    def separate(self) -> SandboxClient | None:
        """The sandbox whose files are not the host's, if that is where tools work."""
        return self.sandbox if self.sandbox is not None and self.sandbox.filesystem == "separate" else None

    @property
    def wrap(self) -> SupportsWrap | None:
        """What confines host commands."""
        return self.sandbox if self.separate is None and isinstance(self.sandbox, SupportsWrap) else None

    @property
    def hidden(self) -> tuple[str, ...]:
        """What a shared sandbox hides: the file tools beside it must not show it either."""
        return () if self.separate is not None else tuple(getattr(self.sandbox, "hidden", ()))


def _plane_cwd(cwd: str, sandbox: SandboxClient) -> str:
    """A folder of the sandbox: absolute there, or relative to where the sandbox says that it works."""
    root: object = getattr(sandbox, "root", None)
    return plane_folder(posixpath.join(root, cwd) if isinstance(root, str) else cwd)


def absolute(path: AnyPath) -> str:
    """`~` expanded, the rest relative to the process's folder as it is now."""
    return os.path.abspath(os.path.expanduser(os.fspath(path)))


def file_parts(place: Place, *, require_read: bool, editor: Editor | None) -> Parts:
    """read_file, write_file, edit_file, glob, grep; the last two only where there is a search.

    A separate sandbox goes without the editor: its unsaved text is of other files.
    """
    limits, client = place.limits, place.separate
    if client is not None:
        return _file_tools(place, ClientFiles(client, place.cwd), require_read=require_read) + _search_tools(
            place, client.search(place.cwd) if isinstance(client, SupportsSearch) else None
        )
    files = HostFiles(place.cwd, extra_roots=place.extra_roots, outside=place.outside, hidden=place.hidden)
    search = HostSearch(
        place.cwd,
        extra_roots=place.extra_roots,
        outside=place.outside,
        budget_seconds=limits.search_budget_seconds,
        hidden=place.hidden,
    )
    seen = files if editor is None else with_editor(files, editor)
    return _file_tools(place, seen, require_read=require_read) + _search_tools(place, search, editor=editor is not None)


def _file_tools(place: Place, files: Files, *, require_read: bool) -> Parts:
    limits = place.limits
    record = ReadRecord() if require_read else None
    return Parts(
        (
            read_file_tool(
                files,
                record=record,
                documents=PdfDocuments(),
                max_line_chars=limits.read_line_chars,
                max_output_bytes=limits.read_output_bytes,
                max_scan_bytes=limits.read_scan_bytes,
                max_image_bytes=limits.image_bytes,
            ),
            write_file_tool(files, record=record),
            edit_file_tool(files, record=record, max_file_bytes=limits.edit_file_bytes),
        )
    )


def _search_tools(place: Place, search: Search | None, *, editor: bool = False) -> Parts:
    if search is None:
        return Parts()
    limits = place.limits
    return Parts(
        (
            glob_tool(search, default_limit=limits.glob_limit, editor=editor),
            grep_tool(search, default_limit=limits.grep_limit, editor=editor),
        )
    )


def shell_parts(place: Place, *, env: EnvironmentChoice = "allowlist") -> Parts:
    """Shell."""
    limits, client = place.limits, place.separate
    closers: tuple[Closer, ...] = ()
    if client is not None:
        commands: Commands = ClientCommands(client, place.cwd, max_output_bytes=limits.command_output_bytes)
    else:
        commands = HostCommands(
            place.cwd,
            env=env,
            extra_roots=place.extra_roots,
            wrap=place.wrap,
            max_output_bytes=limits.command_output_bytes,
        )
        closers = (commands.aclose,)
    tool = shell_tool(
        commands,
        default_timeout_seconds=limits.command_timeout_seconds,
        max_timeout_seconds=limits.command_timeout_max_seconds,
    )
    return Parts((tool,), closers)


def process_parts(place: Place, *, env: EnvironmentChoice = "allowlist") -> Parts:
    """process_start, process_read, process_write, process_stop.

    In a separate sandbox by its own processes, else by its shell.

    Raises:
        ValueError: It has neither.
    """
    client = place.separate
    closers: tuple[Closer, ...] = ()
    if client is None:
        processes: Processes = HostProcesses(place.cwd, env=env, wrap=place.wrap)
        closers = (processes.aclose,)
    elif isinstance(client, SupportsProcesses):
        processes = client.processes(place.cwd)
    elif getattr(client, "posix_shell", True):
        processes = ClientProcesses(client, cwd=place.cwd)
        closers = (processes.aclose,)
    else:
        name = type(client).__name__
        raise ValueError(f"processes: {name} keeps none, and has no POSIX shell to keep them by; leave them out")
    factories = (process_start_tool, process_read_tool, process_write_tool, process_stop_tool)
    return Parts(tuple(factory(processes) for factory in factories), closers)


def web_parts(limits: Limits, *, egress: Egress | None = None) -> Parts:
    """web_fetch."""
    tool = web_fetch_tool(
        HostWeb(egress=egress),
        documents=PdfDocuments(),
        timeout_seconds=limits.web_seconds,
        max_bytes=limits.web_bytes,
    )
    return Parts((tool,))


def search_parts(providers: Sequence[WebSearchProvider]) -> Parts:
    """web_search, where there are providers."""
    return Parts((web_search_tool(tuple(providers)),)) if providers else Parts()
