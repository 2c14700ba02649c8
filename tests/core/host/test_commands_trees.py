"""Nothing that a command started outlives it: at its timeout, on its return, when it is cancelled."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.core.host.trees import HOSTILE, Sleeper, descendants, state_of
from tests.support import require
from toolkit_core.errors import ToolError
from toolkit_core.host.commands import HostCommands

PYTHON = f"{sys.executable} -I -S"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can keep a whole tree")


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[HostCommands]:
    (tmp_path / "hostile.py").write_text(HOSTILE)
    made = HostCommands(tmp_path)
    yield made
    await made.aclose()


def detached(sleeper: Sleeper) -> dict[str, str]:
    """Ways to get away from a process group, each leaving one sleeper."""
    return {
        "setsid": f"setsid {sleeper.command}",
        "twice": f"setsid bash -c 'setsid {sleeper.command} & exit' &",
        "nohup": f"nohup {sleeper.command} >/dev/null 2>&1 &",
        "no environment": f"env -i setsid {sleeper.command} &",
        "ignores TERM": f"(trap '' TERM HUP; exec setsid {sleeper.command}) &",
        "no pipes": f"setsid {sleeper.command} <&- >&- 2>&- &",
        "hostile": f"{PYTHON} hostile.py {sleeper.seconds}",
    }


WAYS = tuple(detached(Sleeper()))


@pytest.mark.parametrize("way", WAYS)
async def test_control_a_killed_group_leaves_who_got_away(way: str, tmp_path: Path) -> None:
    """What most tools do: their own session, and killpg at the timeout."""
    if way == "nohup":
        return  # it stays in the group: killpg finds it
    (tmp_path / "hostile.py").write_text(HOSTILE)
    sleeper = Sleeper()
    shell = subprocess.Popen(
        ["bash", "-c", f"{detached(sleeper)[way]}\nsleep 30"],
        cwd=tmp_path,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
    )
    try:
        await sleeper.started()
        if way == "ignores TERM":
            await asyncio.sleep(0.2)
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
        left = sleeper.pids()
        assert left if way != "setsid" else True  # in the foreground bash lets it lead no session of its own
    finally:
        for pid in sleeper.pids():
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("way", WAYS)
async def test_the_timeout_ends_who_got_away(way: str, commands: HostCommands) -> None:
    sleeper = Sleeper()
    started = time.monotonic()
    result = await commands.run(f"echo begun\n{detached(sleeper)[way]}\nsleep 60", timeout_seconds=1.5)
    assert result.timed_out
    assert result.exit_code is None
    assert result.stdout.startswith(b"begun\n")
    assert not sleeper.pids()
    assert 1.5 <= time.monotonic() - started < 15


@pytest.mark.parametrize("way", WAYS)
async def test_a_normal_return_leaves_nobody_and_counts_them(way: str, commands: HostCommands) -> None:
    sleeper = Sleeper()
    result = await commands.run(f"({detached(sleeper)[way]}) & sleep 1; echo ok; exit 3", timeout_seconds=30)
    assert (result.exit_code, result.stdout, result.timed_out) == (3, b"ok\n", False)
    assert result.survivors_killed >= 1
    assert not sleeper.pids()


@pytest.mark.parametrize("way", WAYS)
async def test_cancelling_ends_everybody_before_the_cancellation_leaves(way: str, commands: HostCommands) -> None:
    sleeper = Sleeper()
    running = asyncio.create_task(commands.run(f"{detached(sleeper)[way]}\nsleep 60"))
    await sleeper.started()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not sleeper.pids()


async def test_a_background_child_that_holds_the_pipes_does_not_hold_the_call(commands: HostCommands) -> None:
    sleeper = Sleeper()
    started = time.monotonic()
    result = await commands.run(f"{sleeper.command} & echo ok")
    assert (result.exit_code, result.stdout, result.survivors_killed) == (0, b"ok\n", 1)
    assert time.monotonic() - started < 10
    assert not sleeper.pids()


async def test_who_ends_right_after_the_shell_is_waited_for(commands: HostCommands) -> None:
    """bash does not wait for a process substitution; its output belongs to the command."""
    result = await commands.run("echo through > >(sleep 0.05; cat)")
    assert (result.stdout, result.survivors_killed) == (b"through\n", 0)


async def test_at_the_timeout_a_polite_command_can_clean_up(commands: HostCommands, tmp_path: Path) -> None:
    command = "touch lock; trap 'rm lock; echo cleaned; exit 5' TERM; while :; do sleep 0.05; done"
    result = await commands.run(command, timeout_seconds=1)
    assert (result.timed_out, result.exit_code, result.stdout) == (True, 5, b"cleaned\n")
    assert not (tmp_path / "lock").exists()


async def test_who_ignores_term_is_killed_after_the_grace(commands: HostCommands) -> None:
    sleeper = Sleeper()
    started = time.monotonic()
    result = await commands.run(f"trap '' TERM; {sleeper.command} & wait; wait", timeout_seconds=0.5)
    assert result.timed_out
    assert result.signal == signal.SIGKILL
    assert 2.4 < time.monotonic() - started < 15
    assert not sleeper.pids()


async def test_a_stopped_command_ends_at_its_timeout(commands: HostCommands) -> None:
    result = await commands.run("kill -STOP $$; echo never", timeout_seconds=0.5)
    assert result.timed_out
    assert result.stdout == b""


async def test_a_tree_that_keeps_forking_ends(commands: HostCommands, tmp_path: Path) -> None:
    (tmp_path / "breed.py").write_text(
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "while True:\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "    else:\n"
        "        time.sleep(0.05)\n"
        "        os._exit(0)\n"
    )
    result = await commands.run(f"for i in 1 2 3 4 5; do {PYTHON} breed.py & done; wait; sleep 30", timeout_seconds=1)
    assert result.timed_out
    assert not [pid for pid in descendants() if b"breed.py" in cmdline(pid)]


async def test_a_small_fork_bomb_ends_at_its_timeout(commands: HostCommands, tmp_path: Path) -> None:
    (tmp_path / "bomb.py").write_text(
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "for _ in range(7):\n"
        "    os.fork()\n"
        "time.sleep(60)\n"
    )
    result = await commands.run(f"{PYTHON} bomb.py", timeout_seconds=2)
    assert result.timed_out
    assert not [pid for pid in descendants() if b"bomb.py" in cmdline(pid)]


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def test_orphans_of_a_long_command_are_reaped_while_it_runs(commands: HostCommands) -> None:
    """Zombies would use up the machine's process numbers."""
    running = asyncio.create_task(commands.run("for i in $(seq 40); do (true &) ; done; sleep 2"))
    await asyncio.sleep(1.2)
    zombies = [pid for pid in os.listdir("/proc") if pid.isdigit() and state_of(int(pid)) == "Z" and is_below(int(pid))]
    assert len(zombies) < 10
    assert (await running).exit_code == 0


