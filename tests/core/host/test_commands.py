from __future__ import annotations

import asyncio
import errno
import math
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support import require
from toolkit_core.errors import ToolError
from toolkit_core.host.commands import HostCommands, not_started
from toolkit_core.host.shells import shell_argv
from toolkit_core.host.supervised import StartError


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[HostCommands]:
    made = HostCommands(tmp_path)
    yield made
    await made.aclose()


async def refused(commands: HostCommands, command: str, **options: object) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await commands.run(command, **options)  # pyright: ignore[reportArgumentType]  (bad input is the point)
    return caught.value


async def test_returns_exit_code_and_both_streams(commands: HostCommands) -> None:
    result = await commands.run("echo out; echo err >&2; exit 7")
    assert (result.exit_code, result.signal) == (7, None)
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert (result.stdout_cut, result.stderr_cut, result.survivors_killed) == (0, 0, 0)
    assert not result.timed_out
    assert 0 < result.duration_seconds < 60


async def test_runs_in_the_root_by_default_and_in_a_folder_inside_it(commands: HostCommands, tmp_path: Path) -> None:
    (tmp_path / "sub dir").mkdir()
    assert (await commands.run("pwd -P")).stdout.decode().strip() == os.path.realpath(tmp_path)
    inside = await commands.run("pwd -P", cwd="sub dir")
    assert inside.stdout.decode().strip() == os.path.realpath(tmp_path / "sub dir")
    absolute = await commands.run("pwd -P", cwd=str(tmp_path / "sub dir"))
    assert absolute.stdout == inside.stdout


async def test_nothing_carries_over_to_the_next_command(commands: HostCommands) -> None:
    await commands.run("cd /; export LEFT=1; f() { :; }")
    result = await commands.run("echo [$LEFT]; type f >/dev/null 2>&1; echo $?; pwd -P")
    first, second, third = result.stdout.decode().splitlines()
    assert (first, second) == ("[]", "1")
    assert third == commands.root


async def test_control_a_command_may_leave_its_folder(commands: HostCommands) -> None:
    assert (await commands.run("cd .. && pwd -P")).stdout.decode().strip() == os.path.dirname(commands.root)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("sort <<END\nb\na\nEND", b"a\nb\n"),
        ("echo hi # note", b"hi\n"),
        ("echo a \\", None),
        ("echo 'a\n b'", b"a\n b\n"),
        ("printf '%s' \"$0\"", None),
        ("cat <<'EOF' >/dev/null\nx\nEOF\nread -r a; echo got:[$a]", b"got:[]\n"),
        ("read -r a; echo got:[$a]", b"got:[]\n"),
        ("cat; echo done", b"done\n"),
        ("echo \u00fc\u4e16\U0001f600", "\u00fc\u4e16\U0001f600\n".encode()),
    ],
)
async def test_takes_the_command_exactly_as_it_is(commands: HostCommands, command: str, output: bytes | None) -> None:
    result = await commands.run(command, timeout_seconds=20)
    assert not result.timed_out
    assert output is None or result.stdout == output


async def test_a_command_of_the_longest_length_runs_and_a_longer_one_does_not(commands: HostCommands) -> None:
    filler = "x" * (131_071 - len("echo ; : "))
    assert (await commands.run(f"echo ; : {filler}")).exit_code == 0
    error = await refused(commands, f"echo ; : {filler}x")
    assert error.code == "invalid_arguments"
    assert "131,072 bytes" in error.message
    assert "file" in error.hint


async def test_two_megabytes_of_command_and_of_environment_are_refused(tmp_path: Path, commands: HostCommands) -> None:
    assert (await refused(commands, "true " + "x" * 2_000_000)).code == "invalid_arguments"
    large = HostCommands(tmp_path, env={f"V{n}": "x" * 100_000 for n in range(60)})
    error = await refused(large, "true")
    assert error.code == "invalid_arguments"
    assert "too long" in error.message
    assert (await large.run("echo ok", environment={})).stdout == b"ok\n"
    await large.aclose()


@pytest.mark.parametrize("command", ["", " \n\t", "echo a\0b", "echo \ud800", "\udcff echo"])
async def test_refuses_what_no_shell_can_be_given(commands: HostCommands, command: str) -> None:
    assert (await refused(commands, command)).code == "invalid_arguments"


@pytest.mark.parametrize("seconds", [0, -1, -0.0, math.nan, -math.inf])
async def test_refuses_a_timeout_that_is_none(commands: HostCommands, tmp_path: Path, seconds: float) -> None:
    error = await refused(commands, "touch started", timeout_seconds=seconds)
    assert error.code == "invalid_arguments"
    assert not (tmp_path / "started").exists()


