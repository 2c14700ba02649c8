"""ClientProcesses: commands that go on between calls in sandboxes that only run commands."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.core.sandboxes.planes import FakeE2B, FolderPlane
from tests.core.sshd import CuttingProxy, Server, gone, processes_with, running_sshd
from toolkit_core import ClientProcesses, E2BSandbox, InMemorySandbox, ToolError, default_tools
from toolkit_core.ports.processes import ProcessState
from toolkit_core.sandboxes import client_processes

MIB = 1_048_576


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_sshd() as running:
        yield running


@pytest.fixture
async def plain(tmp_path: Path) -> AsyncIterator[ClientProcesses]:
    """Over a plane that leaves alone what a command left."""
    made = ClientProcesses(_plane(tmp_path), cwd=str(tmp_path))
    yield made
    await made.aclose()


@pytest.fixture(params=["plain", "ssh"])
async def processes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ClientProcesses]:
    async with AsyncExitStack() as stack:
        if request.param == "plain":
            client: Any = _plane(tmp_path)
        else:
            client = await stack.enter_async_context(request.getfixturevalue("server").sandbox())
        made = ClientProcesses(client, cwd=client.root)
        yield made
        await made.aclose()


def _plane(folder: Path) -> E2BSandbox:
    return E2BSandbox(FakeE2B(folder), root=str(folder))


def _sleep() -> str:
    """A sleep that can be told from all others: its length is its name."""
    return f"sleep {600 + secrets.randbelow(10**9) / 10**6:.6f}"


def _sleepers(sleep: str) -> int:
    """How many run; what holds it in its own command line is no sleep."""
    return sum(_words(pid)[:1] == ["sleep"] for pid in processes_with(sleep))


def _keepers(sleep: str) -> int:
    """Of a command: they hold it in their own command line."""
    return sum(any(sleep.encode() in word for word in _line(pid)) for pid in os.listdir("/proc") if pid.isdigit())


def _line(pid: str) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return []


async def _started(sleep: str, count: int) -> None:
    async with asyncio.timeout(20):
        while _sleepers(sleep) < count:
            await asyncio.sleep(0.05)


async def _to_the_end(processes: ClientProcesses, state: ProcessState) -> tuple[bytes, ProcessState]:
    output = state.output
    async with asyncio.timeout(40):
        while state.running:
            state = await processes.read(state.process_id, wait_seconds=10)
            output += state.output
    return output, state


async def _refused(work: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await work
    return caught.value


async def test_it_talks_with_a_process_and_tells_its_exit_code(processes: ClientProcesses) -> None:
    started = await processes.start('while read -r line; do echo "got $line"; done; echo bye >&2; exit 4')
    assert started.running
    first = await processes.write(started.process_id, 'it\'s "$HOME" `x` \\n é\n')
    if not first.output:
        first = await processes.read(started.process_id, wait_seconds=10)
    assert first.output.decode() == 'got it\'s "$HOME" `x` \\n é\n'
    silent = await processes.read(started.process_id)
    assert (silent.running, silent.output) == (True, b"")
    output, state = await _to_the_end(processes, await processes.write(started.process_id, "\x04"))
    assert output == b"bye\n"
    assert (state.exit_code, state.signal, state.note) == (4, None, "")
    again = await processes.read(started.process_id)
    assert (again.running, again.exit_code, again.output) == (False, 4, b"")
    assert (await _refused(processes.write(started.process_id, "x"))).code == "failed"


async def test_a_read_waits_for_output_or_the_end_and_not_longer(processes: ClientProcesses) -> None:
    started = await processes.start("sleep 1; echo late; read -r x")
    assert started.output == b""
    before = time.monotonic()
    assert (await processes.read(started.process_id, wait_seconds=50)).output == b"late\n"
    assert time.monotonic() - before < 25
    before = time.monotonic()
    silent = await processes.read(started.process_id, wait_seconds=0.5)
    assert (silent.running, silent.output) == (True, b"")
    assert 0.4 < time.monotonic() - before < 15
    waiting = asyncio.create_task(processes.read(started.process_id, wait_seconds=50))
    await processes.write(started.process_id, "\n")
    assert not (await waiting).running


async def test_stop_ends_the_tree_also_what_left_its_session(processes: ClientProcesses) -> None:
    sleep = _sleep()
    started = await processes.start(f"trap '' TERM; setsid {sleep} & env -i {sleep} & {sleep}; {sleep}; {sleep}")
    await _started(sleep, 3)
    state = await processes.stop(started.process_id)
    assert not state.running
    assert state.signal == signal.SIGKILL
    assert await gone(sleep, within_seconds=2)
    assert (await processes.stop(started.process_id)).signal == signal.SIGKILL


async def test_a_polite_process_is_given_its_time(plain: ClientProcesses) -> None:
    started = await plain.start("trap 'echo cleaned; exit 3' TERM; echo ready; while :; do sleep 0.1; done")
    assert started.output or (await plain.read(started.process_id, wait_seconds=10)).output
    state = await plain.stop(started.process_id)
    assert (state.output.endswith(b"cleaned\n"), state.exit_code) == (True, 3)


async def test_what_a_process_leaves_behind_ends_with_it(plain: ClientProcesses) -> None:
    sleep = _sleep()
    output, state = await _to_the_end(plain, await plain.start(f"setsid {sleep} & sleep 0.5; echo done"))
    assert (output, state.exit_code) == (b"done\n", 0)
    assert await gone(sleep, within_seconds=2)


async def test_any_bytes_arrive_and_no_character_is_cut(plain: ClientProcesses, tmp_path: Path) -> None:
    (tmp_path / "all").write_bytes(bytes(range(256)))
    output, _ = await _to_the_end(plain, await plain.start("cat all"))
    assert output == bytes(range(256))
    started = await plain.start(r"printf 'a\303'; sleep 1.5; printf '\251b'; read -r x")
    first = started.output or (await plain.read(started.process_id, wait_seconds=10)).output
    assert first == b"a"
    assert (await plain.read(started.process_id, wait_seconds=20)).output == "éb".encode()


async def test_a_long_text_with_every_character_is_written_whole(plain: ClientProcesses) -> None:
    text = "".join(map(chr, range(128))).replace("\x04", "") * 300 + "'\"\n"
    started = await plain.start(f"head -c {len(text)} | cksum; cksum")
    output, end = (await plain.write(started.process_id, text)).output, time.monotonic() + 30
    while b"\n" not in output:
        assert time.monotonic() < end
        output += (await plain.read(started.process_id, wait_seconds=5)).output
    wanted = await asyncio.create_subprocess_exec("cksum", stdin=-1, stdout=-1)
    assert output == (await wanted.communicate(text.encode()))[0]


async def test_a_flood_is_kept_to_its_newest_part_and_the_rest_counted(plain: ClientProcesses, tmp_path: Path) -> None:
    size = 9_000_000
    started = await plain.start("sleep 1; seq -f %08.0f 1 1000000; echo all > written; read -r x")
    async with asyncio.timeout(30):
        while not (tmp_path / "written").exists():
            await asyncio.sleep(0.1)
    await asyncio.sleep(0.5)
    state = await plain.read(started.process_id)
    assert started.output == b""
    assert len(state.output) == MIB
    assert state.output.endswith(b"01000000\n")
    assert state.output_cut + MIB == size


async def test_a_process_that_reads_nothing_is_told_and_one_that_closed_its_input_too(
    plain: ClientProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_processes, "PROCESS_WRITE_SECONDS", 1.0)
    for command in ("sleep 60", "exec <&-; sleep 60"):
        started = await plain.start(command)
        error = None
        for _ in range(3):
            try:
                await plain.write(started.process_id, "x" * 65_000)
            except ToolError as e:
                error = e
                break
        assert error is not None
        assert error.code in ("timed_out", "failed")
        assert (await plain.stop(started.process_id)).signal is not None


async def test_other_sessions_know_nothing_and_their_number_is_bounded(tmp_path: Path) -> None:
    processes = ClientProcesses(_plane(tmp_path), cwd=str(tmp_path), max_processes=2)
    first = await processes.start("sleep 60", session="a")
    assert (await _refused(processes.read(first.process_id, session="b"))).code == "not_found"
    assert (await _refused(processes.stop(first.process_id, session="b"))).code == "not_found"
    assert (await _refused(processes.write(first.process_id, "x", session="b"))).code == "not_found"
    assert await processes.command_of(first.process_id) == "sleep 60"
    assert await processes.command_of("p99") == ""
    short = await processes.start("read -r x; echo last", session="a")
    error = await _refused(processes.start("true", session="a"))
    assert error.code == "too_large"
    assert first.process_id in error.message
    assert (await processes.start("true", session="b")).process_id
    await processes.write(short.process_id, "\n", session="a")
    await asyncio.sleep(0.5)
    assert (await processes.start("true", session="a")).process_id
    assert not (await processes.read(short.process_id, session="a")).running
    await processes.aclose()


async def test_closing_ends_all_and_leaves_no_folder(plain: ClientProcesses) -> None:
    sleep = _sleep()
    for number in range(4):
        await plain.start(f"trap '' TERM; setsid {sleep} & {sleep}", session=str(number % 2))
    await _started(sleep, 8)
    folders = {path for path in Path("/tmp").glob("toolkit-*.*") if (path / "hold").exists()}
    await plain.aclose()
    assert await gone(sleep, within_seconds=2)
    assert len([path for path in folders if not path.exists()]) >= 4
    assert (await _refused(plain.read("p1", session="0"))).code == "not_found"
    await plain.aclose()


async def test_a_start_that_is_cancelled_leaves_nothing(plain: ClientProcesses) -> None:
    sleep = _sleep()
    for milliseconds in range(0, 200, 25):
        task = asyncio.create_task(plain.start(f"setsid {sleep} & {sleep}"))
        await asyncio.sleep(milliseconds / 1000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    await plain.aclose()
    assert await gone(sleep, within_seconds=2)


async def test_a_keeper_that_was_killed_is_never_told_as_success(plain: ClientProcesses) -> None:
    sleep = _sleep()
    started = await plain.start(f'sleep 1; kill -9 "$PPID"; {sleep}')
    state = await plain.read(started.process_id, wait_seconds=5)
    assert (state.running, state.exit_code, state.signal) == (False, None, None)
    assert "not known" in state.note
    assert await gone(sleep, within_seconds=2)
    assert _keepers(sleep) == 0


async def test_what_cannot_be_is_refused(plain: ClientProcesses, tmp_path: Path) -> None:
    cases = {
        plain.start(""): "invalid_arguments",
        plain.start("a\0b"): "invalid_arguments",
        plain.start("true", cwd="a\0b"): "invalid_arguments",
        plain.start("true", cwd="missing"): "not_found",
        plain.start("true", pty=True): "unsupported",
        plain.read("p1"): "not_found",
    }
    for work, code in cases.items():
        assert (await _refused(work)).code == code
    started = await plain.start("cat")
    for text in ("", "\ud800", "x" * 65_537):
        assert (await _refused(plain.write(started.process_id, text))).code == "invalid_arguments"
    for seconds in (-1.0, math.nan):
        assert (await _refused(plain.read(started.process_id, wait_seconds=seconds))).code == "invalid_arguments"
    (tmp_path / "it's a\nfolder").mkdir()
    output, _ = await _to_the_end(plain, await plain.start("echo 'quoted\n\"twice\"'; pwd", cwd="it's a\nfolder"))
    assert output.decode() == f'quoted\n"twice"\n{tmp_path}/it\'s a\nfolder\n'


async def test_a_sandbox_that_ends_what_a_command_left_says_so_at_the_start(tmp_path: Path) -> None:
    error = await _refused(ClientProcesses(FolderPlane(tmp_path), cwd=str(tmp_path)).start("sleep 60"))
    assert error.code == "unsupported"
    assert "keeps no processes" in error.hint
    error = await _refused(ClientProcesses(InMemorySandbox(), cwd="/workspace").start("sleep 60"))
    assert error.code == "unsupported"
    assert "POSIX shell" in error.hint


async def test_a_lost_connection_is_an_error_and_the_process_goes_on(server: Server) -> None:
    sleep = _sleep()
    async with CuttingProxy(server.port) as proxy:
        known = server.known_hosts_for(proxy.port)
        async with server.sandbox(port=proxy.port, known_hosts=known) as sandbox:
            processes = ClientProcesses(sandbox, cwd=sandbox.root)
            started = await processes.start(f"echo before; {sleep}")
            task = asyncio.create_task(processes.read(started.process_id, wait_seconds=50))
            if not started.output:
                assert (await task).output == b"before\n"
                task = asyncio.create_task(processes.read(started.process_id, wait_seconds=50))
            await asyncio.sleep(1)
            proxy.cut()
            assert (await _refused(task)).code == "unavailable"
            assert (await processes.read(started.process_id)).running
            await processes.aclose()
            assert await gone(sleep, within_seconds=2)


async def test_the_default_set_has_them_or_says_why_not(tmp_path: Path) -> None:
    sleep = _sleep()
    async with default_tools(tmp_path, sandbox=_plane(tmp_path), processes=True) as tools:
        started = await tools["process_start"].call({"command": f"{sleep} & cat"})
        assert started.error is None, started.text
        data: Any = started.data
        process_id: str = data["process_id"]
        answer = await tools["process_write"].call({"process_id": process_id, "text": "hello\n"})
        assert "hello" in answer.text
        assert _sleepers(sleep) == 1
    assert await gone(sleep, within_seconds=2)
    with pytest.raises(ValueError, match="InMemorySandbox keeps none, and has no POSIX shell"):
        default_tools("/workspace", sandbox=InMemorySandbox(), processes=True)
