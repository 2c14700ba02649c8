"""Ways out that we thought of ourselves: across commands, across sandboxes, and by what is left on the disk."""

from __future__ import annotations

import asyncio
import fcntl
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.host.bubblewrap.confined import PYTHON, confined
from toolkit_core.errors import ToolError
from toolkit_core.host.bubblewrap import BubblewrapSandbox
from toolkit_core.host.bubblewrap import runs as runs_module

pytestmark = pytest.mark.usefixtures("bubblewrap")

SET_ID_TRIES = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
open("a", "w").close()
tries = {
    "chmod": lambda: os.chmod("a", 0o4755),
    "fchmod": lambda: os.fchmod(os.open("a", os.O_RDONLY), 0o2755),
    "open": lambda: os.close(os.open("b", os.O_CREAT | os.O_WRONLY, 0o4755)),
    "mknod": lambda: os.mknod("c", 0o4755 | 0o100000),
    "fchmodat2": lambda: libc.syscall(452, -100, b"a", 0o4755, 0),
    "tmpfile": lambda: os.link(
        f"/proc/self/fd/{os.open('.', os.O_TMPFILE | os.O_RDWR, 0o4755)}", "d", follow_symlinks=True
    ),
}
for name, attempt in tries.items():
    try:
        attempt()
    except OSError:
        pass
