"""The sandbox as a whole, with real commands in it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.core.host.bubblewrap.confined import PYTHON, confined
from toolkit_core.errors import ToolError
from toolkit_core.host.bubblewrap import BubblewrapSandbox, SandboxLimits
from toolkit_core.host.processes import HostProcesses
from toolkit_core.ports.sandbox import Invocation, SandboxClient, SupportsWrap

pytestmark = pytest.mark.usefixtures("bubblewrap")

GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=main"]


def git(folder: Path, *words: str) -> str:
    return subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_it_is_a_client_on_the_shared_filesystem_that_wraps(workspace: Path) -> None:
    sandbox = BubblewrapSandbox(workspace)
    assert isinstance(sandbox, SandboxClient)
    assert isinstance(sandbox, SupportsWrap)
    assert sandbox.filesystem == "shared"


@pytest.mark.parametrize("cwd", ["", "/", "missing", "file"])
def test_a_workspace_that_is_none_is_refused_at_construction(base: Path, cwd: str) -> None:
    (base / "file").touch()
    with pytest.raises(ValueError, match=r"empty|/|folder"):
        BubblewrapSandbox(cwd if cwd in {"", "/"} else base / cwd)


def test_settings_that_contradict_are_refused_at_construction(base: Path, workspace: Path) -> None:
    with pytest.raises(ValueError, match="lies in the hidden path"):
        BubblewrapSandbox(workspace, hidden=[base])
    with pytest.raises(ValueError, match="no folder"):
        BubblewrapSandbox(workspace, writable=[base / "missing"])
    with pytest.raises(ValueError, match="whole machine"):
        BubblewrapSandbox(workspace, writable=["/"])
    with pytest.raises(ValueError, match="empty"):
        BubblewrapSandbox(workspace, hidden=[""])
    with pytest.raises(ValueError, match="cpu_seconds"):
        SandboxLimits(cpu_seconds=0)


async def test_a_command_writes_in_the_workspace_and_in_private_temp_alone(base: Path, workspace: Path) -> None:
    script = f"echo a > made && echo b > $TMPDIR/t && cat made $TMPDIR/t; echo c > {base}/out; echo $TMPDIR"
    done = await confined(BubblewrapSandbox(workspace), script)
    assert done.stdout == "a\nb\n/tmp\n"
    assert "Read-only file system" in done.stderr
    assert sorted(os.listdir(base)) == ["state", "ws"]


async def test_the_exit_code_is_the_commands_own(workspace: Path) -> None:
    sandbox = BubblewrapSandbox(workspace)
    codes = [(await confined(sandbox, f"exit {code}")).exit_code for code in (0, 1, 7, 125, 255)]
    assert codes == [0, 1, 7, 125, 255]


@pytest.mark.parametrize("strict", [False, True])
async def test_a_death_by_signal_is_no_exit_code_and_an_exit_code_no_death(workspace: Path, strict: bool) -> None:
    sandbox = BubblewrapSandbox(workspace, strict=strict, limits=SandboxLimits(open_files=200))
    for name, number in (("KILL", 9), ("TERM", 15), ("SEGV", 11)):
        done = await sandbox.run(f"echo before; kill -{name} $$")
        assert (done.exit_code, done.signal, done.stdout) == (None, number, b"before\n")
    for script in ("exit 137", "sh -c 'kill -9 $$'; exit 137", "echo Killed >&2; exit 137"):
        done = await sandbox.run(script)
        assert (done.exit_code, done.signal) == (137, None)
    processes = HostProcesses(workspace, wrap=sandbox)
    started = await processes.start("sleep 0.3; kill -KILL $$")
    while (state := await processes.read(started.process_id, wait_seconds=5)).running:
        pass
    assert (state.exit_code, state.signal) == (None, 9)
    await processes.aclose()


async def test_what_a_command_leaves_running_is_counted(workspace: Path) -> None:
    sandbox = BubblewrapSandbox(workspace)
    done = await sandbox.run("sleep 95 & setsid sleep 96 & echo bg")
    assert (done.exit_code, done.stdout, done.survivors_killed) == (0, b"bg\n", 2)
    assert (await sandbox.run("sleep 0.1; echo none")).survivors_killed == 0
    assert not (await sandbox.run("ls /proc/self/fd /proc/$$/fd; kill -TERM -1; sleep 0.2; echo on")).signal
    begun = asyncio.get_running_loop().time()
    late = await sandbox.run("trap 'echo polite; exit 3' TERM; while :; do sleep 0.1; done", timeout_seconds=1)
    assert (late.timed_out, late.stdout) == (True, b"polite\n")
    assert asyncio.get_running_loop().time() - begun < 20


async def test_here_documents_comments_and_a_trailing_backslash_are_the_shells_own(workspace: Path) -> None:
    sandbox = BubblewrapSandbox(workspace)
    assert (await confined(sandbox, "sort <<END\nb\na\nEND")).stdout == "a\nb\n"
    assert (await confined(sandbox, "echo hi # note")).stdout == "hi\n"
    assert (await confined(sandbox, "echo a \\")).stdout.startswith("a")


async def test_it_starts_where_it_is_told_even_through_a_link(base: Path, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (base / "link").symlink_to(workspace)
    sandbox = BubblewrapSandbox(base / "link")
    assert (await confined(sandbox, "pwd", cwd=str(base / "link" / "sub"))).stdout.strip() == str(workspace / "sub")
    assert (await confined(sandbox, f"echo x > {base}/link/through; ls")).stdout == "sub\nthrough\n"


async def test_a_folder_that_vanished_after_it_was_looked_at_is_a_sandbox_error(workspace: Path) -> None:
    gone = Invocation(("/bin/true",), str(workspace / "gone"), {})
    wrapped = await BubblewrapSandbox(workspace).wrap(gone, "true")
    assert wrapped.after_exit is not None
    with pytest.raises(ToolError, match="was not run") as caught:
        await wrapped.after_exit()
    assert caught.value.code == "unavailable"
    assert "gone" in caught.value.message


async def test_nothing_of_the_trace_or_the_hosts_environment_gets_in(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_API_KEY", "sk-secret")
    environment = {
        "PATH": os.environ["PATH"],
        "TRACEPARENT": "00-1-2-01",
        "TRACESTATE": "a=b",
        "TMPDIR": "/var/scratch/7",
        "XDG_CACHE_HOME": "/var/scratch/7/cache",
        "OTHER": "/var/scratch/77",
    }
    done = await confined(
        BubblewrapSandbox(workspace), "env; tr '\\0' '\\n' < /proc/1/environ", environment=environment
    )
    lines = done.stdout.splitlines()
    assert "sk-secret" not in done.stdout
    assert not [line for line in lines if line.startswith("TRACE")]
    assert {"TMPDIR=/tmp", "XDG_CACHE_HOME=/tmp/cache", "OTHER=/var/scratch/77"} <= set(lines)
    assert environment["TMPDIR"] == "/var/scratch/7"


async def test_no_descriptor_but_the_three_and_no_hidden_name_is_visible(base: Path, workspace: Path) -> None:
    (base / "very-secret-name").mkdir()
    sandbox = BubblewrapSandbox(workspace, hidden=[base / "very-secret-name"])
    done = await confined(sandbox, "ls /proc/self/fd; ls -l /proc/1/fd; tr '\\0' ' ' < /proc/1/cmdline")
    assert done.stdout.split("\n")[:4] == ["0", "1", "2", "3"]  # 3 is ls's own, of the folder that it lists
    assert "very-secret-name" not in done.stdout
    assert len([line for line in done.stdout.splitlines() if re.search(r"memfd|pipe:.*deleted", line)]) == 0


async def test_a_read_only_workspace_and_absent_trust_inputs_break_nothing(workspace: Path) -> None:
    workspace.chmod(0o555)
    done = await confined(BubblewrapSandbox(workspace), "echo hi")
    workspace.chmod(0o755)
    assert (done.exit_code, done.stdout) == (0, "hi\n")


async def test_nothing_is_left_or_seen_in_the_workspace_of_what_is_protected(workspace: Path) -> None:
    git(workspace, "init", "-q", ".")
    before, status = sorted(os.listdir(workspace)), git(workspace, "status", "--short")
    sandbox = BubblewrapSandbox(workspace)
    running = asyncio.ensure_future(confined(sandbox, "sleep 30", timeout_seconds=0.8))
    await asyncio.sleep(0.4)
    assert sorted(os.listdir(workspace)) == before
    assert (await running).timed_out
    assert (await confined(sandbox, "ls -A")).stdout.split() == before
    assert sorted(os.listdir(workspace)) == before
    assert git(workspace, "status", "--short") == status


async def test_git_reads_a_tracked_file_as_the_regular_file_that_it_is(workspace: Path) -> None:
    (workspace / ".env.example").write_text("A=1\n")
    (workspace / ".envrc").write_text("B=1\n")
    git(workspace, "init", "-q", ".")
    git(workspace, "add", ".")
    # As root inside a user namespace the owner is the same, so git trusts the folder.
    done = await confined(
        BubblewrapSandbox(workspace), "git status --short; git diff --stat && stat -c %F .env.example .envrc"
    )
    assert (done.exit_code, done.stdout) == (0, "A  .env.example\nA  .envrc\nregular file\nregular file\n")
    assert sorted(os.listdir(workspace)) == [".env.example", ".envrc", ".git"]


async def test_a_linked_worktree_protects_the_real_git_folder(base: Path, workspace: Path) -> None:
    main = workspace / "main"
    main.mkdir()
    git(main, "init", "-q", ".")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", "../wt")
    config = (main / ".git" / "config").read_text()
    # Control: a sandbox of the folder around both would let it be changed.
    assert (
        await confined(BubblewrapSandbox(workspace), "echo '# x' >> main/.git/config; echo rc=$?")
    ).stdout == "rc=0\n"
    (main / ".git" / "config").write_text(config)
    for sandbox in (
        BubblewrapSandbox(workspace / "wt"),
        BubblewrapSandbox(workspace / "wt", writable=[main]),
        BubblewrapSandbox(workspace / "wt", writable=[workspace]),
        BubblewrapSandbox(main),
    ):
        done = await confined(
            sandbox,
            f"git log --oneline | wc -l; printf x >> {main}/.git/config; printf x > {workspace}/wt/.git; "
            f"printf x >> {main}/.git/worktrees/wt/config.worktree; true",
        )
        assert done.stdout.strip() == "1", done.stderr
        assert done.stderr.count("Read-only file system") == 3
    assert (main / ".git" / "config").read_text() == config


@pytest.mark.parametrize("forged", ["pointer", "link", "dangling"])
async def test_a_forged_git_widens_nothing(base: Path, workspace: Path, forged: str) -> None:
    elsewhere = base / "elsewhere"
    (elsewhere / "hooks").mkdir(parents=True)
    if forged == "pointer":
        (workspace / ".git").write_text(f"gitdir: {elsewhere}\n")
    else:
        (workspace / ".git").symlink_to(elsewhere if forged == "link" else base / "nowhere")
    sandbox = BubblewrapSandbox(workspace)
    assert sandbox.auto_approves("true") == (forged == "pointer")
    done = await confined(sandbox, f"echo x > {elsewhere}/hooks/x; mkdir {base}/nowhere; rm .git; echo x > .git; true")
    assert "Read-only file system" in done.stderr
    assert os.listdir(elsewhere / "hooks") == []
    assert not (base / "nowhere").exists()
    if forged == "pointer":
        assert (workspace / ".git").read_text() == f"gitdir: {elsewhere}\n"
    else:
        assert "was restored" in done.note
        assert (workspace / ".git").is_symlink()


async def test_a_trust_link_into_the_workspace_is_held_and_restored(workspace: Path) -> None:
    (workspace / "real.json").write_text("{}")
    (workspace / ".mcp.json").symlink_to("real.json")
    sandbox = BubblewrapSandbox(workspace)
    assert not sandbox.auto_approves("true")
    done = await confined(
        sandbox, "echo evil > .mcp.json; echo evil > real.json; rm -f .mcp.json; echo evil > .mcp.json"
    )
    assert done.stderr.count("Read-only file system") == 2
    assert (workspace / ".mcp.json").is_symlink()
    assert (workspace / ".mcp.json").read_text() == "{}"
    assert "restored" in done.note


async def test_hidden_beats_every_other_setting(base: Path, workspace: Path) -> None:
    secrets, inner = base / "secrets", workspace / ".git" / "credentials"
    secrets.mkdir()
    inner.parent.mkdir()
    for file in (secrets / "key", inner):
        file.write_text("TOPSECRET")
    plain = BubblewrapSandbox(workspace)
    assert (await confined(plain, f"cat {secrets}/key {inner}")).stdout == "TOPSECRET" * 2
    sandbox = BubblewrapSandbox(workspace, writable=[secrets], hidden=[secrets, inner])
    done = await confined(sandbox, f"cat {secrets}/key {inner}; ls -A {secrets}; echo x > {secrets}/new; id -u")
    assert "TOPSECRET" not in done.text
    assert not (secrets / "new").exists()


async def test_a_hidden_file_does_not_get_bare_by_moving_the_folder_above_it_for_the_next_command(
    workspace: Path,
) -> None:
    (workspace / "a" / "b").mkdir(parents=True)
    (workspace / "a" / "b" / "key").write_text("TOPSECRET")
    sandbox = BubblewrapSandbox(workspace, hidden=[workspace / "a" / "b" / "key"])
    moved = await confined(sandbox, "mv a c; mv a/b d; cp -r a e")
    read = await confined(sandbox, "cat */key */*/key")
    assert "cannot move 'a' to 'c': Device or resource busy" in moved.stderr
    assert (workspace / "a" / "b" / "key").read_text() == "TOPSECRET"
    assert "TOPSECRET" not in moved.text + read.text


async def test_a_link_planted_under_a_hidden_name_does_not_take_the_workspace_away(workspace: Path) -> None:
    sandbox = BubblewrapSandbox(workspace, hidden=[workspace / "secret"])
    await confined(sandbox, f"ln -s {workspace} secret")
    assert (await confined(sandbox, "echo hi > x; cat x")).stdout == "hi\n"


async def test_unix_sockets_stay_closed_with_the_network_on(base: Path, workspace: Path) -> None:
    tcp = socket.create_server(("127.0.0.1", 0))
    unix, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    unix.bind(str(base / "s"))
    abstract.bind(f"\0toolkit-{os.getpid()}")
    with tcp, unix, abstract:
        unix.listen()
        abstract.listen()
        tries = (
            "import socket,sys\n"
            "for family,address in ((1,sys.argv[1]),(1,'\\0'+sys.argv[2]),(2,('127.0.0.1',int(sys.argv[3])))):\n"
            "    try: socket.socket(family).connect(address); print('in')\n"
            "    except OSError: print('closed')\n"
        )
        words = [PYTHON, "-c", tries, str(base / "s"), f"toolkit-{os.getpid()}", str(tcp.getsockname()[1])]
        control = subprocess.run(words, check=True, capture_output=True, text=True)
        assert control.stdout.split() == ["in", "in", "in"]
        command = f"exec {PYTHON} -c '{tries.replace(chr(39), chr(34))}' {words[3]} {words[4]} {words[5]}"
        on = await confined(BubblewrapSandbox(workspace, network=True), command)
        off = await confined(BubblewrapSandbox(workspace), command + "; getent hosts example.com; echo rc=$?")
    assert on.stdout.split() == ["closed", "closed", "in"], on.stderr
    assert off.stdout.split()[:3] == ["closed", "closed", "closed"]


async def test_names_do_not_resolve_without_the_network(workspace: Path) -> None:
    assert (await confined(BubblewrapSandbox(workspace), "getent hosts example.com; echo rc=$?")).stdout == "rc=2\n"


async def test_commands_side_by_side_return_to_the_state_before_both(workspace: Path) -> None:
    sandbox = BubblewrapSandbox(workspace)
    slow = "sleep 0.8; ls -A; echo slow > AGENTS.md"
    first = asyncio.ensure_future(confined(sandbox, slow))
    await asyncio.sleep(0.3)
    quick = await confined(BubblewrapSandbox(workspace), "echo quick > AGENTS.md; mkdir .vscode")
    done = await first
    assert "AGENTS.md, .vscode" in quick.note or ".vscode" in quick.note
    assert "AGENTS.md" in done.note
    assert os.listdir(workspace) == []


async def test_limits_bind(workspace: Path) -> None:
    limits = SandboxLimits(cpu_seconds=1, memory_bytes=400 * 1024**2, open_files=64, processes=64)
    sandbox = BubblewrapSandbox(workspace, limits=limits)
    shown = await confined(sandbox, "ulimit -t; ulimit -v; ulimit -n; ulimit -u")
    assert shown.stdout.split() == ["1", str(400 * 1024), "64", "64"]
    burnt = await confined(sandbox, "sh -c 'while :; do :; done'; echo rc=$?")
    assert burnt.stdout in {"rc=137\n", "rc=152\n"}
    big = await confined(sandbox, f"{PYTHON} -c 'bytearray(900 * 1024**2)'; echo rc=$?")
    assert "MemoryError" in big.stderr
    assert limits.unbound() == (("processes",) if os.geteuid() == 0 else ())


async def test_a_limit_cannot_be_raised_again(workspace: Path) -> None:
    sandbox = BubblewrapSandbox(workspace, limits=SandboxLimits(open_files=64))
    assert "rc=0" not in (await confined(sandbox, "ulimit -n 4096; echo rc=$?")).stdout


async def test_strict_mode_leaves_ordinary_work_alone(workspace: Path) -> None:
    sandbox = BubblewrapSandbox(workspace, strict=True, limits=SandboxLimits(open_files=256))
    script = (
        "mkdir -p a b && echo x > a/f && mv a/f b/g && ln b/g h && truncate -s 0 h && rm -r a && echo y > /tmp/t && "
        "cat /tmp/t > /dev/null && echo z > /dev/stderr && yes | head -1 && echo w > /dev/shm/s && ls"
    )
    done = await confined(sandbox, script)
    assert (done.exit_code, done.stdout.split()) == (0, ["y", "b", "h"]), done.stderr


async def test_a_polite_end_reaches_the_command_and_not_the_sandbox_first(workspace: Path) -> None:
    script = "trap 'echo tidied > tidied; exit 3' TERM; sleep 60 & wait"
    done = await confined(BubblewrapSandbox(workspace), script, timeout_seconds=1.0)
    assert done.timed_out
    assert (workspace / "tidied").exists()


async def test_cancelled_it_leaves_no_process_descriptor_or_plant(workspace: Path) -> None:
    sandbox = BubblewrapSandbox(workspace)
    await confined(sandbox, "true")
    before = len(os.listdir("/proc/self/fd"))
    tasks = [
        asyncio.ensure_future(confined(sandbox, f"setsid sleep 98{os.getpid()} & echo x > CLAUDE.md; sleep 60"))
        for _ in range(3)
    ]
    while not (workspace / "CLAUDE.md").exists():
        await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert os.listdir(workspace) == []
    assert len(os.listdir("/proc/self/fd")) == before
    shown = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
    assert f"sleep 98{os.getpid()}" not in shown


async def test_cancelled_before_it_started_the_record_is_closed_again(workspace: Path, state: Path) -> None:
    sandbox = BubblewrapSandbox(workspace)
    for delay in (0.0, 0.005, 0.03):
        task = asyncio.ensure_future(sandbox.wrap(Invocation(("/bin/true",), str(workspace), {}), "true"))
        await asyncio.sleep(delay)
        if task.done():
            after = (await task).after_exit
            assert after is not None
            with pytest.raises(ToolError):
                await after()
            continue
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert list(state.rglob("*.json")) == []


async def test_an_invocation_that_was_never_started_is_swept_and_closed(workspace: Path, state: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    wrapped = await BubblewrapSandbox(workspace).wrap(Invocation(("/bin/true",), str(workspace), {}), "true")
    assert wrapped.after_exit is not None
    with pytest.raises(ToolError, match="was not run"):
        await wrapped.after_exit()
    assert await wrapped.after_exit() == ""
    assert len(os.listdir("/proc/self/fd")) == before
    assert list(state.rglob("*.json")) == []


@pytest.mark.parametrize("command", ["", "  ", "a\0b"])
def test_what_is_no_command_is_never_approved(workspace: Path, command: str) -> None:
    assert BubblewrapSandbox(workspace).auto_approves("true")
    assert not BubblewrapSandbox(workspace).auto_approves(command)


async def test_no_room_for_a_record_is_a_refusal(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(writable: Sequence[str]) -> str | None:
        return None

    monkeypatch.setattr("toolkit_core.host.bubblewrap.sandbox.state_folder", nowhere)
    (base / "ws").mkdir()
    with pytest.raises(ToolError, match="no private folder") as caught:
        await confined(BubblewrapSandbox(base / "ws"), "touch ran")
    assert caught.value.code == "unavailable"
    assert os.listdir(base / "ws") == []


async def test_status_text_that_a_stranger_wrote_is_ignored(
    workspace: Path, stub: object, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = base / "bin"
    folder.mkdir()
    fake = folder / "bwrap"
    fake.write_text(
        '#!/bin/sh\nprintf \'[]\\nnull\\nnonsense\\n{"child-pid": "x"}\\n{"child-pid": 1}\\n\' >&5\n'
        f'exec {shutil.which("bwrap")} "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    assert json.loads((await confined(BubblewrapSandbox(workspace), "echo '{}'")).stdout) == {}


OWNER = """
import asyncio, signal, sys
from toolkit_core.host.bubblewrap import BubblewrapSandbox
signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite in the background is started with it ignored
asyncio.run(BubblewrapSandbox(sys.argv[1]).run(sys.argv[2]))
"""


def running(marker: str) -> bool:
    shown = subprocess.run(["ps", "-eo", "args"], check=True, capture_output=True, text=True).stdout
    return any(line.startswith(f"sleep {marker}") for line in shown.splitlines())


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_with_its_owner_the_whole_sandbox_dies_and_the_next_command_cleans_up(
    workspace: Path, end: signal.Signals
) -> None:
    marker = f"96{os.getpid()}{end:d}"
    command = f"setsid env -i sleep {marker} & echo x > CLAUDE.md; trap '' TERM INT; sleep {marker}"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(workspace), command],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    async with asyncio.timeout(30):
        while not (running(marker) and (workspace / "CLAUDE.md").exists()):
            await asyncio.sleep(0.05)
        owner.send_signal(end)
        owner.wait()
        while running(marker):
            await asyncio.sleep(0.05)
    done = await confined(BubblewrapSandbox(workspace), "ls -A")
    assert done.stdout == ""
    assert end == signal.SIGINT or "CLAUDE.md" in done.note  # on SIGINT Python itself swept
