"""Which shell reads a command, and what may be given to it."""

from __future__ import annotations

import os
import shutil
import sys
from functools import cache
from typing import Final

from toolkit_core.errors import ToolError
from toolkit_core.limits import COMMAND_MAX_BYTES
from toolkit_core.text import first_surrogate

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
    raise ToolError(f"there is no shell on this machine: looked for {', '.join(names)}", code="unavailable")


def shell_argv(name: str, path: str, command: str) -> tuple[str, ...]:
    """The argument vector that runs a command; the command is one argument, exactly as it was given."""
    if name == "powershell":
        return (path, "-NoProfile", "-NonInteractive", "-Command", command)
    return (path, "-c", command)


def check_command(command: str) -> None:
    """Refuse what no shell can be given.

    Raises:
        ToolError: `invalid_arguments`: empty, NUL, a lone surrogate, longer than one argument may be.
    """
    if not command.strip():
        raise ToolError("The command is empty.", code="invalid_arguments", hint="Give a command to run.")
    if "\0" in command:
        message = f"The command has a NUL character at index {command.index(chr(0))}; no argument can hold one."
        raise ToolError(message, code="invalid_arguments", hint="Write it as \\0 and let printf make it.")
    place = first_surrogate(command)
    if place is not None:
        message = f"The command has a lone surrogate U+{ord(command[place]):04X} at index {place}."
        raise ToolError(message, code="invalid_arguments", hint="It stands for no character; leave it out.")
    size = len(command.encode())
    if size > COMMAND_MAX_BYTES:
        raise ToolError(
            f"The command is {size:,} bytes long; the system takes at most {COMMAND_MAX_BYTES:,}.",
            code="invalid_arguments",
            hint="Write the script or its data to a file, then run that.",
        )
