"""Editor: unsaved text of an open editor."""

from __future__ import annotations

from typing import Protocol


class Editor(Protocol):
    """An editor whose buffers stand before the disk.

    Only an adapter with a stable rooted path authority implements it. It is asked at call time, after the
    containment check, with the real path. Raises `ToolError` `unavailable` when it is gone.
    """

    @property
    def root(self) -> str:
        """The absolute folder that its buffers belong to."""
        ...

    async def read(self, path: str) -> str | None:
        """The text of the buffer of that real path, None where it has none."""
        ...

    async def write(self, path: str, text: str) -> bool:
        """Put text into the open buffer; False where it has none (the disk is written then)."""
        ...
