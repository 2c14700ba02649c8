"""The backend under real deep agents, and where deepagents' own backends were seen to go wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import deepagents
import pytest

from tests.langchain.agents import final_text, run, tool_messages
from toolkit_langchain import DeepAgentsBackend
from toolkit_langchain.testing import ScriptedModel, tool_call

create_deep_agent: Any = cast("Any", deepagents).create_deep_agent


@pytest.fixture
def backend(workspace: Path) -> DeepAgentsBackend:
    return DeepAgentsBackend(workspace)


async def test_a_deep_agent_works_with_it_sync_and_async(workspace: Path, backend: DeepAgentsBackend) -> None:
    path = f"{workspace}/a.txt"
    turns = [
        tool_call("write_file", file_path=path, content="one\ntwo\n"),
        tool_call("edit_file", file_path=path, old_string="two", new_string="three"),
        tool_call("read_file", file_path=path),
        tool_call("grep", pattern="three", path=str(workspace)),
        tool_call("execute", command="cat a.txt"),
        "done",
    ]
    for way in ("async", "sync"):
        (workspace / "a.txt").unlink(missing_ok=True)
        state = await run(create_deep_agent(ScriptedModel(turns), backend=backend), way=way)
        texts = [message.text for message in tool_messages(state)]
        assert final_text(state) == "done"
        assert (workspace / "a.txt").read_text() == "one\nthree\n"
        assert "three" in texts[2]
        assert "a.txt" in texts[3]
        assert "one\nthree" in texts[4]


async def test_paths_that_a_model_makes_up_do_not_end_the_run(workspace: Path, backend: DeepAgentsBackend) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    (workspace / "link").symlink_to(outside)
    (workspace / "v1..v2.txt").write_text("dots")
    paths = [f"{workspace}/v1..v2.txt", f"{workspace}/link/secret.txt", "/etc/passwd", "relative.txt", "/", "", "\x00"]
    turns = [*[[tool_call("read_file", file_path=path), tool_call("ls", path=path)] for path in paths], "done"]
    state = await run(create_deep_agent(ScriptedModel(turns), backend=backend))
    assert final_text(state) == "done"
    texts = [message.text for message in tool_messages(state)]
    assert "secret" not in "".join(text for text in texts if "secret.txt" not in text)
    assert "root:x:0" not in "".join(texts)


def test_an_edit_keeps_line_endings_and_bytes_that_are_no_utf8(workspace: Path, backend: DeepAgentsBackend) -> None:
    (workspace / "f.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\xff\r\nc\n")
    result = backend.edit(f"{workspace}/f.txt", "a\n", "x\n")
    assert result.error is None
    assert (workspace / "f.txt").read_bytes() == b"\xef\xbb\xbfx\r\nb\xff\r\nc\n"
    assert backend.read(f"{workspace}/f.txt").file_data == {"content": "x\nb\\xff\nc", "encoding": "utf-8"}


def test_a_failed_write_leaves_the_old_content(workspace: Path) -> None:
    (workspace / "f.txt").write_text("old")
    backend = DeepAgentsBackend(workspace, overwrite=True)
    assert backend.write(f"{workspace}/f.txt", "half a pair: \ud800").error is not None
    assert (workspace / "f.txt").read_text() == "old"
    assert backend.write(f"{workspace}/f.txt", "new").error is None
    assert (workspace / "f.txt").read_text() == "new"


def test_deleting_a_link_leaves_what_it_leads_to_and_the_root_stays(
    workspace: Path, backend: DeepAgentsBackend
) -> None:
    (workspace / "real.txt").write_text("x")
    (workspace / "link.txt").symlink_to("real.txt")
    (workspace / "folder" / "deep").mkdir(parents=True)
    assert backend.delete(f"{workspace}/link.txt").error is None
    assert (workspace / "real.txt").exists()
    assert not os.path.lexists(workspace / "link.txt")
    assert backend.delete(f"{workspace}/folder").error is None
    assert not (workspace / "folder").exists()
    for path in (f"{workspace}", f"{workspace}/", "/", f"{workspace}/..", f"{workspace}/missing", "/etc/hosts"):
        assert backend.delete(path).error is not None, path
    assert (workspace / "real.txt").exists()


def test_a_page_of_a_huge_line_and_of_a_long_file_is_read_in_bounded_memory(
    workspace: Path, backend: DeepAgentsBackend
) -> None:
    with (workspace / "line.txt").open("w") as file:
        file.write("x" * 50_000_000)
    data = backend.read(f"{workspace}/line.txt", limit=1).file_data
    assert data is not None
    assert len(data["content"]) <= 3_000_000
    (workspace / "long.txt").write_text("".join(f"{n}\n" for n in range(100_000)))
    page = backend.read(f"{workspace}/long.txt", offset=99_990, limit=20)
    assert page.file_data is not None
    assert page.file_data["content"] == "\n".join(str(n) for n in range(99_990, 100_000))
    assert (page.start_line, page.end_line, page.total_lines, page.next_offset) == (99_991, 100_000, 100_000, None)


def test_a_timeout_ends_the_whole_tree_and_keeps_the_output(workspace: Path, backend: DeepAgentsBackend) -> None:
    result = backend.execute("echo before; (sleep 3; touch later) & sleep 60", timeout=1)
    assert result.exit_code == 124
    assert "before" in result.output
    assert not (workspace / "later").exists()
    assert backend.execute("printf 'a\\377b'").output == "a\\xffb"
    assert backend.execute("kill -9 $$").exit_code == 137


def test_a_missing_folder_is_an_error_and_not_an_empty_answer(workspace: Path, backend: DeepAgentsBackend) -> None:
    for result in (
        backend.grep("x", f"{workspace}/none"), backend.glob("*", f"{workspace}/none"), backend.ls(f"{workspace}/none"),
    ):  # fmt: skip
        assert result.error is not None


def test_what_glob_means_by_dots_slashes_and_depth(workspace: Path) -> None:
    for path in ("top.py", "src/app/main.py", ".github/workflows/ci.yml", ".env", "src/.hidden/x.py"):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).touch()
    backend = DeepAgentsBackend(workspace, glob_paths="absolute")

    def found(pattern: str) -> list[str]:
        matches = backend.glob(pattern, str(workspace)).matches or []
        assert all(match["path"].startswith(f"{workspace}/") for match in matches)
        return sorted(match["path"].removeprefix(f"{workspace}/") for match in matches if not match.get("is_dir"))

    assert found("*.py") == ["src/.hidden/x.py", "src/app/main.py", "top.py"]
    assert found("/*.py") == ["top.py"]
    assert found("src/**/*.py") == ["src/app/main.py"]
    assert found("*.yml") == [".github/workflows/ci.yml"]
    assert found("**/*.yml") == []
    assert found(".env") == [".env"]
    assert backend.glob("../*").error is not None


def test_nonsense_is_refused_when_it_is_built(workspace: Path) -> None:
    with pytest.raises(ValueError, match="root"):
        DeepAgentsBackend(workspace / "missing")
    with pytest.raises(ValueError, match="glob_paths"):
        DeepAgentsBackend(workspace, glob_paths=cast("Any", "both"))
    with pytest.raises(TypeError, match="sandbox client"):
        DeepAgentsBackend(cast("Any", 7))
