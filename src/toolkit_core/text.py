"""Pure text helpers: names and bytes that are not text, lines and their endings."""

from __future__ import annotations

import re
from typing import Final

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_UNSHOWABLE: Final = re.compile("[\x00\ud800-\udfff]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\x80-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def shown_name(name: str) -> str:
    r"""A file name as text: bytes that are not UTF-8 (surrogates of PEP 383) as `\xff`, the rest as it is.

    Example:
        >>> shown_name(b"caf\xe9.txt".decode("utf-8", "surrogateescape"))
        'caf\\xe9.txt'
    """
    if name.isascii():
        return name
    return _SURROGATE.sub(_escape_surrogate, name)


def one_line_name(name: str) -> str:
    r"""`shown_name` for a headline: control characters, line ends and direction marks are escaped as well."""
    return _CONTROL.sub(lambda m: _escape_character(m[0]), shown_name(name))


def raw_name(shown: str) -> str | None:
    r"""The name that `one_line_name` showed, its `\xff` taken back as bytes; None where nothing is escaped.

    `\x00` and `\x2f` stay as they are: no name holds NUL or a slash.
    """
    if "\\x" not in shown:
        return None
    data = shown.encode("utf-8", "surrogateescape")
    raw = re.sub(rb"\\x([0-9a-fA-F]{2})", _unescape_byte, data)
    return None if raw == data else raw.decode("utf-8", "surrogateescape")


def first_surrogate(text: str) -> int | None:
    """The index of the first lone surrogate, which no encoding can store; None where there is none."""
    if text.isascii():
        return None
    found = _SURROGATE.search(text)
    return None if found is None else found.start()


def _escape_surrogate(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def _escape_character(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def _unescape_byte(match: re.Match[bytes]) -> bytes:
    byte = bytes.fromhex(match[1].decode("ascii"))
    return match[0] if byte in b"\x00/" else byte


def shown_text(text: str) -> str:
    r"""A file's text for display: bytes that are not UTF-8 (surrogates of PEP 383) and NUL as `\xEF`."""
    if "\0" not in text and (text.isascii() or first_surrogate(text) is None):
        return text
    return _UNSHOWABLE.sub(lambda m: f"\\x{ord(m[0]) & 0xFF:02X}", text)


def decoded(data: bytes) -> str:
    """Bytes as text, each that is not UTF-8 as a surrogate of PEP 383, so that it counts as one character."""
    return data.decode("utf-8", "surrogateescape")


def newlines_in(block: bytes) -> int:
    """How many LF a block has; two to three times as fast as `bytes.count`."""
    return len(block) - len(block.replace(b"\n", b""))


def after_newlines(block: bytes, count: int) -> int:
    """The index behind the `count`-th LF of a block that has as many, found by halving."""
    low, high = 0, len(block)
    while high - low > 4096:
        middle = (low + high) // 2
        here = newlines_in(block[low:middle])
        if here >= count:
            high = middle
        else:
            low, count = middle, count - here
    for _ in range(count):
        low = block.index(b"\n", low) + 1
    return low
