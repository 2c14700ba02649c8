"""No refusal of the file tools without the next step, whatever port they are over."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from toolkit_core.errors import ErrorCode, ToolError
from toolkit_core.ports.files import Files

if TYPE_CHECKING:
    from toolkit_core.ports.files import Content, Listing, OpenFile, Resolved, Written

T = TypeVar("T")

_HINTS: Final[dict[ErrorCode, str]] = {
    "not_found": "Check each name in the path against a listing of the folder that it should be in.",
    "is_a_directory": "Give the path of a file in it.",
    "not_a_file": "Only regular files are read and written; give the path of one.",
    "invalid_arguments": "Correct the path, or give another one.",
    "access_denied": "Use a path inside the root.",
    "unsupported": "Extract what you need with a program for its type.",
}
_RETRY: Final = "Try again."
_OTHERWISE: Final = "Use another file, or say what stands in the way."


def hinted_files(files: Files) -> Files:
    """The same files; an error that says nothing of what to do next gets the hint of its code."""
    return files if isinstance(files, _HintedFiles) else _HintedFiles(files)


@contextmanager
def hinted() -> Generator[None]:
    """The same for a piece of work."""
    try:
        yield
    except ToolError as e:
        e.hint = e.hint or (_RETRY if e.retryable else _HINTS.get(e.code, _OTHERWISE))
        raise


class _HintedFiles(Files):
    def __init__(self, files: Files) -> None:
        self._files = files

    async def resolve(self, path: str) -> Resolved:
        with hinted():
            return await self._files.resolve(path)

    async def read(self, path: str, consume: Callable[[OpenFile], T]) -> T:
        with hinted():
            return await self._files.read(path, consume)

    async def replace(self, path: str, produce: Callable[[OpenFile | None], Content]) -> Written:
        with hinted():
            return await self._files.replace(path, produce)

    async def list(self, path: str, limit: int) -> Listing:
        with hinted():
            return await self._files.list(path, limit)
