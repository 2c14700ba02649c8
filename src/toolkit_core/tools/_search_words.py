"""What glob and grep say in the same words."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, Field, create_model

from toolkit_core.effects import Claims
from toolkit_core.errors import ToolError
from toolkit_core.limits import SEARCH_LIMIT_MAX, SEARCH_ROWS_A_TURN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from toolkit_core.ports.search import Search

T = TypeVar("T")
ArgsT = TypeVar("ArgsT", bound=BaseModel)

PATH_ALIASES: Final = {"file_path": "path", "directory": "path", "dir": "path", "folder": "path"}
"""Names that models were trained on; accepted, never advertised."""

ON_DISK: Final = "[Searched as it is on disk: unsaved text in the editor is not seen.]"


def need_search(search: object, factory: str) -> None:
    """Raise TypeError where a factory was given no port."""
    if search is None:
        raise TypeError(f"{factory} needs a Search port, such as HostSearch(cwd)")


def with_limit(model: type[ArgsT], default_limit: int, what: str) -> type[ArgsT]:
    """The arguments with another default of `limit`. Raises ValueError for one that cannot be."""
    if not 1 <= default_limit <= SEARCH_LIMIT_MAX:
        raise ValueError(f"default_limit must be from 1 to {SEARCH_LIMIT_MAX:,}, not {default_limit:,}")
    if model.model_fields["limit"].default == default_limit:
        return model
    field: Any = Field(default=default_limit, ge=1, le=SEARCH_LIMIT_MAX, description=what)
    return create_model(model.__name__, __base__=model, limit=(int, field))


def read_only_claims(search: Search) -> Callable[[Any], Awaitable[Claims]]:
    """The claims of a search: the folder it starts from, read."""

    async def claims(args: Any) -> Claims:
        return Claims(paths=((await search.resolve(args.path)).real,), read_only=True)

    return claims


def counted(number: int, one: str, many: str = "", *, at_least: bool = False) -> str:
    """`3 files`, `1 file`, `at least 3 files`."""
    return f"{'at least ' if at_least and number else ''}{number:,} {one if number == 1 else many or one + 's'}"


def exhausted(what: str, shown: str, *, hint: str) -> ToolError:
    """The budget ran out: hard, with what was found so far in the text."""
    found = f"Found until then:\n{shown}" if shown else "Nothing was found until then; that does not mean absence."
    return ToolError(
        f"The time for one search was up before {what} was finished; the answer is incomplete.",
        code="exhausted",
        hint=hint,
        detail=found,
    )


class Lines:
    """Lines joined as they come: to join, and let go of, a hundred thousand at the end would stop the event loop."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def add(self, lines: Sequence[str]) -> None:
        """Put more lines below."""
        if lines:
            self._pieces.append("\n".join(lines))

    def __str__(self) -> str:
        return "\n".join(self._pieces)


async def in_turns(items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """The items in slices, the event loop let in after each."""
    for start in range(0, len(items), SEARCH_ROWS_A_TURN):
        yield items[start : start + SEARCH_ROWS_A_TURN]
        await asyncio.sleep(0)
