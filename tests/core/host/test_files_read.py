from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.support import require
from toolkit_core.errors import ToolError
from toolkit_core.host.files import HostFiles
from toolkit_core.ports.files import OpenFile


def whole(file: OpenFile) -> bytes:
    data = b""
    while more := file.read_at(len(data), 65_536):
        data += more
    return data


async def code_of(files: HostFiles, path: str) -> str:
    with pytest.raises(ToolError) as caught:
        await files.read(path, whole)
    return caught.value.code


async def test_reads_what_is_there(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"hello")
    stat, data = await HostFiles(workspace).read("a.txt", lambda file: (file.stat, whole(file)))
    assert (stat.size_bytes, data) == (5, b"hello")


async def test_reads_relative_to_the_root_wherever_the_process_is(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "a.txt").write_bytes(b"ours")
    monkeypatch.chdir("/")
    assert await HostFiles(workspace).read("a.txt", whole) == b"ours"


async def test_refuses_a_fifo_without_blocking(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    opened = threading.Event()

    def control() -> None:
        os.close(os.open(workspace / "pipe", os.O_RDONLY))  # CONTROL: this waits for a writer
        opened.set()

    thread = threading.Thread(target=control, daemon=True)
    thread.start()
    assert not opened.wait(0.2)
    async with asyncio.timeout(20):
        assert await code_of(HostFiles(workspace), "pipe") == "not_a_file"
    os.close(os.open(workspace / "pipe", os.O_WRONLY))
    thread.join(20)


async def test_refuses_a_fifo_that_a_writer_feeds(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    feeder = os.open(workspace / "pipe", os.O_RDWR | os.O_NONBLOCK)
    os.write(feeder, b"x" * 60_000)
    assert await code_of(HostFiles(workspace), "pipe") == "not_a_file"
    assert len(os.read(feeder, 100_000)) == 60_000
    os.close(feeder)


async def test_refuses_sockets(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        assert await code_of(HostFiles(workspace), "s") == "not_a_file"


async def test_refuses_devices_by_name_and_through_a_link(workspace: Path) -> None:
    (workspace / "zero").symlink_to("/dev/zero")
    async with asyncio.timeout(20):
        assert await code_of(HostFiles(workspace), "zero") == "access_denied"
        assert await code_of(HostFiles("/"), "/dev/zero") == "not_a_file"
        assert await code_of(HostFiles("/"), os.fspath(workspace / "zero")) == "not_a_file"


async def test_a_kernel_file_has_content_though_its_size_is_zero() -> None:
    require(os.path.exists("/proc/self/status"), "no /proc")
    size, data = await HostFiles("/").read("/proc/self/status", lambda file: (file.stat.size_bytes, whole(file)))
    assert size == 0
    assert b"Name:" in data


async def test_folders_and_missing_files_have_their_codes(workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "a.txt").touch()
    files = HostFiles(workspace)
    assert await code_of(files, "sub") == "is_a_directory"
    assert await code_of(files, "b.txt") == "not_found"
    assert await code_of(files, "a.txt/b") == "not_found"
    assert await code_of(files, "no/such/file") == "not_found"


async def test_a_file_that_may_not_be_read_gives_the_systems_reason(workspace: Path) -> None:
    require(os.geteuid() != 0 or hasattr(os, "seteuid"), "needs another user")
    (workspace / "a.txt").write_text("x")
    (workspace / "a.txt").chmod(0)
    os.chmod(workspace.parent, 0o755)
    for folder in (workspace, *workspace.parents):
        if folder != Path("/") and os.geteuid() == 0:
            folder.chmod(folder.stat().st_mode | 0o055)
    if os.geteuid() == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(ToolError) as caught:
            await HostFiles(workspace).read("a.txt", whole)
    finally:
        if os.getuid() == 0:
            os.seteuid(0)
    assert caught.value.code == "io_error"
    assert "EACCES" in caught.value.message


@pytest.mark.parametrize(
    ("there", "asked", "says"),
    [
        ("Readme.md", "README.md", "letter case"),
        ("caf\u0065\u0301.txt", "caf\u00e9.txt", "Unicode form"),
        ("Shot 1.20\u202fPM.png", "Shot 1.20 PM.png", "look alike"),
        ("configuration.yaml", "configuraton.yaml", "configuration.yaml"),
        ("src", "scr", "src"),
    ],
)
async def test_a_missing_name_brings_up_the_close_one(workspace: Path, there: str, asked: str, says: str) -> None:
    (workspace / there).touch()
    with pytest.raises(ToolError) as caught:
        await HostFiles(workspace).read(asked, whole)
    assert caught.value.code == "not_found"
    assert says in caught.value.hint


async def test_suggestions_never_name_what_is_outside(workspace: Path) -> None:
    (workspace.parent / "secret-plan.txt").touch()
    (workspace / "l").symlink_to("../secret-plan.txt")
    with pytest.raises(ToolError) as caught:
        await HostFiles(workspace).read("secret-plam.txt", whole)
    assert "secret-plan" not in caught.value.message + caught.value.hint


async def test_cancelling_waits_until_the_descriptor_is_closed(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"x" * 1000)
    started = threading.Event()

    def slow(file: OpenFile) -> None:
        while True:
            started.set()
            file.read_at(0, 1)
            time.sleep(0.01)

    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    task = asyncio.create_task(HostFiles(workspace).read("a.txt", slow))
    await asyncio.to_thread(started.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before


async def test_a_call_that_is_cancelled_before_a_thread_is_free_reads_nothing(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"x")
    seen: list[str] = []
    task = asyncio.create_task(HostFiles(workspace).read("a.txt", lambda file: seen.append(file.path.subject)))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == []


async def test_a_file_that_grows_or_shrinks_is_read_as_it_comes(workspace: Path) -> None:
    path = workspace / "a.log"
    path.write_bytes(b"1\n" * 10)

    def growing(file: OpenFile) -> bytes:
        first = file.read_at(0, 100)
        with path.open("ab") as more:
            more.write(b"2\n" * 10)
        return first + file.read_at(len(first), 100)

    def shrinking(file: OpenFile) -> bytes:
        first = file.read_at(0, 10)
        os.truncate(path, 5)
        return first + file.read_at(10, 100)

    files = HostFiles(workspace)
    assert await files.read("a.log", growing) == b"1\n" * 10 + b"2\n" * 10
    assert await files.read("a.log", shrinking) == b"1\n" * 5


async def test_a_file_that_is_replaced_while_it_is_read_stays_the_one_that_was_opened(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old" * 100)

    def swap(file: OpenFile) -> bytes:
        first = file.read_at(0, 3)
        (workspace / "b.txt").write_bytes(b"new" * 100)
        os.replace(workspace / "b.txt", workspace / "a.txt")
        return first + file.read_at(3, 3)

    assert await HostFiles(workspace).read("a.txt", swap) == b"oldold"


async def test_lists_the_first_entries_by_name_and_counts_all(workspace: Path) -> None:
    for number in range(500):
        (workspace / f"f{number:03}").touch()
    (workspace / "a_folder").mkdir()
    (workspace / "a_link").symlink_to("/")
    os.mkfifo(workspace / "a_pipe")
    listing = await HostFiles(workspace).list(".", 5)
    assert listing.total == 503
    assert [(entry.name, entry.kind) for entry in listing.entries] == [
        ("a_folder", "directory"),
        ("a_link", "link"),
        ("a_pipe", "other"),
        ("f000", "file"),
        ("f001", "file"),
    ]


async def test_lists_no_folder_outside(workspace: Path) -> None:
    (workspace / "out").symlink_to("..")
    with pytest.raises(ToolError) as caught:
        await HostFiles(workspace).list("out", 5)
    assert caught.value.code == "access_denied"