@pytest.mark.parametrize("seconds", [601, 10**9, math.inf])
async def test_clamps_a_longer_timeout_and_says_so(commands: HostCommands, seconds: float) -> None:
    result = await commands.run("true", timeout_seconds=seconds)
    assert result.exit_code == 0
    assert "clamped" in result.note
    assert "600" in result.note


async def test_refuses_a_folder_outside_missing_or_a_file(commands: HostCommands, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "out").symlink_to(tmp_path.parent)
    assert (await refused(commands, "true", cwd="..")).code == "access_denied"
    assert (await refused(commands, "true", cwd="/")).code == "access_denied"
    assert (await refused(commands, "true", cwd="out")).code == "access_denied"
    assert (await refused(commands, "true", cwd="missing")).code == "not_found"
    assert (await refused(commands, "true", cwd="file/x")).code in ("not_found", "invalid_arguments")
    error = await refused(commands, "true", cwd="file")
    assert error.code == "invalid_arguments"
    assert "not a folder" in error.message
    assert (await refused(commands, "true", cwd="a\0b")).code == "invalid_arguments"


async def test_a_folder_that_a_command_removed_fails_plainly_and_others_work(
    commands: HostCommands, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    assert (await commands.run('rm -rf "$PWD"', cwd="sub")).exit_code == 0
    error = await refused(commands, "echo hi", cwd="sub")
    assert error.code == "not_found"
    assert "does not exist" in error.message
    assert (await commands.run("echo hi")).stdout == b"hi\n"


async def test_a_root_that_is_gone_is_a_clear_error(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    commands = HostCommands(root)
    assert (await commands.run('rm -rf "$PWD"')).exit_code == 0
    error = await refused(commands, "echo hi")
    assert error.code == "not_found"
    assert str(root) in error.message
    root.mkdir()
    assert (await commands.run("echo back")).stdout == b"back\n"
    await commands.aclose()


def test_a_folder_that_may_not_be_entered_is_an_io_error() -> None:
    error = not_started(StartError(errno.EACCES, "Permission denied", "chdir"), "closed")
    assert error.code == "io_error"
    assert "closed" in error.message
    assert "EACCES" in error.message


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM])
def test_a_machine_without_processes_is_an_io_error_that_may_pass(number: int) -> None:
    error = not_started(StartError(number, "", "exec"), "x")
    assert (error.code, error.retryable) == ("io_error", True)


async def test_names_that_are_no_text_can_be_folders(commands: HostCommands, tmp_path: Path) -> None:
    os.mkdir(os.fsencode(tmp_path) + b"/caf\xe9 \n'x")
    result = await commands.run("pwd -P", cwd="caf\\xe9 \n'x")
    assert result.stdout.endswith(b"/caf\xe9 \n'x\n")


async def test_a_tiny_timeout_is_one(commands: HostCommands) -> None:
    result = await commands.run("sleep 60", timeout_seconds=1e-9)
    assert result.timed_out


async def test_a_command_may_close_its_outputs_and_go_on(commands: HostCommands, tmp_path: Path) -> None:
    result = await commands.run("echo early; exec >&- 2>&-; sleep 0.5; touch later; exit 4")
    assert (result.exit_code, result.stdout) == (4, b"early\n")
    assert (tmp_path / "later").exists()


async def test_a_command_may_make_its_outputs_non_blocking(commands: HostCommands) -> None:
    code = "import os; os.set_blocking(1, False); os.set_blocking(0, False); os.write(1, b'x' * 1000)"
    assert (await commands.run(f'{sys.executable} -I -S -c "{code}"; echo end')).stdout == b"x" * 1000 + b"end\n"


async def test_death_by_signal_is_no_exit_code(commands: HostCommands) -> None:
    for number, name in ((9, "KILL"), (11, "SEGV"), (15, "TERM"), (2, "INT"), (1, "HUP"), (13, "PIPE")):
        result = await commands.run(f"echo start; kill -{name} $$; sleep 5")
        assert (result.exit_code, result.signal, result.stdout) == (None, number, b"start\n")
        assert not result.timed_out


async def test_signals_have_their_default_meaning_again(commands: HostCommands) -> None:
    """Python ignores SIGPIPE, and so would everything that it starts."""
    ignored = await commands.run("grep SigIgn /proc/self/status; grep SigBlk /proc/self/status")
    internal = 0b11 << 31  # signals 32 and 33 are glibc's own; its posix_spawn ignores them in the child
    assert [int(line.split()[1], 16) & ~internal for line in ignored.stdout.decode().splitlines()] == [0, 0]
    endless = await commands.run("yes | head -n 1", timeout_seconds=20)
    assert endless.stdout == b"y\n"


