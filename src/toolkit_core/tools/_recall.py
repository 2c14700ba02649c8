"""recall: parts of an earlier result that the output window left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from toolkit_core.effects import Effects
from toolkit_core.errors import ToolError
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.limits import RECALL_CHARS
from toolkit_core.output_window import slice_chars, slice_lines
from toolkit_core.result import ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolkit_core.context import ToolContext
    from toolkit_core.ports.ledger import Ledger
    from toolkit_core.tool import Siblings, Tool


class RecallArguments(Arguments):
    """What recall takes."""

    entry_id: str = Field(min_length=1, description="The id that the note about left out text names.")
    start_line: int | None = Field(default=None, ge=1, description="First line, counted from 1.")
    end_line: int | None = Field(default=None, ge=1, description="Last line, included.")
    start_char: int | None = Field(default=None, ge=0, description="First character, counted from 0.")
    end_char: int | None = Field(default=None, ge=1, description="The character after the last one.")


class RecallData(TypedDict):
    """Which part came back: lines, or characters."""

    entry_id: str
    first_line: NotRequired[int]
    last_line: NotRequired[int]
    start_char: NotRequired[int]
    end_char: NotRequired[int]


def recall_tool(
    ledger: Ledger, *, name: str = "recall", description: str | None = None, siblings: Collection[str] | None = None
) -> Tool[RecallData]:
    """Read back the recorded text of an earlier call of the same session, 29,000 characters a call."""
    if ledger is None:  # pyright: ignore[reportUnnecessaryComparison]  (callers without types)
        raise TypeError("recall needs a ledger")

    async def run(arguments: RecallArguments, context: ToolContext) -> ToolResult[RecallData]:
        return await _recall(ledger, arguments, context)

    return port_tool(
        RecallArguments,
        run,
        kind="recall",
        describe=_describe,
        payload=RecallData,
        effects=Effects(reads=True),
        subject=_subject,
        name=name,
        description=description,
        siblings=siblings,
    )


def _describe(siblings: Siblings) -> str:
    return (
        "Read text of an earlier result that was left out of it. A note in that result names the entry_id and the "
        "range: start_line and end_line (lines, counted from 1, both included), or start_char and end_char "
        f"(characters, counted from 0, end_char not included). At most {RECALL_CHARS:,} characters come back a call; "
        "when more was asked for, the result says where to go on."
    )


async def _subject(arguments: RecallArguments) -> str:
    return arguments.entry_id


async def _recall(ledger: Ledger, arguments: RecallArguments, context: ToolContext) -> ToolResult[RecallData]:
    by_char = arguments.start_char is not None or arguments.end_char is not None
    by_line = arguments.start_line is not None or arguments.end_line is not None
    if by_char and by_line:
        raise ToolError(
            "both a range of lines and one of characters", code="invalid_arguments", hint="Give one of them."
        )
    entry = await ledger.read(arguments.entry_id, session=context.session)
    if entry.result is None:
        raise ToolError(f"the call {arguments.entry_id} ended without a result", code="not_found")
    text = ToolResult.from_dict(entry.result).text
    if by_char:
        start, end = arguments.start_char or 0, arguments.end_char
        if end is not None:
            _check_order(start + 1, end, "character")
        piece = slice_chars(text, start, len(text) if end is None else end)
        return ToolResult.ok(
            piece.text, {"entry_id": arguments.entry_id, "start_char": piece.first, "end_char": piece.last}
        )
    first, last = arguments.start_line or 1, arguments.end_line
    if last is not None:
        _check_order(first, last, "line")
    piece = slice_lines(text, first, last)
    return ToolResult.ok(
        piece.text, {"entry_id": arguments.entry_id, "first_line": piece.first, "last_line": piece.last}
    )


def _check_order(first: int, last: int, unit: str) -> None:
    if last < first:
        raise ToolError(f"the last {unit} lies before the first", code="invalid_arguments", hint="Swap the two.")
