"""The tool glob, over files on disk and over the Search in memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from toolkit_core.host.search import HostSearch
from toolkit_core.ports.files import Resolved
from toolkit_core.ports.search import GlobFound, GlobQuery, GrepFound, GrepQuery, Search
from toolkit_core.result import ToolResult
from toolkit_core.testing.search import InMemorySearch
from toolkit_core.tool import ToolSet
from toolkit_core.tools import glob_tool, grep_tool

Make = Callable[[Mapping[str, bytes]], Search]


@pytest.fixture(params=["disk", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """A Search over these files."""

    def on_disk(files: Mapping[str, bytes]) -> Search:
        for name, content in files.items():
            path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + os.fsencode(name)))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return HostSearch(tmp_path)

    return on_disk if request.param == "disk" else InMemorySearch


def data(result: ToolResult[Any]) -> Any:
    """The payload, loosely typed."""
    assert result.data is not None, result.text
    return result.data


class Canned:
    """A Search that answers as it was told."""

    def __init__(self, found: GlobFound) -> None:
        self._found = found
        self.asked: GlobQuery | None = None

    async def resolve(self, path: str) -> Resolved:
        return Resolved(f"/w/{path}", f"/w/{path}", True, path)

    async def glob(self, query: GlobQuery) -> GlobFound:
        self.asked = query
        return self._found

    async def grep(self, query: GrepQuery) -> GrepFound:
        return GrepFound()


async def test_one_path_a_line_and_folders_end_with_a_slash(make: Make) -> None:
    result = await glob_tool(make({"src/a.py": b"", "b.py": b"", ".env": b""}))(pattern="**/*")
    assert result.text == ".env\nb.py\nsrc/\nsrc/a.py"
    assert result.data == {"paths": [".env", "b.py", "src/", "src/a.py"], "truncated": False, "ignored_count": None}


async def test_a_limit_says_that_more_exist(make: Make) -> None:
    glob = glob_tool(make({f"f{number:02}": b"" for number in range(25)}))
    cut = await glob(pattern="*", limit=10)
    assert len(data(cut)["paths"]) == 10
    assert data(cut)["truncated"] is True
    assert "more exist" in cut.text
    whole = await glob(pattern="*", limit=1000)
    assert whole.text.count("\n") == 24
    assert data(whole)["truncated"] is False


async def test_an_empty_answer_says_what_would_match(make: Make) -> None:
    glob = glob_tool(make({"src/m.py": b"", ".gitignore": b"*.log\n", "x.log": b""}))
    deeper = await glob(pattern="*.py")
    assert not deeper.is_error
    assert "1 entry" in deeper.text
    assert "'**/*.py'" in deeper.text
    ignored = await glob(pattern="?.log")
    assert "1 ignored entry" in ignored.text
    assert "include_ignored" in ignored.text
    assert data(ignored)["ignored_count"] == 1
    nothing = await glob(pattern="**/*.rs")
    assert nothing.text == "No matches for '**/*.rs' in '.'."


async def test_a_name_with_pattern_characters_is_explained(tmp_path: Path) -> None:
    (tmp_path / "app" / "[slug]").mkdir(parents=True)
    result = await glob_tool(HostSearch(tmp_path))(pattern="app/[slug]")
    assert "'app/[[]slug]'" in result.text
    assert data(await glob_tool(HostSearch(tmp_path))(pattern="app/[[]slug]"))["paths"] == ["app/[slug]/"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"pattern": ""}, "invalid_arguments"),
        ({"pattern": "[z-a]"}, "invalid_arguments"),
        ({"pattern": "{a,b}" * 9}, "invalid_arguments"),
        ({"pattern": "*", "limit": 0}, "invalid_arguments"),
        ({"pattern": "*", "limit": 100_001}, "invalid_arguments"),
        ({"pattern": "*", "sort": "size"}, "invalid_arguments"),
        ({"pattern": "*", "path": "a"}, "invalid_arguments"),
        ({"pattern": "*", "path": "missing"}, "not_found"),
        ({"pattern": "*", "path": ".."}, "access_denied"),
        ({"pattern": "*", "path": "/etc"}, "access_denied"),
    ],
)
async def test_bad_arguments_and_places_are_errors(make: Make, arguments: Mapping[str, Any], code: str) -> None:
    result = await glob_tool(make({"a": b"x"})).call(dict(arguments))
    assert result.error is not None
    assert result.error.code == code


async def test_odd_names_are_escaped_and_encode(make: Make) -> None:
    result = await glob_tool(make({"bad\udcff.txt": b"", "new\nline": b""}))(pattern="*")
    assert result.text.split("\n") == [r"bad\xff.txt", r"new\x0aline"]
    assert data(result)["paths"] == [r"bad\xff.txt", "new\nline"]
    json.loads(result.to_json())


async def test_a_walk_that_ran_out_of_time_fails_hard_with_what_was_found() -> None:
    result = await glob_tool(Canned(GlobFound(("a",), incomplete="the walk")))(pattern="*")
    assert result.error is not None
    assert result.error.code == "exhausted"
    assert result.data is None
    assert result.text.endswith("\na")


async def test_unreadable_folders_are_noted() -> None:
    assert "1 folder could not be read" in (await glob_tool(Canned(GlobFound(("a",), unreadable=1)))(pattern="*")).text
    bounded = GlobFound((), ignored_count=0, deeper_count=3, counts_incomplete=True)
    assert "at least 3 entries" in (await glob_tool(Canned(bounded))(pattern="*.x")).text
    bounded = GlobFound((), ignored_count=0, deeper_count=0, counts_incomplete=True)
    assert "too large" in (await glob_tool(Canned(bounded))(pattern="*.x")).text


async def test_lenient_arguments_reach_the_port() -> None:
    search = Canned(GlobFound(("a",)))
    glob = glob_tool(search)
    assert not (await glob.call({"pattern": "*", "directory": "src", "limit": "5", "sort": None})).is_error
    assert search.asked == GlobQuery("*", "src", 5, "path", False)


async def test_subject_effects_and_claims() -> None:
    glob = glob_tool(Canned(GlobFound(())))
    assert await glob.subject({"pattern": "**/*.py"}) == "**/*.py"
    assert (await glob.claims({"pattern": "*"})).read_only
    assert await glob.writes({"pattern": "*"}) == ()
    assert glob.effects is not None
    assert glob.effects.risk == "inspect"


def test_the_description_names_no_tool_that_is_absent() -> None:
    search = Canned(GlobFound(()))
    assert "grep" not in glob_tool(search).description
    assert "grep" in ToolSet([glob_tool(search), grep_tool(search)])["glob"].description
    assert glob_tool(search, description="Mine.").description == "Mine."
    assert len(glob_tool(search).description) <= 1024
