from __future__ import annotations

import asyncio
import json
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from toolkit_core.context import ToolContext
from toolkit_core.effects import conflicts
from toolkit_core.errors import ToolError
from toolkit_core.host.files import HostFiles
from toolkit_core.ports.files import OpenFile
from toolkit_core.testing.files import MemoryFiles
from toolkit_core.tool import Tool
from toolkit_core.tools import ReadRecord, read_file_tool

T = TypeVar("T")


@pytest.fixture
def read(workspace: Path) -> Tool:
    """The tool over the workspace."""
    return read_file_tool(HostFiles(workspace))


async def error_of(tool: Tool, **arguments: object) -> tuple[str, str]:
    result = await tool.call(arguments)
    assert result.error is not None, result.text
    assert result.text.startswith(f"Error ({result.error.code}): ")
    return result.error.code, result.text


def png(width: int = 1, height: int = 1) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" * (width + 1) for _ in range(min(height, 3))))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


GIF = (
    b"GIF89a\x01\x00\x02\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"
    b"\xff\xc0\x00\x0b\x08\x00\x07\x00\x05\x01\x01\x11\x00\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00\xaa\xff\xd9"
)
WEBP = (
    b"RIFF"
    + struct.pack("<I", 26)
    + b"WEBPVP8L"
    + struct.pack("<I", 13)
    + b"\x2f"
    + struct.pack("<I", 6 | 8 << 14)
    + b"\0" * 9
)