def is_below(pid: int) -> bool:
    from tests.core.host.trees import parent_of

    while pid > 1:
        pid = parent_of(pid)
        if pid == os.getpid():
            return True
    return False


async def test_of_three_commands_the_hostile_one_is_gone_and_the_others_untouched(commands: HostCommands) -> None:
    hostile, helper = Sleeper(), Sleeper()
    quiet = f"setsid {helper.command} & child=$!; sleep 5; kill -0 $child && echo untouched; kill -KILL $child"
    first = asyncio.create_task(commands.run(quiet, timeout_seconds=60))
    second = asyncio.create_task(commands.run("for i in 1 2 3 4 5; do echo $i; sleep 1; done", timeout_seconds=60))
    await helper.started()
    third = await commands.run(f"{PYTHON} hostile.py {hostile.seconds}; sleep 60", timeout_seconds=1)
    assert third.timed_out
    assert not hostile.pids()
    assert helper.pids()
    assert (await first).stdout == b"untouched\n"
    assert (await second).stdout == b"1\n2\n3\n4\n5\n"


async def test_the_timeout_holds_while_the_event_loop_is_blocked(commands: HostCommands) -> None:
    """The keeper keeps the time, not the loop of the caller."""
    sleeper = Sleeper()
    running = asyncio.create_task(commands.run(sleeper.command, timeout_seconds=0.5))
    await sleeper.started()
    time.sleep(4)
    assert not sleeper.pids()
    assert (await running).timed_out


