"""Commands that go on between calls."""

from __future__ import annotations

import asyncio
import math
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.core.host.trees import HOSTILE, Sleeper, descendants, open_descriptors, parent_of, state_of
from toolkit_core.errors import ToolError
from toolkit_core.host import supervisor
from toolkit_core.host.processes import HostProcesses
from toolkit_core.ports.processes import ProcessState

PYTHON = f"{sys.executable} -I -S -u"


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[HostProcesses]:
    made = HostProcesses(tmp_path)
    yield made
    await made.aclose()


async def until(processes: HostProcesses, process_id: str, wanted: bytes, seconds: float = 30) -> bytes:
    """Read until the output holds something."""
    output, end = b"", time.monotonic() + seconds
    while wanted not in output:
        assert time.monotonic() < end, output
        state = await processes.read(process_id, wait_seconds=1)
        output += state.output
        assert state.running or wanted in output, output
    return output


async def refused(work: object) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await work  # pyright: ignore  (a coroutine)
    return caught.value


async def test_talks_with_a_process(processes: HostProcesses) -> None:
    started = await processes.start("while read -r line; do echo got $line; done; echo bye; exit 4")
    assert started.running
    assert started.command.startswith("while read")
    first = await processes.write(started.process_id, "one\n")
    assert (first.output or await until(processes, started.process_id, b"one")) == b"got one\n"
    await processes.write(started.process_id, "two\nthree\n")
    closed = await processes.write(started.process_id, "\x04")
    output, state = closed.output, closed
    while state.running:
        state = await processes.read(started.process_id, wait_seconds=5)
        output += state.output
    assert output.endswith(b"bye\n")
    assert (state.exit_code, state.signal) == (4, None)


async def test_each_read_gives_only_what_is_new_and_the_last_one_stays_readable(processes: HostProcesses) -> None:
    started = await processes.start("echo one; sleep 0.7; echo two")
    output = started.output
    if not output:
        output = (await processes.read(started.process_id, wait_seconds=10)).output
    assert output == b"one\n"
    second = await until(processes, started.process_id, b"two")
    assert second == b"two\n"
    ended = await processes.read(started.process_id, wait_seconds=10)
    again = await processes.read(started.process_id)
    assert (again.running, again.exit_code, again.output) == (False, 0, b"")
    assert ended.process_id == again.process_id


async def test_a_command_that_cannot_be_found_is_told_at_once(processes: HostProcesses) -> None:
    state = await processes.start("no_such_program_here")
    while state.running:
        state = await processes.read(state.process_id, wait_seconds=5)
    assert state.exit_code == 127


async def test_a_read_waits_for_output_and_not_longer(processes: HostProcesses) -> None:
    started = await processes.start("sleep 1; echo late; sleep 60")
    before = time.monotonic()
    state = await processes.read(started.process_id, wait_seconds=50)
    assert state.output == b"late\n"
    assert time.monotonic() - before < 20
    before = time.monotonic()
    silent = await processes.read(started.process_id, wait_seconds=0.3)
    assert silent.output == b""
    assert 0.25 < time.monotonic() - before < 10


async def test_a_read_that_waits_ends_with_the_process(processes: HostProcesses) -> None:
    started = await processes.start("sleep 1; exit 3")
    state = await processes.read(started.process_id, wait_seconds=50)
    assert (state.running, state.exit_code) == (False, 3)


async def test_stop_ends_the_whole_tree(processes: HostProcesses, tmp_path: Path) -> None:
    (tmp_path / "hostile.py").write_text(HOSTILE)
    sleeper = Sleeper()
    started = await processes.start(
        f"{PYTHON} hostile.py {sleeper.seconds} & setsid {sleeper.command} & wait; sleep 60"
    )
    await sleeper.started(2)
    state = await processes.stop(started.process_id)
    assert not state.running
    assert state.signal is not None
    assert not sleeper.pids()
    assert not (await processes.stop(started.process_id)).running


async def test_what_a_process_leaves_behind_ends_with_it(processes: HostProcesses) -> None:
    sleeper = Sleeper()
    started = await processes.start(f"setsid {sleeper.command} & sleep 0.5; echo done")
    await until(processes, started.process_id, b"done")
    state = await processes.read(started.process_id, wait_seconds=20)
    while state.running:
        state = await processes.read(started.process_id, wait_seconds=20)
    assert not sleeper.pids()


async def test_closing_ends_all_of_all_sessions_at_once(processes: HostProcesses) -> None:
    sleeper = Sleeper()
    for n in range(6):
        await processes.start(f"trap '' TERM; setsid {sleeper.command} & {sleeper.command}", session=str(n % 3))
    await sleeper.started(12)
    before = time.monotonic()
    await processes.aclose()
    assert not sleeper.pids()
    assert time.monotonic() - before < 15
    assert (await refused(processes.read("p1", session="0"))).code == "not_found"
    assert (await processes.start("echo again")).process_id


