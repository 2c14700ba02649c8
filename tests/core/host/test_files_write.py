from __future__ import annotations

import asyncio
import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolkit_core.errors import ToolError
from toolkit_core.host.files import HostFiles
from toolkit_core.ports.files import Content, OpenFile, Pieces
from toolkit_core.tools import write_file_tool

Produce = Callable[[OpenFile | None], Content]


def tree(folder: Path) -> set[str]:
    return {os.fspath(path.relative_to(folder)) for path in folder.rglob("*")}


async def refused(files: HostFiles, path: str, content: bytes = b"new") -> ToolError:
    with pytest.raises(ToolError) as caught:
        await files.replace(path, lambda _old: content)
    return caught.value


async def test_makes_a_file_and_its_folders(workspace: Path) -> None:
    written = await HostFiles(workspace).replace("a/b/c.txt", lambda _old: b"hi")
    assert written.created
    assert written.stat.size_bytes == 2
    assert written.path.subject == "a/b/c.txt"
    assert (workspace / "a/b/c.txt").read_bytes() == b"hi"
    assert tree(workspace) == {"a", "a/b", "a/b/c.txt"}


async def test_replaces_a_file_and_leaves_nothing_beside_it(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old")
    written = await HostFiles(workspace).replace("a.txt", lambda old: b"" if old is None else old.read_at(0, 9) + b"!")
    assert not written.created
    assert (workspace / "a.txt").read_bytes() == b"old!"
    assert tree(workspace) == {"a.txt"}
    assert written.stat.inode == (workspace / "a.txt").stat().st_ino


async def test_writes_pieces_in_order(workspace: Path) -> None:
    await HostFiles(workspace).replace("a.txt", lambda _old: Pieces([b"1", memoryview(b"x2x")[1:2], b"", b"3"]))
    assert (workspace / "a.txt").read_bytes() == b"123"


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o640, 0o4755, 0o444 | 0o200])
async def test_keeps_the_mode_bits(workspace: Path, mode: int) -> None:
    (workspace / "a").write_bytes(b"old")
    (workspace / "a").chmod(mode)
    await HostFiles(workspace).replace("a", lambda _old: b"new")
    assert (workspace / "a").stat().st_mode & 0o7777 == mode


async def test_a_private_file_is_private_at_every_moment(workspace: Path) -> None:
    (workspace / "key").write_bytes(b"old")
    (workspace / "key").chmod(0o600)
    modes: set[int] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            for name in os.listdir(workspace):
                try:
                    modes.add(os.stat(workspace / name).st_mode & 0o077)
                except FileNotFoundError:
                    continue

    thread = threading.Thread(target=watch)
    thread.start()
    files = HostFiles(workspace, fsync=False)
    for _ in range(100):
        await files.replace("key", lambda _old: b"secret" * 5000)
    done.set()
    thread.join(20)
    assert modes == {0}


async def test_new_files_follow_the_umask(workspace: Path) -> None:
    before = os.umask(0o027)
    try:
        await HostFiles(workspace).replace("d/a", lambda _old: b"x")
    finally:
        os.umask(before)
    assert (workspace / "d/a").stat().st_mode & 0o777 == 0o640
    assert (workspace / "d").stat().st_mode & 0o777 == 0o750


async def test_control_a_rename_over_a_link_would_replace_the_link(workspace: Path) -> None:
    (workspace / "base").write_text("old")
    (workspace / "link").symlink_to("base")
    (workspace / "temp").write_text("new")
    os.replace(workspace / "temp", workspace / "link")
    assert not (workspace / "link").is_symlink()
    assert (workspace / "base").read_text() == "old"


async def test_follows_a_link_to_its_target(workspace: Path) -> None:
    (workspace / "store").mkdir()
    (workspace / "store/base").write_text("old")
    (workspace / "link").symlink_to("store/base")
    (workspace / "chain").symlink_to("link")
    (workspace / "dangling").symlink_to("store/new")
    files = HostFiles(workspace)
    await files.replace("chain", lambda _old: b"new")
    await files.replace("dangling", lambda _old: b"made")
    assert (workspace / "link").is_symlink()
    assert (workspace / "chain").is_symlink()
    assert (workspace / "store/base").read_text() == "new"
    assert (workspace / "dangling").is_symlink()
    assert (workspace / "store/new").read_text() == "made"


