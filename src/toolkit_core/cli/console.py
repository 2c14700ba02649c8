"""What the command says: plain text, in colour through rich where it is installed and a person looks."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Literal

Style = Literal["", "title", "good", "bad", "faint"]

_RICH_STYLES: dict[Style, str] = {"": "", "title": "bold", "good": "green", "bad": "red", "faint": "dim"}


def say(text: str = "", style: Style = "") -> None:
    """Write a line to standard output. Characters that it cannot encode are escaped."""
    console = _rich()
    if console is not None:
        console.print(text, style=_RICH_STYLES[style] or None, markup=False, highlight=False, soft_wrap=True)
        return
    _write(sys.stdout, text)


def complain(text: str) -> None:
    """Write a line to standard error."""
    _write(sys.stderr, text)


def _write(stream: Any, text: str) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    stream.flush()


def _rich() -> Any:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return None
    try:
        return importlib.import_module("rich.console").Console()
    except ImportError:
        return None
