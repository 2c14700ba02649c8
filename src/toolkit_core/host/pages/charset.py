"""Bytes of a page to text: byte order mark, header, meta tag, UTF-8, then detection.

The label is the server's, so it is looked up in a table of text encodings only: Python's registry also holds
codecs that raise, or that are no encodings of text (idna, rot13, base64, zlib).

Sources: the WHATWG Encoding standard (labels and their supersets), the HTML standard (meta prescan).
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from toolkit_core.limits import WEB_DETECT_BYTES, WEB_INFLATE_STEP_BYTES, WEB_META_BYTES

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_SUPERSETS: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "utf-16": "utf-16-le",
    "utf-32": "utf-32-le",
}
"""What browsers read instead: the superset that pages with such a label are really written in."""

_ALIASES: Final = {
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "x-gbk": "gb18030",
    "x-x-big5": "big5hkscs",
    "x-cp1250": "cp1250",
    "x-cp1251": "cp1251",
    "x-cp1252": "cp1252",
    "windows-874": "cp874",
    "windows-949": "cp949",
    "ks_c_5601-1987": "cp949",
    "x-mac-roman": "mac-roman",
    "macintosh": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
    "unicode-1-1-utf-8": "utf-8",
    "utf8": "utf-8",
}

_TEXT_CODECS: Final = frozenset(
    [
        *(f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        *(f"cp{page}" for page in (437, 850, 852, 855, 866, 874, *range(1250, 1259))),
        *("koi8-r", "koi8-u", "mac-roman", "mac-cyrillic"),
        *("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"),
        *("gb18030", "big5hkscs", "cp932", "cp949", "euc_jp", "iso2022_jp", "johab"),
    ]
)

_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+-]{0,39}")
_PARAMETER: Final = re.compile(r";\s*charset\s*=\s*[\"']?\s*([^\"';,\s]{1,60})", re.IGNORECASE)
_META: Final = re.compile(rb"<meta\b[^>]{0,512}?charset\s{0,8}=\s{0,8}[\"']?\s{0,8}([^\"'>\s;/]{1,60})", re.IGNORECASE)
_XML: Final = re.compile(rb"\s{0,64}<\?xml\b[^>]{0,256}?encoding\s{0,8}=\s{0,8}[\"']([^\"'>]{1,60})")


def codec_of(label: str) -> str | None:
    """The Python codec for a charset label; None for an unknown one and for what encodes no text.

    Example:
        >>> codec_of("Shift_JIS"), codec_of("zlib")
        ('cp932', None)
    """
    label = label.strip().strip("\"'")
    if not _LABEL.fullmatch(label):
        return None
    name = _ALIASES.get(label.lower())
    if name is None:
        try:
            name = codecs.lookup(label).name
        except (LookupError, ValueError):
            return None
    name = _SUPERSETS.get(name, name)
    return name if name in _TEXT_CODECS else None


def header_codec(content_type: str) -> str | None:
    """The codec that a Content-Type names, quoted or not; None where it names none that is known."""
    found = _PARAMETER.search(content_type[:1000])
    return None if found is None else codec_of(found[1])


def decode(data: bytes, *, content_type: str = "", markup: bool = False, cut: bool = False) -> tuple[str, str]:
    """The text and the codec that read it; never raises, bytes that do not fit become U+FFFD.

    Args:
        data: The body.
        content_type: The header, for its charset.
        markup: Whether a meta tag or an XML declaration may name the charset.
        cut: Whether the body was cut, perhaps within a character.
    """
    for mark, codec in _BOMS:
        if data.startswith(mark):
            return _decode(data[len(mark) :], codec, cut), codec
    codec = header_codec(content_type) or (_declared(data) if markup else None)
    if codec is None:
        codec = "utf-8" if _is_utf8(data, cut) else _detected(data)
    return _decode(data, codec, cut), codec


def _declared(data: bytes) -> str | None:
    found = _XML.match(data[:1024]) or _META.search(data[:WEB_META_BYTES])
    if found is None:
        return None
    codec = codec_of(found[1].decode("latin-1"))
    # a declaration that could be read byte by byte was not written in UTF-16 (HTML standard, prescan)
    return "utf-8" if codec is not None and codec.startswith(("utf-16", "utf-32")) else codec


def _decode(data: bytes, codec: str, cut: bool) -> str:
    """In blocks, so that the other threads of the process get their turn."""
    decoder = codecs.getincrementaldecoder(codec)("replace")
    step = WEB_INFLATE_STEP_BYTES
    parts = [decoder.decode(data[at : at + step]) for at in range(0, len(data), step)]
    if not cut:
        parts.append(decoder.decode(b"", True))
    return "".join(parts)


def _is_utf8(data: bytes, cut: bool) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    try:
        for at in range(0, len(data), WEB_INFLATE_STEP_BYTES):
            decoder.decode(data[at : at + WEB_INFLATE_STEP_BYTES])
        decoder.decode(b"", not cut)
    except UnicodeDecodeError:
        return False
    return True


def _detected(data: bytes) -> str:
    """By statistics; Windows-1252, which decodes anything, where they say nothing."""
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return "cp1252"
    try:
        best = from_bytes(data[:WEB_DETECT_BYTES]).best()
    except Exception:  # noqa: BLE001 - a guess about hostile bytes that fails is no failure of the page
        return "cp1252"
    return (codec_of(best.encoding) if best is not None else None) or "cp1252"