async def test_closed_it_leaves_no_process_thread_or_descriptor(tmp_path: Path) -> None:
    supervisor.shared.end()
    before, descriptors = descendants(), open_descriptors()
    processes = HostProcesses(tmp_path)
    for pty in (False, True):
        await processes.start("yes", pty=pty)
        await processes.start("true", pty=pty)
    await processes.aclose()
    await processes.aclose()
    assert descendants() == before
    assert open_descriptors() == descriptors


async def test_another_session_cannot_use_an_id(processes: HostProcesses) -> None:
    mine = await processes.start("cat", session="a")
    other = await processes.start("sleep 60", session="b")
    assert mine.process_id != other.process_id
    for call in (
        processes.read(mine.process_id, session="b"),
        processes.write(mine.process_id, "x\n", session="b"),
        processes.stop(mine.process_id, session="b"),
    ):
        error = await refused(call)
        assert error.code == "not_found"
        assert "cat" not in error.message + error.hint
    assert await processes.command_of(mine.process_id) == "cat"
    assert await processes.command_of("p999") == ""


async def test_only_so_many_run_at_once(tmp_path: Path) -> None:
    processes = HostProcesses(tmp_path, max_processes=3)
    results = await asyncio.gather(*(processes.start("sleep 60") for _ in range(8)), return_exceptions=True)
    started = [each for each in results if isinstance(each, ProcessState)]
    errors = [each for each in results if isinstance(each, ToolError)]
    assert (len(started), len(errors)) == (3, 5)
    assert {error.code for error in errors} == {"too_large"}
    assert all(error.message.startswith("3 processes run already") for error in errors)
    assert any("that are just starting" in error.message for error in errors)
    await processes.start("true", session="another")
    await processes.stop(started[0].process_id)
    assert (await processes.start("sleep 60")).running
    await processes.aclose()


