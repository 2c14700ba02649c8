"""The default set and the capabilities: what is in them, and that making them touches nothing."""

from __future__ import annotations

import inspect
import json
import os
import re
import socket
import subprocess
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import toolkit_core
from tests.core.test_factories import check_self_contained
from toolkit_core import (
    NO_CONTEXT,
    TOOLS_SCHEMA,
    SQLiteLedger,
    Tool,
    ToolContext,
    ToolSet,
    capabilities,
    default_tools,
    duckduckgo,
    files,
    memory,
    processes,
    shell,
    standard_capabilities,
    web,
)
from toolkit_core.testing.editor import MemoryEditor

STANDARD = ("read_file", "write_file", "edit_file", "glob", "grep", "shell", "web_fetch")


async def nobody(question: Any) -> None:
    return None


def test_the_set_is_what_was_asked_for_in_one_order(workspace: Path, tmp_path: Path) -> None:
    ledger = SQLiteLedger(tmp_path / "l")
    assert default_tools(workspace).names == STANDARD
    assert default_tools(workspace, read_only=True).names == ("read_file", "glob", "grep", "web_fetch")
    assert default_tools(workspace, only=["grep", "bash"]).names == ("grep", "shell")
    assert default_tools(workspace, without=["shell", "web_fetch"]).names == STANDARD[:5]
    everything = default_tools(workspace, search=[duckduckgo()], ask=True, processes=True, ledger=ledger).names
    assert everything == (
        *STANDARD,
        "web_search",
        "ask_user_question",
        "process_start",
        "process_read",
        "process_write",
        "process_stop",
        "recall",
    )


def test_two_sets_are_equal_in_what_a_model_sees_and_share_nothing(workspace: Path) -> None:
    def seen(tools: ToolSet) -> str:
        return json.dumps([(t.name, t.description, t.parameters, t.deferred) for t in tools])

    one, two = default_tools(workspace), default_tools(workspace)
    assert seen(one) == seen(two)
    assert all(a is not b for a, b in zip(one, two, strict=True))
    assert not any(tool.deferred for tool in one)


