"""What begins like an image and is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit_core.host.files import HostFiles
from toolkit_core.tool import Tool
from toolkit_core.tools import read_file_tool


@pytest.fixture
def read(workspace: Path) -> Tool:
    return read_file_tool(HostFiles(workspace))


@pytest.mark.parametrize(
    "text",
    [
        "GIF89a is a format, and a file may be about it.\n",
        "GIF89a, GIF87a, PNG\n",  # a comma where the first image would stand
        "GIF87a: very ol!d\n",
        "GIF89a\n\tfrom 1989\n",
        "GIF89a\u2013\u2013\u2013 and more\n",
        "GIF87a\n",
        "RIFF, then WEBP: a container\n",
        "RIFFabcdWEBP is how it begins\n",
    ],
)
async def test_a_text_that_begins_like_an_image_is_text(read: Tool, workspace: Path, text: str) -> None:
    (workspace / "a.txt").write_text(text, encoding="utf-8")
    result = await read(path="a.txt")
    assert not result.is_error, result.text
    assert text.split("\n")[0] in result.text


async def test_a_gif_without_any_zero_in_its_head_is_an_image(read: Tool, workspace: Path) -> None:
    sized = b"GIF89a" + b"\x20\x1b\x20\x1b" + b"\x70\x20\x31"
    for block in (b"!\xfe\x01x\x00", b""):
        data = sized + block + b",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
        (workspace / "a.txt").write_bytes(data)
        result = await read(path="a.txt")
        assert [image.mime_type for image in result.images] == ["image/gif"], result.text
