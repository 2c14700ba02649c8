"""The program that parses a document, alone in a process that can be killed. Run by its path, never imported.

It reads the document from standard input and writes one JSON line a page. Its arguments: the folder to import
pypdf from, bytes of text at most, bytes of memory, seconds.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

ENCRYPTED = 3
DAMAGED = 4
TOO_LONG = 5


def main() -> int:
    """Parse standard input; the exit status says what came of it."""
    folder, max_text_bytes, memory_bytes, seconds = sys.argv[1], *map(int, sys.argv[2:5])
    _limit(memory_bytes, seconds)
    logging.disable(logging.CRITICAL)  # pypdf reports every oddity of a file
    sys.path.append(folder)
    try:
        from pypdf import PdfReader

        reader = PdfReader(sys.stdin.buffer)
        if reader.is_encrypted and not reader.decrypt(""):
            return ENCRYPTED
        return _write_pages(reader.pages, max_text_bytes)
    except (MemoryError, RecursionError) as e:
        return _damaged(f"it needs more {'memory' if isinstance(e, MemoryError) else 'depth'} than allowed")
    except Exception as e:  # noqa: BLE001 - whatever a hostile file brings the parser to raise
        return _damaged(f"{type(e).__name__}: {e}")


def _write_pages(pages: Any, max_text_bytes: int) -> int:
    left = max_text_bytes
    for page in pages:
        line = json.dumps(page.extract_text() or "")
        left -= len(line)
        if left < 0:
            return TOO_LONG
        sys.stdout.write(line + "\n")
    return 0


def _damaged(reason: str) -> int:
    sys.stderr.write(reason[:500])
    return DAMAGED


def _limit(memory_bytes: int, seconds: int) -> None:
    try:
        import resource
    except ImportError:  # no POSIX: its owner's deadline ends it
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    if sys.platform != "darwin":  # there it is not enforced, and refused
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


if __name__ == "__main__":
    sys.exit(main())
