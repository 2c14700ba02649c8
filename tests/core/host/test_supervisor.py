"""One supervisor a process: what it ends when the process dies, and that it is there when it is needed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.host.trees import HOSTILE, Sleeper, descendants, open_descriptors, parent_of, state_of
from tests.support import require
from toolkit_core.errors import ToolError
from toolkit_core.host import supervisor
from toolkit_core.host.commands import HostCommands

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")

PROJECT = Path(__file__).parents[3]
DETACHED = "(setsid env -i bash -c '(trap \"\" TERM INT HUP; {0}) & exit' &); setsid {0} & {0}"


class Owner:
    """A Python process of its own that runs commands."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.core.host.owner", str(folder), *words],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def end(self, number: int) -> None:
        """Signal it and wait until it is gone."""
        self.process.send_signal(number)
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_when_the_owner_dies_nothing_is_left(tmp_path: Path, number: int) -> None:
    sleeper, marker = Sleeper(), tmp_path / "ran"
    owner = Owner(tmp_path, f"echo x >> ran; {DETACHED.format(sleeper.command)}")
    await sleeper.started(3)
    owner.end(number)
    assert sleeper.gone()
    assert marker.read_text() == "x\n"  # it ran once


async def test_control_without_a_supervisor_who_got_away_outlives_its_owner(tmp_path: Path) -> None:
    sleeper = Sleeper()
    code = (
        "import subprocess, sys\n"
        "print('ready', flush=True)\n"
        "subprocess.run(['bash', '-c', sys.argv[1]], start_new_session=True)\n"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", code, DETACHED.format(sleeper.command)], cwd=tmp_path, stdout=subprocess.DEVNULL
    )
    try:
        await sleeper.started(3)
        owner.kill()
        owner.wait()
        assert not sleeper.gone(1)
    finally:
        for pid in sleeper.pids():
            os.kill(pid, signal.SIGKILL)


async def test_hostile_grandchildren_die_with_the_owner(tmp_path: Path) -> None:
    (tmp_path / "hostile.py").write_text(HOSTILE)
    sleeper = Sleeper()
    owner = Owner(tmp_path, *[f"{sys.executable} -I -S hostile.py {sleeper.seconds}; sleep 600"] * 5)
    await sleeper.started(5)
    owner.end(signal.SIGKILL)
    assert sleeper.gone()


async def test_background_processes_die_with_the_owner(tmp_path: Path) -> None:
    sleeper = Sleeper()
    owner = Owner(tmp_path, "--processes", DETACHED.format(sleeper.command))
    await sleeper.started(3)
    owner.end(signal.SIGKILL)
    assert sleeper.gone()


async def test_a_forked_sibling_that_holds_the_sockets_does_not_keep_commands_alive(tmp_path: Path) -> None:
    sleeper = Sleeper()
    owner = Owner(tmp_path, "--fork", sleeper.command)
    await sleeper.started()
    siblings: list[int] = []
    until = time.monotonic() + 20
    while not siblings and time.monotonic() < until:
        siblings = [pid for pid in descendants() if parent_of(pid) == owner.process.pid and is_owner(pid)]
        await asyncio.sleep(0.05)
    assert siblings
    owner.end(signal.SIGKILL)
    assert sleeper.gone()
    assert state_of(siblings[0]) != ""
    os.kill(siblings[0], signal.SIGKILL)


def is_owner(pid: int) -> bool:
    try:
        return b"tests.core.host.owner" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


