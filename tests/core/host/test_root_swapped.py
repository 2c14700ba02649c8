"""The root, or a folder above it, becomes a link to somewhere else while the tools stand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from toolkit_core import ToolSet, default_tools

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "a.txt"}),
    ("read_file", {"path": "sub/b.txt"}),
    ("write_file", {"path": "a.txt", "content": "x"}),
    ("write_file", {"path": "new.txt", "content": "x"}),
    ("write_file", {"path": "n/new.txt", "content": "x"}),
    ("edit_file", {"path": "a.txt", "edits": [{"old_text": "SECRET", "new_text": "x"}]}),
    ("glob", {"pattern": "**/*"}),
    ("glob", {"pattern": "*", "path": "sub"}),
    ("grep", {"pattern": "SECRET"}),
    ("grep", {"pattern": "SECRET", "path": "a.txt"}),
    ("grep", {"pattern": "(?=S)SECRET"}),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder, text in ((tmp_path / "above" / "root", "mine\n"), (tmp_path / "hideout" / "root", "SECRET\n")):
        (folder / "sub").mkdir(parents=True)
        (folder / "a.txt").write_text(text)
        (folder / "sub" / "b.txt").write_text(text)
    return tmp_path / "above" / "root"


def swap(root: Path, what: str) -> None:
    swapped = root if what == "root" else root.parent
    hideout = root.parents[1] / "hideout"
    swapped.rename(swapped.with_name("moved"))
    swapped.symlink_to(hideout / "root" if what == "root" else hideout)


async def test_control_new_tools_over_the_swapped_root_reach_the_other_folder(root: Path) -> None:
    swap(root, "root")
    assert "SECRET" in (await default_tools(root)["read_file"](path="a.txt")).text


@pytest.mark.parametrize("what", ["root", "above"])
async def test_nothing_elsewhere_is_read_written_listed_or_named(root: Path, what: str) -> None:
    tools: ToolSet = default_tools(root)
    assert "mine" in (await tools["read_file"](path="a.txt")).text
    swap(root, what)
    before = {path: path.read_text() for path in root.parents[1].rglob("*.txt")}
    for name, arguments in CALLS:
        result = await tools[name].call(arguments)
        assert result.error is not None, (name, arguments, result.text)
        assert result.error.code == "access_denied", (name, arguments, result.text)
        assert "SECRET" not in result.text.replace("'SECRET'", "")
        assert "hideout" not in result.text
    assert {path: path.read_text() for path in root.parents[1].rglob("*.txt")} == before
