"""What every `SandboxClient` must do, as tests that anybody's own client can run.

Subclass it in a test file, and give the fixtures `client` and `root`::

    class TestMyClient(SandboxClientSuite):
        @pytest.fixture
        async def client(self):
            client = await MyClient.create()
            yield client
            await client.aclose()

        @pytest.fixture
        def root(self):
            return "/workspace"  # an existing, empty, writable folder in the sandbox

The tests are coroutines: run them with pytest-asyncio in auto mode, or anyio's plugin. What a client cannot do is
said by its class attributes; everything else is required. See docs/sandbox-clients.md.
"""

# ruff: noqa: D102 - a test's name is its sentence

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, ClassVar

import pytest

from toolkit_core.errors import CODES, ToolError
from toolkit_core.ports.sandbox import (
    SandboxClient,
    SupportsList,
    SupportsReadRange,
    SupportsRemove,
    SupportsSearch,
    SupportsSnapshot,
    SupportsStat,
)
from toolkit_core.ports.search import GlobQuery, GrepQuery

if TYPE_CHECKING:
    from toolkit_core.ports.commands import StreamName

_EVERY_BYTE = bytes(range(256)) * 3


class SandboxClientSuite:
    """The suite. A test of an ability that the client's type does not have passes without doing anything.

    Attributes:
        has_shell: Commands are run by a POSIX shell.
        exact_output: Output arrives byte for byte; else bytes that are not UTF-8 may be replaced.
        kills_trees: What a command started ends with it, at its timeout and when its call is cancelled.
        any_name: File names may hold any bytes but NUL and `/`; else text without control characters.
    """

    has_shell: ClassVar[bool] = True
    exact_output: ClassVar[bool] = True
    kills_trees: ClassVar[bool] = True
    any_name: ClassVar[bool] = True

    def needs_shell(self) -> None:
        """Skip where commands are not run by a shell."""
        if not self.has_shell:
            pytest.skip("this client has no shell")

    # --- what it is -----------------------------------------------------------------------------------

    async def test_is_a_client(self, client: SandboxClient) -> None:
        assert isinstance(client, SandboxClient)
        assert client.filesystem in ("shared", "separate")

    # --- files ----------------------------------------------------------------------------------------

    async def test_reads_back_what_it_wrote_byte_for_byte(self, client: SandboxClient, root: str) -> None:
        for number, content in enumerate((b"", b"one\n", b"\r\n\xef\xbb\xbf\0", _EVERY_BYTE)):
            await client.write_bytes(f"{root}/f{number}", content)
            assert await client.read_bytes(f"{root}/f{number}") == content

    async def test_makes_the_folders_of_a_file(self, client: SandboxClient, root: str) -> None:
        await client.write_bytes(f"{root}/a/b/c/file.txt", b"deep")
        assert await client.read_bytes(f"{root}/a/b/c/file.txt") == b"deep"

    async def test_replaces_a_longer_file_whole(self, client: SandboxClient, root: str) -> None:
        await client.write_bytes(f"{root}/f", b"x" * 10_000)
        await client.write_bytes(f"{root}/f", b"short")
        assert await client.read_bytes(f"{root}/f") == b"short"

    async def test_a_missing_file_is_not_found(self, client: SandboxClient, root: str) -> None:
        with pytest.raises(ToolError) as caught:
            await client.read_bytes(f"{root}/missing.txt")
        assert caught.value.code == "not_found"

    async def test_a_folder_is_no_file(self, client: SandboxClient, root: str) -> None:
        await client.write_bytes(f"{root}/folder/file", b"x")
        for work in (client.read_bytes(f"{root}/folder"), client.write_bytes(f"{root}/folder", b"y")):
            with pytest.raises(ToolError) as caught:
                await work
            assert caught.value.code in CODES
        assert await client.read_bytes(f"{root}/folder/file") == b"x"

    async def test_names_are_taken_as_they_are(self, client: SandboxClient, root: str) -> None:
        names = ["with space", "it's", 'double"quote', "$HOME", "`id`", "*", "-rf", "a;b", "caf\u00e9", "back\\slash"]
        if self.any_name:
            names += ["line\nfeed", "tab\t", b"\xff\xfe".decode("utf-8", "surrogateescape")]
        for name in names:
            await client.write_bytes(f"{root}/{name}", name.encode("utf-8", "surrogateescape"))
        for name in names:
            assert await client.read_bytes(f"{root}/{name}") == name.encode("utf-8", "surrogateescape"), name

    async def test_carries_megabytes(self, client: SandboxClient, root: str) -> None:
        content = _EVERY_BYTE * 4_000
        await client.write_bytes(f"{root}/large", content)
        assert await client.read_bytes(f"{root}/large") == content

    async def test_serves_many_at_once(self, client: SandboxClient, root: str) -> None:
        await asyncio.gather(*[client.write_bytes(f"{root}/n{n}", str(n).encode()) for n in range(12)])
        read = await asyncio.gather(*[client.read_bytes(f"{root}/n{n}") for n in range(12)])
        assert read == [str(n).encode() for n in range(12)]

    # --- commands -------------------------------------------------------------------------------------

    async def test_tells_exit_codes_and_both_streams(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        for code in (0, 1, 2, 126, 127, 255):
            result = await client.run(f"echo out; echo err >&2; exit {code}", cwd=root)
            assert (result.exit_code, result.stdout, result.stderr) == (code, b"out\n", b"err\n")
            assert not result.timed_out

    async def test_starts_in_the_folder_and_sees_the_files(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        await client.write_bytes(f"{root}/sub/f", b"content")
        result = await client.run("cat f; pwd", cwd=f"{root}/sub")
        assert result.stdout == f"content{root}/sub\n".encode()
        await client.run("printf made > g", cwd=f"{root}/sub")
        assert await client.read_bytes(f"{root}/sub/g") == b"made"

    async def test_a_missing_folder_runs_nothing(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        with pytest.raises(ToolError) as caught:
            await client.run(f"touch {root}/ran", cwd=f"{root}/missing")
        assert caught.value.code == "not_found"
        with pytest.raises(ToolError):
            await client.read_bytes(f"{root}/ran")

    async def test_takes_the_command_as_it_is(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        command = "x='a  b'; printf '%s|' \"$x\" 'it''s' \"q\\\"q\" '$HOME' `echo t`; cat <<'E'\nhere $x\nE\n# done"
        result = await client.run(command, cwd=root)
        assert result.stdout == b'a  b|its|q"q|$HOME|t|here $x\n'

    async def test_standard_input_is_empty(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        result = await client.run("cat; echo end", cwd=root, timeout_seconds=30)
        assert (result.stdout, result.timed_out) == (b"end\n", False)

    async def test_passes_variables(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        given = {"PLAIN": "value", "ODD": 'it\'s a "b" $c `d`\ne'}
        result = await client.run('printf "%s|%s" "$PLAIN" "$ODD"', cwd=root, environment=given)
        assert result.stdout == f"{given['PLAIN']}|{given['ODD']}".encode()

    async def test_output_is_exact(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        result = await client.run("printf 'a\\377b\\0c\\r\\n'", cwd=root)
        if self.exact_output:
            assert result.stdout == b"a\xffb\0c\r\n"
        assert result.stdout.startswith(b"a")

    async def test_a_flood_of_output_is_bounded_and_counted(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        result = await client.run("printf first; head -c 5000000 /dev/zero | tr '\\0' x; printf last", cwd=root)
        assert len(result.stdout) <= 1_048_576
        assert len(result.stdout) + result.stdout_cut == 5_000_009
        assert result.stdout.startswith(b"first")
        assert result.stdout.endswith(b"last")

    async def test_tells_output_as_it_comes(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        heard: list[tuple[StreamName, bytes]] = []
        await client.run("echo out; echo err >&2", cwd=root, on_output=lambda name, data: heard.append((name, data)))
        await asyncio.sleep(0.05)
        assert b"".join(data for name, data in heard if name == "stdout") == b"out\n"
        assert b"".join(data for name, data in heard if name == "stderr") == b"err\n"

    async def test_a_timeout_is_told_and_ends_the_command(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        started = time.monotonic()
        command = f"echo before; (sleep 4; touch {root}/late) & sleep 60"
        result = await client.run(command, cwd=root, timeout_seconds=1)
        assert result.timed_out
        assert result.exit_code in (None, 124, 137, 143)
        assert time.monotonic() - started < 40
        if self.kills_trees:
            await asyncio.sleep(4.5)
            with pytest.raises(ToolError):
                await client.read_bytes(f"{root}/late")

    async def test_a_cancelled_command_is_ended(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        task = asyncio.create_task(client.run(f"touch {root}/begun; sleep 3; touch {root}/late", cwd=root))
        await self._until_there(client, f"{root}/begun")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if self.kills_trees:
            await asyncio.sleep(3.5)
            with pytest.raises(ToolError):
                await client.read_bytes(f"{root}/late")

    async def test_leaves_nothing_running(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        if not self.kills_trees:
            return
        result = await client.run(f"(sleep 3; touch {root}/late) & echo started", cwd=root)
        assert (result.exit_code, result.stdout) == (0, b"started\n")
        await asyncio.sleep(3.5)
        with pytest.raises(ToolError):
            await client.read_bytes(f"{root}/late")

    async def test_refuses_what_is_no_command(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        for command in ("", "  ", "echo \0", "echo \ud800"):
            with pytest.raises(ToolError) as caught:
                await client.run(command, cwd=root)
            assert caught.value.code == "invalid_arguments"

    async def test_runs_many_at_once(self, client: SandboxClient, root: str) -> None:
        self.needs_shell()
        results = await asyncio.gather(*[client.run(f"sleep 0.2; echo {n}; exit {n}", cwd=root) for n in range(12)])
        assert [(r.exit_code, r.stdout) for r in results] == [(n, f"{n}\n".encode()) for n in range(12)]

    # --- abilities that a client may have -------------------------------------------------------------

    async def test_lists_a_folder(self, client: SandboxClient, root: str) -> None:
        if not isinstance(client, SupportsList):
            return
        await client.write_bytes(f"{root}/folder/inner", b"")
        await client.write_bytes(f"{root}/file", b"")
        found = {entry.name: entry.kind for entry in await client.list_directory(root)}
        assert found == {"file": "file", "folder": "directory"}
        with pytest.raises(ToolError):
            await client.list_directory(f"{root}/missing")

    async def test_removes(self, client: SandboxClient, root: str) -> None:
        if not isinstance(client, SupportsRemove):
            return
        await client.write_bytes(f"{root}/folder/inner", b"")
        await client.remove(f"{root}/folder")
        with pytest.raises(ToolError) as caught:
            await client.read_bytes(f"{root}/folder/inner")
        assert caught.value.code == "not_found"
        with pytest.raises(ToolError) as caught:
            await client.remove(f"{root}/folder")
        assert caught.value.code == "not_found"

    async def test_looks_at_paths(self, client: SandboxClient, root: str) -> None:
        if not isinstance(client, SupportsStat):
            return
        await client.write_bytes(f"{root}/f", b"123")
        before = await client.stat(f"{root}/f")
        assert (before.kind, before.size_bytes, before.real) == ("file", 3, f"{root}/f")
        assert (await client.stat(f"{root}/f")).identity == before.identity
        await client.write_bytes(f"{root}/f", b"456")
        assert (await client.stat(f"{root}/f")).identity != before.identity or not before.identity
        assert (await client.stat(root)).kind == "directory"
        assert (await client.stat(f"{root}/none/f")).kind == "missing"

    async def test_reads_parts(self, client: SandboxClient, root: str) -> None:
        if not isinstance(client, SupportsReadRange):
            return
        await client.write_bytes(f"{root}/f", _EVERY_BYTE)
        assert await client.read_range(f"{root}/f", 100, 20) == _EVERY_BYTE[100:120]
        assert await client.read_range(f"{root}/f", 760, 100) == _EVERY_BYTE[760:]
        assert await client.read_range(f"{root}/f", 10_000, 5) == b""

    async def test_searches(self, client: SandboxClient, root: str) -> None:
        if not isinstance(client, SupportsSearch):
            return
        await client.write_bytes(f"{root}/src/a.py", b"import os\nprint(1)\n")
        await client.write_bytes(f"{root}/.gitignore", b"*.log\n")
        await client.write_bytes(f"{root}/b.log", b"import os\n")
        search = client.search(root)
        assert (await search.glob(GlobQuery("**/*.py"))).paths == ("src/a.py",)
        found = await search.grep(GrepQuery("import"))
        assert [(row.path, row.line, row.text) for row in found.rows] == [("src/a.py", 1, "import os")]
        assert (await search.grep(GrepQuery("nowhere"))).skipped_ignored == 1
        with pytest.raises(ToolError) as caught:
            await search.grep(GrepQuery("("))
        assert caught.value.code == "invalid_arguments"

    async def test_restores_a_snapshot(self, client: SandboxClient, root: str) -> None:
        if not isinstance(client, SupportsSnapshot):
            return
        await client.write_bytes(f"{root}/f", b"before")
        kept = await client.snapshot()
        await client.write_bytes(f"{root}/f", b"after")
        await client.restore(kept)
        assert await client.read_bytes(f"{root}/f") == b"before"

    async def _until_there(self, client: SandboxClient, path: str) -> None:
        until = time.monotonic() + 30
        while True:
            try:
                await client.read_bytes(path)
            except ToolError:
                assert time.monotonic() < until, "the command did not begin"
                await asyncio.sleep(0.05)
            else:
                return