async def test_writes_nothing_through_a_link_that_leads_out(workspace: Path) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("theirs")
    (workspace / "file").symlink_to("../outside/a.txt")
    (workspace / "new").symlink_to("../outside/new.txt")
    (workspace / "folder").symlink_to("../outside")
    with (workspace / "file").open("a") as control:  # CONTROL: the link is open to everybody else
        control.write("")
    files = HostFiles(workspace)
    for path in ("file", "new", "folder/a.txt", "folder/deep/new.txt", "../outside/b.txt"):
        assert (await refused(files, path)).code == "access_denied"
    assert tree(outside) == {"a.txt"}
    assert (outside / "a.txt").read_text() == "theirs"


@pytest.mark.parametrize("path", ["sub", ".", "sub/", "new/", "new/.", "sub/..", "link"])
async def test_a_folder_is_no_file_to_write(workspace: Path, path: str) -> None:
    (workspace / "sub").mkdir()
    (workspace / "link").symlink_to("sub")
    error = await refused(HostFiles(workspace), path)
    assert error.code in ("is_a_directory", "invalid_arguments")
    assert tree(workspace) == {"sub", "link"}


async def test_a_file_holds_no_files(workspace: Path) -> None:
    (workspace / "a.txt").write_text("x")
    for path in ("a.txt/b.txt", "a.txt/b/c.txt"):
        assert (await refused(HostFiles(workspace), path)).code == "not_a_file"
    assert tree(workspace) == {"a.txt"}


