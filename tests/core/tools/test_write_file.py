from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit_core.host.bridge import run_blocking
from toolkit_core.host.files import HostFiles
from toolkit_core.testing.files import MemoryFiles
from toolkit_core.tool import Tool
from toolkit_core.tools import write_file_tool


@pytest.fixture
def write(workspace: Path) -> Tool:
    """The tool over the workspace."""
    return write_file_tool(HostFiles(workspace))


async def test_says_created_or_replaced_and_counts_bytes(write: Tool, workspace: Path) -> None:
    content = "a" * 3785 + "é" * 7
    created = await write(path="new/ask.md", content=content)
    assert created.text == "Created new/ask.md (3,799 bytes)."
    assert created.data == {"path": "new/ask.md", "created": True, "bytes_written": 3799, "recovery_copy": None}
    assert (workspace / "new/ask.md").stat().st_size == 3799
    replaced = await write(path="new/ask.md", content="x")
    assert replaced.text == "Replaced new/ask.md (1 byte)."
    assert replaced.data is not None
    assert replaced.data["created"] is False


@pytest.mark.parametrize(
    "content", ["", "no newline", "a\r\nb\n\rc", "\ufeffmark", "𝄞 한글 \u2028 é", "\\n $& \\1", "\x00\x1b[0m"]
)
async def test_content_is_written_exactly_as_it_is(write: Tool, workspace: Path, content: str) -> None:
    assert not (await write(path="a.txt", content=content)).is_error
    assert (workspace / "a.txt").read_bytes() == content.encode()


def test_any_text_comes_back_byte_for_byte() -> None:
    files = MemoryFiles()
    tool = write_file_tool(files)

    @given(st.text(max_size=200))
    def check(content: str) -> None:
        result = run_blocking(tool.call({"path": "a", "content": content}))
        assert result.data is not None
        assert files.contents["a"] == content.encode()
        assert result.data["bytes_written"] == len(content.encode())

    check()


async def test_a_large_text_is_whole(write: Tool, workspace: Path) -> None:
    content = "0123456é9\n" * 150_000
    result = await write(path="a.txt", content=content)
    assert result.data is not None
    assert result.data["bytes_written"] == len(content.encode()) == (workspace / "a.txt").stat().st_size
    assert (workspace / "a.txt").read_text(encoding="utf-8") == content


@pytest.mark.parametrize("content", ["bad \udcff tail", "\ud83d and 한글"])
async def test_a_lone_surrogate_is_refused_and_named_and_nothing_written(
    write: Tool, workspace: Path, content: str
) -> None:
    (workspace / "s.txt").write_bytes(b"keep\n")
    for path in ("s.txt", "new.txt"):
        result = await write(path=path, content=content)
        assert result.error is not None
        assert result.error.code == "invalid_arguments"
        assert "U+D" in result.text
    assert os.listdir(workspace) == ["s.txt"]
    assert (workspace / "s.txt").read_bytes() == b"keep\n"


async def test_control_an_ordinary_writer_empties_the_file_before_it_fails(workspace: Path) -> None:
    (workspace / "s.txt").write_bytes(b"keep\n")
    with pytest.raises(UnicodeEncodeError):
        (workspace / "s.txt").write_text("bad \udcff tail", encoding="utf-8")
    assert (workspace / "s.txt").read_bytes() == b""


async def test_judges_name_the_real_path_under_any_spelling(write: Tool, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "link").symlink_to("sub/new.txt")
    for path in ("sub/new.txt", "./sub/../link", os.fspath(workspace / "link")):
        assert await write.subject({"path": path, "content": ""}) == "sub/new.txt"
        assert await write.writes({"path": path, "content": ""}) == (os.fspath(workspace / "sub/new.txt"),)
        assert (await write.claims({"path": path, "content": ""})).paths == (os.fspath(workspace / "sub/new.txt"),)
    assert write.effects is not None
    assert (write.effects.risk, write.effects.destructive) == ("modify", True)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("sub", "is_a_directory"),
        ("../out.txt", "access_denied"),
        ("/etc/new", "access_denied"),
        ("~/new.txt", "access_denied"),
        ("a\0", "invalid_arguments"),
        ("x" * 256, "invalid_arguments"),
        ("sub/new/", "invalid_arguments"),
        ("", "invalid_arguments"),
    ],
)
async def test_bad_paths_have_their_codes(write: Tool, workspace: Path, path: str, code: str) -> None:
    (workspace / "sub").mkdir()
    result = await write(path=path, content="x")
    assert result.error is not None
    assert result.error.code == code
    assert os.listdir(workspace) == ["sub"]


async def test_accepts_the_argument_names_that_models_use(write: Tool, workspace: Path) -> None:
    assert not (await write(file_path="a.txt", content="x")).is_error
    assert set(write.parameters["properties"]) == {"path", "content"}
    assert (workspace / "a.txt").read_text() == "x"


async def test_unknown_arguments_are_named(write: Tool) -> None:
    result = await write(path="a.txt", content="x", mode="append")
    assert result.error is not None
    assert "mode" in result.text


def test_without_a_port_there_is_no_tool() -> None:
    with pytest.raises(TypeError, match="Files"):
        write_file_tool(None)  # pyright: ignore[reportArgumentType]  (the mistake under test)


def test_the_description_forbids_nothing_and_promises_reading_first_only_where_it_is_required(workspace: Path) -> None:
    assert "read" not in write_file_tool(HostFiles(workspace)).description.lower()
