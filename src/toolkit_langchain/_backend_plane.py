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
