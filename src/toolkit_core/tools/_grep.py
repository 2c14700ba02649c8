"""grep: lines of files by content."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, NotRequired

from pydantic import Field, SkipValidation
from typing_extensions import TypedDict

from toolkit_core.effects import Effects
from toolkit_core.errors import ToolError
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.limits import (
    GLOB_PATTERN_MAX_CHARS,
    GREP_CONTEXT_MAX_LINES,
    GREP_LIMIT,
    GREP_PATTERN_MAX_CHARS,
    GREP_ROW_CHARS,
    SEARCH_LIMIT_MAX,
)
from toolkit_core.ports.search import GrepFound, GrepQuery, Row
from toolkit_core.result import ToolResult
from toolkit_core.text import one_line_name, shown_name
from toolkit_core.tools._hinted_files import hinted
from toolkit_core.tools._search_words import (
    ON_DISK,
    PATH_ALIASES,
    Lines,
    counted,
    exhausted,
    in_turns,
    need_search,
    read_only_claims,
    with_limit,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from toolkit_core.context import ToolContext
    from toolkit_core.ports.search import Search
    from toolkit_core.tool import Siblings, Tool

_LIMIT: Final = "How many matching lines (or files, in the other modes) to show at most."
_ALIASES: Final = {
    **PATH_ALIASES,
    "file": "path",
    "include": "glob",
    "query": "pattern",
    "regex": "pattern",
    "head_limit": "limit",
    "max_count": "limit",
    "case_insensitive": "ignore_case",
    "literal": "fixed_strings",
    "context": "context_lines",
    "-i": "ignore_case",
    "-C": "context_lines",
}
_CUT: Final = "[cut]"


class GrepArguments(Arguments):
    """The arguments of grep."""

    pattern: str = Field(
        min_length=1, max_length=GREP_PATTERN_MAX_CHARS, description="Regular expression, searched line by line."
    )
    path: str = Field(default=".", min_length=1, description="Folder or file to search.")
    glob: str = Field(
        default="",
        max_length=GLOB_PATTERN_MAX_CHARS,
        description="Only files that this name pattern fits, such as *.py (any depth) or src/**/*.ts.",
    )
    output_mode: Literal["content", "files_with_matches", "count"] = Field(
        default="content",
        description='"content" shows the lines, "files_with_matches" the files, "count" how many lines match in each.',
    )
    ignore_case: bool = Field(default=False, description="Upper and lower case are the same.")
    fixed_strings: bool = Field(default=False, description="The pattern is plain text.")
    multiline: bool = Field(default=False, description="The pattern may match across lines.")
    context_lines: int = Field(
        default=0, ge=0, le=GREP_CONTEXT_MAX_LINES, description="Lines to show before and after each match."
    )
    limit: int = Field(default=GREP_LIMIT, ge=1, le=SEARCH_LIMIT_MAX, description=_LIMIT)
    include_ignored: bool = Field(default=False, description="Also search what is ignored.")


class GrepRow(TypedDict):
    """One line; `cut` is there where characters of it were left out."""

    path: str
    line: int
    text: str
    context: bool
    cut: NotRequired[bool]


class FileCount(TypedDict):
    """A file and how many of its lines match."""

    path: str
    count: int


class GrepData(TypedDict):
    """The payload of grep: `rows`, `files` or `counts`, as `output_mode` asks."""

    rows: NotRequired[Annotated[list[GrepRow], SkipValidation]]
    files: NotRequired[Annotated[list[str], SkipValidation]]
    counts: NotRequired[Annotated[list[FileCount], SkipValidation]]
    truncated: bool
    skipped: int


def grep_tool(
    search: Search,
    *,
    name: str | None = None,
    description: str | None = None,
    siblings: Collection[str] | None = None,
    default_limit: int = GREP_LIMIT,
    editor: bool = False,
) -> Tool[GrepData]:
    """The tool grep over a `Search` port.

    Args:
        search: Where content is looked up.
        name: Another name.
        description: Used verbatim.
        siblings: Kinds of the other tools to hint at; None: the set decides.
        default_limit: Matches shown unless the call asks for another number.
        editor: Files may be open in an editor; each answer then says that it is from disk.

    Raises:
        TypeError: No port.
        ValueError: `default_limit` is out of range.

    Error codes: invalid_arguments, not_found, not_a_file, access_denied, exhausted, unavailable, io_error.
    """
    need_search(search, "grep_tool")

    async def run(args: GrepArguments, context: ToolContext) -> ToolResult[GrepData]:
        _refuse_line_feed(args)
        with hinted():
            found = await search.grep(_query(args))
        shown = await _shown(found, args)
        notes = [*_notes(found, shown, args), *([ON_DISK] if editor else [])]
        if found.incomplete:
            hint = "Search a deeper folder, filter with glob, or use a simpler pattern."
            raise exhausted(found.incomplete, str(shown.lines), hint=hint)
        if not shown.matches:
            shown.lines.add([_absence(found, args)])
        shown.lines.add(notes)
        text = str(shown.lines)
        await asyncio.sleep(0)  # what was found goes with this function, and takes as long again
        return ToolResult.ok(text, shown.data)

    async def subject(args: GrepArguments) -> str:
        return args.pattern

    return port_tool(
        with_limit(GrepArguments, default_limit, _LIMIT),
        run,
        kind="grep",
        describe=_describer(default_limit),
        payload=GrepData,
        effects=Effects(reads=True),
        argument_aliases=_ALIASES,
        subject=subject,
        claims=read_only_claims(search),
        name=name,
        description=description,
        siblings=siblings,
    )


def _describer(default_limit: int) -> Callable[[Siblings], str]:
    def describe(siblings: Siblings) -> str:
        text = (
            "Search files for a regular expression. Rows are path:line:text, context lines path-line-text, -- where "
            f"lines are left out; a row is cut after {GREP_ROW_CHARS} characters. "
            f"Shows {default_limit:,} matching lines unless `limit` says otherwise, and says when more exist. "
            "The syntax is ripgrep's; look-around and back-references work too. `fixed_strings` takes the pattern as "
            "plain text, `multiline` lets it span lines. Hidden files are searched; binary files, .git, Node modules "
            "and what a .gitignore names are not, unless `path` or `glob` names them (for ignored ones) or "
            "`include_ignored` is set; an answer without matches counts what was skipped."
        )
        hints = [
            f" Find files by name with {siblings['glob']}." if "glob" in siblings else "",
            f" Read a file with {siblings['read_file']}." if "read_file" in siblings else "",
        ]
        return text + "".join(hints)

    return describe


def _query(args: GrepArguments) -> GrepQuery:
    return GrepQuery(
        args.pattern,
        path=args.path,
        glob=args.glob,
        mode=args.output_mode,
        ignore_case=args.ignore_case,
        fixed_strings=args.fixed_strings,
        multiline=args.multiline,
        context_lines=args.context_lines,
        limit=args.limit,
        include_ignored=args.include_ignored,
    )


def _refuse_line_feed(args: GrepArguments) -> None:
    if "\n" in args.pattern and not args.multiline:
        raise ToolError(
            "The pattern holds a line feed, and the search goes line by line: it could never match.",
            code="invalid_arguments",
            hint="Set multiline to true to match across lines.",
        )


@dataclass
class _Shown:
    """The text, the data, and what the notes need to know of the rows."""

    lines: Lines
    data: GrepData
    matches: int
    cut: bool = False


async def _shown(found: GrepFound, args: GrepArguments) -> _Shown:
    """What was found in words; a hundred thousand rows take a while: the event loop is let in between."""
    data = GrepData(truncated=found.truncated, skipped=_skipped(found))
    if args.output_mode == "content":
        return await _shown_rows(found, data)
    lines = Lines()
    if args.output_mode == "count":
        counts = data["counts"] = []
        async for piece in in_turns(found.counts):
            lines.add([f"{one_line_name(path)}:{number}" for path, number in piece])
            counts.extend(FileCount(path=shown_name(path), count=number) for path, number in piece)
    else:
        files = data["files"] = []
        async for piece in in_turns(found.counts):
            lines.add([one_line_name(path) for path, _ in piece])
            files.extend(shown_name(path) for path, _ in piece)
    return _Shown(lines, data, len(found.counts))


async def _shown_rows(found: GrepFound, data: GrepData) -> _Shown:
    shown = _Shown(Lines(), data, 0)
    rows = data["rows"] = []
    last = spelled = ""
    async for piece in in_turns(found.rows):
        lines: list[str] = []
        for row in piece:
            if row.path != last:
                last, spelled = row.path, one_line_name(row.path)
            if row.gap and rows:
                lines.append("--")
            lines.append(_row_text(row, spelled))
            rows.append(_row_data(row))
            shown.matches += not row.context
            shown.cut = shown.cut or bool(row.cut)
        shown.lines.add(lines)
    return shown


def _row_data(row: Row) -> GrepRow:
    data = GrepRow(path=shown_name(row.path), line=row.line, text=row.text, context=row.context)
    if row.cut:
        data["cut"] = True
    return data


def _row_text(row: Row, path: str) -> str:
    mark = "-" if row.context else ":"
    text = row.text
    if row.cut:
        before, after = f"{_CUT} " * (row.cut != "end"), f" {_CUT}" * (row.cut != "start")
        text = f"{before}{text}{after}"
    return f"{path}{mark}{row.line}{mark}{text}"


def _skipped(found: GrepFound) -> int:
    return found.skipped_ignored + found.skipped_binary + found.skipped_unreadable


def _notes(found: GrepFound, shown: _Shown, args: GrepArguments) -> list[str]:
    notes: list[str] = []
    if found.truncated:
        what = "matching lines" if args.output_mode == "content" else "files"
        narrower = "Raise `limit` or make the search narrower."
        if args.multiline and args.output_mode == "content":
            narrower += " The last match may go on below."
        notes.append(f"[The first {shown.matches:,} {what} by path; more exist. {narrower}]")
    if shown.cut:
        notes.append(f"[{_CUT} marks rows of more than {GREP_ROW_CHARS} characters.]")
    if found.named_ignored:
        notes.append("[Ignored files were searched too, since the path or the glob names them.]")
    if found.skipped_unreadable:
        number = counted(found.skipped_unreadable, "file or folder", "files or folders")
        notes.append(f"[{number} could not be read.]")
    if found.skipped_binary and shown.matches:
        number = counted(found.skipped_binary, "binary file")
        notes.append(f"[{number}: what matches behind the first NUL byte is not shown.]")
    if found.engine == "python re":
        notes.append("[Matched with Python's re.]")
    return notes


def _absence(found: GrepFound, args: GrepArguments) -> str:
    """What an empty answer means, and what it did not search."""
    where = repr(one_line_name(args.path))
    if args.glob:
        where += f", files matching {one_line_name(args.glob)!r}"
    sentences = [f"No matches for {one_line_name(args.pattern)!r} in {where}."]
    bound = found.counts_incomplete
    if found.skipped_ignored:
        number = counted(found.skipped_ignored, "ignored file", at_least=bound)
        sentences.append(f"Not searched: {number} (set include_ignored to search them).")
    if found.skipped_binary:
        sentences.append(f"Skipped: {counted(found.skipped_binary, 'binary file', at_least=bound)}.")
    if bound and not _skipped(found):
        sentences.append("The tree is too large to count what was skipped.")
    return " ".join(sentences)