async def test_ended_ones_are_forgotten_in_time(processes: HostProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit_core.host.processes.PROCESSES_ENDED_KEPT", 2)
    ids: list[str] = []
    for n in range(5):
        state = await processes.start(f"echo {n}")
        while state.running:
            state = await processes.read(state.process_id, wait_seconds=5)
        ids.append(state.process_id)
    assert (await refused(processes.read(ids[0]))).code == "not_found"
    assert not (await processes.read(ids[-1])).running


async def test_unread_output_is_bounded_and_the_newest_stays(processes: HostProcesses) -> None:
    started = await processes.start("seq 1 1000000; echo end; sleep 60")
    states = [started]
    while not states[-1].output.endswith(b"end\n"):
        await asyncio.sleep(1)
        states.append(await processes.read(started.process_id, wait_seconds=20))
        assert len(states[-1].output) <= 1_048_576
    assert states[-1].output.endswith(b"1000000\nend\n")
    assert sum(each.output_cut + len(each.output) for each in states) == 6_888_896 + len("end\n")


async def test_no_character_is_cut_between_two_reads(processes: HostProcesses) -> None:
    code = "import os,time\nfor b in '\\u00fc\\u4e16\\U0001f600'.encode(): os.write(1, bytes([b])); time.sleep(0.15)"
    started = await processes.start(f'{PYTHON} -c "{code}"')
    output, state = started.output, started
    while state.running:
        state = await processes.read(started.process_id, wait_seconds=5)
        state.output.decode()
        output += state.output
    assert output.decode() == "\u00fc\u4e16\U0001f600"


async def test_a_read_waits_on_for_the_rest_of_a_character(processes: HostProcesses) -> None:
    started = await processes.start(r"read a; printf '\xc3'; sleep 1.5; printf '\xa9\n'; sleep 60")
    await processes.write(started.process_id, "go\n")
    state = await processes.read(started.process_id, wait_seconds=30)
    assert state.output.decode() == "\u00e9\n"


async def test_control_without_a_terminal_a_program_sees_none(processes: HostProcesses) -> None:
    started = await processes.start("tty; sleep 60")
    assert b"not a tty" in (started.output or await until(processes, started.process_id, b"tty"))


@pytest.mark.skipif(sys.platform != "linux", reason="terminals are given by the supervisor")
async def test_a_terminal_is_the_controlling_one(processes: HostProcesses) -> None:
    started = await processes.start("tty && echo typed > /dev/tty && stty size; cat", pty=True)
    output = started.output
    if b"40 120" not in output:
        output += await until(processes, started.process_id, b"40 120")
    assert output.startswith(b"/dev/pts/")
    assert b"typed" in output
    await processes.write(started.process_id, "line\n")
    ended = await processes.write(started.process_id, "\x04")
    while ended.running:
        ended = await processes.read(started.process_id, wait_seconds=5)
    assert ended.exit_code == 0


@pytest.mark.skipif(sys.platform != "linux", reason="terminals are given by the supervisor")
async def test_ctrl_c_reaches_the_foreground_of_a_terminal(processes: HostProcesses) -> None:
    started = await processes.start("trap 'echo interrupted' INT; echo begun; sleep 60; echo after", pty=True)
    if b"begun" not in started.output:
        await until(processes, started.process_id, b"begun")
    await processes.write(started.process_id, "\x03")
    state = await processes.read(started.process_id, wait_seconds=5)
    while state.running:
        state = await processes.read(started.process_id, wait_seconds=5)
    assert state.exit_code == 0


async def test_writing_to_one_that_does_not_read_is_an_error(
    processes: HostProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit_core.host.background.PROCESS_WRITE_SECONDS", 0.5)
    started = await processes.start("sleep 60")
    await processes.write(started.process_id, "x" * 65_536)
    error = await refused(processes.write(started.process_id, "x" * 65_536))
    assert error.code == "timed_out"
    assert "0 of 65,536" in error.message
    assert (await processes.read(started.process_id)).running


async def test_writing_to_one_that_has_ended_or_closed_its_input_is_an_error(processes: HostProcesses) -> None:
    ended = await processes.start("true")
    await processes.read(ended.process_id, wait_seconds=20)
    error = await refused(processes.write(ended.process_id, "x"))
    assert error.code == "failed"
    assert "start it again" in error.hint
    deaf = await processes.start("exec <&-; echo closed; sleep 60")
    if b"closed" not in deaf.output:
        await until(processes, deaf.process_id, b"closed")
    assert (await refused(processes.write(deaf.process_id, "x"))).code == "failed"
    eof = await processes.start("cat; sleep 60")
    await processes.write(eof.process_id, "\x04")
    assert (await refused(processes.write(eof.process_id, "x"))).code == "failed"


@pytest.mark.parametrize("text", ["", "\ud800", "x" * 65_537])
async def test_refuses_input_that_is_none(processes: HostProcesses, text: str) -> None:
    started = await processes.start("cat")
    assert (await refused(processes.write(started.process_id, text))).code == "invalid_arguments"


@pytest.mark.parametrize("seconds", [-1, math.nan])
async def test_refuses_a_wait_that_is_none(processes: HostProcesses, seconds: float) -> None:
    started = await processes.start("cat")
    assert (await refused(processes.read(started.process_id, wait_seconds=seconds))).code == "invalid_arguments"


async def test_refuses_bad_commands_and_folders(processes: HostProcesses, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert (await refused(processes.start(""))).code == "invalid_arguments"
    assert (await refused(processes.start("a\0b"))).code == "invalid_arguments"
    assert (await refused(processes.start("x" * 2_000_000))).code == "invalid_arguments"
    assert (await refused(processes.start("true", cwd=".."))).code == "access_denied"
    assert (await refused(processes.start("true", cwd="missing"))).code == "not_found"
    assert (await refused(processes.start("true", cwd="file"))).code == "invalid_arguments"


def test_calls_may_come_from_one_event_loop_after_another(tmp_path: Path) -> None:
    processes = HostProcesses(tmp_path)
    started = asyncio.run(processes.start("cat"))
    for n in range(3):
        state = asyncio.run(processes.write(started.process_id, f"{n}\n"))
        output = state.output or asyncio.run(processes.read(started.process_id, wait_seconds=10)).output
        assert output == b"%d\n" % n
    asyncio.run(processes.aclose())


async def test_a_cancelled_start_leaves_nothing_unknown(processes: HostProcesses) -> None:
    for n in range(12):
        sleeper = Sleeper()
        starting = asyncio.create_task(processes.start(sleeper.command, session=f"s{n}"))
        await asyncio.sleep(0.001 * n)
        starting.cancel()
        outcome = (await asyncio.gather(starting, return_exceptions=True))[0]
        assert isinstance(outcome, asyncio.CancelledError)
        assert not sleeper.pids()


async def test_cancelling_a_read_does_not_lose_output(processes: HostProcesses) -> None:
    started = await processes.start("sleep 0.6; echo kept; sleep 60")
    reading = asyncio.create_task(processes.read(started.process_id, wait_seconds=50))
    await asyncio.sleep(0.05)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await until(processes, started.process_id, b"kept") == b"kept\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")
async def test_a_killed_supervisor_ends_them_and_they_say_so(processes: HostProcesses) -> None:
    sleeper = Sleeper()
    started = await processes.start(f"setsid {sleeper.command} & {sleeper.command}")
    await sleeper.started(2)
    link = supervisor.shared.current()
    assert link is not None
    os.kill(link.process.pid, 9)
    state = await processes.read(started.process_id, wait_seconds=30)
    assert not state.running
    assert "killed" in state.note
    assert sleeper.gone()
    assert (await processes.start("echo on")).process_id


@pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")
async def test_a_stopped_keeper_does_not_hold_up_a_stop(processes: HostProcesses) -> None:
    sleeper = Sleeper()
    started = await processes.start(f"sleep 0.5; kill -STOP $PPID; setsid {sleeper.command} & {sleeper.command}")
    await sleeper.started(2)
    assert [state_of(parent_of(parent_of(pid))) for pid in sleeper.pids()]
    state = await asyncio.wait_for(processes.stop(started.process_id), 60)
    assert not state.running
    assert not sleeper.pids()