async def test_standard_input_is_empty_and_no_foreign_descriptor_is_open(commands: HostCommands) -> None:
    leaky = os.open("/", os.O_RDONLY)
    os.set_inheritable(leaky, True)
    try:
        result = await commands.run("ls -l /proc/self/fd | awk 'NF > 3 { print $9, $11 }'")
    finally:
        os.close(leaky)
    numbers = [line.split()[0] for line in result.stdout.decode().splitlines()]
    assert numbers[:3] == ["0", "1", "2"]
    assert len(numbers) == 4, result.stdout  # and the folder that ls lists
    assert b"0 /dev/null" in result.stdout


async def test_the_program_has_a_session_of_its_own(commands: HostCommands) -> None:
    result = await commands.run("ps -o pid=,sid=,pgid= -p $$")
    pid, session, group = result.stdout.split()
    assert pid == session == group
    assert int(session) != os.getsid(0)


async def test_output_is_told_while_it_runs(commands: HostCommands) -> None:
    told: list[tuple[str, bytes, float]] = []
    started = time.monotonic()

    def listen(stream: str, chunk: bytes) -> None:
        told.append((stream, chunk, time.monotonic() - started))

    await commands.run("echo one; echo two >&2; sleep 1; echo three", on_output=listen)
    assert {(stream, chunk) for stream, chunk, _ in told} >= {("stdout", b"one\n"), ("stderr", b"two\n")}
    assert told[-1][:2] == ("stdout", b"three\n")
    assert told[-1][2] - told[0][2] > 0.5


async def test_a_listener_that_raises_does_not_fail_the_command(commands: HostCommands) -> None:
    def listen(stream: str, chunk: bytes) -> None:
        raise RuntimeError("broken listener")

    assert (await commands.run("echo one; sleep 0.1; echo two", on_output=listen)).stdout == b"one\ntwo\n"


async def test_many_at_once_do_not_mix(commands: HostCommands) -> None:
    results = await asyncio.gather(*(commands.run(f"echo {n}; echo e{n} >&2; exit {n}") for n in range(64)))
    for n, result in enumerate(results):
        assert (result.exit_code, result.stdout, result.stderr) == (n, b"%d\n" % n, b"e%d\n" % n)


async def test_runs_again_after_it_was_closed(commands: HostCommands) -> None:
    await commands.aclose()
    assert (await commands.run("echo again")).stdout == b"again\n"


async def test_closing_ends_what_still_runs(commands: HostCommands) -> None:
    running = asyncio.create_task(commands.run("echo on; sleep 60"))
    await asyncio.sleep(0.5)
    await commands.aclose()
    result = await asyncio.wait_for(running, 20)
    assert (result.exit_code, result.signal, result.stdout) == (None, 9, b"on\n")


def test_an_empty_or_missing_root_is_refused_at_construction(tmp_path: Path) -> None:
    for root in ("", " ", str(tmp_path / "missing")):
        with pytest.raises(ValueError, match="root"):
            HostCommands(root)


async def test_bash_reads_commands_where_there_is_one(commands: HostCommands) -> None:
    require(shutil.which("bash"), "bash")
    assert commands.shell == "bash"
    assert (await commands.run("[[ -n $BASH_VERSION ]] && echo bash")).stdout == b"bash\n"


def test_powershell_is_given_the_command_as_one_argument() -> None:
    command = 'Write-Output "a b"; exit 3'
    assert shell_argv("powershell", r"C:\pwsh.exe", command) == (
        r"C:\pwsh.exe",
        "-NoProfile",
        "-NonInteractive",
        "-Command",
        command,
    )


async def test_the_loop_goes_on_while_a_command_floods(commands: HostCommands) -> None:
    worst = 0.0
    running = True

    async def watch() -> None:
        nonlocal worst
        while running:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            worst = max(worst, time.perf_counter() - before)

    watcher = asyncio.create_task(watch())
    code = "import os\nfor _ in range(400): os.write(1, b'x' * 100000)"
    result = await commands.run(f'{sys.executable} -I -S -c "{code}"')
    running = False
    await watcher
    assert len(result.stdout) + result.stdout_cut == 40_000_000
    assert worst < 1.0  # 10 ms on a quiet machine; benchmarks/shell.py measures it
