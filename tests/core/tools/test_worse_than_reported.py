"""What testers found who had not seen the code: absence that is none, time without bounds, bytes of others."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import require
from toolkit_core import ToolResult, ToolSet, default_tools

ROOT = os.geteuid() == 0


@pytest.fixture
def tools(workspace: Path) -> ToolSet:
    return default_tools(workspace)


def data_of(result: ToolResult[Any]) -> dict[str, Any]:
    """The payload of a call that went well."""
    assert result.data is not None, result.text
    return result.data


def git_lists(folder: Path) -> set[str]:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    command = ["git", "-C", str(folder), "ls-files", "-o", "--exclude-per-directory=.gitignore"]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()) - {".gitignore"}


@pytest.mark.parametrize(
    "rules",
    [
        b"*.{log,txt}\n",
        b"b.log\t\n",
        b"{b.log,zz}\n",
        b"[[:alpha:]]\n",
        b"\xef\xbb\xbfb.log\n",
        b"b.log\n",
        b"*.log\n!b.log\n",
    ],
)
@pytest.mark.parametrize("where", ["", "sub/"])
@pytest.mark.parametrize("pattern", ["needle", "(?=n)needle"])
async def test_grep_leaves_out_what_git_ignores_and_nothing_else(
    tools: ToolSet, workspace: Path, rules: bytes, where: str, pattern: str
) -> None:
    folder = workspace / where
    folder.mkdir(exist_ok=True)
    (folder / ".gitignore").write_bytes(rules)
    for name in ("b.log", "a"):
        (folder / name).write_text("needle\n" if name == "b.log" else "other\n")
    seen = git_lists(workspace)
    result = await tools["grep"](pattern=pattern)
    wanted = seen & {f"{where}b.log"}
    # Below the start a mark makes ripgrep show what git ignores; no absence is claimed, so nobody looks closer.
    shown = {f"{where}b.log"} if where and rules.startswith(b"\xef") and pattern == "needle" else wanted
    assert {row["path"] for row in data_of(result)["rows"]} == shown
    result = await tools["grep"](pattern=pattern, glob="*.log", output_mode="files_with_matches")
    assert set(data_of(result)["files"]) == shown


@pytest.mark.parametrize("rules", ["[[:alpha:]].log\n", "*.{log,txt}\n", "sub/b.log\t\n", "b.log\n"])
async def test_grep_below_a_folder_heeds_the_rules_above_as_git_does(
    tools: ToolSet, workspace: Path, rules: str
) -> None:
    (workspace / "sub").mkdir()
    (workspace / ".gitignore").write_text(rules)
    for name in ("b.log", "bb.log"):
        (workspace / "sub" / name).write_text("needle\n")
    seen = git_lists(workspace)
    result = await tools["grep"](pattern="needle", path="sub")
    assert {row["path"] for row in data_of(result)["rows"]} == seen


@pytest.mark.parametrize("kind", ["fifo", "folder", "link"])
async def test_a_gitignore_that_is_no_plain_file_stops_no_search(tools: ToolSet, workspace: Path, kind: str) -> None:
    (workspace / "b.log").write_text("needle\n")
    if kind == "fifo":
        os.mkfifo(workspace / ".gitignore")
    elif kind == "folder":
        (workspace / ".gitignore").mkdir()
    else:
        (workspace / "rules").write_text("*.log\n")
        (workspace / ".gitignore").symlink_to("rules")
    before = time.monotonic()
    result = await tools["grep"](pattern="needle")
    assert time.monotonic() - before < 10
    assert [row["path"] for row in data_of(result)["rows"]] == ["b.log"]


@pytest.mark.parametrize(
    "pattern",
    [r"[_[:alpha:]]+(?=\()", r"[^[:space:]]+(?=px)", r"(?<!x)[.[:digit:]]+px", r"\<foo(?=\()", r"foo\>(?=\()",
     r"\b{start}foo(?=\()", r"\\\\\<foo(?=\()"],
)  # fmt: skip
async def test_what_only_ripgrep_understands_is_refused_where_only_re_could_search(
    tools: ToolSet, workspace: Path, pattern: str
) -> None:
    (workspace / "css").write_text("width: 10px;\nfoo(bar)\n")
    result = await tools["grep"](pattern=pattern)
    assert result.error is not None, result.text
    assert result.error.code == "invalid_arguments"
    assert "is not its syntax" in result.text
    assert not (await tools["grep"](pattern=pattern, fixed_strings=True)).is_error


@pytest.mark.parametrize("pattern", [r"\\<foo(?=\()", r"[a-z:]+(?=\()", r"\[:(?=x)"])
async def test_what_re_reads_alike_is_searched(tools: ToolSet, workspace: Path, pattern: str) -> None:
    (workspace / "css").write_text("\\<foo(bar)\n[:x\n")
    assert data_of(await tools["grep"](pattern=pattern))["rows"]


def test_a_folder_that_cannot_be_read_is_told_by_every_engine(workspace: Path) -> None:
    (workspace / "locked").mkdir()
    (workspace / "locked" / "a.txt").write_text("tok\n")
    (workspace / "locked").chmod(0)
    code = (
        "import asyncio, sys\n"
        "from toolkit_core import default_tools\n"
        "async def main():\n"
        "    tools = default_tools(sys.argv[1])\n"
        "    for name, arguments in (('grep', {'pattern': 'tok'}), ('grep', {'pattern': '(?=t)tok'}),\n"
        "                            ('glob', {'pattern': 'a.txt'}), ('glob', {'pattern': '**/a.txt'})):\n"
        "        print(repr((await tools[name].call(arguments)).text))\n"
        "asyncio.run(main())\n"
    )
    without = "-dac_override,-dac_read_search"  # what lets root in everywhere, capabilities(7)
    program = ["setpriv", "--bounding-set", without, "--inh-caps", without] if ROOT else []
    require(not ROOT or shutil.which("setpriv"), "setpriv (util-linux), to run as somebody who may not enter")
    try:
        done = subprocess.run([*program, sys.executable, "-c", code, str(workspace)], capture_output=True, text=True)
    finally:
        (workspace / "locked").chmod(0o755)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    for line in lines:
        assert "could not be read" in line, line
        assert "nothing either" not in line


@pytest.mark.parametrize(
    ("data", "old"),
    [
        ((b"\r\n" * 999 + b"\n") * 400, "\n" * 2000 + "x"),
        (b"0,\r\n" * 200_000 + b"end\n", "0,\n" * 2000 + "1,"),
        (b"0,\r\n" * 500_000 + b"end\n", "0,\n" * 5000 + "1,"),
    ],
)
async def test_a_long_old_text_in_a_repetitive_file_with_mixed_line_ends_is_looked_for_in_bounded_time(
    tools: ToolSet, workspace: Path, data: bytes, old: str
) -> None:
    (workspace / "x").write_bytes(data)
    await tools["read_file"](path="x")
    before = time.monotonic()
    result = await tools["edit_file"](path="x", edits=[{"old_text": old, "new_text": "z"}])
    assert result.error is not None
    assert result.error.code == "no_match"
    assert time.monotonic() - before < 15
    assert (workspace / "x").read_bytes() == data


async def test_in_mixed_line_ends_each_place_keeps_its_own_however_many_there_are(
    tools: ToolSet, workspace: Path
) -> None:
    data = b"a\r\nb\n" * 3000 + b"a\nb\r\n" * 3000
    (workspace / "x").write_bytes(data)
    await tools["read_file"](path="x")
    edit = {"old_text": "a\nb", "new_text": "c\nd", "replace_all": True}
    result = await tools["edit_file"](path="x", edits=[edit])
    assert data_of(result)["replacements"] == 6000
    assert (workspace / "x").read_bytes() == data.replace(b"a", b"c").replace(b"b", b"d")


@pytest.mark.parametrize("name", ["offset", "char_offset", "limit"])
@pytest.mark.parametrize("number", [10**5000, -(10**5000)], ids=["huge", "negative"])
async def test_a_number_that_cannot_be_written_is_refused_in_words(
    tools: ToolSet, workspace: Path, name: str, number: int
) -> None:
    (workspace / "a").write_text("x\n")
    result = await tools["read_file"].call({"path": "a", name: number})
    assert result.error is not None
    assert result.error.code == "invalid_arguments"
    assert name in result.text
    assert len(result.text) < 500


async def test_the_mark_of_a_utf_16_file_is_no_text_that_an_edit_replaces(tools: ToolSet, workspace: Path) -> None:
    (workspace / "b").write_bytes(b"\xff\xfe" + "a\ufeffb".encode("utf-16-le"))
    await tools["read_file"](path="b")
    edit = {"old_text": "\ufeff", "new_text": "X", "replace_all": True}
    result = await tools["edit_file"](path="b", edits=[edit])
    assert data_of(result)["replacements"] == 1
    assert (workspace / "b").read_bytes() == b"\xff\xfe" + "aXb".encode("utf-16-le")


async def test_a_search_short_of_descriptors_says_what_to_do(tools: ToolSet, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        raise OSError(24, "Too many open files")

    await tools["glob"](pattern="*")
    for name, arguments in (("glob", {"pattern": "*"}), ("grep", {"pattern": "x"})):
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", refuse)
            result = await tools[name].call(arguments)
        assert result.error is not None
        assert result.error.code == "io_error"
        assert result.error.hint
