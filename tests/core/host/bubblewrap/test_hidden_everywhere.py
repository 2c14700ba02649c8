"""What a sandbox hides is hidden from every tool of the set that it confines, not from commands alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from toolkit_core import ToolSet, default_tools
from toolkit_core.errors import ToolError
from toolkit_core.host.bubblewrap import BubblewrapSandbox
from toolkit_core.host.processes import HostProcesses
from toolkit_core.host.search import HostSearch
from toolkit_core.ports.search import GlobQuery, GrepQuery

SECRET = "s3cret-words"


@pytest.fixture
def full(workspace: Path) -> Path:
    (workspace / "hid [x]" / "deep").mkdir(parents=True)
    (workspace / "hid [x]" / "deep" / "file").write_text(SECRET)
    (workspace / "one").write_text(SECRET)
    (workspace / "one-more").write_text(f"{SECRET} shown")
    (workspace / "link").symlink_to("hid [x]")
    (workspace / "file-link").symlink_to("one")
    return workspace


@pytest.fixture
async def tools(full: Path) -> AsyncIterator[ToolSet]:
    sandbox = BubblewrapSandbox(full, hidden=["hid [x]", full / "one"])
    async with default_tools(full, sandbox=sandbox) as tools:
        yield tools


async def test_without_hiding_the_same_tools_show_it(full: Path) -> None:
    async with default_tools(full, sandbox=BubblewrapSandbox(full)) as tools:
        assert SECRET in (await tools["read_file"].call({"path": "link/deep/file"})).text
        assert "hid [x]/deep/file" in (await tools["grep"].call({"pattern": SECRET})).text


@pytest.mark.parametrize("path", ["hid [x]/deep/file", "link/deep/file", "one", "file-link", "link/../one", "link"])
async def test_no_file_tool_opens_a_hidden_path(tools: ToolSet, full: Path, path: str) -> None:
    calls = [
        ("read_file", {"path": path}),
        ("read_file", {"path": str(full / path)}),
        ("write_file", {"path": path, "content": "new"}),
        ("edit_file", {"path": path, "edits": [{"old_text": "s", "new_text": "t"}]}),
        ("grep", {"pattern": SECRET, "path": path}),
        ("glob", {"pattern": "**", "path": path}),
    ]
    for name, arguments in calls:
        result = await tools[name].call(arguments)
        assert result.error is not None, (name, path)
        assert result.error.code == "access_denied", (name, result.error)
        assert "hidden by the sandbox" in result.error.message
        assert SECRET not in result.text
    assert (full / "one").read_text() == SECRET


async def test_a_hidden_path_cannot_be_written_where_nothing_is_yet(tools: ToolSet, full: Path) -> None:
    result = await tools["write_file"].call({"path": "link/deep/new", "content": "x"})
    assert result.error is not None
    assert result.error.code == "access_denied"
    assert not (full / "hid [x]" / "deep" / "new").exists()


@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count"])
@pytest.mark.parametrize("program", [None, "/nonexistent/rg"])
@pytest.mark.parametrize("include_ignored", [False, True])
async def test_a_search_neither_lists_nor_reads_it(
    full: Path, mode: str, program: str | None, include_ignored: bool
) -> None:
    sandbox = BubblewrapSandbox(full, hidden=["hid [x]", full / "one"])
    search = HostSearch(full, hidden=sandbox.hidden, ripgrep=program)
    query = GrepQuery(SECRET, mode=mode, include_ignored=include_ignored)  # pyright: ignore[reportArgumentType]  (parametrized)
    found = await search.grep(query)
    shown = [row[0] for row in found.rows] + [path for path, _ in found.counts]
    assert shown == ["one-more"]
    named = (await search.glob(GlobQuery("**", include_ignored=include_ignored))).paths
    assert not [path for path in named if path.startswith("hid") or path == "one"]
    assert "one-more" in named


async def test_a_pattern_that_names_a_hidden_folder_is_refused(full: Path) -> None:
    search = HostSearch(full, hidden=[str(full / "hid [x]")])
    with pytest.raises(ToolError, match="hidden by the sandbox"):
        await search.glob(GlobQuery("link/deep/*"))
    assert not (await search.glob(GlobQuery("h*/**"))).paths


async def test_a_hidden_path_outside_that_became_a_link_is_hidden_where_it_leads(base: Path, full: Path) -> None:
    search = HostSearch(full, hidden=[str(base / "outer")])
    assert (await search.glob(GlobQuery("one"))).paths == ("one",)
    (base / "outer").symlink_to(full / "one")
    assert not (await search.glob(GlobQuery("one"))).paths


@pytest.mark.usefixtures("bubblewrap")
async def test_a_command_in_a_hidden_folder_is_told_so(tools: ToolSet, full: Path) -> None:
    result = await tools["shell"].call({"command": "ls", "cwd": "link/deep"})
    assert result.error is not None
    assert result.error.code == "access_denied"
    assert "hidden by the sandbox" in result.error.message
    processes = HostProcesses(full, wrap=BubblewrapSandbox(full, hidden=["hid [x]"]))
    with pytest.raises(ToolError, match="hidden by the sandbox"):
        await processes.start("ls", cwd="link/deep")
    await processes.aclose()
