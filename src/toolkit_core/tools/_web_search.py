"""web_search: the first search service that answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict

from toolkit_core.effects import Effects
from toolkit_core.errors import ErrorCode, ErrorInfo, ToolError
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.limits import SEARCH_PROVIDER_SECONDS, SEARCH_ROWS_MAX
from toolkit_core.result import ToolResult

if TYPE_CHECKING:
    from toolkit_core.context import ToolContext
    from toolkit_core.ports.web_search import SearchAnswer, WebSearchProvider
    from toolkit_core.tool import Siblings, Tool

_log = logging.getLogger("toolkit_core")


class WebSearchArguments(Arguments):
    """What web_search takes."""

    query: Annotated[str, Field(min_length=1, description="What to search for.")]
    limit: Annotated[int, Field(ge=1, description=f"How many results; at most {SEARCH_ROWS_MAX} come.")] = 5


class SearchRow(TypedDict):
    """One result."""

    title: str
    url: str
    snippet: str


class WebSearchData(TypedDict):
    """The payload: who answered, the results, and the service's own answer where it gave one."""

    provider: str
    results: list[SearchRow]
    answer: str | None


def web_search_tool(
    providers: Sequence[WebSearchProvider] | WebSearchProvider,
    *,
    name: str = "web_search",
    description: str | None = None,
    siblings: Collection[str] | None = None,
    provider_seconds: float = SEARCH_PROVIDER_SECONDS,
) -> Tool[WebSearchData]:
    """A tool that asks search services in order; the first that answers wins, an empty answer too.

    Codes: where all fail, the code that they share, else `unavailable`; every reason is named.

    Args:
        providers: In the order in which they are asked.
        name: Another name.
        description: Used verbatim.
        siblings: Kinds of the tools to hint at.
        provider_seconds: For one provider; then the next is asked.

    Raises:
        TypeError: No provider.
    """
    asked = tuple(providers) if isinstance(providers, Sequence) else (providers,)
    if not asked or None in asked:
        raise TypeError("web_search_tool needs at least one WebSearchProvider, such as brave(api_key)")

    async def run(arguments: WebSearchArguments, context: ToolContext) -> ToolResult[WebSearchData]:
        if not arguments.query.strip():
            raise ToolError("the query is blank", code="invalid_arguments", hint="Say what to search for.")
        limit = min(arguments.limit, SEARCH_ROWS_MAX)
        failures: list[tuple[str, ErrorInfo]] = []
        for number, provider in enumerate(asked, 1):
            context.report("providers", f"asking {provider.name}\n", done=number - 1, total=len(asked))
            try:
                answer = await _ask(provider, arguments.query, limit, provider_seconds)
            except ToolError as e:
                failures.append((provider.name, e.info))
                continue
            return _show(provider.name, answer, limit, failures)
        raise _all_failed(failures)

    return port_tool(
        WebSearchArguments,
        run,
        kind="web_search",
        describe=_describe,
        payload=WebSearchData,
        effects=Effects(network=True),
        subject=_subject,
        name=name,
        description=description,
        siblings=siblings,
    )


async def _subject(arguments: WebSearchArguments) -> str:
    return arguments.query


async def _ask(provider: WebSearchProvider, query: str, limit: int, seconds: float) -> SearchAnswer:
    try:
        async with asyncio.timeout(seconds):
            return await provider.search(query, limit)
    except TimeoutError:
        raise ToolError(f"no answer within {seconds:g} s", code="timed_out", retryable=True) from None
    except ToolError:
        raise
    except Exception as e:  # noqa: BLE001 - one provider's fault must not keep the others from being asked
        # its type only: its text may hold the key
        _log.warning("the search provider %s failed with %s", provider.name, type(e).__name__)
        raise ToolError(f"it failed with {type(e).__name__}", code="failed") from None


def _show(
    provider: str, answer: SearchAnswer, limit: int, failures: Sequence[tuple[str, ErrorInfo]]
) -> ToolResult[WebSearchData]:
    hits = answer.hits[:limit]
    parts = [answer.answer] if answer.answer else []
    parts += [f"{number}. {hit.title}\n{hit.url}\n{hit.snippet}".rstrip() for number, hit in enumerate(hits, 1)]
    if not parts:
        parts = [f"{provider} has no results for this query."]
    if failures:
        parts.append(f"[answered by {provider}; {_reasons(failures)}]")
    rows = [SearchRow(title=hit.title, url=hit.url, snippet=hit.snippet) for hit in hits]
    return ToolResult.ok(
        "\n\n".join(parts), WebSearchData(provider=provider, results=rows, answer=answer.answer or None)
    )


def _all_failed(failures: Sequence[tuple[str, ErrorInfo]]) -> ToolError:
    codes = {info.code for _, info in failures}
    code: ErrorCode = failures[0][1].code if len(codes) == 1 else "unavailable"
    hints = [info.hint for _, info in failures if info.hint]
    return ToolError(
        f"no search service answered: {_reasons(failures)}",
        code=code,
        hint=" ".join(dict.fromkeys(hints)) or "This does not mean that there are no results.",
        retryable=any(info.retryable for _, info in failures),
    )


def _reasons(failures: Sequence[tuple[str, ErrorInfo]]) -> str:
    return "; ".join(f"{name}: {info.message} ({info.code})" for name, info in failures)


def _describe(siblings: Siblings) -> str:
    fetch = siblings.get("web_fetch")
    reading = f" Read a result's page with {fetch}." if fetch else ""
    return (
        "Search the web. Gives up to limit results, each with its title, address and a snippet; a service's own answer "
        f"comes first. Search services are asked in order until one answers; a failure names each reason.{reading}"
    )