async def test_a_second_cancellation_does_not_interrupt_the_clean_up(commands: HostCommands) -> None:
    sleeper = Sleeper()
    running = asyncio.create_task(commands.run(f"trap '' TERM; {sleeper.command}"))
    await sleeper.started()
    for _ in range(5):
        running.cancel()
        await asyncio.sleep(0.1)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not sleeper.pids()


async def test_cancelled_before_it_starts_nothing_runs(commands: HostCommands, tmp_path: Path) -> None:
    running = asyncio.create_task(commands.run("touch started"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(0.2)
    assert not (tmp_path / "started").exists()


async def test_cancelled_at_any_moment_nothing_is_left(commands: HostCommands) -> None:
    await commands.run("true")
    descriptors = len(os.listdir("/proc/self/fd"))
    sleepers = [Sleeper() for _ in range(40)]
    for number, sleeper in enumerate(sleepers):
        running = asyncio.create_task(commands.run(f"{sleeper.command} & {sleeper.command}"))
        for _ in range(number % 8):
            await asyncio.sleep(0)
        await asyncio.sleep(0.0002 * (number // 8))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not sleeper.pids()
    assert len(os.listdir("/proc/self/fd")) == descriptors


async def test_a_child_that_gave_its_pipe_to_a_stranger_does_not_hold_the_call(
    commands: HostCommands, tmp_path: Path
) -> None:
    """The one who holds the pipe is no child of the command, so it is left alone, and the text says so."""
    keeper = tmp_path / "take.py"
    keeper.write_text(
        "import socket, sys, time\n"
        "s = socket.socket(socket.AF_UNIX)\n"
        "s.bind('take.sock'); s.listen(1); print('ready', flush=True)\n"
        "c, _ = s.accept(); fds = socket.recv_fds(c, 1, 1)[1]; c.send(b'.')\n"
        "time.sleep(60)\n"
    )
    (tmp_path / "give.py").write_text(
        "import socket\n"
        "s = socket.socket(socket.AF_UNIX); s.connect('take.sock')\n"
        "socket.send_fds(s, [b'.'], [1]); s.recv(1); print('given')\n"
    )
    stranger = subprocess.Popen([sys.executable, "-I", str(keeper)], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == "ready\n"
        started = time.monotonic()
        result = await commands.run(f"{sys.executable} -I give.py", timeout_seconds=30)
        assert result.stdout == b"given\n"
        assert "may be incomplete" in result.note
        assert time.monotonic() - started < 20
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        assert stranger.stdout is not None
        stranger.stdout.close()


async def test_a_command_that_kills_its_keeper_is_an_error_and_leaves_nobody(commands: HostCommands) -> None:
    require(sys.platform == "linux", "Linux")
    sleeper = Sleeper()
    with pytest.raises(ToolError) as caught:
        await commands.run(f"setsid {sleeper.command} & echo before; sleep 0.3; kill -9 $PPID; sleep 60")
    assert caught.value.code == "killed"
    assert "before" in caught.value.detail
    assert not sleeper.pids()
    assert (await commands.run("echo on")).stdout == b"on\n"


async def test_a_command_that_stops_its_keeper_still_ends(
    commands: HostCommands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit_core.host.kept_command.COMMAND_END_MARGIN_SECONDS", 3.0)
    sleeper = Sleeper()
    with pytest.raises(ToolError) as caught:
        await commands.run(f"setsid {sleeper.command} & kill -STOP $PPID; sleep 60", timeout_seconds=0.5)
    assert caught.value.code == "killed"
    assert not sleeper.pids()
    assert (await commands.run("echo on")).stdout == b"on\n"