async def test_the_temporary_folder_goes_with_the_owner(tmp_path: Path) -> None:
    sleeper = Sleeper()
    owner = Owner(tmp_path, f'echo "$TMPDIR" > where; touch "$TMPDIR/x"; {sleeper.command}')
    await sleeper.started()
    folder = (tmp_path / "where").read_text().strip()
    assert os.path.isdir(folder)
    owner.end(signal.SIGKILL)
    until = time.monotonic() + 20
    while os.path.exists(folder) and time.monotonic() < until:
        await asyncio.sleep(0.05)
    assert not os.path.exists(folder)


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No supervisor before and after; between commands it stays, so that tests can look at it."""
    monkeypatch.setattr("toolkit_core.host.supervisor.SUPERVISOR_IDLE_SECONDS", 60.0)
    gc.collect()
    supervisor.shared.end()
    yield
    supervisor.shared.end()


def supervisor_pid() -> int:
    link = supervisor.shared.current()
    assert link is not None
    return link.process.pid


@pytest.mark.usefixtures("quiet")
async def test_between_commands_an_idle_program_has_no_child_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit_core.host.supervisor.SUPERVISOR_IDLE_SECONDS", 0.5)
    before, descriptors = descendants(), open_descriptors()
    commands = HostCommands(tmp_path)
    await asyncio.gather(*(commands.run("true") for _ in range(5)))
    async with asyncio.timeout(20):
        while descendants() != before:
            await asyncio.sleep(0.05)
    assert open_descriptors() == descriptors
    assert (await commands.run("echo on")).stdout == b"on\n"
    await commands.aclose()


@pytest.mark.usefixtures("quiet")
async def test_after_the_last_user_has_closed_no_process_is_left(tmp_path: Path) -> None:
    before, descriptors = descendants(), open_descriptors()
    first, second = HostCommands(tmp_path), HostCommands(tmp_path)
    await first.run("true")
    await second.run("true")
    pid = supervisor_pid()
    await first.aclose()
    assert supervisor_pid() == pid
    assert (await second.run("echo on")).stdout == b"on\n"
    await second.aclose()
    assert descendants() == before
    assert open_descriptors() == descriptors


@pytest.mark.usefixtures("quiet")
async def test_a_burst_leaves_as_many_processes_as_one_command(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    await commands.run("true")
    at_rest = await settled_count()
    await asyncio.gather(*(commands.run("sleep 0.3") for _ in range(40)))
    assert await settled_count() == at_rest
    await commands.aclose()


async def settled_count() -> int:
    await asyncio.sleep(1)
    return len(descendants())


@pytest.mark.usefixtures("quiet")
async def test_a_killed_supervisor_is_replaced_and_what_it_ran_is_an_error(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    sleeper = Sleeper()
    running = asyncio.create_task(commands.run(f"echo so far; setsid {sleeper.command} & {sleeper.command}"))
    await sleeper.started(2)
    os.kill(supervisor_pid(), signal.SIGKILL)
    with pytest.raises(ToolError) as caught:
        await asyncio.wait_for(running, 30)
    assert caught.value.code == "killed"
    assert "so far" in caught.value.detail
    assert sleeper.gone()
    assert (await commands.run("echo on")).stdout == b"on\n"
    await commands.aclose()


@pytest.mark.usefixtures("quiet")
async def test_a_stopped_keeper_ends_its_command_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    sleeper = Sleeper()
    running = asyncio.create_task(commands.run(f"setsid {sleeper.command} & kill -STOP $PPID; {sleeper.command}"))
    await sleeper.started(2)
    os.kill(supervisor_pid(), signal.SIGKILL)
    with pytest.raises(ToolError) as caught:
        await asyncio.wait_for(running, 30)
    assert caught.value.code == "killed"
    assert sleeper.gone()
    await commands.aclose()


@pytest.mark.usefixtures("quiet")
async def test_a_stopped_keeper_holds_a_result_up_for_a_moment_past_its_time(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path, grace_seconds=0.5)
    began = time.monotonic()
    with pytest.raises(ToolError) as caught:
        await commands.run("kill -STOP $PPID; echo st", timeout_seconds=1)
    assert caught.value.code == "killed"
    assert time.monotonic() - began < 1 + 0.5 + 10  # it was 15 and more
    await commands.aclose()


@pytest.mark.usefixtures("quiet")
async def test_killed_between_two_commands_nobody_notices(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    for _ in range(5):
        assert (await commands.run("echo on")).stdout == b"on\n"
        pid = supervisor_pid()
        os.kill(pid, signal.SIGKILL)
        while state_of(pid) not in ("", "Z", "X"):
            await asyncio.sleep(0.01)
    await commands.aclose()


@pytest.mark.usefixtures("quiet")
async def test_idle_keepers_that_are_killed_are_replaced(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    await commands.run("true")
    at_rest = await settled_count()
    for _ in range(3):
        for pid in descendants():
            if parent_of(pid) == supervisor_pid():
                os.kill(pid, signal.SIGKILL)
        assert await settled_count() == at_rest
    assert (await commands.run("echo on")).stdout == b"on\n"
    await commands.aclose()


@pytest.mark.usefixtures("quiet")
async def test_a_stopped_supervisor_does_not_stop_idle_keepers(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    await commands.run("true")
    pid = supervisor_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        assert (await asyncio.wait_for(commands.run("echo on"), 30)).stdout == b"on\n"
    finally:
        os.kill(pid, signal.SIGCONT)
    await commands.aclose()


@pytest.mark.usefixtures("quiet")
async def test_a_wholly_stopped_supervisor_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit_core.host.kept_command.COMMAND_START_SECONDS", 2.0)
    commands = HostCommands(tmp_path)
    await commands.run("true")
    await asyncio.sleep(0.5)
    stopped = [supervisor_pid(), *(pid for pid in descendants() if parent_of(pid) == supervisor_pid())]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    with pytest.raises(ToolError) as caught:
        await commands.run("echo lost")
    assert caught.value.code == "killed"
    assert (await commands.run("echo on")).stdout == b"on\n"
    await commands.aclose()
    assert not [pid for pid in stopped if state_of(pid) not in ("", "Z", "X")]


@pytest.mark.usefixtures("quiet")
def test_works_from_many_loops_and_threads_at_once(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)

    async def several(thread: int) -> list[bytes]:
        results = await asyncio.gather(*(commands.run(f"echo {thread}.{n}") for n in range(8)))
        return [result.stdout for result in results]

    def work(thread: int) -> list[bytes]:
        return [line for _ in range(2) for line in asyncio.run(several(thread))]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for thread, lines in enumerate(pool.map(work, range(8))):
            assert lines == [b"%d.%d\n" % (thread, n) for n in range(8)] * 2
    asyncio.run(commands.aclose())


@pytest.mark.usefixtures("quiet")
def test_the_thread_that_started_it_may_end(tmp_path: Path) -> None:
    """The parent-death signal follows the thread that forked (prctl(2)); the supervisor uses none."""
    commands = HostCommands(tmp_path)
    first = threading.Thread(target=lambda: asyncio.run(commands.run("true")))
    first.start()
    first.join()
    pid = supervisor_pid()
    assert asyncio.run(commands.run("sleep 0.5; echo on")).stdout == b"on\n"
    assert supervisor_pid() == pid
    asyncio.run(commands.aclose())


@pytest.mark.usefixtures("quiet")
def test_a_forked_child_has_its_own_and_leaves_the_parents_alone(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    asyncio.run(commands.run("true"))
    pid = supervisor_pid()
    folder = asyncio.run(commands.run("echo $TMPDIR")).stdout.decode().strip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of a fork beside threads: it is the point
        child = os.fork()
    if child == 0:
        status = 1
        try:
            good = asyncio.run(commands.run("echo in the child; exit 3"))
            own = supervisor_pid() != pid
            asyncio.run(commands.aclose())
            status = 0 if good.exit_code == 3 and own and os.path.isdir(folder) else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert supervisor_pid() == pid
    assert asyncio.run(commands.run("echo $TMPDIR")).stdout.decode().strip() == folder
    asyncio.run(commands.aclose())


@pytest.mark.usefixtures("quiet")
def test_a_command_outlives_neither_its_loop_nor_a_forgotten_task(tmp_path: Path) -> None:
    sleeper = Sleeper()
    commands = HostCommands(tmp_path)

    async def forget() -> None:
        task = asyncio.create_task(commands.run(f"setsid {sleeper.command} & {sleeper.command}"))
        await sleeper.started(2)
        del task

    asyncio.run(forget())  # cancels what is left on the loop
    assert sleeper.gone()
    asyncio.run(commands.aclose())


@pytest.mark.usefixtures("quiet")
def test_rights_that_were_given_up_are_not_used() -> None:
    require(os.geteuid() == 0, "only root can give up rights")
    code = (
        "import asyncio, os, sys\n"
        "from toolkit_core.host.commands import HostCommands\n"
        "async def main():\n"
        "    commands = HostCommands('/tmp')\n"
        "    before = await commands.run('id -G')\n"
        "    os.setgroups([65533]); os.setresgid(65534, 65534, 65534)\n"
        "    after = await commands.run('id -G')\n"
        "    print(before.stdout, after.stdout)\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout.strip().endswith(" b'65534 65533\\n'"), ran.stderr


@pytest.mark.usefixtures("quiet")
def test_an_exiting_program_leaves_nothing_and_warns_of_nothing(tmp_path: Path) -> None:
    sleeper = Sleeper()
    code = (
        "import asyncio, sys\n"
        "from toolkit_core.host.commands import HostCommands\n"
        "async def main():\n"
        "    commands = HostCommands('.')\n"
        "    print((await commands.run('echo $TMPDIR')).stdout.decode().strip())\n"
        "    asyncio.create_task(commands.run(sys.argv[1]))\n"
        "    await asyncio.sleep(1)\n"
        "asyncio.run(main())\n"
    )
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code, f"setsid {sleeper.command} & {sleeper.command}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.returncode == 0
    assert sleeper.gone()
    assert not os.path.exists(ran.stdout.strip())


def run_script(code: str, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A Python program of its own, with everything imported that the cases below use."""
    head = (
        "import asyncio, os, resource, signal, sys, threading\n"
        "from toolkit_core.errors import ToolError\n"
        "from toolkit_core.host.commands import HostCommands\n"
    )
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", head + code, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def test_blocked_and_ignored_signals_of_the_owner_change_nothing(tmp_path: Path) -> None:
    code = (
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGPIPE, signal.SIG_IGN)\n"
        "async def main():\n"
        "    commands = HostCommands('.')\n"
        "    result = await commands.run('yes | head -n 1; sleep 0.1; (exit 3)', timeout_seconds=20)\n"
        "    print(result.exit_code, result.stdout, result.timed_out)\n"
        "    await commands.aclose()\n"
        "asyncio.run(main())\n"
    )
    ran = run_script(code, folder=tmp_path)
    assert ran.stdout == "3 b'y\\n' False\n", ran.stderr


