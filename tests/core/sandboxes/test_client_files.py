"""ClientFiles, ClientCommands and ClientSearch over clients that err, lie, or have little."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.sandboxes.planes import FolderPlane
from tests.support import require
from toolkit_core import (
    ClientCommands,
    ClientFiles,
    ClientSearch,
    CommandResult,
    InMemorySandbox,
    ToolContext,
    ToolError,
    default_tools,
)
from toolkit_core.ports.search import GlobQuery, GrepQuery
from toolkit_core.sandboxes.kept_output import KeptOutput
from toolkit_core.sandboxes.posix_pattern import extended_pattern
from toolkit_core.shell_words import arguments, assigned


async def test_two_parallel_edits_both_land(workspace: Path) -> None:
    (workspace / "f.txt").write_text("a\nb\n")
    tools = default_tools(workspace, sandbox=FolderPlane(workspace))
    await tools["read_file"](path="f.txt")
    results = await asyncio.gather(
        tools["edit_file"](path="f.txt", edits=[{"old_text": "a", "new_text": "1"}]),
        tools["edit_file"](path="./f.txt", edits=[{"old_text": "b", "new_text": "2"}]),
    )
    assert [result.is_error for result in results] == [False, False]
    assert (workspace / "f.txt").read_text() == "1\n2\n"


async def test_a_file_that_appears_or_changes_during_a_write_is_stale(workspace: Path) -> None:
    theirs = iter(["theirs", "THEIRS", "of another length"])

    class Racing(FolderPlane):
        async def write_bytes(self, path: str, content: bytes) -> None:
            await super().write_bytes(path, content)
            (workspace / "f.txt").write_text(next(theirs))

    files = ClientFiles(Racing(workspace), str(workspace))
    for _ in range(3):
        with pytest.raises(ToolError) as caught:
            await files.replace("f.txt", lambda _: b"mine")
        assert caught.value.code == "stale_file"
    assert (workspace / "f.txt").read_text() == "of another length"
    assert [path.name for path in workspace.iterdir()] == ["f.txt"]


async def test_a_changed_file_with_its_old_size_and_time_is_stale(workspace: Path) -> None:
    target = workspace / "f.txt"
    target.write_text("aaaa\n")
    status = target.stat()
    tools = default_tools(workspace, sandbox=FolderPlane(workspace))
    await tools["read_file"](path="f.txt")
    with target.open("r+") as file:
        file.write("bbbb\n")
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    result = await tools["write_file"](path="f.txt", content="mine\n")
    assert result.error is not None
    assert result.error.code == "stale_file"
    assert target.read_text() == "bbbb\n"


async def test_reading_is_a_session_s_own(workspace: Path) -> None:
    (workspace / "f.txt").write_text("x")
    tools = default_tools(workspace, sandbox=FolderPlane(workspace))
    await tools["read_file"].call({"path": "f.txt"}, ToolContext(session_id="one"))
    result = await tools["write_file"].call({"path": "f.txt", "content": "y"}, ToolContext(session_id="two"))
    assert result.error is not None
    assert result.error.code == "not_read"


async def test_a_truncated_read_and_a_truncated_write_are_errors(workspace: Path) -> None:
    class Short(FolderPlane):
        async def read_bytes(self, path: str) -> bytes:
            return (await super().read_bytes(path))[:-3]

        async def write_bytes(self, path: str, content: bytes) -> None:
            await super().write_bytes(path, content[:-3])

    (workspace / "f.txt").write_text("whole content")
    files = ClientFiles(Short(workspace), str(workspace))
    with pytest.raises(ToolError, match="only 10 of them arrived"):
        await files.read("f.txt", lambda file: file.read_at(0, 100))
    with pytest.raises(ToolError, match="fewer than 8 bytes arrived"):
        await files.replace("new.txt", lambda _: b"01234567")
    assert not (workspace / "new.txt").exists()
    assert [path.name for path in workspace.iterdir()] == ["f.txt"]


@pytest.mark.parametrize("answer", [None, "text", 7, ["x"]])
async def test_content_of_another_type_is_an_error(workspace: Path, answer: Any) -> None:
    class Lying(FolderPlane):
        async def read_bytes(self, path: str) -> bytes:
            return answer

    (workspace / "f.txt").write_text("x")
    result = await default_tools(workspace, sandbox=Lying(workspace))["read_file"](path="f.txt")
    assert result.is_error


@pytest.mark.parametrize("code", [None, "0", 0.0, True])
async def test_a_result_without_an_exit_code_is_an_error_and_not_success(code: Any) -> None:
    memory = InMemorySandbox(commands=lambda call: CommandResult(code, None, b"fine", b""))
    result = await default_tools("/workspace", sandbox=memory)["shell"](command="true")
    assert result.error is not None
    assert result.error.code == "io_error"
    with pytest.raises(ToolError):
        await ClientCommands(memory, "/workspace").run("true")


async def test_noise_before_an_answer_is_not_the_answer(workspace: Path) -> None:
    class Noisy(FolderPlane):
        async def run(self, command: str, **options: Any) -> CommandResult:
            result = await super().run(command, **options)
            return replace(result, stdout=b"Welcome! 12 updates\n" + result.stdout)

    (workspace / "f.txt").write_text("x\n")
    tools = default_tools(workspace, sandbox=Noisy(workspace))
    assert "1\tx" in (await tools["read_file"](path="f.txt")).text
    assert not (await tools["write_file"](path="g.txt", content="y")).is_error


async def test_a_plane_that_is_gone_is_unavailable_for_every_tool(workspace: Path) -> None:
    class Gone(FolderPlane):
        async def run(self, command: str, **options: Any) -> CommandResult:
            raise ToolError("The plane is gone.", code="unavailable")

        def search(self, cwd: str) -> ClientSearch:
            return ClientSearch(self, cwd)

    (workspace / "f.txt").write_text("of the host")
    tools = default_tools(workspace, sandbox=Gone(workspace))
    for name, given_arguments in {
        "read_file": {"path": "f.txt"},
        "write_file": {"path": "f.txt", "content": "x"},
        "edit_file": {"path": "f.txt", "edits": [{"old_text": "a", "new_text": "b"}]},
        "glob": {"pattern": "*"},
        "grep": {"pattern": "x"},
        "shell": {"command": "true"},
    }.items():
        result = await tools[name].call(given_arguments)
        assert result.error is not None
        assert result.error.code == "unavailable", name
        assert "of the host" not in result.text


async def test_special_files_are_refused_without_blocking(workspace: Path) -> None:
    os.mkfifo(workspace / "fifo")
    (workspace / "loop").symlink_to("loop")
    tools = default_tools(workspace, sandbox=FolderPlane(workspace))
    for path, code in {"fifo": "not_a_file", "/dev/null": "not_a_file", "loop": "io_error"}.items():
        async with asyncio.timeout(20):
            result = await tools["read_file"](path=path)
        assert result.error is not None
        assert result.error.code == code, (path, result.text)


async def test_a_dangling_link_is_written_through(workspace: Path) -> None:
    (workspace / "folder").mkdir()
    (workspace / "link").symlink_to("folder/target.txt")
    tools = default_tools(workspace, sandbox=FolderPlane(workspace))
    assert not (await tools["write_file"](path="link", content="x")).is_error
    assert (workspace / "link").is_symlink()
    assert (workspace / "folder" / "target.txt").read_text() == "x"


async def test_confined_files_refuse_what_lies_outside_also_through_links(workspace: Path) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "f.txt").write_text("secret")
    (workspace / "link").symlink_to(outside)
    files = ClientFiles(FolderPlane(workspace), str(workspace), confined=True)
    for path in ("../outside/f.txt", "link/f.txt", str(outside / "f.txt"), "/"):
        with pytest.raises(ToolError) as caught:
            await files.read(path, lambda file: file.read_at(0, 10))
        assert caught.value.code == "access_denied", path
    free = ClientFiles(FolderPlane(workspace), str(workspace))
    assert await free.read("link/f.txt", lambda file: file.read_at(0, 10)) == b"secret"


async def test_what_a_rule_judges_is_what_is_opened(workspace: Path) -> None:
    (workspace / "real.txt").write_text("x")
    (workspace / "link").symlink_to("real.txt")
    tools = default_tools(workspace, sandbox=FolderPlane(workspace))
    assert await tools["read_file"].subject({"path": "./a/../link"}) == "real.txt"
    assert await tools["write_file"].writes({"path": "link", "content": ""}) == (str(workspace / "real.txt"),)


async def test_without_ripgrep_grep_gives_the_same_rows_or_says_that_it_cannot(workspace: Path) -> None:
    (workspace / "a.py").write_text("import os\nx = a1 + b2\nEND\n")
    (workspace / "odd\nname.py").write_text("import odd\n")
    (workspace / "bin").write_bytes(b"import\0x")
    programs = workspace.parent / "programs"
    programs.mkdir()
    for name in ("sh", "find", "grep", "xargs", "printf", "cat", "head", "wc", "readlink", "stat", "ls", "tr", "rm"):
        program = shutil.which(name)
        require(program, f"{name} is not installed")
        (programs / name).symlink_to(str(program))
    without = ClientSearch(FolderPlane(workspace, path=str(programs)), str(workspace))
    with_it = ClientSearch(FolderPlane(workspace), str(workspace))
    for query in (
        GrepQuery("import"),
        GrepQuery(r"[a-z]\d"),
        GrepQuery(r"(?:a1|zz) \+"),
        GrepQuery("end", ignore_case=True, context_lines=1),
        GrepQuery("a1 +", fixed_strings=True),
        GrepQuery("import", mode="count"),
        GrepQuery("import", mode="files_with_matches"),
        GrepQuery("import", path="a.py"),
    ):
        one, other = await without.grep(query), await with_it.grep(query)
        assert one.engine == "grep"
        assert (one.rows, one.counts) == (other.rows, other.counts), query
    for pattern in (r"\bimport\b", "(?=x)", "a+?", r"\p{L}"):
        with pytest.raises(ToolError) as caught:
            await without.grep(GrepQuery(pattern))
        assert caught.value.code == "unsupported", pattern
    assert (await without.glob(GlobQuery("*.py"))).paths == (await with_it.glob(GlobQuery("*.py"))).paths


async def test_a_tree_of_thousands_is_listed_whole_and_matched_in_batches(workspace: Path) -> None:
    for number in range(3_000):
        folder = workspace / f"folder-with-a-rather-long-name-{number % 30}"
        folder.mkdir(exist_ok=True)
        (folder / f"file-with-a-rather-long-name-{number}.txt").write_text(f"needle {number}\n")
    search = ClientSearch(FolderPlane(workspace), str(workspace))
    assert len((await search.glob(GlobQuery("**/*.txt", limit=5_000))).paths) == 3_000
    found = await search.grep(GrepQuery("needle", limit=5_000))
    assert len(found.rows) == 3_000
    first = await search.grep(GrepQuery("needle", limit=3))
    assert first.truncated
    assert tuple(first.rows) == tuple(found.rows)[:3]


async def test_a_glob_by_time_puts_the_newest_first(workspace: Path) -> None:
    for age, name in enumerate(("new.txt", "older.txt", "oldest.txt")):
        (workspace / name).touch()
        os.utime(workspace / name, (1_700_000_000 - age, 1_700_000_000 - age))
    found = await ClientSearch(FolderPlane(workspace), str(workspace)).glob(GlobQuery("*", sort="modified", limit=2))
    assert found.paths == ("new.txt", "older.txt")
    assert found.truncated


async def test_search_is_withheld_unless_the_client_can(workspace: Path) -> None:
    plain = default_tools(workspace, sandbox=FolderPlane(workspace))
    assert list(plain.names) == ["read_file", "write_file", "edit_file", "shell", "web_fetch"]
    assert "grep" not in plain["shell"].description
    assert "glob" in default_tools("/workspace", sandbox=InMemorySandbox()).names


def test_the_folder_is_of_the_sandbox_and_not_of_this_machine() -> None:
    tools = default_tools(".", sandbox=InMemorySandbox({"a.txt": "x"}, root="/somewhere/else"))
    assert asyncio.run(tools["read_file"].call({"path": "a.txt"})).text.startswith("a.txt")
    for bad in ("relative", "~", ""):
        with pytest.raises(ValueError, match=r"folder|cwd"):
            default_tools(bad, sandbox=_Rootless())  # pyright: ignore[reportArgumentType]  (callers err)


class _Rootless:
    filesystem = "separate"

    async def run(self, command: str, **_: Any) -> CommandResult:
        raise NotImplementedError

    async def read_bytes(self, path: str) -> bytes:
        raise NotImplementedError

    async def write_bytes(self, path: str, content: bytes) -> None:
        raise NotImplementedError


async def test_trace_context_and_this_process_s_variables_stay_here(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_API_KEY", "canary")
    seen: list[Mapping[str, str] | None] = []

    class Seeing(FolderPlane):
        async def run(self, command: str, **options: Any) -> CommandResult:
            seen.append(options.get("environment"))
            return await super().run(command, **options)

    context = ToolContext(traceparent="00-" + "1" * 32 + "-" + "2" * 16 + "-01")
    result = await default_tools(workspace, sandbox=Seeing(workspace))["shell"].call({"command": "env"}, context)
    assert "TRACEPARENT" not in result.text
    assert "canary" not in result.text
    assert seen == [None]


@given(st.lists(st.binary(max_size=60), max_size=40), st.integers(2, 64))
def test_kept_output_is_head_and_tail_and_counts_the_rest(pieces: list[bytes], room: int) -> None:
    kept = KeptOutput(room)
    for piece in pieces:
        kept.feed(piece)
    data, cut, at = kept.kept()
    whole = b"".join(pieces)
    assert len(data) + cut == len(whole)
    assert len(data) <= room
    assert whole.startswith(data[:at] if cut else data)
    assert whole.endswith(data[at:])


@given(st.lists(st.binary(min_size=1, max_size=30).filter(lambda b: b"\0" not in b), min_size=1, max_size=5))
def test_words_reach_a_shell_byte_for_byte(values: list[bytes]) -> None:
    import subprocess

    texts = [value.decode("utf-8", "surrogateescape") for value in values]
    script = f"{arguments(texts)}\nprintf '%s\\0' \"$@\"\n{assigned('p', texts[0])}\nprintf '%s' \"$p\""
    ran = subprocess.run(["sh", "-c", script], capture_output=True, check=True)
    assert ran.stdout == b"\0".join([*values, values[0]])


@given(st.text(alphabet="ab1.*+?|()[]^$\\dws{}-,", max_size=12))
def test_a_pattern_that_is_passed_to_grep_means_what_ripgrep_takes_it_for(pattern: str) -> None:
    translated = extended_pattern(GrepQuery(pattern))
    if translated is None:
        return
    assert "(?" not in translated
