"""Images by their bytes: type, size in pixels, and whether they are whole. A name's ending proves nothing."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_TEXT_CONTROLS: Final = b"\t\n\f\r\x1b"
_GIF_EXTENSIONS: Final = (b"\x01", b"\xf9", b"\xfe", b"\xff")
_WEBP_CHUNKS: Final = (b"VP8 ", b"VP8L", b"VP8X")


@dataclass(frozen=True)
class ImageKind:
    """A type of image: its name, and how its bytes are examined."""

    name: str
    mime_type: str
    size_of: Callable[[bytes], tuple[int, int] | None]
    is_whole: Callable[[bytes], bool]


def image_kind(head: bytes) -> ImageKind | None:
    """The type that the first bytes claim; None where they claim none."""
    if head.startswith(_PNG):
        return _KIND_PNG
    if head.startswith(b"\xff\xd8\xff"):
        return _KIND_JPEG
    if head.startswith((b"GIF87a", b"GIF89a")) and _is_gif(head):
        return _KIND_GIF
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP" and head[12:16] in _WEBP_CHUNKS:
        return _KIND_WEBP
    return None


def _png_size(data: bytes) -> tuple[int, int] | None:
    """IHDR comes first (PNG specification, 11.2.2)."""
    if len(data) < 24 or data[8:16] != b"\x00\x00\x00\rIHDR":
        return None
    return _positive(struct.unpack(">II", data[16:24]))


def _png_is_whole(data: bytes) -> bool:
    """Every chunk's CRC up to IEND, and some image data that inflates."""
    at, inflate, pixels = 8, zlib.decompressobj(), False
    while at + 12 <= len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        end = at + 12 + length
        if end > len(data) or zlib.crc32(data[at + 4 : end - 4]) != struct.unpack(">I", data[end - 4 : end])[0]:
            return False
        if kind == b"IEND":
            return pixels
        if kind == b"IDAT" and not pixels:
            try:
                pixels = bool(inflate.decompress(data[at + 8 : end - 4], 1)) or length == 0
            except zlib.error:
                return False
        at = end
    return False


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """The frame header SOFn, found marker by marker (ITU-T T.81, B.2.2)."""
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF or 0xD0 <= marker <= 0xD8 or marker == 0x01:
            at += 1 if marker == 0xFF else 2
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return _positive((width, height))
        if marker in (0xD9, 0xDA):
            return None
        at += 2 + struct.unpack(">H", data[at + 2 : at + 4])[0]
    return None


def _jpeg_is_whole(data: bytes) -> bool:
    scan = data.find(b"\xff\xda")
    return scan > 0 and data.find(b"\xff\xd9", scan) > 0


def _is_gif(head: bytes) -> bool:
    """Whether more than six letters claim it: a text may begin with them.

    The screen descriptor of an image has bytes that are no text, at least its aspect ratio of 0 as nearly all
    have; or the first block is one that there is, at its place (GIF89a, 18, 20, 23 to 26).
    """
    descriptor = head[6:13]
    if not descriptor or any(byte < 0x20 and byte not in _TEXT_CONTROLS for byte in descriptor):
        return True
    if len(descriptor) < 7:
        return False
    at = 13 + _colour_table(head[10])
    block = head[at : at + 11]
    if block[:1] == b"!":
        return block[1:2] in _GIF_EXTENSIONS
    code_size = head[at + 10 + _colour_table(block[9]) :][:1] if len(block) == 11 else b""
    return block[:1] == b"," and b"\x02" <= code_size <= b"\x08"


def _gif_size(data: bytes) -> tuple[int, int] | None:
    return _positive(struct.unpack("<HH", data[6:10])) if len(data) >= 13 else None


def _gif_is_whole(data: bytes) -> bool:
    """Blocks up to the trailer, at least one of them an image (GIF89a, 20 and 27)."""
    at, images = 13 + _colour_table(data[10]), 0
    while at < len(data):
        kind = data[at]
        if kind == 0x3B:
            return images > 0
        if kind == 0x21:
            at = _after_sub_blocks(data, at + 2)
        elif kind == 0x2C and at + 10 < len(data):
            images += 1
            at = _after_sub_blocks(data, at + 11 + _colour_table(data[at + 9]))
        else:
            return False
    return False


def _colour_table(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _after_sub_blocks(data: bytes, at: int) -> int:
    while at < len(data) and data[at]:
        at += 1 + data[at]
    return at + 1


def _webp_size(data: bytes) -> tuple[int, int] | None:
    """The first chunk: VP8, VP8L or VP8X (RFC 9649, 2.4 to 2.7)."""
    kind, body = data[12:16], data[20:30]
    if len(body) < 10:
        return None
    if kind == b"VP8X":
        return int.from_bytes(body[4:7], "little") + 1, int.from_bytes(body[7:10], "little") + 1
    if kind == b"VP8L" and body[0] == 0x2F:
        bits = int.from_bytes(body[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and body[3:6] == b"\x9d\x01\x2a":
        width, height = struct.unpack("<HH", body[6:10])
        return _positive((width & 0x3FFF, height & 0x3FFF))
    return None


def _webp_is_whole(data: bytes) -> bool:
    return len(data) >= 8 + int.from_bytes(data[4:8], "little")


def _positive(size: tuple[int, int]) -> tuple[int, int] | None:
    return size if min(size) > 0 else None


_KIND_PNG: Final = ImageKind("PNG", "image/png", _png_size, _png_is_whole)
_KIND_JPEG: Final = ImageKind("JPEG", "image/jpeg", _jpeg_size, _jpeg_is_whole)
_KIND_GIF: Final = ImageKind("GIF", "image/gif", _gif_size, _gif_is_whole)
_KIND_WEBP: Final = ImageKind("WebP", "image/webp", _webp_size, _webp_is_whole)
