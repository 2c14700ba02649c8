"""tool_search: find deferred tools and load them for the rest of the session."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field
from typing_extensions import TypedDict

from toolkit_core.catalog import ToolCatalog
from toolkit_core.effects import Effects
from toolkit_core.errors import ToolError
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.result import ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from toolkit_core.context import ToolContext
    from toolkit_core.ports.catalog import Catalog, ToolSummary
    from toolkit_core.tool import Siblings, Tool


class SearchArguments(Arguments):
    """What tool_search takes."""

    query: str = Field(default="", description="Words to look for in names, descriptions and parameters.")
    names: list[str] = Field(default_factory=list[str], description="Exact names of tools to load, instead of query.")
    limit: int = Field(default=5, ge=1, description="How many tools to load at the most for query.")


class Loaded(TypedDict):
    """One loaded tool."""

    name: str
    description: str


class ToolSearchData(TypedDict):
    """What was loaded, and which sources could not be asked."""

    loaded: list[Loaded]
    unavailable_sources: list[str]


def tool_search_tool(
    *, name: str = "tool_search", description: str | None = None, siblings: Collection[str] | None = None
) -> Tool[ToolSearchData]:
    """Search and load deferred tools in `context.catalog`.

    Ranks an exact name first, then name, description, parameters; ties by name. Neither argument, an unknown
    name (then nothing is loaded) and an absent catalog are errors; an empty match is not.
    """
    return port_tool(
        SearchArguments,
        _search,
        kind="tool_search",
        describe=_describe,
        payload=ToolSearchData,
        effects=Effects(reads=True),
        subject=_subject,
        name=name,
        description=description,
        siblings=siblings,
    )


def catalogued(tools: Iterable[Tool[Any]]) -> tuple[list[Tool[Any]], ToolCatalog | None]:
    """The tools with `tool_search` added where one of them is deferred, and the catalog it looks in.

    A search tool that is there already is kept.
    """
    listed = list(tools)
    if not any(tool.deferred for tool in listed):
        return listed, None
    if not any(tool.kind == "tool_search" for tool in listed):
        listed.append(tool_search_tool())
    catalog = ToolCatalog(listed)
    return [replace(tool, surroundings=replace(tool.surroundings, catalog=catalog)) for tool in listed], catalog


def _describe(siblings: Siblings) -> str:
    return (
        "Find tools that are not shown yet and load them for the rest of the session. Give query to search names, "
        "descriptions and parameters (case does not matter; the best limit matches are loaded), or names to load "
        "exactly those. The result lists the name and description of each loaded tool."
    )


async def _subject(arguments: SearchArguments) -> str:
    return ", ".join(arguments.names) or arguments.query


async def _search(arguments: SearchArguments, context: ToolContext) -> ToolResult[ToolSearchData]:
    catalog = context.catalog
    if catalog is None:
        raise ToolError(
            "there is no catalog of further tools in this run", code="unavailable", hint="Use what is shown."
        )
    if not arguments.names and not arguments.query.strip():
        raise ToolError("neither query nor names was given", code="invalid_arguments", hint="Give one of the two.")
    names = arguments.names or await _matching(catalog, arguments, context.session)
    found = await catalog.load(context.session, names) if names else ()
    loaded: list[Loaded] = [{"name": tool.name, "description": tool.description} for tool in found]
    sources = list(catalog.unavailable_sources)
    return ToolResult.ok(_text(loaded, sources, arguments.query), {"loaded": loaded, "unavailable_sources": sources})


async def _matching(catalog: Catalog, arguments: SearchArguments, session: str) -> list[str]:
    query = arguments.query.strip().lower()
    ranked = [(rank, tool.name) for tool in await catalog.deferred(session) if (rank := _rank(tool, query)) is not None]
    return [name for _, name in sorted(ranked)[: arguments.limit]]


def _rank(tool: ToolSummary, query: str) -> int | None:
    name = tool.name.lower()
    if name == query:
        return 0
    if query in name:
        return 1
    if query in tool.description.lower():
        return 2
    return 3 if any(query in text for text in _parameter_texts(tool.parameters)) else None


def _parameter_texts(schema: Mapping[str, Any]) -> list[str]:
    """Names and descriptions of parameters, nested ones too."""
    texts: list[str] = []
    for name, declared in schema.get("properties", {}).items():
        texts += [name.lower(), str(declared.get("description", "")).lower(), *_parameter_texts(declared)]
    branches = [schema.get("items"), *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    for branch in branches:
        if isinstance(branch, dict):
            texts += _parameter_texts(branch)  # pyright: ignore[reportUnknownArgumentType]  (JSON Schema)
    return texts


def _text(loaded: list[Loaded], sources: list[str], query: str) -> str:
    lines = [f"{tool['name']}: {tool['description']}" for tool in loaded]
    head = f"Loaded {len(loaded)}:" if loaded else f"No tool matches {query!r}; nothing was loaded."
    tail = [f"Could not be asked: {', '.join(sources)}"] if sources else []
    return "\n".join([head, *lines, *tail])