async def test_special_files_are_not_written(workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    async with asyncio.timeout(20):
        assert (await refused(HostFiles(workspace), "pipe")).code == "not_a_file"
        assert (await refused(HostFiles("/"), "/dev/null")).code == "not_a_file"
    (workspace / "loop").symlink_to("loop")
    assert (await refused(HostFiles(workspace), "loop")).code == "io_error"


async def test_what_produce_raises_passes_and_nothing_is_made(workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")

    def fail(_old: OpenFile | None) -> bytes:
        raise ToolError("no", code="no_match")

    for path in ("a.txt", "b.txt", "new/deep/c.txt"):
        with pytest.raises(ToolError, match="no"):
            await HostFiles(workspace).replace(path, fail)
    assert tree(workspace) == {"a.txt"}
    assert (workspace / "a.txt").read_text() == "old"


@pytest.mark.parametrize("change", ["replaced", "appended", "removed", "linked", "same size"])
async def test_a_change_by_somebody_else_meanwhile_is_stale_and_stays(workspace: Path, change: str) -> None:
    path = workspace / "a.txt"
    path.write_text("old")

    def produce(old: OpenFile | None) -> bytes:
        assert old is not None
        old.read_at(0, 10)
        if change == "replaced":
            (workspace / "b.txt").write_text("theirs")
            os.replace(workspace / "b.txt", path)
        elif change == "appended":
            with path.open("a") as file:
                file.write("theirs")
        elif change == "removed":
            path.unlink()
        elif change == "linked":
            path.unlink()
            (workspace / "c.txt").write_text("c")
            path.symlink_to("c.txt")
        else:
            path.write_text("OLD")
        return b"ours"

    before = {"replaced": "theirs", "appended": "oldtheirs", "linked": "c", "same size": "OLD"}
    assert (await refused_with(HostFiles(workspace), "a.txt", produce)).code == "stale_file"
    if change == "removed":
        assert tree(workspace) == set()
    else:
        assert path.read_text() == before[change]
    assert not [name for name in tree(workspace) if "toolkit" in name]


async def refused_with(files: HostFiles, path: str, produce: Produce) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await files.replace(path, produce)
    return caught.value


async def test_a_file_that_appears_meanwhile_is_not_overwritten(workspace: Path) -> None:
    def produce(old: OpenFile | None) -> bytes:
        assert old is None
        (workspace / "a.txt").write_text("theirs")
        return b"ours"

    assert (await refused_with(HostFiles(workspace), "a.txt", produce)).code == "stale_file"
    assert (workspace / "a.txt").read_text() == "theirs"
    assert tree(workspace) == {"a.txt"}


async def test_control_read_then_write_loses_updates(workspace: Path) -> None:
    (workspace / "n").write_text("0")

    async def add() -> None:
        value = int((workspace / "n").read_text())
        await asyncio.sleep(0)
        (workspace / "n").write_text(str(value + 1))

    await asyncio.gather(*(add() for _ in range(20)))
    assert int((workspace / "n").read_text()) < 20


def plus_one(old: OpenFile | None) -> bytes:
    return str(int(old.read_at(0, 20)) + 1 if old is not None else 1).encode()


async def test_fifty_writers_of_one_file_all_land(workspace: Path) -> None:
    one, other = HostFiles(workspace, fsync=False), HostFiles(workspace.parent, fsync=False)
    (workspace / "link").symlink_to("n")
    calls = [one.replace("n", plus_one) for _ in range(20)]
    calls += [one.replace("link", plus_one) for _ in range(15)]
    calls += [other.replace("workspace/n", plus_one) for _ in range(15)]
    await asyncio.gather(*calls)
    assert (workspace / "n").read_text() == "50"


def test_writers_on_other_loops_and_threads_all_land(workspace: Path) -> None:
    files = HostFiles(workspace, fsync=False)

    async def add() -> None:
        for _ in range(20):
            await files.replace("n", plus_one)

    threads = [threading.Thread(target=lambda: asyncio.run(add())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert (workspace / "n").read_text() == "80"


async def test_a_cancelled_write_leaves_the_old_bytes_and_no_temporary(workspace: Path) -> None:
    (workspace / "a.txt").write_bytes(b"old")
    started = threading.Event()

    class Endless(Pieces):
        def __init__(self) -> None:
            super().__init__(_Blocks(started))

    task = asyncio.create_task(HostFiles(workspace).replace("a.txt", lambda _old: Endless()))
    await asyncio.to_thread(started.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tree(workspace) == {"a.txt"}
    assert (workspace / "a.txt").read_bytes() == b"old"


class _Blocks(list[bytes]):
    def __init__(self, started: threading.Event) -> None:
        super().__init__()
        self._started = started

    def __iter__(self) -> Iterator[bytes]:
        for number in range(100_000):
            if number == 3:
                self._started.set()
            yield b"x" * 1000


async def test_a_waiting_writer_that_is_cancelled_leaves_the_queue(workspace: Path) -> None:
    files = HostFiles(workspace, fsync=False)
    tasks = [asyncio.create_task(files.replace("n", plus_one)) for _ in range(30)]
    await asyncio.sleep(0)
    for task in tasks[5:25]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    landed = sum(not isinstance(result, BaseException) for result in results)
    assert landed >= 10
    assert int((workspace / "n").read_text()) >= landed
    assert tree(workspace) == {"n"}


async def test_a_hard_link_elsewhere_keeps_the_old_bytes(workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    os.link(workspace / "a.txt", workspace / "twin.txt")
    await HostFiles(workspace).replace("a.txt", lambda _old: b"new")
    assert (workspace / "twin.txt").read_text() == "old"


async def test_a_name_of_255_bytes_can_be_written(workspace: Path) -> None:
    name = "é" * 127 + "x"
    await HostFiles(workspace).replace(name, lambda _old: b"1")
    await HostFiles(workspace).replace(name, lambda _old: b"2")
    assert (workspace / name).read_text() == "2"


async def test_a_name_that_is_not_utf8_can_be_written(workspace: Path) -> None:
    raw = os.fsdecode(os.fsencode(workspace) + b"/\xff.txt")
    Path(raw).write_text("old")
    written = await HostFiles(workspace).replace("\\xff.txt", lambda _old: b"new")
    assert Path(raw).read_text() == "new"
    assert written.path.subject == "\\xff.txt"
    assert len(os.listdir(workspace)) == 1


async def test_extended_attributes_stay(workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    try:
        os.setxattr(workspace / "a.txt", "user.note", b"mine")
    except (OSError, AttributeError):
        pytest.skip("no extended attributes on this filesystem")
    await HostFiles(workspace).replace("a.txt", lambda _old: b"new")
    assert os.getxattr(workspace / "a.txt", "user.note") == b"mine"


@pytest.mark.parametrize(("number", "code"), [(errno.EIO, "io_error"), (errno.EINVAL, None)])
async def test_a_folder_that_the_disk_does_not_sync_is_said_and_one_that_cannot_be_synced_is_not(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str | None
) -> None:
    whole = os.fsync

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))
        whole(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    result = await write_file_tool(HostFiles(workspace))(path="a.txt", content="new\n")
    assert (result.error and result.error.code) == code
    if code:
        assert "a.txt was written, but the disk did not confirm that it lasts" in result.text
    assert (workspace / "a.txt").read_text() == "new\n"