async def test_shows_numbered_lines_under_a_header(read: Tool, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n\ttwo\nthree\n")
    result = await read(path="a.txt")
    assert result.text.split("\n") == ["a.txt: lines 1-3 of 3", "     1\tone", "     2\t\ttwo", "     3\tthree"]
    assert result.data == {
        "path": "a.txt",
        "kind": "text",
        "first_line": 1,
        "last_line": 3,
        "total_lines": 3,
        "next_offset": None,
        "encoding": "utf-8",
        "size_bytes": 15,
    }


async def test_a_slice_names_how_to_read_on(read: Tool, workspace: Path) -> None:
    (workspace / "a.txt").write_text("".join(f"{number}\n" for number in range(1, 11)))
    result = await read(path="a.txt", offset=4, limit=3)
    assert result.text.split("\n")[0] == "a.txt: lines 4-6 of 10; offset=7 reads on"
    assert result.text.split("\n")[1:] == ["     4\t4", "     5\t5", "     6\t6"]
    assert result.data is not None
    assert result.data["next_offset"] == 7


@pytest.mark.parametrize(("offset", "first", "last"), [(-1, 10, 10), (-3, 8, 10), (-10, 1, 10), (-99, 1, 10)])
async def test_a_negative_offset_counts_from_the_end(
    read: Tool, workspace: Path, offset: int, first: int, last: int
) -> None:
    for ending in ("\n", ""):
        (workspace / "a.txt").write_text("\n".join(f"{number}" for number in range(1, 11)) + ending)
        data = (await read(path="a.txt", offset=offset)).data
        assert data is not None
        assert (data["first_line"], data["last_line"], data["total_lines"]) == (first, last, 10)


async def test_a_final_newline_makes_no_line_and_its_absence_is_said(read: Tool, workspace: Path) -> None:
    (workspace / "with.txt").write_text("a\nb\n")
    (workspace / "without.txt").write_text("a\nb")
    assert (await read(path="with.txt")).text.split("\n")[0] == "with.txt: lines 1-2 of 2"
    assert (await read(path="without.txt")).text.split("\n")[0] == "without.txt: lines 1-2 of 2; no newline at the end"


@pytest.mark.parametrize("arguments", [{"offset": 3}, {"offset": 1200, "limit": 200}, {"offset": 3, "limit": 1}])
async def test_an_offset_past_the_end_gives_the_number_of_lines(
    read: Tool, workspace: Path, arguments: dict[str, int]
) -> None:
    (workspace / "a.txt").write_text("a\nb\n")
    code, text = await error_of(read, path="a.txt", **arguments)
    assert code == "invalid_arguments"
    assert "has 2 lines" in text


@pytest.mark.parametrize(
    "arguments", [{"offset": 0}, {"limit": 0}, {"limit": -1}, {"char_offset": -1}, {"view": "hex"}]
)
async def test_a_slice_that_is_none_is_refused(read: Tool, workspace: Path, arguments: dict[str, object]) -> None:
    (workspace / "a.txt").write_text("a\n")
    assert (await error_of(read, path="a.txt", **arguments))[0] == "invalid_arguments"


async def test_an_empty_file_says_so_without_a_line(read: Tool, workspace: Path) -> None:
    (workspace / "a.txt").touch()
    for offset in (1, -1):
        result = await read(path="a.txt", offset=offset)
        assert result.text == "a.txt: the file is empty (0 bytes)"
        assert result.data is not None
        assert (result.data["first_line"], result.data["total_lines"]) == (0, 0)
    assert (await error_of(read, path="a.txt", offset=2))[0] == "invalid_arguments"


async def test_a_long_line_is_cut_and_says_its_length_and_how_to_read_on(read: Tool, workspace: Path) -> None:
    (workspace / "min.js").write_bytes(b"x" * 1_700_000 + b"\nshort\n")
    result = await read(path="min.js")
    assert len(result.text) < 5_000
    first = result.text.split("\n")[1]
    assert first.startswith("     1\t" + "x" * 2_000 + " [cut: ")
    assert "1,700,000" in first
    assert "char_offset=2000" in first
    assert "short" in result.text
    again = await read(path="min.js", char_offset=1_699_000, limit=1)
    assert again.text.split("\n")[1] == "     1\t" + "x" * 1_000


async def test_a_char_offset_past_the_line_is_refused(read: Tool, workspace: Path) -> None:
    (workspace / "a.txt").write_text("12345\n")
    code, text = await error_of(read, path="a.txt", char_offset=5)
    assert code == "invalid_arguments"
    assert "5 characters" in text


async def test_a_cut_counts_characters_not_bytes(read: Tool, workspace: Path) -> None:
    (workspace / "a.txt").write_text("é" * 300_000, encoding="utf-8")
    result = await read(path="a.txt", char_offset=299_998)
    assert result.text.split("\n")[1] == "     1\téé"
    assert "of 300,000;" in (await read(path="a.txt")).text


async def test_text_stops_at_the_limit_with_whole_lines(read: Tool, workspace: Path) -> None:
    (workspace / "a.txt").write_text("".join(f"{number:0500}\n" for number in range(1000)))
    result = await read(path="a.txt")
    assert result.data is not None
    assert len(result.text.encode()) <= 256 * 1024 + 200
    last = result.data["last_line"]
    assert result.text.endswith(f"{last - 1:0500}")
    assert result.data["next_offset"] == last + 1
    assert result.data["total_lines"] == 1000
    assert "limit of text" in result.text.split("\n")[0]


async def test_scanning_stops_soon_after_the_slice(workspace: Path) -> None:
    path = workspace / "big.txt"
    path.write_bytes((b"x" * 99 + b"\n") * 100)
    os.truncate(path, 10_000_000_000)  # sparse: reading it all would take minutes
    async with asyncio.timeout(30):
        result = await read_file_tool(HostFiles(workspace))(path="big.txt", limit=1)
    assert result.text.split("\n")[0] == "big.txt: lines 1-1, more follow; offset=2 reads on"


async def test_past_the_scan_limit_the_call_is_exhausted(workspace: Path) -> None:
    (workspace / "a.txt").write_text("line\n" * 200_000)
    tool = read_file_tool(HostFiles(workspace), max_scan_bytes=500_000)
    for offset in (150_000, -1):
        result = await tool(path="a.txt", offset=offset)
        assert result.error is not None
        assert (result.error.code, result.error.hard, result.data) == ("exhausted", True, None)
    near = await tool(path="a.txt", offset=10, limit=5)
    assert near.data is not None
    assert (near.data["last_line"], near.data["total_lines"]) == (14, None)
    assert "more follow" in near.text
    assert "lines 199999-200000 of 200000" in (await read_file_tool(HostFiles(workspace))(path="a.txt", offset=-2)).text


async def test_a_line_longer_than_the_scan_limit_shows_its_start(workspace: Path) -> None:
    (workspace / "a.txt").write_text("x" * 2_000_000)
    result = await read_file_tool(HostFiles(workspace), max_scan_bytes=500_000)(path="a.txt")
    assert "of more; offset=1, char_offset=2000" in result.text
    assert "the limit of bytes scanned" in result.text


async def test_a_utf8_mark_is_not_shown_and_an_inner_one_is(read: Tool, workspace: Path) -> None:
    (workspace / "b.csv").write_bytes(b"\xef\xbb\xbfid,na\xef\xbb\xbfme\n")
    result = await read(path="b.csv")
    assert result.text == "b.csv: lines 1-1 of 1; UTF-8 with BOM\n     1\tid,na\ufeffme"
    assert result.data is not None
    assert result.data["encoding"] == "utf-8-sig"


@pytest.mark.parametrize(("codec", "mark"), [("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")])
async def test_utf16_with_a_mark_is_text(read: Tool, workspace: Path, codec: str, mark: bytes) -> None:
    text = "hello\r\nwörld 😀\n" + "x" * 300_000 + "\nend"
    (workspace / "u.txt").write_bytes(mark + text.encode(codec))
    result = await read(path="u.txt")
    lines = result.text.split("\n")
    assert lines[0].startswith("u.txt: lines 1-4 of 4; UTF-16 ")
    assert lines[1:3] == ["     1\thello", "     2\twörld 😀"]
    assert "300,000" in lines[3]
    assert lines[4] == "     4\tend"
    assert (await read(path="u.txt", offset=-1)).text.split("\n")[1] == "     4\tend"


async def test_broken_utf16_is_shown_escaped(read: Tool, workspace: Path) -> None:
    (workspace / "u.txt").write_bytes(b"\xff\xfe" + "a\n".encode("utf-16-le") + b"\x3d\xd8" + b"b\x00" + b"\x07")
    result = await read(path="u.txt")
    assert result.text.split("\n")[2] == "     2\t\\ud83db\\x07"


async def test_bytes_that_are_no_text_are_escaped_and_said(read: Tool, workspace: Path) -> None:
    (workspace / "latin.txt").write_bytes(b"na\xefve\nplain\n")
    result = await read(path="latin.txt")
    assert result.text.split("\n")[1:] == ["     1\tna\\xEFve", "     2\tplain"]
    assert "\\xEF" in result.text.split("\n")[0]
    assert result.data is not None
    assert result.data["encoding"] == "unknown-8bit"


async def test_crlf_is_said_and_not_shown(read: Tool, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (workspace / "mixed.txt").write_bytes(b"one\r\ntwo\nth\rree\r\n")
    assert (await read(path="a.txt")).text == "a.txt: lines 1-2 of 2; CRLF line endings\n     1\tone\n     2\ttwo"
    mixed = (await read(path="mixed.txt")).text.split("\n")
    assert "mixed line endings" in mixed[0]
    assert mixed[1:] == ["     1\tone", "     2\ttwo", "     3\tth\rree"]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"PK\x03\x04\x14\x00\x00\x00" + bytes(range(256)) * 4, "ZIP"),
        (b"\x7fELF\x02\x01\x01\x00", "ELF"),
        ("text".encode("utf-16-le") * 40, "UTF-16 LE text without a byte order mark"),
        (b"\xff\xfe\x00\x00" + "hi".encode("utf-32-le"), "UTF-32"),
        (b"\xff\xfea\x00" + b"\x00\x00" * 50, "unknown type"),
        (b"text\0", "unknown type"),
    ],
)
async def test_a_binary_file_is_named_with_its_size(read: Tool, workspace: Path, data: bytes, says: str) -> None:
    (workspace / "s.bin").write_bytes(data)
    code, text = await error_of(read, path="s.bin")
    assert code == "binary_file"
    assert says in text
    assert f"{len(data):,} bytes" in text
    assert "\0" not in text


