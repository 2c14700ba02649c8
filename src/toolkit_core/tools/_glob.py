"""glob: files, links and folders by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, SkipValidation
from typing_extensions import TypedDict

from toolkit_core.effects import Effects
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.glob_pattern import escaped
from toolkit_core.limits import GLOB_LIMIT, GLOB_PATTERN_MAX_CHARS, SEARCH_LIMIT_MAX
from toolkit_core.ports.search import GlobFound, GlobQuery
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

_LIMIT: Final = "How many entries to show at most."


class GlobArguments(Arguments):
    """The arguments of glob."""

    pattern: str = Field(
        min_length=1,
        max_length=GLOB_PATTERN_MAX_CHARS,
        description="Name pattern, relative to the path, such as *.py or src/**/*.{ts,tsx}.",
    )
    path: str = Field(default=".", min_length=1, description="Folder to start from.")
    limit: int = Field(default=GLOB_LIMIT, ge=1, le=SEARCH_LIMIT_MAX, description=_LIMIT)
    sort: Literal["path", "modified"] = Field(
        default="path", description='"path" sorts by name, "modified" the latest change first.'
    )
    include_ignored: bool = Field(default=False, description="Also find what is ignored.")


class GlobData(TypedDict):
    """The payload of glob."""

    paths: Annotated[list[str], SkipValidation]
    truncated: bool
    ignored_count: int | None


def glob_tool(
    search: Search,
    *,
    name: str | None = None,
    description: str | None = None,
    siblings: Collection[str] | None = None,
    default_limit: int = GLOB_LIMIT,
    editor: bool = False,
) -> Tool[GlobData]:
    """The tool glob over a `Search` port.

    Args:
        search: Where names are looked up.
        name: Another name.
        description: Used verbatim.
        siblings: Kinds of the other tools to hint at; None: the set decides.
        default_limit: Entries shown unless the call asks for another number.
        editor: Files may be open in an editor; each answer then says that it is from disk.

    Raises:
        TypeError: No port.
        ValueError: `default_limit` is out of range.

    Error codes: invalid_arguments, not_found, not_a_file, access_denied, exhausted, io_error.
    """
    need_search(search, "glob_tool")

    async def run(args: GlobArguments, context: ToolContext) -> ToolResult[GlobData]:
        query = GlobQuery(args.pattern, args.path, args.limit, args.sort, args.include_ignored)
        with hinted():
            found = await search.glob(query)
        notes = [*_notes(found, args), *([ON_DISK] if editor else [])]
        lines, paths = await _shown(found)
        if found.incomplete:
            hint = "Start from a deeper folder, or use a pattern with more of the path in it."
            raise exhausted(found.incomplete, str(lines), hint=hint)
        data = GlobData(
            paths=paths,
            truncated=found.truncated,
            ignored_count=found.ignored_count,
        )
        if not found.paths:
            lines.add([_absence(found, args)])
        lines.add(notes)
        return ToolResult.ok(str(lines), data)

    async def subject(args: GlobArguments) -> str:
        return args.pattern

    return port_tool(
        with_limit(GlobArguments, default_limit, _LIMIT),
        run,
        kind="glob",
        describe=_describer(default_limit),
        payload=GlobData,
        effects=Effects(reads=True),
        argument_aliases=PATH_ALIASES,
        subject=subject,
        claims=read_only_claims(search),
        name=name,
        description=description,
        siblings=siblings,
    )


def _describer(default_limit: int) -> Callable[[Siblings], str]:
    def describe(siblings: Siblings) -> str:
        text = (
            "Find files, links and folders by name. Folders end with `/`; links are listed and not followed. "
            "In `pattern`, `*` and `?` stay within one name (`*.py` is that folder only), `**/` is any depth, "
            "`{a,b}` is a choice, `[abc]` one character (`[[]` is a plain bracket); hidden names match too. "
            f"Shows {default_limit:,} entries unless `limit` says otherwise, and says when more exist. "
            ".git, installed Node modules and what a .gitignore names are left out, unless the pattern or `path` "
            "names them or `include_ignored` is set; an answer without matches counts what was left out."
        )
        hint = f" Find text in files with {siblings['grep']}." if "grep" in siblings else ""
        return text + hint

    return describe


async def _shown(found: GlobFound) -> tuple[Lines, list[str]]:
    """The text and the data; many paths take a while: the event loop is let in between."""
    lines = Lines()
    paths: list[str] = []
    async for piece in in_turns(found.paths):
        plain = [path.isascii() and path.isprintable() for path in piece]
        lines.add([path if is_plain else one_line_name(path) for path, is_plain in zip(piece, plain, strict=True)])
        paths.extend(path if is_plain else shown_name(path) for path, is_plain in zip(piece, plain, strict=True))
    return lines, paths


def _notes(found: GlobFound, args: GlobArguments) -> list[str]:
    notes: list[str] = []
    if found.truncated:
        order = "by path" if args.sort == "path" else "by time of change"
        notes.append(
            f"[The first {len(found.paths):,} {order}; more exist. Raise `limit` or make the pattern narrower.]"
        )
    if found.unreadable:
        notes.append(f"[{counted(found.unreadable, 'folder')} could not be read.]")
    return notes


def _absence(found: GlobFound, args: GlobArguments) -> str:
    """What an empty answer means, and what it left out."""
    pattern, path = one_line_name(args.pattern), one_line_name(args.path)
    sentences = [f"No matches for {pattern!r} in {path!r}."]
    bound = found.counts_incomplete
    if found.deeper_count:
        number = counted(found.deeper_count, "entry", "entries", at_least=bound)
        sentences.append(f"With **/ in front it would match {number}: {'**/' + pattern!r}.")
    elif found.deeper_count == 0 and not bound and not found.unreadable:
        sentences.append("With **/ in front (any depth) it would match nothing either.")
    if found.ignored_count:
        number = counted(found.ignored_count, "ignored entry", "ignored entries", at_least=bound)
        sentences.append(f"{number} would match with include_ignored set.")
    if bound and not (found.deeper_count or found.ignored_count):
        sentences.append("The tree is too large to say what an ignored or deeper search would find.")
    if found.literal:
        sentences.append(f"Something has that very name: to match it literally, use {escaped(args.pattern)!r}.")
    return " ".join(sentences)