async def test_an_owner_that_becomes_another_program_leaves_nothing(tmp_path: Path) -> None:
    sleeper = Sleeper()
    code = (
        "async def main():\n"
        "    running = asyncio.create_task(HostCommands('.').run(sys.argv[1]))\n"
        "    await asyncio.sleep(1)\n"
        "    os.execv('/bin/sleep', ['sleep', '3'])\n"
        "asyncio.run(main())\n"
    )
    ran = asyncio.create_task(
        asyncio.to_thread(run_script, code, f"setsid {sleeper.command} & {sleeper.command}", folder=tmp_path)
    )
    await sleeper.started(2)
    assert (await ran).returncode == 0
    assert sleeper.gone()


def test_few_descriptors_are_an_error_and_nothing_is_stuck(tmp_path: Path) -> None:
    code = (
        "resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))\n"
        "async def main():\n"
        "    commands = HostCommands('.')\n"
        "    many = await asyncio.gather(*(commands.run('sleep 0.3') for _ in range(60)), return_exceptions=True)\n"
        "    print({type(each).__name__ for each in many}, {e.code for e in many if isinstance(e, ToolError)})\n"
        "    print((await commands.run('echo on; ulimit -n')).stdout)\n"
        "    await commands.aclose()\n"
        "asyncio.run(main())\n"
    )
    ran = run_script(code, folder=tmp_path)
    first, second = ran.stdout.splitlines()
    assert "ToolError" in first
    assert first.endswith("{'io_error'}"), ran.stdout
    assert second == "b'on\\n60\\n'", ran.stderr


def test_a_missing_interpreter_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor.shared.end()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3"))
    commands = HostCommands(tmp_path)
    with pytest.raises(ToolError) as caught:
        asyncio.run(commands.run("true"))
    asyncio.run(commands.aclose())
    assert caught.value.code == "unavailable"


def test_users_that_come_and_go_in_many_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    async def one(n: int) -> bytes:
        commands = HostCommands(tmp_path)
        try:
            return (await commands.run(f"echo {n}")).stdout
        finally:
            await commands.aclose()

    def blocking(n: int) -> bytes:
        return asyncio.run(one(n))

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert list(pool.map(blocking, range(36))) == [b"%d\n" % n for n in range(36)]


async def test_a_program_without_an_interpreter_has_no_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/uwsgi")
    assert not supervisor.supported()
    monkeypatch.setattr(sys, "executable", "")
    assert not supervisor.supported()


def test_the_supervisor_is_small(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    asyncio.run(commands.run("true"))
    status = Path(f"/proc/{supervisor_pid()}/status").read_text()
    resident_kib = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")))
    assert resident_kib < 40_000
    assert "toolkit-keeper" in status  # so that `pkill python` does not end it
    asyncio.run(commands.aclose())
