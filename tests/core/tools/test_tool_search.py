"""tool_search: four surfaces, in order, and honest about what is not there."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit_core import Tool, ToolContext, ToolSet, function_tool, schema_tool
from toolkit_core.catalog import ToolCatalog
from toolkit_core.tools import catalogued, tool_search_tool


async def same(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def deferred(name: str, description: str = "Does it.", parameters: dict[str, Any] | None = None) -> Tool[Any]:
    schema = {"type": "object", "properties": parameters or {}}
    return schema_tool(same, name=name, description=description, parameters=schema, deferred=True)


@function_tool
async def resident() -> str:
    """Always shown, weather or not."""
    return ""


TOOLS = [
    resident,
    deferred("zz_weather", "Weather of a place."),
    deferred("weather"),
    deferred("aa_weather"),
    deferred("climate", "Says what the Weather was."),
    deferred(
        "travel",
        "Goes places.",
        {
            "trip": {
                "type": "object",
                "properties": {
                    "stops": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"w": {"type": "string", "description": "weather there"}},
                        },
                    }
                },
            }
        },
    ),
    deferred("mail", "Sends.", {"weather_note": {"type": "string"}}),
]


def search(*, unavailable: tuple[str, ...] = ()) -> tuple[Any, ToolCatalog]:
    catalog = ToolCatalog(TOOLS, unavailable_sources=unavailable)
    tool = tool_search_tool()

    async def run(session: str = "s", **arguments: Any) -> Any:
        return await tool.call(arguments, ToolContext(session_id=session, catalog=catalog))

    return run, catalog


async def test_an_exact_name_then_name_then_description_then_parameters_ties_by_name() -> None:
    run, catalog = search()
    result = await run(query=" WEATHER ", limit=10)
    assert [tool["name"] for tool in result.data["loaded"]] == [
        "weather",
        "aa_weather",
        "zz_weather",
        "climate",
        "mail",
        "travel",
    ]
    assert catalog.loaded("s") == {"weather", "aa_weather", "zz_weather", "climate", "mail", "travel"}


async def test_the_limit_counts_and_is_five_by_default() -> None:
    run, _ = search()
    assert len((await run(query="weather")).data["loaded"]) == 5
    assert len((await run(query="weather", limit=2)).data["loaded"]) == 2
    assert (await run(query="weather", limit=0)).error.code == "invalid_arguments"


async def test_names_load_exactly_these_for_the_rest_of_the_session() -> None:
    run, catalog = search()
    result = await run(names=["mail", "climate", "mail", "resident"])
    assert [tool["name"] for tool in result.data["loaded"]] == ["mail", "climate", "resident"]
    assert catalog.loaded("s") == {"mail", "climate"}
    assert catalog.visible("s") == {"resident", "mail", "climate"}
    assert catalog.visible("other") == {"resident"}


async def test_an_unknown_name_is_an_error_and_nothing_is_loaded() -> None:
    run, catalog = search()
    result = await run(names=["mail", "nope"])
    assert result.error.code == "not_found"
    assert "'nope'" in result.text
    assert catalog.loaded("s") == frozenset()


async def test_a_thousand_unknown_names_are_not_repeated_to_the_model() -> None:
    run, _ = search()
    result = await run(names=[f"{'nope' * 1000}{i}" for i in range(1000)])
    assert result.error.code == "not_found"
    assert "and 990 more" in result.text
    assert len(result.text) < 2_000


async def test_an_empty_match_is_an_answer_and_neither_argument_is_not() -> None:
    run, _ = search(unavailable=("github",))
    nothing = await run(query="blockchain")
    assert not nothing.is_error
    assert nothing.data == {"loaded": [], "unavailable_sources": ["github"]}
    assert "github" in nothing.text
    empty: list[dict[str, Any]] = [{}, {"query": "  "}, {"names": []}]
    for arguments in empty:
        assert (await run(**arguments)).error.code == "invalid_arguments"


async def test_without_a_catalog_it_fails() -> None:
    result = await tool_search_tool().call({"query": "x"})
    assert result.error is not None
    assert result.error.code == "unavailable"


async def test_the_tool_is_added_only_where_something_is_deferred_and_is_never_deferred_itself() -> None:
    plain, none = catalogued([resident])
    assert none is None
    assert [tool.name for tool in plain] == ["resident"]
    listed, catalog = catalogued(TOOLS)
    assert catalog is not None
    assert listed[-1].name == "tool_search"
    assert not listed[-1].deferred
    again, _ = catalogued(listed)
    assert len(again) == len(listed)
    result = await listed[-1].call({"names": ["mail"]}, ToolContext(session_id="q"))
    assert not result.is_error
    assert catalog.loaded("q") == {"mail"}
    with pytest.raises(ValueError, match="deferred"):
        ToolSet(TOOLS[1:])


async def test_a_result_holds_no_live_references() -> None:
    run, _ = search()
    text = (await run(query="travel")).to_json()
    assert "$ref" not in text
    assert "properties" not in text


async def test_a_thousand_deferred_tools_are_searched() -> None:
    catalog = ToolCatalog([resident, *(deferred(f"tool_{i}", f"Number {i}.") for i in range(1000))])
    result: Any = await tool_search_tool().call({"query": "tool_77"}, ToolContext(catalog=catalog))
    assert [tool["name"] for tool in result.data["loaded"]] == ["tool_77", *(f"tool_77{i}" for i in range(4))]


async def test_sessions_are_bounded() -> None:
    catalog = ToolCatalog(TOOLS)
    for i in range(1100):
        await catalog.load(f"s{i}", ["mail"])
    assert catalog.loaded("s0") == frozenset()
    assert catalog.loaded("s1099") == {"mail"}
