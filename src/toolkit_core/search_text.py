"""Pure text helpers of the search, for every plane: how a row is cut, how paths are ordered."""

from __future__ import annotations

from typing import Final

from toolkit_core.limits import GREP_ROW_CHARS

LEAD_CHARS: Final = 100
"""Characters shown before a match that lies behind the cut."""


def cut_line(line: bytes, match_at: int, *, before: bool = False, after: bool = False) -> tuple[str, str]:
    r"""A line as at most 500 characters that hold the match, and where it was cut.

    Args:
        line: Its bytes; a CR at its end is dropped, what is not UTF-8 becomes `\xff`.
        match_at: The byte where the match begins.
        before: Bytes before `line` are missing already.
        after: Bytes behind it are.
    """
    if not after and line.endswith(b"\r"):
        line = line[:-1]
    if len(line) <= GREP_ROW_CHARS and not before and not after:
        return line.decode("utf-8", "backslashreplace"), ""
    head = line[:match_at]
    if before:
        head = head.lstrip(bytes(range(0x80, 0xC0)))  # the rest of a character whose start is missing
    lead = head.decode("utf-8", "backslashreplace")
    text = lead + line[match_at:].decode("utf-8", "backslashreplace")
    start = 0 if len(lead) < GREP_ROW_CHARS and not before else max(0, len(lead) - LEAD_CHARS)
    start = max(0, min(start, len(text) - GREP_ROW_CHARS)) if not after else start
    shown = text[start : start + GREP_ROW_CHARS]
    cut_before, cut_after = before or start > 0, after or start + GREP_ROW_CHARS < len(text)
    return shown, ("both" if cut_after else "start") if cut_before else ("end" if cut_after else "")


def path_order(path: str) -> str:
    """The key that sorts paths as a walk in order of name meets them."""
    return path.replace("/", "\0")
