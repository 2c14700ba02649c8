"""The tool grep, over files on disk and over the Search in memory: the same words for the same files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from toolkit_core.context import ToolContext
from toolkit_core.host.search import HostSearch
from toolkit_core.ports.files import Resolved
from toolkit_core.ports.search import GlobFound, GlobQuery, GrepFound, GrepQuery, Row, Search
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

    def __init__(self, grep: GrepFound | None = None, glob: GlobFound | None = None) -> None:
        self._grep, self._glob = grep or GrepFound(), glob or GlobFound(())
        self.asked: GrepQuery | None = None

    async def resolve(self, path: str) -> Resolved:
        return Resolved(f"/w/{path}", f"/w/{path}", True, path)

    async def glob(self, query: GlobQuery) -> GlobFound:
        return self._glob

    async def grep(self, query: GrepQuery) -> GrepFound:
        self.asked = query
        return self._grep


async def test_rows_are_path_line_text_and_the_data_carries_them_apart(make: Make) -> None:
    grep = grep_tool(make({"log:7:old.txt": b"xxx\n", "part:a/f.txt": b"one\nxxx\n"}))
    result = await grep(pattern="xxx")
    assert result.text == "log:7:old.txt:1:xxx\npart:a/f.txt:2:xxx" + _engine_note(grep, result.text)
    assert result.data == {
        "rows": [
            {"path": "log:7:old.txt", "line": 1, "text": "xxx", "context": False},
            {"path": "part:a/f.txt", "line": 2, "text": "xxx", "context": False},
        ],
        "truncated": False,
        "skipped": 0,
    }


def _engine_note(grep: object, text: str) -> str:
    return "\n[Matched with Python's re.]" if "Python's re" in text else ""


async def test_context_rows_have_dashes_and_gaps_two(make: Make) -> None:
    result = await grep_tool(make({"a-1.txt": b"1\nhit\n3\n4\n5\n6\nhit\n", "b": b"hit\n"}))(
        pattern="hit", context_lines=1
    )
    assert result.text.removesuffix("\n[Matched with Python's re.]").split("\n") == [
        "a-1.txt-1-1",
        "a-1.txt:2:hit",
        "a-1.txt-3-3",
        "--",
        "a-1.txt-6-6",
        "a-1.txt:7:hit",
        "--",
        "b:1:hit",
    ]
    assert [row["context"] for row in data(result)["rows"]] == [True, False, True, True, False, False]


async def test_the_other_modes(make: Make) -> None:
    grep = grep_tool(make({"b.txt": b"hit\nhit\n", "a/c.txt": b"hit\r\n"}))
    counts = await grep(pattern="hit", output_mode="count")
    assert counts.text.split("\n")[:2] == ["a/c.txt:1", "b.txt:2"]
    assert data(counts)["counts"] == [{"path": "a/c.txt", "count": 1}, {"path": "b.txt", "count": 2}]
    files = await grep(pattern="hit", output_mode="files_with_matches")
    assert files.text.split("\n")[:2] == ["a/c.txt", "b.txt"]
    assert data(files)["files"] == ["a/c.txt", "b.txt"]


async def test_a_limit_says_that_more_exist(make: Make) -> None:
    grep = grep_tool(make({"a": b"hit\n" * 5}))
    cut = await grep(pattern="hit", limit=2)
    assert cut.text.count("hit") == 2
    assert "more exist" in cut.text
    assert data(cut)["truncated"] is True
    whole = await grep(pattern="hit", limit=5)
    assert "more exist" not in whole.text
    assert data(whole)["truncated"] is False


async def test_an_empty_answer_is_no_bare_absence(make: Make) -> None:
    files = {".gitignore": b"*.log\n", "a.log": b"hit\n", "node_modules/x.js": b"hit\n", "b.bin": b"\0hit\n"}
    result = await grep_tool(make(files))(pattern="hit")
    assert not result.is_error
    assert result.text.startswith("No matches for 'hit' in '.'.")
    assert "2 ignored files" in result.text
    assert "include_ignored" in result.text
    assert "1 binary file." in result.text
    assert data(result)["skipped"] == 3
    everything = await grep_tool(make(files))(pattern="hit", include_ignored=True)
    assert [row["path"] for row in data(everything)["rows"]] == ["a.log", "node_modules/x.js"]


async def test_a_search_of_other_names_says_which(make: Make) -> None:
    result = await grep_tool(make({"a.py": b"x"}))(pattern="x", glob="*.rs")
    assert "files matching '*.rs'" in result.text


@pytest.mark.parametrize(
    "arguments",
    [
        {"pattern": "("},
        {"pattern": "a\nb"},
        {"pattern": ""},
        {"pattern": "x", "limit": 0},
        {"pattern": "x", "limit": -1},
        {"pattern": "x", "context_lines": -1},
        {"pattern": "x", "context_lines": 101},
        {"pattern": "x", "output_mode": "lines"},
        {"pattern": "x", "glob": "[z-a]"},
        {"pattern": "x", "path": ""},
        {"pattern": "x" * 20_000},
        {"pattern": "x", "unknown": 1},
        {"path": "."},
    ],
)
async def test_bad_arguments_are_errors_that_say_so(make: Make, arguments: Mapping[str, Any]) -> None:
    result = await grep_tool(make({"a": b"x"})).call(dict(arguments))
    assert result.error is not None
    assert result.error.code == "invalid_arguments"
    assert result.text.startswith("Error (invalid_arguments): ")


@pytest.mark.parametrize(
    ("path", "code"), [("missing", "not_found"), ("../x", "access_denied"), ("/etc", "access_denied")]
)
async def test_bad_places_are_errors(make: Make, path: str, code: str) -> None:
    result = await grep_tool(make({"a": b"x"}))(pattern="x", path=path)
    assert result.error is not None
    assert result.error.code == code


async def test_names_and_texts_that_are_no_utf8_encode(make: Make) -> None:
    result = await grep_tool(make({"bad\udcff.txt": b"hit \xe9\n", "new\nline.txt": b"hit\n"}))(pattern="hit")
    assert r"bad\xff.txt:1:hit \xe9" in result.text
    assert r"new\x0aline.txt:1:hit" in result.text
    assert [row["path"] for row in data(result)["rows"]] == [r"bad\xff.txt", "new\nline.txt"]
    result.text.encode("utf-8")
    json.loads(result.to_json())


async def test_long_rows_are_cut_and_say_so(make: Make) -> None:
    result = await grep_tool(make({"a": b"hit" + b"x" * 600 + b"\n", "b": b"y" * 900 + b"hit\n"}))(pattern="hit")
    first, second = result.text.split("\n")[:2]
    assert first == "a:1:hit" + "x" * 497 + " [cut]"
    assert second.startswith("b:1:[cut] y")
    assert second.endswith("hit")
    assert "500 characters" in result.text
    assert [row.get("cut") for row in data(result)["rows"]] == [True, True]
    assert all(len(row["text"]) <= 500 for row in data(result)["rows"])


async def test_a_search_that_ran_out_of_time_fails_hard_with_what_was_found() -> None:
    found = GrepFound(rows=(Row("a", 1, "hit"),), incomplete="the search", engine="ripgrep")
    result = await grep_tool(Canned(found))(pattern="hit")
    assert result.error is not None
    assert result.error.code == "exhausted"
    assert result.error.hard
    assert result.data is None
    assert "a:1:hit" in result.text
    assert "incomplete" in result.text
    nothing = await grep_tool(Canned(replace(found, rows=())))(pattern="hit")
    assert "No matches" not in nothing.text
    assert "does not mean absence" in nothing.text


async def test_what_the_engine_left_out_or_took_in_is_noted() -> None:
    found = GrepFound(rows=(Row("a", 1, "x"),), skipped_binary=1, skipped_unreadable=2, named_ignored=True)
    text = (await grep_tool(Canned(found))(pattern="x")).text
    assert "2 files or folders could not be read" in text
    assert "1 binary file" in text
    assert "Ignored files were searched too" in text
    bounded = GrepFound(skipped_ignored=10, counts_incomplete=True)
    assert "at least 10 ignored files" in (await grep_tool(Canned(bounded))(pattern="x")).text
    assert "too large to count" in (await grep_tool(Canned(GrepFound(counts_incomplete=True)))(pattern="x")).text


async def test_names_that_models_were_trained_on_are_accepted_and_not_advertised() -> None:
    search = Canned()
    grep = grep_tool(search)
    sent = {
        "regex": "x",
        "file_path": "src",
        "include": "*.py",
        "head_limit": "7",
        "-i": True,
        "-C": 2,
        "multiline": None,
    }
    assert not (await grep.call(sent)).is_error
    assert search.asked == GrepQuery("x", path="src", glob="*.py", limit=7, ignore_case=True, context_lines=2)
    assert set(grep.parameters["properties"]) == {
        *("pattern", "path", "glob", "output_mode", "ignore_case", "fixed_strings", "multiline"),
        *("context_lines", "limit", "include_ignored"),
    }


async def test_subject_effects_and_claims() -> None:
    grep = grep_tool(Canned())
    assert await grep.subject({"pattern": "to.do", "path": "src"}) == "to.do"
    assert await grep.writes({"pattern": "x"}) == ()
    claims = await grep.claims({"pattern": "x", "path": "src"})
    assert claims.read_only
    assert claims.paths == ("/w/src",)
    assert grep.effects is not None
    assert grep.effects.risk == "inspect"
    assert grep.effects.reads
    refused = await grep.call({"pattern": "x"}, ToolContext(approved_subject="y"))
    assert refused.error is not None
    assert refused.error.code == "denied"


def test_descriptions_hint_at_the_tools_that_are_there_alone() -> None:
    search = Canned()
    assert "glob" not in grep_tool(search, siblings=()).description.replace("`glob`", "")
    assert "Find files by name with glob." in ToolSet([grep_tool(search), glob_tool(search)])["grep"].description
    renamed = ToolSet([grep_tool(search), glob_tool(search, name="find_files")])["grep"].description
    assert "find_files" in renamed
    assert grep_tool(search, description="Mine.").description == "Mine."
    assert 1 <= len(grep_tool(search).description) <= 1024


def test_a_factory_needs_its_port_and_a_limit_that_can_be() -> None:
    for factory in (grep_tool, glob_tool):
        with pytest.raises(TypeError, match="Search port"):
            factory(None)  # pyright: ignore[reportArgumentType]  (the error is the test)
        with pytest.raises(ValueError, match="default_limit"):
            factory(Canned(), default_limit=0)
    few = grep_tool(Canned(), default_limit=7)
    assert few.parameters["properties"]["limit"]["default"] == 7
    assert "Shows 7 matching lines" in few.description


async def test_with_an_editor_each_answer_says_that_it_is_from_disk() -> None:
    search = Canned(GrepFound(rows=(Row("a", 1, "x"),)), GlobFound(("a",)))
    assert "unsaved" in (await grep_tool(search, editor=True)(pattern="x")).text
    assert "unsaved" in (await glob_tool(search, editor=True)(pattern="x")).text
    assert "unsaved" not in (await grep_tool(search)(pattern="x")).text


async def test_identical_calls_give_identical_bytes(make: Make) -> None:
    grep = grep_tool(make({f"d{number % 5}/f{number}": b"hit\n" * 3 for number in range(60)}))
    texts = {(await grep(pattern="hit", limit=20)).to_json() for _ in range(5)}
    assert len(texts) == 1


async def test_a_limit_across_lines_counts_lines_and_says_that_a_match_may_go_on(make: Make) -> None:
    tool = grep_tool(make({"f": b"a\nb\na\nb\n"}))
    result = await tool(pattern=r"a\nb", multiline=True, limit=1)
    assert result.text.startswith("f:1:a\n[The first 1 matching lines by path; more exist.")
    assert "The last match may go on below." in result.text
    assert "lines" in tool.parameters["properties"]["limit"]["description"]
