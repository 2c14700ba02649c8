from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.support import require, soak
from toolkit_core.errors import ToolError
from toolkit_core.host.files import HostFiles
from toolkit_core.host.in_place import recovery_name
from toolkit_core.host.temporary import temporary_name

PRELUDE = """
import asyncio, os, sys, resource, signal
from toolkit_core.errors import ToolError
from toolkit_core.host.files import HostFiles
root = sys.argv[1]
def write(path, content, **options):
    try:
        return asyncio.run(HostFiles(root, **options).replace(path, lambda _old: content))
    except ToolError as e:
        return e
"""


def child(code: str, root: Path, *, wrapper: tuple[str, ...] = ()) -> str:
    """Run a program over `root` and return what it printed."""
    program = PRELUDE + textwrap.dedent(code)
    done = subprocess.run(
        [*wrapper, sys.executable, "-c", program, os.fspath(root)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def names(folder: Path) -> set[str]:
    return set(os.listdir(folder))


def test_control_writing_over_a_file_past_the_size_limit_destroys_it(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old" * 100)
    out = child(
        """
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        try:
            with open(root + "/a.txt", "wb", buffering=0) as file:
                file.write(b"n" * 100_000)
                file.write(b"n" * 100_000)
        except OSError as e:
            print(e.errno)
        """,
        workspace,
    )
    assert out.strip()
    assert b"old" not in (workspace / "a.txt").read_bytes()


def test_past_the_size_limit_the_old_bytes_stay_whole(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old" * 100)
    out = child(
        """
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for path in ("a.txt", "b.txt", "new/deep/c.txt"):
            e = write(path, b"n" * 100_000)
            print(e.code, "EFBIG" in e.message)
        """,
        workspace,
    )
    assert out.splitlines() == ["io_error True"] * 3
    assert (workspace / "a.txt").read_bytes() == b"old" * 100
    assert names(workspace) == {"a.txt"}


@pytest.fixture
def can_mount() -> None:
    probe = ["unshare", "-m", "true"]
    works = shutil.which("unshare") and subprocess.run(probe, check=False, capture_output=True).returncode == 0
    require(works, "mount namespaces need root")


@pytest.mark.usefixtures("can_mount")
def test_on_a_full_disk_the_old_bytes_stay_whole(workspace: Path) -> None:
    out = child(
        """
        import subprocess
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", root], check=True)
        open(root + "/a.txt", "wb").write(b"old" * 1000)
        for sync in (True, False):
            for path in ("a.txt", "b.txt", "new/c.txt"):
                e = write(path, b"n" * 1_000_000, fsync=sync)
                print(e.code, "ENOSPC" in e.message)
        print(open(root + "/a.txt", "rb").read() == b"old" * 1000, os.listdir(root))
        """,
        workspace,
        wrapper=("unshare", "-m"),
    )
    assert out.splitlines() == ["io_error True"] * 6 + ["True ['a.txt']"]


@pytest.mark.usefixtures("can_mount")
def test_on_a_read_only_filesystem_the_reason_is_given(workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    out = child(
        """
        import subprocess
        subprocess.run(["mount", "--bind", root, root], check=True)
        subprocess.run(["mount", "-o", "remount,ro,bind", root], check=True)
        for path in ("a.txt", "b.txt", "new/c.txt"):
            e = write(path, b"new")
            print(e.code, "EROFS" in e.message)
        """,
        workspace,
        wrapper=("unshare", "-m"),
    )
    assert out.splitlines() == ["io_error True"] * 3
    assert names(workspace) == {"a.txt"}


@pytest.mark.usefixtures("can_mount")
def test_a_mounted_file_is_changed_in_place_with_a_recovery_copy(workspace: Path) -> None:
    (workspace / "inner").write_text("the old content")
    (workspace / "inner").chmod(0o640)
    (workspace / "mounted").write_text("")
    out = child(
        """
        import subprocess
        subprocess.run(["mount", "--bind", root + "/inner", root + "/mounted"], check=True)
        try:
            os.replace(root + "/inner", root + "/mounted")
        except OSError as e:
            print("CONTROL", e.strerror)
        inode = os.stat(root + "/mounted").st_ino
        for content in (b"longer than the old content", b"short"):
            w = write("mounted", content)
            print(w.created, w.recovery_copy, open(root + "/mounted", "rb").read() == content)
        print(os.stat(root + "/mounted").st_ino == inode)
        """,
        workspace,
        wrapper=("unshare", "-m"),
    )
    copy = recovery_name("mounted")
    assert out.splitlines() == [
        "CONTROL Device or resource busy",
        f"False {copy} True",
        f"False {copy} True",
        "True",
    ]
    assert (workspace / "inner").read_text() == "short"
    assert (workspace / copy).read_text() == "longer than the old content"
    assert (workspace / copy).stat().st_mode & 0o777 == 0o640
    assert names(workspace) == {"inner", "mounted", copy}


@pytest.mark.usefixtures("can_mount")
def test_a_mounted_file_gets_its_old_bytes_back_when_the_disk_is_full(workspace: Path) -> None:
    (workspace / "mounted").write_text("")
    out = child(
        """
        import subprocess
        disk = root + "/disk"
        os.mkdir(disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", disk], check=True)
        open(disk + "/f", "wb").write(b"old" * 100)
        subprocess.run(["mount", "--bind", disk + "/f", root + "/mounted"], check=True)
        e = write("mounted", b"n" * 1_000_000)
        print(e.code, "ENOSPC" in e.message, open(root + "/mounted", "rb").read() == b"old" * 100)
        """,
        workspace,
        wrapper=("unshare", "-m"),
    )
    assert out.split() == ["io_error", "True", "True"]
    assert names(workspace) == {"mounted", "disk"}


def test_a_folder_that_may_not_be_written_gives_the_systems_reason(workspace: Path) -> None:
    require(os.geteuid() == 0, "needs root, to become somebody else")
    (workspace / "a.txt").write_text("old")
    (workspace / "a.txt").chmod(0o666)
    (workspace / "locked.txt").write_text("old")
    (workspace / "locked.txt").chmod(0o444)
    for folder in (workspace, *list(workspace.parents)[:-1]):
        folder.chmod(folder.stat().st_mode | 0o055)
    out = child(
        """
        write("loads_all_modules", b"")  # another user may not read the interpreter's folder
        os.unlink(root + "/loads_all_modules")
        os.setgid(65534); os.setuid(65534)
        for path in ("a.txt", "b.txt", "new/c.txt", "locked.txt"):
            e = write(path, b"new")
            print(e.code, "EACCES" in e.message)
        """,
        workspace,
    )
    assert out.splitlines() == ["io_error True"] * 4
    assert (workspace / "a.txt").read_text() == "old"
    assert names(workspace) == {"a.txt", "locked.txt"}


async def test_a_link_to_another_filesystem_is_written_beside_its_target(workspace: Path) -> None:
    require(os.path.isdir("/dev/shm") and os.stat("/dev/shm").st_dev != workspace.stat().st_dev, "one filesystem only")
    far = Path(f"/dev/shm/toolkit-test-{os.getpid()}")
    far.mkdir()
    try:
        (far / "a.txt").write_text("old")
        (workspace / "link").symlink_to(far / "a.txt")
        with pytest.raises(ToolError) as caught:
            await HostFiles(workspace).replace("link", lambda _old: b"new")
        assert caught.value.code == "access_denied"
        await HostFiles("/").replace(os.fspath(workspace / "link"), lambda _old: b"new")
        assert (far / "a.txt").read_text() == "new"
        assert (workspace / "link").is_symlink()
        assert names(far) == {"a.txt"}
        assert names(workspace) == {"link"}
    finally:
        shutil.rmtree(far)


WRITER = """
import itertools
files = HostFiles(root, fsync=False)
async def main():
    print("ready", flush=True)
    for number in itertools.count():
        content = bytes([65 + number % 26]) * 300_000
        await files.replace("a.txt", lambda _old: content)
        await files.replace(f"new{number % 7}/b.txt", lambda _old: content)
asyncio.run(main())
"""


def test_sigkill_leaves_old_or_new_and_at_most_one_temporary_that_the_next_write_removes(workspace: Path) -> None:
    left = 0
    for number in range(soak(200)):
        writer = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + WRITER, os.fspath(workspace)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.01 + 0.0037 * (number % 11))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        for path in (workspace / "a.txt", *workspace.glob("new*/b.txt")):
            data = path.read_bytes() if path.exists() else b""
            assert len(data) in (0, 300_000)
            assert len(set(data)) <= 1
        leftovers = [path for path in workspace.rglob("*") if path.is_file() and path.name not in ("a.txt", "b.txt")]
        assert all(path.name.startswith(".toolkit-tmp-") for path in leftovers)
        assert len(leftovers) <= 1
        left += len(leftovers)
        asyncio.run(HostFiles(workspace, fsync=False).replace("a.txt", lambda _old: b"x" * 300_000))
        assert not [name for name in names(workspace) if name.startswith(".toolkit-tmp-")]
        for path in leftovers:
            if path.exists():
                asyncio.run(HostFiles(workspace, fsync=False).replace(f"{path.parent.name}/c", lambda _old: b"x"))
                assert not path.exists()
                (path.parent / "c").unlink()


async def test_a_leftover_of_the_same_file_is_removed_by_its_next_write(workspace: Path) -> None:
    files = HostFiles(workspace)
    await files.replace("b.txt", lambda _old: b"swept once")
    (workspace / temporary_name("a.txt")).write_bytes(b"half")
    await files.replace("a.txt", lambda _old: b"new")
    assert names(workspace) == {"a.txt", "b.txt"}


async def test_a_leftover_of_any_file_is_removed_by_the_first_write_to_the_folder(workspace: Path) -> None:
    (workspace / temporary_name("other.txt")).write_bytes(b"half")
    await HostFiles(workspace).replace("a.txt", lambda _old: b"new")
    assert names(workspace) == {"a.txt"}


async def test_the_temporary_of_a_write_that_goes_on_elsewhere_is_left_alone(workspace: Path) -> None:
    theirs = workspace / temporary_name("a.txt")
    theirs.write_bytes(b"half")
    with theirs.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        await HostFiles(workspace).replace("a.txt", lambda _old: b"new")
        assert theirs.read_bytes() == b"half"
    assert (workspace / "a.txt").read_bytes() == b"new"
    assert names(workspace) == {"a.txt", theirs.name}


INCREMENTER = """
files = HostFiles(root, fsync=False)
async def main():
    landed = 0
    while landed < 40:
        try:
            await files.replace("n", lambda old: str(int(old.read_at(0, 20)) + 1 if old else 1).encode())
            landed += 1
        except ToolError as e:
            assert e.code == "stale_file", e
asyncio.run(main())
"""


def test_increments_of_several_processes_all_land(workspace: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", PRELUDE + INCREMENTER, os.fspath(workspace)]) for _ in range(4)]
    assert [writer.wait(60) for writer in writers] == [0] * 4
    assert (workspace / "n").read_text() == "160"
    assert names(workspace) == {"n"}


async def test_a_lock_that_somebody_keeps_delays_a_write_and_does_not_stop_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit_core.host.locking.FILE_LOCK_SECONDS", 0.1)
    (workspace / "a.txt").write_text("old")
    with (workspace / "a.txt").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        await HostFiles(workspace).replace("a.txt", lambda _old: b"new")
    assert (workspace / "a.txt").read_text() == "new"


def test_folders_may_be_as_deep_as_a_path_is_long(workspace: Path) -> None:
    out = child(
        """
        path = "d/" * 1500 + "a.txt"
        print(write(path, b"deep", fsync=False).created)
        files = HostFiles(root)
        print(asyncio.run(files.read(path, lambda file: file.read_at(0, 9))))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        print(write("e/" * 200 + "a.txt", b"x").code)
        """,
        workspace,
    )
    assert out.split() == ["True", "b'deep'", "io_error"]
    assert names(workspace) == {"d"}
    subprocess.run(["rm", "-rf", workspace / "d"], check=True)  # too deep for shutil.rmtree


def test_two_processes_that_write_one_file_end_with_one_of_their_contents(workspace: Path) -> None:
    program = PRELUDE + (
        "for _ in range(60):\n    w = write('a.txt', sys.argv[2].encode() * 50_000, fsync=False)\n"
        "    assert not isinstance(w, ToolError) or w.code == 'stale_file', w\n"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", program, os.fspath(workspace), letter], stderr=subprocess.PIPE)
        for letter in "abc"
    ]
    for writer in writers:
        assert writer.wait(60) == 0, writer.stderr and writer.stderr.read()
        assert writer.stderr is not None
        writer.stderr.close()
    data = (workspace / "a.txt").read_bytes()
    assert len(data) == 50_000
    assert len(set(data)) == 1
    assert names(workspace) == {"a.txt"}


def test_a_running_program_can_be_replaced(workspace: Path) -> None:
    shutil.copy(shutil.which("sleep") or "/bin/sleep", workspace / "program")
    running = subprocess.Popen([workspace / "program", "20"])
    try:
        with pytest.raises(OSError, match="busy"):
            (workspace / "program").open("r+b")  # CONTROL: it cannot be written in place
        asyncio.run(HostFiles(workspace).replace("program", lambda _old: b"#!/bin/sh\n"))
        assert running.poll() is None
        assert (workspace / "program").stat().st_mode & 0o111
    finally:
        running.kill()
        running.wait()


@pytest.mark.usefixtures("can_mount")
def test_a_recovery_copy_takes_no_name_that_holds_anything_of_somebody_else(workspace: Path) -> None:
    (workspace / "inner").write_text("the old content")
    (workspace / "mounted").write_text("")
    (workspace / recovery_name("mounted")).write_text("a person's, or a killed write's only good copy")
    (workspace / recovery_name("mounted", 1)).mkdir()
    out = child(
        """
        import subprocess
        subprocess.run(["mount", "--bind", root + "/inner", root + "/mounted"], check=True)
        for content in (b"one", b"two"):
            w = write("mounted", content)
            print(w.recovery_copy, open(root + "/mounted", "rb").read() == content)
        """,
        workspace,
        wrapper=("unshare", "-m"),
    )
    copy = recovery_name("mounted", 2)
    assert out.splitlines() == [f"{copy} True"] * 2
    assert (workspace / copy).read_text() == "one"
    assert (workspace / recovery_name("mounted")).read_text().startswith("a person's")
