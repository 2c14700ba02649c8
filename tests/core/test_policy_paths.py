"""No spelling of a path slips past a deny: judged over the real file tools."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkit_core import Policy, ToolSet, default_tools

PARTS = ["secret", "link", "loop", "sub", "deep", ".", "..", "", "key.txt", "alias.txt", "open.txt", "workspace"]


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> ToolSet:
    root = tmp_path_factory.mktemp("paths").resolve() / "workspace"
    (root / "secret" / "deep").mkdir(parents=True)
    (root / "sub").mkdir()
    (root / "secret" / "key.txt").write_text("TOP SECRET\n")
    (root / "secret" / "deep" / "key.txt").write_text("TOP SECRET\n")
    (root / "open.txt").write_text("open\n")
    (root / "link").symlink_to("secret")
    (root / "sub" / "link").symlink_to("../secret/deep")
    (root / "loop").symlink_to("loop")
    (root / "alias.txt").symlink_to("link/key.txt")
    return default_tools(root, require_read=False)


def root_of(tools: ToolSet) -> str:
    return asyncio.run(tools["write_file"].writes({"path": "x", "content": ""}))[0].removesuffix("/x")


def spelled(tools: ToolSet, absolute: bool, parts: list[str]) -> str:
    relative = "/".join(parts)
    return f"{root_of(tools)}/{relative}" if absolute else relative


POLICY = Policy(deny=["read_file(secret/*)", "edit_file(secret/*)", "write_file(secret/*)"], mode="bypass")


def test_control_a_rule_over_the_spelling_alone_would_be_slipped_past(tools: ToolSet) -> None:
    root = Path(root_of(tools))
    for spelling in ("link/key.txt", "./secret/key.txt", "sub/../secret/key.txt", "alias.txt"):
        assert not spelling.startswith("secret/")
        assert "TOP SECRET" in (root / spelling).read_text()


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.booleans(), st.lists(st.sampled_from(PARTS), min_size=1, max_size=7))
def test_whatever_reads_a_denied_file_is_denied(tools: ToolSet, absolute: bool, parts: list[str]) -> None:
    arguments = {"path": spelled(tools, absolute, parts)}

    async def judge_and_read() -> tuple[str, str]:
        action = (await POLICY.decide(tools["read_file"], arguments)).action
        return action, (await tools["read_file"].call(arguments)).text

    action, text = asyncio.run(judge_and_read())
    if "TOP SECRET" in text:
        assert action == "deny"
    if "open\n" in text:
        assert action == "allow"


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.booleans(), st.lists(st.sampled_from(PARTS), min_size=1, max_size=6), st.sampled_from(["new.txt", "key.txt"]))
def test_whatever_would_write_below_a_denied_folder_is_denied(
    tools: ToolSet, absolute: bool, parts: list[str], name: str
) -> None:
    arguments = {"path": spelled(tools, absolute, [*parts, name]), "content": "TOP SECRET\n"}

    async def judge_and_write() -> str:
        action = (await POLICY.decide(tools["write_file"], arguments)).action
        if action == "allow":
            await tools["write_file"].call(arguments)
        return action

    secret = Path(root_of(tools)) / "secret"
    before = {(folder, *files) for folder, _, files in os.walk(secret)}
    asyncio.run(judge_and_write())
    assert {(folder, *files) for folder, _, files in os.walk(secret)} == before
