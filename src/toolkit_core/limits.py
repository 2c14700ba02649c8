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


# --- langchain ---------------------------------------------------------------------------------------

ARTIFACT_LEDGER_CHARS: Final = 30_000
"""An artifact's string longer than what the window shows whole is left to the ledger's entry."""

ARTIFACT_STRING_CHARS: Final = 1_048_576
"""Artifacts are checkpointed at every step; a capped command stream (1 MiB) still fits whole."""

SHOWN_ARGUMENT_DEPTH: Final = 100
"""Arguments nested deeper are not shown to callbacks: str() of them ends in RecursionError near 1,000."""

SHOWN_INTEGER_BITS: Final = 13_000
"""str() refuses integers past 4,300 digits (sys.get_int_max_str_digits), some 14,284 bits."""

OPEN_ASKS_KEPT: Final = 1_000
"""Tasks whose order of questions is remembered for the replay; each is a few hundred bytes."""

# --- the output window -------------------------------------------------------------------------------

WINDOW_CHARS: Final = 30_000
"""About 7,500 tokens: one result must not crowd out the conversation."""

WINDOW_HEAD_CHARS: Final = 12_000
WINDOW_TAIL_CHARS: Final = 18_000
"""Two fifths from the start and three from the end: of a build or a test run the end says how it went."""

WINDOW_LINE_CHARS: Final = 2_000
"""A longer line is data or minified code; its start tells which."""
