"""What a body is: its declared type, checked against its first bytes.

A PDF that is labelled text/html must not reach a model as text, and a text without a label is still text.

Sources: the WHATWG MIME sniffing standard (binary data bytes, signatures), RFC 6839 (+json, +xml).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from toolkit_core.host.pages.charset import header_codec
from toolkit_core.limits import WEB_SNIFF_BYTES

if TYPE_CHECKING:
    from toolkit_core.ports.web import PageKind

_SIGNATURES: Final = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\x7fELF", "application/x-elf"),
    (b"\x00asm", "application/wasm"),
    (b"\xca\xfe\xba\xbe", "application/java-vm"),
    (b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"OggS\x00", "application/ogg"),
    (b"ID3\x03", "audio/mpeg"),
    (b"ID3\x04", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
)
_BZIP2_LEVEL_AT: Final = 3
_TYPE_CHARS: Final = 255
"""RFC 6838, section 4.2: type and subtype have 127 characters at most each."""
_TEXT_TYPES: Final = re.compile(
    r"text/.+|.+[+/](json|xml|yaml|x-yaml|toml|javascript|ecmascript|x-javascript|x-sh|sql|graphql|x-ndjson|jsonl"
    r"|json-seq|ld\+json|rtf|x-httpd-php|x-www-form-urlencoded|typescript|x-tex|x-latex|x-subrip|x-troff)"
)
_UNTYPED: Final = ("", "application/octet-stream", "binary/octet-stream", "application/unknown", "unknown/unknown")
_HTML_START: Final = re.compile(
    rb"\s{0,1024}(<!--.{0,2000}?-->\s{0,256})?<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_BINARY_BYTES: Final = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_WIDE_BOMS: Final = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


def media_type(content_type: str) -> str:
    """The type of a Content-Type header in lower case, without its parameters; what is no type is cut short."""
    return " ".join(content_type[:_TYPE_CHARS].partition(";")[0].partition(",")[0].split()).lower()


def kind_of(content_type: str, data: bytes) -> tuple[PageKind, str]:
    """The kind of a body and its media type: the declared one, or what the bytes say where they contradict."""
    declared = media_type(content_type)
    head = data[:WEB_SNIFF_BYTES]
    found = _signature(head)
    if found is not None:
        return ("pdf" if found == "application/pdf" else "binary"), found
    wide = head.startswith(_WIDE_BOMS) or (header_codec(content_type) or "").startswith(("utf-16", "utf-32"))
    if declared in ("text/html", "application/xhtml+xml"):
        return ("html", declared) if wide or b"\0" not in head else ("binary", declared)
    if _TEXT_TYPES.fullmatch(declared):
        return ("text", declared) if wide or b"\0" not in head else ("binary", declared)
    if declared == "application/pdf":
        return "binary", declared
    if declared not in _UNTYPED:
        return "binary", declared
    if not wide and _BINARY_BYTES.search(head):
        return "binary", declared or "application/octet-stream"
    if not declared and _HTML_START.match(head):
        return "html", "text/html"
    return "text", declared or "text/plain"


def _signature(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] in (b"WEBP", b"WAVE", b"AVI "):
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12], "video/x-msvideo")
    if head[4:8] == b"ftyp":
        return "video/mp4"
    for magic, name in _SIGNATURES:
        if head.startswith(magic):
            if magic == b"BZh" and not head[_BZIP2_LEVEL_AT : _BZIP2_LEVEL_AT + 1].isdigit():
                continue
            return name
    return None