async def test_a_nul_late_in_the_file_is_escaped(read: Tool, workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"x\n" * 5000 + b"a\0b\n")
    assert (await read(path="a.txt", offset=-1)).text.endswith("a\\x00b")


@pytest.mark.parametrize(
    ("name", "data", "mime", "size"),
    [
        ("a.png", png(3, 2), "image/png", "3 x 2"),
        ("wrong.txt", GIF, "image/gif", "1 x 2"),
        ("a.jpg", JPEG, "image/jpeg", "5 x 7"),
        ("a", WEBP, "image/webp", "7 x 9"),
    ],
)
async def test_an_image_is_known_by_its_bytes(
    read: Tool, workspace: Path, name: str, data: bytes, mime: str, size: str
) -> None:
    (workspace / name).write_bytes(data)
    result = await read(path=name)
    assert [(image.mime_type, image.data) for image in result.images] == [(mime, data)]
    assert size in result.text
    assert result.data is not None
    assert result.data["kind"] == "image"
    json.loads(result.to_json())


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n" + b"\x07" * 64,
        png()[:-13],
        png().replace(b"IDAT", b"IDAX"),
        b"\xff\xd8\xff" + b"\x07" * 64,
        JPEG[:-4],
        b"GIF89a",
        GIF[:-1],
        WEBP[:-3],
        b"RIFF\x10\x00\x00\x00WEBPVP8 ",
    ],
)
async def test_a_damaged_image_is_not_handed_over(read: Tool, workspace: Path, data: bytes) -> None:
    (workspace / "a.png").write_bytes(data)
    code, text = await error_of(read, path="a.png")
    assert code == "binary_file"
    assert "cannot be decoded" in text