def test_making_a_set_starts_reads_and_connects_nothing(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the composition touched the machine")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(os, "posix_spawn", refuse)
    monkeypatch.setattr("builtins.open", refuse)
    default_tools(workspace, processes=True, ask=True, ledger=SQLiteLedger(tmp_path / "never"), search=[duckduckgo()])
    assert list(workspace.iterdir()) == []
    assert not (tmp_path / "never").exists()


def test_a_wrong_option_is_named(workspace: Path) -> None:
    with pytest.raises(ValueError, match="'nope', and the set holds read_file"):
        default_tools(workspace, only=["nope"])
    with pytest.raises(ValueError, match="'nope'"):
        default_tools(workspace, without=["nope"])
    with pytest.raises(TypeError, match="list of names"):
        default_tools(workspace, only="grep")
    with pytest.raises(ValueError, match="processes run commands"):
        default_tools(workspace, read_only=True, processes=True)
    with pytest.raises(ValueError, match="cwd is empty"):
        default_tools("")
    with pytest.raises(ValueError, match="missing"):
        default_tools(workspace / "missing")


async def test_a_home_folder_is_expanded_once_and_the_process_may_move(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a.txt").write_text("here\n")
    monkeypatch.setenv("HOME", str(workspace.parent))
    tools = default_tools(f"~/{workspace.name}")
    monkeypatch.chdir(workspace)
    relative = default_tools(".")
    monkeypatch.chdir("/")
    monkeypatch.setenv("HOME", "/nowhere")
    for made in (tools, relative):
        assert "here" in (await made["read_file"](path="a.txt")).text


async def test_read_before_write_holds_unless_it_was_turned_off(workspace: Path) -> None:
    (workspace / "a.txt").write_text("old\n")
    edit = {"path": "a.txt", "edits": [{"old_text": "old", "new_text": "new"}]}
    tools = default_tools(workspace)
    refused: Any = await tools["edit_file"].call(edit)
    assert refused.error.code == "not_read"
    await tools["read_file"](path="a.txt")
    assert not (await tools["edit_file"].call(edit)).is_error
    assert (workspace / "a.txt").read_text() == "new\n"
    (workspace / "a.txt").write_text("old\n")
    assert not (await default_tools(workspace, require_read=False)["edit_file"].call(edit)).is_error


async def test_what_the_set_was_given_reaches_its_tools(workspace: Path, tmp_path: Path) -> None:
    ledger = SQLiteLedger(tmp_path / "l")
    tools = default_tools(workspace, ask=nobody, ledger=ledger)
    result: Any = await tools["ask_user_question"](questions=[{"question": "Go?"}])
    assert result.data == {"answers": [{"question": "Go?", "cancelled": True}]}
    recalled = await tools["recall"](entry_id=result.entry_id)
    assert "Go?" in recalled.text
    unasked: Any = await default_tools(workspace, ask=True)["ask_user_question"](questions=[{"question": "Go?"}])
    assert unasked.data["unavailable"]


SNAKE = re.compile(r"`?\b([a-z]+(?:_[a-z]+)+)\b`?")


def schema_words(schema: dict[str, Any]) -> set[str]:
    """Names of parameters and enum values, at any depth."""
    declared = declared_parameters(schema)
    return {name for name, _ in declared} | {str(value) for _, one in declared for value in one.get("enum", [])}


def every_tool(workspace: Path, tmp_path: Path) -> ToolSet:
    ledger = SQLiteLedger(tmp_path / "l")
    tools = default_tools(workspace, search=[duckduckgo()], ask=True, processes=True, ledger=ledger)
    return tools + memory(tmp_path / "memory").tools


def test_every_snake_case_word_of_a_description_is_a_real_parameter_or_tool(workspace: Path, tmp_path: Path) -> None:
    for tools in (
        every_tool(workspace, tmp_path),
        default_tools(workspace, read_only=True),
        default_tools(workspace, only=["shell"]),
    ):
        for tool in tools:
            known = schema_words(tool.parameters) | set(tools.names)
            texts = [tool.description, json.dumps(tool.parameters)]
            words = {word for text in texts for word in SNAKE.findall(text)}
            assert words <= known | {"min_length", "max_length"}, (tool.name, words - known)


def test_a_tool_alone_hints_at_no_other(workspace: Path, tmp_path: Path) -> None:
    tools = every_tool(workspace, tmp_path)
    for name in tools.names:
        alone = tools.only(name)[0]
        for other in tools.names:
            if "_" in other and other != name:
                assert other not in alone.description


def test_schemas_are_what_every_provider_takes(workspace: Path, tmp_path: Path) -> None:
    for tool in every_tool(workspace, tmp_path):
        check_self_contained(tool.parameters)
        assert tool.parameters["additionalProperties"] is False
        for name, declared in declared_parameters(tool.parameters):
            assert declared.get("type"), (tool.name, name)
            assert declared.get("description"), (tool.name, name)


def declared_parameters(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Name and schema of each parameter, nested ones too."""
    found: list[tuple[str, dict[str, Any]]] = []
    for name, declared in schema.get("properties", {}).items():
        found += [(name, declared), *declared_parameters(declared), *declared_parameters(declared.get("items", {}))]
    return found


EFFECTS = {
    "read_file": "reads",
    "write_file": "writes destructive",
    "edit_file": "writes destructive",
    "glob": "reads",
    "grep": "reads",
    "shell": "reads writes destructive network executes",
    "web_fetch": "network",
    "web_search": "network",
    "ask_user_question": "reads",
    "process_start": "reads writes destructive network executes",
    "process_read": "reads writes destructive network executes",
    "process_write": "reads writes destructive network executes",
    "process_stop": "reads writes destructive network executes",
    "recall": "reads",
    "memory_read": "reads",
    "memory_write": "writes",
}


def test_every_tool_has_the_effects_of_the_contract(workspace: Path, tmp_path: Path) -> None:
    for tool in every_tool(workspace, tmp_path):
        assert tool.effects is not None
        assert " ".join(name for name, value in vars(tool.effects).items() if value) == EFFECTS[tool.name]


async def test_capabilities_bring_their_tools_and_their_instructions(workspace: Path, tmp_path: Path) -> None:
    made = files(workspace)
    assert (made.id, made.tools.names) == ("files", STANDARD[:5])
    assert str(workspace) in await made.instructions()
    assert shell(workspace).tools.names == ("shell",)
    assert web().tools.names == ("web_fetch",)
    assert web(search=[duckduckgo()]).tools.names == ("web_fetch", "web_search")
    assert processes(workspace).tools.names == ("process_start", "process_read", "process_write", "process_stop")
    kept = memory(tmp_path / "m")
    assert "empty so far" in await kept.instructions(NO_CONTEXT)
    await kept.tools["memory_write"](path="MEMORY.md", content="likes tea\n")
    assert "likes tea" in await kept.instructions(ToolContext(session_id="s"))


@pytest.mark.parametrize(
    ("config", "ids"),
    [
        ({}, ["files", "shell", "web", "memory"]),
        ({"memory": True, "files": True}, ["files", "shell", "web", "memory"]),
        ({"shell": False, "memory": False}, ["files", "web"]),
        ({"files": {"require_read": False}, "web": False}, ["files", "shell", "memory"]),
        ({"files": False, "shell": False, "web": False, "memory": False}, []),
        ({"web": {"search": {"duckduckgo": False}}}, ["files", "shell", "web", "memory"]),
    ],
)
def test_standard_capabilities_follow_the_mapping(config: Any, ids: list[str], workspace: Path, tmp_path: Path) -> None:
    made = standard_capabilities(config, cwd=workspace, memory_dir=tmp_path / "m")
    assert [capability.id for capability in made] == ids


def test_there_is_memory_only_with_a_folder_and_search_only_with_a_provider(workspace: Path) -> None:
    assert [c.id for c in standard_capabilities({}, cwd=workspace)] == ["files", "shell", "web"]
    order = {
        "tavily": {"api_key": "a"},
        "duckduckgo": True,
        "brave": {"api_key": "b"},
        "searxng": {"url": "https://s.example"},
    }
    made = standard_capabilities({"web": {"search": order}}, cwd=workspace)
    assert made[-1].tools.names == ("web_fetch", "web_search")
    off = standard_capabilities({"web": {"search": {"duckduckgo": False}}}, cwd=workspace)
    assert off[-1].tools.names == ("web_fetch",)


def test_any_mapping_configures_and_providers_are_asked_in_its_order(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def provider(name: str, key: str) -> Any:
        asked.append(f"{name} {key}")
        return duckduckgo()

    for name in ("brave", "tavily", "searxng"):
        monkeypatch.setattr(capabilities, name, partial(provider, name))
    search = {"tavily": {"api_key": "a"}, "searxng": {"url": "https://s.example"}, "brave": {"api_key": "b"}}
    config = MappingProxyType({"web": MappingProxyType({"search": MappingProxyType(search)}), "shell": False})
    assert [c.id for c in standard_capabilities(config, cwd=workspace)] == ["files", "web"]
    assert asked == ["tavily a", "searxng https://s.example", "brave b"]


@pytest.mark.parametrize(
    "config",
    [
        {"file": True},
        {"web": None},
        {"web": {"search": None}},
        {"web": {"search": {"tavily": {"api_key": None}}}},
        {"web": {"search": {"tavily": {"api_key": "k", "extra": 1}}}},
        {"shell": 0},
        {1: True},
        MappingProxyType({"shel": True}),
        {"files": None},
        {"files": "yes"},
        {"files": {"require_read": "yes"}},
        {"files": {"require": True}},
        {"shell": {}},
        {"web": {"search": {"google": True}}},
        {"web": {"search": {"brave": {}}}},
        {"web": {"search": {"brave": {"api_key": ""}}}},
        {"web": {"search": {"searxng": "https://x"}}},
        {"memory": 1},
        [],
        None,
    ],
)
def test_unknown_keys_and_wrong_types_are_refused(config: Any, workspace: Path) -> None:
    with pytest.raises(ValueError, match="cannot be configured so") as caught:
        standard_capabilities(config, cwd=workspace)
    assert len(str(caught.value)) < 400
    if config == {"file": True}:
        assert "does not take 'file'" in str(caught.value)
    assert TOOLS_SCHEMA["additionalProperties"] is False


def test_every_public_name_loads_and_is_documented() -> None:
    for name in toolkit_core.__all__:
        value = getattr(toolkit_core, name)
        assert value is not None
        if isinstance(value, type) or inspect.isfunction(value):
            assert (value.__doc__ or "").strip(), name
    assert sorted(toolkit_core.__all__) == dir(toolkit_core)
    with pytest.raises(AttributeError, match="no public name 'nope'"):
        _ = toolkit_core.nope
    assert isinstance(default_tools("/")[0], Tool)


async def test_unsaved_text_of_an_editor_stands_before_the_disk(workspace: Path) -> None:
    (workspace / "open.txt").write_text("saved\n")
    (workspace / "other.txt").write_text("other\n")
    editor = MemoryEditor(str(workspace), {"open.txt": "unsaved\n"})
    tools = default_tools(workspace, editor=editor)
    assert "unsaved" in (await tools["read_file"](path="open.txt")).text
    assert "other" in (await tools["read_file"](path="other.txt")).text
    edited = await tools["edit_file"](path="open.txt", edits=[{"old_text": "unsaved", "new_text": "better"}])
    assert not edited.is_error
    assert (workspace / "open.txt").read_text() == "saved\n"
    assert "better" in (await tools["read_file"](path="open.txt")).text
    assert "disk" in (await tools["grep"](pattern="saved")).text
    assert "disk" in (await tools["glob"](pattern="*.txt")).text
