"""Tools from functions, models and schemas: what a model is told, and what the function gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, Optional, cast

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from toolkit_core import (
    NO_CONTEXT,
    Arguments,
    Effects,
    Tool,
    ToolContext,
    ToolResult,
    ToolSet,
    function_tool,
    model_tool,
    port_tool,
    schema_tool,
)
from toolkit_core.tool import Siblings, Work

ODD_NAMES = [
    *("self", "config", "runtime", "args", "kwargs", "ctx", "state", "store", "id", "name", "type", "schema", "json"),
    *(
        "copy",
        "dict",
        "validate",
        "model_config",
        "model_dump",
        "_x",
        "input",
        "callbacks",
        "run_manager",
        "tool_call_id",
    ),
]


def nodes(schema: Any) -> list[dict[str, Any]]:
    """Every mapping of a schema."""
    if isinstance(schema, dict):
        node = cast("dict[str, Any]", schema)
        return [node, *(inner for value in node.values() for inner in nodes(value))]
    return [inner for value in cast("list[Any]", schema) for inner in nodes(value)] if isinstance(schema, list) else []


def check_self_contained(schema: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert isinstance(schema["properties"], dict)
    assert "additionalProperties" in schema
    for node in nodes(schema):
        assert not {"$ref", "$defs", "definitions", "const"} & node.keys()
        assert not isinstance(node.get("type"), list)
        assert {"type": "null"} not in node.get("anyOf", [])
        if node.get("type") == "object":
            assert "additionalProperties" in node
        if node.get("type") == "array":
            assert "items" in node


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_a_parameter_may_have_any_name(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(
        f"async def body({name}: str, ctx_: 'ToolContext'):\n    'Give it back.'\n    return {name}",
        {"ToolContext": ToolContext},
        scope,
    )
    body: Callable[..., Any] = scope["body"]
    tool: Tool[Any] = function_tool(body)

    assert list(tool.parameters["properties"]) == [name]
    assert (await tool.call({name: "kept"})).text == "kept"


class Kind(Enum):
    FAST = "fast"
    SLOW = "slow"


class Leaf(BaseModel):
    label: str
    weight: float | None = None


class Branch(BaseModel):
    leaves: list[Leaf]
    only: Literal["oak"]
    either: int | str


async def grown(
    branch: Branch,
    kind: Kind,
    when: date,
    pair: tuple[int, str],
    maybe: Optional[int] = None,  # noqa: UP045 - the older spelling too
    tags: Annotated[list[str], Field(description="Labels.", max_length=3)] = [],  # noqa: B006 - as people write it
    extra: dict[str, int] | None = None,
) -> Any:
    """Grow a tree.

    Args:
        branch: What grows.
        kind: How fast.
        when: Since when.
        pair: A number and
            a name.
        maybe: Perhaps.
    """
    return [branch, kind, when, pair, maybe, tags, extra]


async def test_a_nested_schema_is_inlined_and_described() -> None:
    tool = function_tool(grown)
    schema = tool.parameters

    check_self_contained(schema)
    assert tool.description == "Grow a tree."
    assert schema["properties"]["pair"]["description"] == "A number and a name."
    assert schema["properties"]["tags"]["description"] == "Labels."
    assert schema["properties"]["branch"]["properties"]["leaves"]["items"]["properties"]["weight"]["type"] == "number"
    assert schema["properties"]["branch"]["properties"]["only"] == {"enum": ["oak"], "type": "string"}
    assert schema["properties"]["kind"]["enum"] == ["fast", "slow"]
    assert schema["required"] == ["branch", "kind", "when", "pair"]


async def test_a_function_gets_typed_values_whatever_the_model_stringified() -> None:
    sent = {
        "branch": json.dumps({"leaves": {"label": "l\n", "weight": "2.5"}, "only": "oak", "either": "7"}).replace(
            "\\n", "\n"
        ),
        "kind": "slow",
        "when": "2026-01-02",
        "pair": [1, "x"],
        "maybe": None,
        "tags": '["a"]',
    }
    values: Any = (await function_tool(grown).call(sent)).data
    branch, kind, when, pair, maybe, tags, extra = values

    assert branch == Branch(leaves=[Leaf(label="l\n", weight=2.5)], only="oak", either="7")
    assert (kind, when, pair) == (Kind.SLOW, date(2026, 1, 2), (1, "x"))
    assert (maybe, tags, extra) == (None, ["a"], None)


async def test_all_problems_are_reported_together_with_paths_choices_and_parameters() -> None:
    sent = {
        "branch": {"leaves": [{"label": "a"}, {"weight": "heavy", "colour": 1}], "only": "elm", "either": []},
        "kind": "medium",
        "pair": [1],
        "maybe": True,
        "colour": "red",
    }
    text = (await function_tool(grown).call(sent)).text

    for part in (
        "branch.leaves[1].label: is required",
        "branch.leaves[1].weight",
        "branch.leaves[1].colour: unknown parameter",
        "branch.only: must be one of 'oak'",
        "kind: must be one of 'fast' or 'slow'",
        "when: is required",
        "maybe: must be an integer, not a boolean",
        "colour: unknown parameter",
        "grown takes branch (object, required), kind (one of fast, slow, required)",
    ):
        assert part in text


@pytest.mark.parametrize(
    "docstring",
    [
        "Count.\n\nArgs:\n    path: Where\n        it is.\n    ctx: Hidden.\n\nReturns:\n    A number.",
        "Count.\n\nParameters\n----------\npath : str\n    Where it is.\n\nReturns\n-------\nint\n    A number.",
        "Count.\n\n:param path: Where it is.\n:returns: A number.",
    ],
    ids=["google", "numpy", "rest"],
)
async def test_docstrings_of_three_styles_describe_the_parameters(docstring: str) -> None:
    async def count(path: str, ctx: ToolContext) -> int:
        return len(path)

    count.__doc__ = docstring
    tool = function_tool(count)
    assert tool.description == "Count."
    assert tool.parameters["properties"] == {"path": {"type": "string", "description": "Where it is."}}


async def test_the_decorator_works_bare_and_with_options() -> None:
    @function_tool
    def bare(a: int) -> int:
        """Bare."""
        return a

    @function_tool(name="other", effects=Effects(reads=True), deferred=True)
    def optioned(a: int) -> int:
        """Optioned."""
        return a

    assert (bare.name, optioned.name, optioned.deferred, optioned.effects) == (
        "bare",
        "other",
        True,
        Effects(reads=True),
    )
    assert (await bare(a=1)).data == 1


async def test_the_context_is_injected_hidden_and_not_forgeable() -> None:
    class Holder:
        async def method(self, a: int, *, context: ToolContext | None = None) -> Any:
            """Method."""
            return context.call_id if context else "none"

    tool = function_tool(Holder().method)
    assert list(tool.parameters["properties"]) == ["a"]
    assert (await tool.call({"a": 1}, ToolContext(call_id="c1"))).text == "c1"
    assert (await tool.call({"a": 1, "context": "forged"})).is_error


async def test_hints_of_an_enclosing_function_are_resolved() -> None:
    class Local(BaseModel):
        n: int

    sample = Local(n=0)

    async def use(value: Local) -> Any:
        """Use."""
        return value.n + sample.n

    use.__annotations__["value"] = "Local"
    with pytest.raises(ValueError, match="cannot be resolved"):
        function_tool(use)
    use.__annotations__["value"] = Local
    assert (await function_tool(use).call({"value": {"n": 3}})).data == 3


def test_what_no_schema_can_describe_is_refused() -> None:
    async def variadic(*args: str) -> None:
        """Variadic."""

    async def keywords(**kwargs: str) -> None:
        """Keywords."""

    for fn in (variadic, keywords):
        with pytest.raises(ValueError, match="which no schema can describe"):
            function_tool(fn)
    with pytest.raises(ValueError, match="timeout_seconds"):
        function_tool(grown, timeout_seconds=0)


class Open(BaseModel, extra="allow"):
    """Takes more."""

    a: int


async def dump(value: Open, context: ToolContext) -> dict[str, Any]:
    return {**value.model_dump(), "session": context.session}


async def label(value: Leaf) -> str:
    return value.label


async def same(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


async def test_a_model_tool_accepts_unknown_root_parameters_only_where_the_model_does() -> None:
    tool = model_tool(Open, dump, name="open")
    closed = model_tool(Leaf, label, name="closed", description="Closed.")

    assert tool.parameters["additionalProperties"] is True
    assert (await tool.call({"a": "1", "b": 2})).data == {"a": 1, "b": 2, "session": "default"}
    assert closed.parameters["additionalProperties"] is False
    assert "b: unknown parameter" in (await closed.call({"label": "x", "b": 2})).text


SCHEMA = {
    "type": "object",
    "properties": {
        "point": {"$ref": "#/$defs/point"},
        "mode": {"type": ["string", "null"], "enum": ["a", "b", None], "default": None},
        "n": {"type": "integer", "minimum": 1},
    },
    "required": ["point"],
    "$defs": {"point": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
}


async def test_a_schema_tool_inlines_references_and_validates() -> None:
    tool = schema_tool(same, name="plot", description="Plot.", parameters=SCHEMA)

    check_self_contained(tool.parameters)
    assert (await tool.call({"point": '{"x": "1.5"}', "mode": None})).data == {"point": {"x": 1.5}}
    text = (await tool.call({"point": {}, "n": 0, "mode": "z"})).text
    for part in ("point: lacks x", "n: must satisfy minimum 1", "mode: must be one of 'a', 'b'"):
        assert part in text


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "object", "properties": {"a": {"$ref": "#"}}}, "recursive"),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/a"}},
                "$defs": {"a": {"items": {"$ref": "#/$defs/a"}, "type": "array"}},
            },
            "recursive",
        ),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}, "leaves the schema"),
        ({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}, "leads nowhere"),
        ({"oneOf": [{"type": "object"}]}, "not a union"),
        ({"type": "string"}, "must have type object"),
    ],
)
def test_a_schema_that_cannot_stand_alone_is_refused(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        schema_tool(same, name="t", description="T.", parameters=schema)


class FindArguments(Arguments):
    path: str = Field(description="Where.", min_length=1)
    limit: int = Field(default=5, ge=1, description="How many.")


async def find(arguments: FindArguments, context: ToolContext) -> ToolResult[dict[str, int]]:
    return ToolResult.ok(f"{arguments.path} {arguments.limit}", {"n": arguments.limit})


def find_tool(**options: Any) -> Tool[dict[str, int]]:
    def describe(siblings: Siblings) -> str:
        return "Finds." + (f" See {siblings['look']}." if "look" in siblings else "")

    return port_tool(
        FindArguments,
        find,
        kind="find",
        describe=describe,
        payload=dict[str, int],
        effects=Effects(reads=True),
        aliases=("seek",),
        argument_aliases={"file_path": "path"},
        subject=path_of,
        **options,
    )


async def path_of(arguments: FindArguments) -> str:
    return arguments.path


async def test_a_built_in_takes_the_names_that_models_were_trained_on() -> None:
    tool = find_tool()
    assert (await tool.call({"file_path": "a", "limit": "3"})).text == "a 3"
    assert "file_path" not in json.dumps(tool.parameters)
    assert (await tool.call({"file_path": "a", "path": "b"})).is_error
    assert (await tool.call({"file_path": "a", "path": None})).text == "a 5"
    assert (await tool.call({"path": "a", "limit": 2.5})).is_error


async def test_a_description_hints_at_the_tools_of_its_set_by_their_names_there() -> None:
    look = find_tool(name="look2", description="Looks.")
    looking = Tool(name="gaze", description="Gazes.", effects=None, work=of_kind(look, "look"))

    assert find_tool().description == "Finds."
    assert ToolSet([find_tool(), looking])["find"].description == "Finds. See gaze."
    assert ToolSet([find_tool(), looking]).prefixed("r_")["r_find"].description == "Finds. See r_gaze."
    assert ToolSet([find_tool(), looking]).without("gaze")["find"].description == "Finds."
    assert find_tool(siblings=["look"]).description == "Finds. See look."
    assert ToolSet([find_tool(description="Mine."), looking])["find"].description == "Mine."


def of_kind(tool: Tool[Any], kind: str) -> Work:
    return replace(tool.work, kind=kind)


async def test_an_approved_subject_that_changed_is_refused() -> None:
    tool = find_tool()
    assert (await tool.call({"path": "a"}, ToolContext(approved_subject="a"))).text == "a 5"
    refused = await tool.call({"path": "b"}, ToolContext(approved_subject="a"))
    assert refused.error is not None
    assert refused.error.code == "denied"
    assert await tool.subject({"file_path": "b"}) == "b"
    assert tool.has_subject
    assert (await tool.claims({"path": "a"})).read_only
    assert NO_CONTEXT.approved_subject is None


@given(st.text(), st.integers())
def test_content_is_taken_exactly_as_it_comes(path: str, limit: int) -> None:
    @function_tool
    async def echo(path: str, limit: int) -> Any:
        """Echo."""
        return {"path": path, "limit": limit}

    result = asyncio.run(echo.call({"path": path, "limit": limit}))
    if result.is_error:
        assert any("\ud800" <= c <= "\udfff" for c in path)
    else:
        assert result.data == {"path": path, "limit": limit}
