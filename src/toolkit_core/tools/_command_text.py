"""What a command wrote, as text for a model: control sequences stripped, odd bytes escaped, cuts marked."""

from __future__ import annotations

import codecs
import re
import signal
from typing import Final

from toolkit_core.limits import CONTROL_SEQUENCE_MAX_CHARS, TEXT_BLOCK_CHARS

# ECMA-48: CSI, the control strings (OSC, DCS, SOS, PM, APC), other escapes; then overstrikes of line printers.
# A control string that does not end on its line is no control string: what follows it must not disappear.
_UP_TO: Final = f"{{0,{CONTROL_SEQUENCE_MAX_CHARS}}}"
_CSI: Final = r"(?:\x1b\[|\x9b)"
_STRING: Final = rf"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]{_UP_TO}"
_SEQUENCE: Final = re.compile(
    rf"{_CSI}[0-?]{_UP_TO}[ -/]{_UP_TO}[@-~]|{_STRING}(?:\x07|\x1b\\|\x9c)|\x1b[ -/]{_UP_TO}[0-~]|[^\n\x1b]\x08"
)
_UNFINISHED: Final = re.compile(rf"(?:{_CSI}[ -?]{_UP_TO}|{_STRING}\x1b?|\x1b[ -/]{_UP_TO}|\r)$")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LINE_END: Final = re.compile(r"\r{1,3}\n|\r")


def stripped(text: str) -> str:
    r"""Text without control sequences: line ends are `\n`, control characters that are left are shown as `\x07`.

    Example:
        >>> stripped("\x1b[31mred\x1b[0m\r\n")
        'red\n'
    """
    if _CONTROL.search(text) is None:
        return text
    text = _LINE_END.sub("\n", _SEQUENCE.sub("", text))
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def output_text(data: bytes) -> str:
    r"""Bytes of a stream as text, in blocks of whole lines; bytes that are not UTF-8 as `\xff`."""
    text = data.decode("utf-8", "backslashreplace")
    if len(text) <= TEXT_BLOCK_CHARS:
        return stripped(text)
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = text.find("\n", start + TEXT_BLOCK_CHARS) + 1 or len(text)
        parts.append(stripped(text[start:end]))
        start = end
    return "".join(parts)


def stream_text(data: bytes, cut: int, cut_at: int, name: str) -> str:
    """A stream with a line in the place of what was dropped."""
    if not cut:
        return output_text(data)
    head, tail = output_text(data[:cut_at]), output_text(data[cut_at:])
    return f"{_ended(head)}[... {cut:,} bytes of {name} left out ...]\n{tail}"


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def joined_streams(stdout: str, stderr: str) -> str:
    """Both streams as a model reads them."""
    if not stdout and not stderr:
        return "(no output)"
    return stdout if not stderr else f"{_ended(stdout)}--- stderr ---\n{stderr}"


def cut_note(data: bytes, cut: int, name: str) -> str:
    """A sentence on what was dropped; "" for nothing."""
    if not cut:
        return ""
    return f"{name} was cut: {cut:,} of {len(data) + cut:,} bytes are left out in the middle"


def signal_name(number: int) -> str:
    """`signal 9 (SIGKILL)`."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:  # a real-time signal, or one that this system does not have
        return f"signal {number}"


class LiveText:
    """A stream as text while it comes: characters and control sequences may be cut anywhere between two chunks."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._held = ""

    def feed(self, chunk: bytes) -> str:
        """The text that is complete with this chunk."""
        text = self._held + self._decoder.decode(chunk)
        unfinished = _UNFINISHED.search(text[-CONTROL_SEQUENCE_MAX_CHARS:])
        self._held = unfinished[0] if unfinished is not None else ""
        return stripped(text[: len(text) - len(self._held)])