async def test_an_image_too_large_is_refused_with_the_numbers(read: Tool, workspace: Path) -> None:
    (workspace / "wide.png").write_bytes(png(9600, 7734)[:33])
    (workspace / "heavy.png").write_bytes(png() + b"\0" * 5_300_000)
    code, text = await error_of(read, path="wide.png")
    assert (code, "9600 x 7734" in text, "8,000" in text) == ("too_large", True, True)
    code, text = await error_of(read, path="heavy.png")
    assert (code, "5,242,880" in text) == ("too_large", True)


async def test_text_with_the_name_of_an_image_is_text(read: Tool, workspace: Path) -> None:
    (workspace / "fake.png").write_text("<svg><rect/></svg>")
    result = await read(path="fake.png")
    assert not result.images
    assert "<svg><rect/></svg>" in result.text


async def test_a_notebook_is_json_or_cells(read: Tool, workspace: Path) -> None:
    notebook = {
        "cells": [
            {"cell_type": "markdown", "source": ["# Title\n", "text"]},
            {
                "cell_type": "code",
                "execution_count": 3,
                "source": "print(1)",
                "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
                    {"output_type": "execute_result", "data": {"text/plain": "2", "image/png": "AAAA"}},
                    {"output_type": "error", "ename": "ValueError", "evalue": "no"},
                ],
            },
        ],
        "nbformat": 4,
    }
    (workspace / "n.ipynb").write_text(json.dumps(notebook))
    assert '"cells"' in (await read(path="n.ipynb")).text
    result = await read(path="n.ipynb", view="cells")
    for part in (
        "cell 1 (markdown)",
        "# Title",
        "cell 2 (code, run 3)",
        "print(1)",
        "stdout",
        "[image/png, 4 char",
        "ValueError: no",
    ):
        assert part in result.text
    assert result.data is not None
    assert result.data["kind"] == "cells"
    assert (await read(path="n.ipynb", view="cells", offset=2, limit=1)).text.split("\n")[1] == "     2\t# Title"


@pytest.mark.parametrize("text", ["plain", "{}", "[]", '{"cells": 3}', '{"cells": [1]}', "[" * 100_000])
async def test_cells_of_what_is_no_notebook_are_refused(read: Tool, workspace: Path, text: str) -> None:
    (workspace / "n.ipynb").write_text(text)
    assert (await error_of(read, path="n.ipynb", view="cells"))[0] == "unsupported"


async def test_a_folder_shows_its_first_entries(read: Tool, workspace: Path) -> None:
    for number in range(150):
        (workspace / f"f{number:03}").touch()
    (workspace / "a\nb").mkdir()
    code, text = await error_of(read, path=".")
    assert code == "is_a_directory"
    assert "\na\\x0ab/\nf000\n" in text
    assert "[51 more entries]" in text


async def test_a_name_cannot_forge_a_header(read: Tool, workspace: Path) -> None:
    (workspace / "a\nb: lines 1-1 of 1").write_text("x")
    assert (await read(path="a\nb: lines 1-1 of 1")).text.startswith("a\\x0ab: lines 1-1 of 1: lines 1-1 of 1;")


async def test_pdf_without_a_reader_is_unsupported(read: Tool, workspace: Path) -> None:
    (workspace / "a.pdf").write_bytes(b"%PDF-1.7\n")
    assert (await error_of(read, path="a.pdf"))[0] == "unsupported"


