"""What no shell can be given, and which timeouts make sense: the same on every plane."""

from __future__ import annotations

import math

from toolkit_core.errors import ToolError
from toolkit_core.limits import COMMAND_MAX_BYTES, COMMAND_TIMEOUT_MAX_SECONDS
from toolkit_core.text import first_surrogate


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


def checked_timeout(seconds: float) -> tuple[float, str]:
    """The timeout that holds, and a note where it is not the one asked for.

    Raises:
        ToolError: `invalid_arguments`: not a positive number.
    """
    if math.isnan(seconds) or seconds <= 0:
        message = f"timeout_seconds is {seconds}; it must be more than 0."
        raise ToolError(message, code="invalid_arguments", hint=f"At most {COMMAND_TIMEOUT_MAX_SECONDS:g}.")
    if seconds > COMMAND_TIMEOUT_MAX_SECONDS:
        limit = COMMAND_TIMEOUT_MAX_SECONDS
        return limit, f"timeout_seconds was clamped from {seconds:g} to {limit:g}"
    return float(seconds), ""
