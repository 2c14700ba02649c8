"""Which shell reads a command, and what may be given to it."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from typing import Final

from toolkit_core.errors import ToolError

_POSIX_SHELLS: Final = ("bash", "sh")
_WINDOWS_SHELLS: Final = ("pwsh", "powershell")
_FALLBACK_PATH: Final = "/bin:/usr/bin:/usr/local/bin"


@cache
def find_shell() -> tuple[str, str]:
    """Name and absolute path of this machine's shell: bash, else sh; PowerShell on Windows.

    Raises:
        ToolError: `unavailable`: there is none.
    """
    names = _WINDOWS_SHELLS if sys.platform == "win32" else _POSIX_SHELLS
    for name in names:
        path = shutil.which(name) or shutil.which(name, path=_FALLBACK_PATH)
        if path is not None:
            return ("powershell" if names is _WINDOWS_SHELLS else name), os.path.abspath(path)
    raise ToolError(
        f"There is no shell on this machine: looked for {', '.join(names)}.",
        code="unavailable",
        hint="Work without commands, or ask the person who runs this program to install one and put it on PATH.",
    )


def shell_argv(name: str, path: str, command: str) -> tuple[str, ...]:
    """The argument vector that runs a command; the command is one argument, exactly as it was given."""
    if name == "powershell":
        return (path, "-NoProfile", "-NonInteractive", "-Command", command)
    return (path, "-c", command)