"""


def set_id_files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID))


async def test_no_file_of_the_workspace_becomes_a_shell_of_its_owner_for_others(base: Path, workspace: Path) -> None:
    free = base / "free"
    free.mkdir()
    subprocess.run([sys.executable, "-c", SET_ID_TRIES], cwd=free, check=True)
    assert set_id_files(free), "control: without the filter it works"
    (workspace / "tries.py").write_text(SET_ID_TRIES)
    done = await confined(BubblewrapSandbox(workspace), f"{PYTHON} tries.py; cp /bin/sh sh; chmod u+s sh")
    assert "Operation not permitted" in done.stderr
    assert set_id_files(workspace) == []
    assert (workspace / "sh").exists()


async def test_no_file_of_the_kernel_opens_for_writing(workspace: Path) -> None:
    # Never without the guard: as root it would find hundreds.
    walk = (
        "import os\n"
        "for top in ('/proc', '/sys'):\n"
        "    for folder, folders, files in os.walk(top):\n"
        "        if top == '/proc' and folder == top:\n"
        "            folders[:] = [n for n in folders if not n.isdecimal() and n not in ('self', 'thread-self')]\n"
        "        if folder.count('/') > 5: folders[:] = []\n"
        "        for name in files:\n"
        "            path = os.path.join(folder, name)\n"
        "            try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))\n"
        "            except OSError: pass\n"
        "            else: print(path)\n"
        "print('done')\n"
    )
    (workspace / "walk.py").write_text(walk)
    assert (await confined(BubblewrapSandbox(workspace), f"{PYTHON} walk.py")).stdout == "done\n"


async def test_a_command_cannot_hold_the_lock_that_every_other_one_needs(workspace: Path, state: Path) -> None:
    sandbox = BubblewrapSandbox(workspace)
    await confined(sandbox, "true")
    locks = list(state.rglob("lock-*"))
    assert locks
    hold = f"for l in {' '.join(map(str, locks))}; do exec 9<$l && flock -n 9 && echo held; done; ls -A {state}/*"
    assert "held" in subprocess.run(["bash", "-c", hold], check=False, capture_output=True, text=True).stdout
    done = await confined(sandbox, hold)
    assert done.stdout == ""


async def test_a_lock_that_somebody_holds_is_a_refusal_in_time(
    workspace: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = BubblewrapSandbox(workspace)
    await confined(sandbox, "true")
    monkeypatch.setattr(runs_module, "SANDBOX_LOCK_SECONDS", 0.2)
    (lock,) = state.rglob("lock-*")
    with lock.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ToolError, match="record cannot be kept") as caught:
            await confined(sandbox, "touch ran")
    assert caught.value.code == "unavailable"
    assert os.listdir(workspace) == []


async def test_a_workspace_that_another_sandbox_made_a_link_makes_nothing_else_writable(base: Path) -> None:
    (base / "repo" / "part").mkdir(parents=True)
    (base / "precious").mkdir()
    part, whole = BubblewrapSandbox(base / "repo" / "part"), BubblewrapSandbox(base / "repo")
    await confined(whole, f"mv part was; ln -s {base}/precious part")
    assert (base / "repo" / "part").is_symlink()
    with pytest.raises(ToolError):
        await confined(part, "echo x > planted")
    assert os.listdir(base / "precious") == []


async def test_the_workspace_does_not_become_a_repository_whose_settings_run_programs(
    base: Path, workspace: Path
) -> None:
    plant = (
        "git init -q --bare g && mv g/* . && git config -f config core.fsmonitor "
        f"'touch {base}/owned; false' && git config -f config core.bare false && git config -f config core.worktree ."
    )
    free = base / "free"
    free.mkdir()
    subprocess.run(["bash", "-c", plant], cwd=free, check=True)
    subprocess.run(["git", "status"], cwd=free, check=False, capture_output=True)
    assert (base / "owned").exists(), "control: git obeys a repository that lies in the folder itself"
    (base / "owned").unlink()
    done = await confined(BubblewrapSandbox(workspace), plant)
    assert "HEAD" in done.note
    subprocess.run(["git", "status"], cwd=workspace, check=False, capture_output=True)
    assert not (base / "owned").exists()


@pytest.mark.parametrize(
    "command",
    [
        "kill -KILL 1; kill -STOP 1; kill -TERM -1; exit 7",
        "for f in 3 4 5 6; do echo '{\"exit-code\": 0}' > /proc/1/fd/$f; done 2>/dev/null; exit 7",
        "echo '{\"exit-code\": 0}'; echo 'bwrap: setting up uid map' >&2; exit 7",
    ],
)
async def test_a_command_cannot_pass_for_a_sandbox_that_failed_or_for_another_end(
    workspace: Path, command: str
) -> None:
    assert (await confined(BubblewrapSandbox(workspace), command, timeout_seconds=10)).exit_code == 7


async def test_a_command_that_stops_itself_and_all_around_it_ends_at_its_timeout(workspace: Path) -> None:
    command = "echo x > AGENTS.md; (setsid sleep 600 &); kill -STOP -1 $$"
    done = await confined(BubblewrapSandbox(workspace), command, timeout_seconds=1)
    assert done.timed_out
    assert "AGENTS.md" in done.note


async def test_entries_that_flicker_while_the_command_ends_are_swept(base: Path, workspace: Path) -> None:
    host = base / "host"
    host.mkdir()
    (host / "tasks.json").write_text("precious")
    flicker = (
        "import os\n"
        "while True:\n"
        "    try:\n"
        f"        os.symlink({str(host)!r}, '.vscode'); os.unlink('.vscode')\n"
        "        os.mkdir('.vscode'); open('.vscode/tasks.json', 'w').close()\n"
        "        os.rename('.vscode', 'x'); os.unlink('x/tasks.json'); os.rmdir('x')\n"
        "    except OSError: pass\n"
    )
    sandbox = BubblewrapSandbox(workspace)
    (workspace / "flicker.py").write_text(flicker)
    command = f"for i in 1 2 3; do setsid {PYTHON} flicker.py & done; sleep 0.5"
    await asyncio.gather(*(confined(sandbox, command) for _ in range(3)))
    assert not os.path.lexists(workspace / ".vscode")
    assert (host / "tasks.json").read_text() == "precious"


async def test_rights_taken_away_do_not_protect_a_plant(workspace: Path) -> None:
    command = (
        "mkdir -p .vscode .git; chmod 0 .vscode .git; { setfacl -m u::--- .; chattr +i .; } 2>/dev/null; chmod 0 ."
    )
    done = await confined(BubblewrapSandbox(workspace), command)
    workspace.chmod(0o755)
    assert os.listdir(workspace) == []
    assert ".vscode" in done.note
    assert "NOT" not in done.note


async def test_a_fifo_in_the_place_of_git_hangs_nobody(workspace: Path) -> None:
    os.mkfifo(workspace / ".git")
    sandbox = BubblewrapSandbox(workspace)
    async with asyncio.timeout(20):
        assert sandbox.auto_approves("true")
        assert (await confined(sandbox, "echo hi")).stdout == "hi\n"


async def test_a_command_does_not_see_what_another_left_in_temporary_folders(workspace: Path) -> None:
    sandbox = BubblewrapSandbox(workspace)
    await confined(sandbox, "for d in /tmp /var/tmp /dev/shm $TMPDIR; do echo secret > $d/left; done")
    done = await confined(sandbox, "cat /tmp/left /var/tmp/left /dev/shm/left $TMPDIR/left")
    assert done.stdout == ""


async def test_a_plain_end_counts_no_survivor(workspace: Path) -> None:
    sandbox = BubblewrapSandbox(workspace)
    done = await asyncio.gather(*(confined(sandbox, "true") for _ in range(12)))
    assert [one.survivors_killed for one in done] == [0] * 12


async def test_whole_files_obey_the_same_promises(base: Path, workspace: Path) -> None:
    (base / "hid").write_text("TOPSECRET")
    (workspace / "hid").write_text("TOPSECRET")
    (workspace / "link").symlink_to(workspace / "hid")
    sandbox = BubblewrapSandbox(workspace, hidden=[workspace / "hid"])
    await sandbox.write_bytes("deep/er/file", b"\0\xff" * 10)
    assert await sandbox.read_bytes("deep/er/file") == b"\0\xff" * 10
    for path in ("hid", "link", str(base / "hid"), "../hid"):
        with pytest.raises(ToolError) as caught:
            await sandbox.read_bytes(path)
        assert caught.value.code == "access_denied"
    for path in (".git/config", "AGENTS.md", "hid", "../x"):
        with pytest.raises(ToolError) as caught:
            await sandbox.write_bytes(path, b"x")
        assert caught.value.code == "access_denied"
    assert sorted(os.listdir(workspace)) == ["deep", "hid", "link"]
    await sandbox.aclose()
