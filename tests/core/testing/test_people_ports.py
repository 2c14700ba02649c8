"""The shipped in-memory ports behave as the real ones do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolkit_core import LedgerEntry, SQLiteLedger, Tool, ToolCatalog, ToolContext, ToolError, ToolSummary, schema_tool
from toolkit_core.ports.ledger import SupportsShown
from toolkit_core.testing.catalog import InMemoryCatalog
from toolkit_core.testing.ledger import InMemoryLedger
from toolkit_core.tools import tool_search_tool


def entry(entry_id: str, session: str = "s") -> LedgerEntry:
    return LedgerEntry(
        entry_id, session, "c", "t", {"a": 1}, "ok", {"content": [], "data": None, "error": None}, 1.0, 0.5
    )


@pytest.fixture(params=["sqlite", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> SQLiteLedger | InMemoryLedger:
    return SQLiteLedger(tmp_path / "l") if request.param == "sqlite" else InMemoryLedger()


async def test_a_ledger_gives_back_what_it_was_given_within_the_session(ledger: SQLiteLedger | InMemoryLedger) -> None:
    keeps: object = ledger
    assert isinstance(keeps, SupportsShown)
    assert await ledger.record(entry("e1"))
    assert await ledger.record(entry("e2", "other"))
    assert await ledger.read("e1", session="s") == entry("e1")
    for entry_id, session in (("e2", "s"), ("e1", "other"), ("nope", "s")):
        with pytest.raises(ToolError) as refused:
            await ledger.read(entry_id, session=session)
        assert refused.value.code == "not_found"
    await ledger.shown("e1", "part")
    await ledger.shown("nope", "part")


async def test_a_full_ledger_in_memory_counts_and_fails_no_call() -> None:
    ledger = InMemoryLedger()
    ledger.is_full = True
    result = await tool_search_tool().call({"query": "x"}, ToolContext(ledger=ledger))
    assert result.entry_id is None
    assert (ledger.failures, ledger.entries) == (1, [])


async def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def tool(name: str) -> Tool[Any]:
    return schema_tool(echo, name=name, description=f"About {name}.", parameters={"type": "object"}, deferred=True)


NAMES = ("mail", "calendar", "maps")


@pytest.fixture(params=["tools", "memory"])
def catalog(request: pytest.FixtureRequest) -> Any:
    if request.param == "tools":
        return ToolCatalog([tool(name) for name in NAMES], unavailable_sources=("github",))
    summaries = [ToolSummary(name, f"About {name}.") for name in NAMES]
    return InMemoryCatalog(summaries, unavailable_sources=("github",))


async def test_both_catalogs_answer_a_search_alike(catalog: Any) -> None:
    search = tool_search_tool()
    context = ToolContext(session_id="s", catalog=catalog)
    found: Any = await search.call({"query": "ma"}, context)
    assert found.data == {
        "loaded": [{"name": "mail", "description": "About mail."}, {"name": "maps", "description": "About maps."}],
        "unavailable_sources": ["github"],
    }
    unknown: Any = await search.call({"names": ["mail", "nope"]}, context)
    assert unknown.error.code == "not_found"
    assert [summary.name for summary in await catalog.deferred("s")] == list(NAMES)


async def test_what_an_in_memory_catalog_loaded_is_kept_by_session() -> None:
    catalog = InMemoryCatalog([ToolSummary(name, "x") for name in NAMES])
    await catalog.load("s", ["maps", "mail", "maps"])
    await catalog.load("s", ["mail"])
    with pytest.raises(ToolError):
        await catalog.load("s", ["calendar", "nope"])
    assert catalog.loaded == {"s": ["maps", "mail"]}
