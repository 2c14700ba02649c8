"""Files seen through an editor: what it has open stands before the disk."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from toolkit_core.errors import ToolError
from toolkit_core.ports.files import Files, FileStat, Listing, MemoryOpenFile, Written
from toolkit_core.text import one_line_name
from toolkit_core.turns import Turns
from toolkit_core.worker_threads import begin_in_thread

if TYPE_CHECKING:
    from toolkit_core.ports.editor import Editor
    from toolkit_core.ports.files import Content, OpenFile, Resolved

T = TypeVar("T")

_log = logging.getLogger("toolkit_core")


def with_editor(files: Files, editor: Editor) -> Files:
    """The same files, with the unsaved text of an editor before what is on the disk.

    The editor is asked at each call, after the path was judged, and only for paths below its root. A buffer is read
    and changed under the same limits and error codes as a file. When the editor fails or closes the buffer during
    a call, that call is `unavailable`; it never falls back to the disk.
    """
    return _EditorFiles(files, editor)


class _EditorFiles(Files):
    def __init__(self, files: Files, editor: Editor) -> None:
        self._files, self._editor = files, editor
        self._turns = Turns()

    async def resolve(self, path: str) -> Resolved:
        return await self._files.resolve(path)

    async def list(self, path: str, limit: int) -> Listing:
        return await self._files.list(path, limit)

    async def read(self, path: str, consume: Callable[[OpenFile], T]) -> T:
        resolved = await self._files.resolve(path)
        text = await self._buffer(resolved)
        if text is None:
            return await self._files.read(path, consume)
        file = _open_buffer(resolved, text)
        return await _off_loop(lambda: consume(file))

    async def replace(self, path: str, produce: Callable[[OpenFile | None], Content]) -> Written:
        resolved = await self._files.resolve(path)
        async with self._turns.turn(resolved.real):
            text = await self._buffer(resolved)
            if text is not None:
                return await self._replace_buffer(resolved, text, produce)
        return await self._files.replace(path, produce)

    async def _replace_buffer(
        self, resolved: Resolved, text: str, produce: Callable[[OpenFile | None], Content]
    ) -> Written:
        shown, file = one_line_name(resolved.subject), _open_buffer(resolved, text)
        data = bytes(await _off_loop(lambda: produce(file)))
        try:
            new = data.decode("utf-8")
        except UnicodeDecodeError as e:
            message = (
                f"{shown} is open in the editor, which holds text; the new content is not UTF-8 at byte {e.start}."
            )
            raise ToolError(message, code="unsupported") from None
        now = await self._buffer(resolved)
        if now is None:
            raise _closed(shown)
        if now != text:
            message = f"{shown} was changed in the editor during this call; nothing was written."
            raise ToolError(message, code="stale_file", hint="Read the file again, then decide.", retryable=True)
        if not await self._asked(shown, self._editor.write(resolved.real, new)):
            raise _closed(shown)
        return Written(resolved, FileStat(size_bytes=len(data)), created=False)

    async def _buffer(self, resolved: Resolved) -> str | None:
        root = self._editor.root.rstrip("/")
        if not resolved.inside or not resolved.real.startswith(f"{root}/"):
            return None
        return await self._asked(one_line_name(resolved.subject), self._editor.read(resolved.real))

    async def _asked(self, shown: str, answer: Awaitable[T]) -> T:
        try:
            return await answer
        except ToolError:
            raise
        except Exception as e:
            # an editor is another program: however its adapter fails, it is not there to be asked
            _log.warning("the editor failed", exc_info=e)
            message = f"The editor could not be asked about {shown} ({type(e).__name__})."
            raise ToolError(message, code="unavailable", hint="Try again later.", retryable=True) from e


def _open_buffer(resolved: Resolved, text: str) -> MemoryOpenFile:
    try:
        return MemoryOpenFile(resolved, text.encode("utf-8"))
    except UnicodeEncodeError as e:
        message = f"The editor's text of {one_line_name(resolved.subject)} has a lone surrogate at index {e.start}."
        raise ToolError(message, code="unsupported", hint="Correct the character in the editor.") from None


def _closed(shown: str) -> ToolError:
    message = f"The editor closed {shown} during this call; nothing was written."
    return ToolError(message, code="unavailable", hint="Call again; the file on the disk is used then.", retryable=True)


async def _off_loop(work: Callable[[], T]) -> T:
    """In a thread, so that a large buffer does not stall the loop; where there are none (Pyodide), at once."""
    started = False

    def run() -> T:
        nonlocal started
        started = True
        return work()

    try:
        return await begin_in_thread(run)
    except RuntimeError:
        if started:
            raise
        return work()
