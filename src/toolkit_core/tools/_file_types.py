"""What a file that is no text is, told from its first bytes."""

from __future__ import annotations

from typing import Final

_MAGIC: Final = (
    (b"\x7fELF", "ELF program or library"),
    (b"PK\x03\x04", "ZIP archive (also office documents, wheels and JARs)"),
    (b"PK\x05\x06", "empty ZIP archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"Rar!\x1a\x07", "RAR archive"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"\x00asm", "WebAssembly module"),
    (b"\xca\xfe\xba\xbe", "Java class or Mach-O universal binary"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (b"MZ", "Windows program or library"),
    (b"%PDF-", "PDF document"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Microsoft Office document (before 2007)"),
    (b"PAR1", "Parquet table"),
    (b"\x93NUMPY", "NumPy array"),
    (b"\x89HDF\r\n\x1a\n", "HDF5 data"),
    (b"OggS", "Ogg audio or video"),
    (b"ID3", "MP3 audio"),
    (b"fLaC", "FLAC audio"),
    (b"BM", "BMP image"),
    (b"II*\x00", "TIFF image"),
    (b"MM\x00*", "TIFF image"),
    (b"\x00\x00\x01\x00", "ICO image"),
    (b"wOFF", "WOFF font"),
    (b"wOF2", "WOFF2 font"),
    (b"\x00\x01\x00\x00\x00", "TrueType font"),
    (b"OTTO", "OpenType font"),
    (b"\xff\xfe\x00\x00", "UTF-32 text"),
    (b"\x00\x00\xfe\xff", "UTF-32 text"),
)


def binary_type(head: bytes) -> str:
    """What the bytes look like, "unknown type" where they look like nothing in the table."""
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[257:262] == b"ustar":
        return "tar archive"
    if head[4:8] == b"ftyp":
        return "MP4 or HEIF media"
    if head.startswith(b"RIFF"):
        return "RIFF media (WAV, AVI)"
    return _wide_text(head) or "unknown type"


def _wide_text(head: bytes) -> str:
    """UTF-16 without a BOM: nearly every second byte of western text is NUL."""
    even, odd = head[0:512:2], head[1:512:2]
    if len(even) < 2:
        return ""
    if odd.count(0) > 0.9 * len(odd) and even.count(0) < 0.1 * len(even):
        return "perhaps UTF-16 LE text without a byte order mark"
    if even.count(0) > 0.9 * len(even) and odd.count(0) < 0.1 * len(odd):
        return "perhaps UTF-16 BE text without a byte order mark"
    return ""
