"""An `Editor` port in memory."""

from __future__ import annotations

from collections.abc import Mapping

from toolkit_core.errors import ToolError
from toolkit_core.ports.editor import Editor


class MemoryEditor(Editor):
    """An editor with some buffers open.

    Args:
        root: The absolute real folder that it belongs to.
        buffers: Path relative to the root -> unsaved text.

    Attributes:
        buffers: Absolute path -> text, as it is now.
        gone: Set it and every question is `unavailable`.
        asked: The paths asked for, in order.
    """

    def __init__(self, root: str, buffers: Mapping[str, str] | None = None) -> None:
        self._root = root.rstrip("/")
        self.buffers: dict[str, str] = {f"{self._root}/{path}": text for path, text in (buffers or {}).items()}
        self.gone = False
        self.asked: list[str] = []

    @property
    def root(self) -> str:
        """The folder."""
        return self._root

    async def read(self, path: str) -> str | None:
        """See `Editor.read`."""
        self._present(path)
        return self.buffers.get(path)

    async def write(self, path: str, text: str) -> bool:
        """See `Editor.write`."""
        self._present(path)
        if path not in self.buffers:
            return False
        self.buffers[path] = text
        return True

    def _present(self, path: str) -> None:
        self.asked.append(path)
        if self.gone:
            raise ToolError("The editor is gone.", code="unavailable", retryable=True)
