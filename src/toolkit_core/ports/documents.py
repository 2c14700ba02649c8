"""Documents: text of files that are not text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Page:
    """One page of a document, its number counted from 1."""

    number: int
    text: str


class Documents(Protocol):
    """Turns a document into text, page by page, in a process that can be killed."""

    async def pages(self, data: bytes, mime_type: str) -> tuple[Page, ...]:
        """The pages. Raises `ToolError`: `unsupported` (no reader, encrypted), `timed_out`, `too_large`."""
        ...