@pytest.mark.parametrize("name", ["path", "file_path", "file"])
async def test_the_path_may_have_the_names_that_models_use(read: Tool, workspace: Path, name: str) -> None:
    (workspace / "a.txt").write_text("x")
    assert not (await read.call({name: "a.txt", "limit": None, "offset": "1"})).is_error
    assert set(read.parameters["properties"]) == {"path", "offset", "limit", "char_offset", "view"}


@pytest.mark.parametrize("path", ["", "a\0b", "\ud83d.txt", "x" * 300, "bad \udcff.txt", "a/" * 3000])
async def test_what_cannot_be_a_path_is_an_error_of_the_arguments(read: Tool, path: str) -> None:
    assert (await error_of(read, path=path))[0] == "invalid_arguments"


async def test_the_subject_is_the_path_that_is_opened_under_any_spelling(read: Tool, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub/a.txt").write_text("x")
    (workspace / "link").symlink_to("sub/a.txt")
    for path in ("sub/a.txt", "./sub/../sub//a.txt", "link", os.fspath(workspace / "link")):
        assert await read.subject({"path": path}) == "sub/a.txt"
        data = (await read(path=path)).data
        assert data is not None
        assert data["path"] == "sub/a.txt"
    assert await read.writes({"path": "link"}) == ()
    claims = await read.claims({"path": "link"})
    assert (claims.paths, claims.read_only) == ((os.fspath(workspace / "sub/a.txt"),), True)
    assert not conflicts(claims, claims)


async def test_a_path_swapped_after_the_approval_is_denied(workspace: Path) -> None:
    (workspace / "a.txt").write_text("public")
    (workspace / "b.txt").write_text("private")

    class Swapped(HostFiles):
        async def read(self, path: str, consume: Callable[[OpenFile], T]) -> T:
            (workspace / "a.txt").unlink()
            (workspace / "a.txt").symlink_to("b.txt")
            return await super().read(path, consume)

    result = await read_file_tool(Swapped(workspace)).call({"path": "a.txt"}, ToolContext(approved_subject="a.txt"))
    assert result.error is not None
    assert result.error.code == "denied"
    assert "private" not in result.text


async def test_the_gate_may_let_paths_outside_through(workspace: Path) -> None:
    (workspace.parent / "b.txt").write_text("outside")
    tool = read_file_tool(HostFiles(workspace, outside="policy"))
    assert await tool.subject({"path": "../b.txt"}) == os.fspath(workspace.parent / "b.txt")
    assert "outside" in (await tool(path="../b.txt")).text


async def test_works_over_files_in_memory() -> None:
    tool = read_file_tool(MemoryFiles({"a/b.txt": "x\ny\n"}), record=ReadRecord())
    assert (await tool(path="a/b.txt", offset=-1)).text == "a/b.txt: lines 2-2 of 2\n     2\ty"
    assert "b.txt" in (await error_of(tool, path="a"))[1]
    assert (await error_of(tool, path="/etc/passwd"))[0] == "access_denied"


def test_without_a_port_there_is_no_tool() -> None:
    with pytest.raises(TypeError, match="Files"):
        read_file_tool(None)  # pyright: ignore[reportArgumentType]  (the mistake under test)


def test_names_and_descriptions_are_taken_verbatim(workspace: Path) -> None:
    tool = read_file_tool(HostFiles(workspace), name="open", description="Mine.")
    assert (tool.name, tool.description, tool.kind) == ("open", "Mine.", "read_file")
    alone = read_file_tool(HostFiles(workspace), siblings=())
    assert "glob" not in alone.description
    assert "glob" in read_file_tool(HostFiles(workspace), siblings=["glob"]).description


async def test_what_the_system_refuses_is_told(workspace: Path) -> None:
    class Broken(HostFiles):
        async def read(self, path: str, consume: Callable[[OpenFile], T]) -> T:
            def fail(_file: OpenFile) -> T:
                raise OSError(5, "Input/output error")

            return await super().read(path, fail)

    (workspace / "a.txt").write_text("x")
    code, text = await error_of(read_file_tool(Broken(workspace)), path="a.txt")
    assert (code, "EIO" in text) == ("io_error", True)
    with pytest.raises(ToolError):
        (await read_file_tool(Broken(workspace))(path="a.txt")).raise_for_error()
