"""Every number of the toolkit, its unit in its name, its reason or source beside it."""

from __future__ import annotations

from typing import Final

# --- calls -------------------------------------------------------------------------------------------

PROGRESS_INTERVAL_SECONDS: Final = 0.1
"""Ten reports a second are what a person can follow."""

PROGRESS_TEXT_CHARS: Final = 65_536
"""Waiting progress text is joined up to this; a listener that wants all reads the result."""

NAME_PATTERN: Final = r"[a-zA-Z0-9_-]{1,64}"
"""What every provider accepts as a function name."""

DESCRIPTION_MAX_CHARS: Final = 1024
"""OpenAI's function calling and LlamaIndex's to_openai_tool refuse longer ones."""

CLEANUP_SECONDS: Final = 10.0
"""How long clean-up after a cancelled or failed call may take before it is left and logged."""

# --- files -------------------------------------------------------------------------------------------

NAME_MAX_BYTES: Final = 255
"""NAME_MAX of Linux, macOS and their usual filesystems (limits.h)."""

PATH_MAX_BYTES: Final = 4096
"""PATH_MAX of Linux (limits.h); a longer string is refused before the kernel sees it."""

LINK_HOPS: Final = 40
"""Links that Linux follows in one look-up before ELOOP (path_resolution(7))."""

OPEN_ATTEMPTS: Final = 16
"""How often a path that others keep swapping is looked up anew; each attempt is some ten microseconds."""
