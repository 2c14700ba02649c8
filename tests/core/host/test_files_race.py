"""Another process swaps the file, its folder and links in a tight loop, while the tools work."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import soak
from toolkit_core.host.files import HostFiles
from toolkit_core.ports.files import OpenFile
from toolkit_core.tool import Tool
from toolkit_core.tools import edit_file_tool, read_file_tool, write_file_tool

SECONDS = soak(20)
SECRET = "the-secret-outside"

SWAPPER = """
import os, shutil, sys
root, outside, kind = sys.argv[1:]
os.chdir(root)
def put(source, name):
    while True:
        try:
            return os.rename(source, name)
        except OSError:  # a write made the folder anew while it was away
            shutil.rmtree(name, ignore_errors=True)
def exchange(one, other):
    put(one, "swap"); put(other, one); put("swap", other)
print("ready", flush=True)
while True:
    if kind == "file":
        exchange("a.txt", "link-to-secret")
    elif kind == "folder":
        exchange("sub", "link-to-outside")
    else:
        os.symlink(outside + "/secret.txt", "fresh"); os.rename("fresh", "turning")
        os.symlink("sub/a.txt", "fresh"); os.rename("fresh", "turning")
"""


@contextmanager
def swapping(root: Path, outside: Path, kind: str) -> Generator[None]:
    swapper = subprocess.Popen(
        [sys.executable, "-c", SWAPPER, os.fspath(root), os.fspath(outside), kind], stdout=subprocess.PIPE
    )
    try:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        yield
        assert swapper.poll() is None
    finally:
        swapper.kill()
        swapper.wait()
        if swapper.stdout is not None:
            swapper.stdout.close()


@pytest.fixture
def outside(workspace: Path) -> Path:
    """A folder beside the root, and links to it inside."""
    folder = workspace.parent / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text(SECRET)
    (folder / "a.txt").write_text(SECRET)
    (workspace / "sub").mkdir()
    (workspace / "sub" / "a.txt").write_text("inside")
    (workspace / "a.txt").write_text("inside")
    (workspace / "link-to-secret").symlink_to(folder / "secret.txt")
    (workspace / "link-to-outside").symlink_to(folder)
    (workspace / "turning").symlink_to("sub/a.txt")
    return folder


PATHS = {"file": "a.txt", "folder": "sub/a.txt", "link": "turning"}


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
async def test_control_checking_the_name_first_reads_the_secret(workspace: Path, outside: Path, kind: str) -> None:
    path = workspace / PATHS[kind]
    until = time.monotonic() + 30
    with swapping(workspace, outside, kind):
        while time.monotonic() < until:
            try:
                if path.resolve(strict=True).is_relative_to(workspace) and path.read_text() == SECRET:
                    return
            except OSError:
                continue
    pytest.fail("the race was never won, so this machine proves nothing")


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
async def test_nothing_from_outside_is_read_or_changed(workspace: Path, outside: Path, kind: str) -> None:
    files = HostFiles(workspace, fsync=False)
    read, write, edit = read_file_tool(files), write_file_tool(files), edit_file_tool(files)
    path, codes = PATHS[kind], Counter[str]()  # a busy machine gets more time, until the test's own limit
    until = time.monotonic() + SECONDS / 3
    with swapping(workspace, outside, kind):
        while time.monotonic() < until or codes["ok"] <= 5:
            results = await asyncio.gather(
                read(path=path),
                edit(path=path, edits=[{"old_text": "inside", "new_text": "inside"[::-1]}]),
                write(path=path, content="inside"),
                read(path="link-to-outside/secret.txt"),
                write(path="link-to-outside/new.txt", content="x"),
            )
            for result in results:
                assert SECRET not in result.to_json()
                codes[result.error.code if result.error else "ok"] += 1
    assert set(codes) <= {"ok", "access_denied", "not_found", "stale_file", "io_error", "no_match", "not_a_file"}
    assert {path.name: path.read_text() for path in outside.iterdir() if path.name != "new.txt"} == {
        "secret.txt": SECRET,
        "a.txt": SECRET,
    }


APPENDER = """
import os, sys
root = sys.argv[1]
n = 0
print("ready", flush=True)
while True:
    n += 1
    with open(root + "/log.new", "w") as new:
        try:
            old = open(root + "/log").read()
        except FileNotFoundError:
            old = ""
        new.write(old[-20000:] + f"theirs {n}\\n")
    # The other side replaces atomically too, and checks nothing: what it overwrites of ours is its own doing.
    os.rename(root + "/log.new", root + "/log")
"""


async def test_what_another_process_wrote_is_never_overwritten_unseen(workspace: Path) -> None:
    """Each of our updates keeps the other's last line as it was when ours was put in place, or says stale_file."""
    files = HostFiles(workspace, fsync=False)
    other = subprocess.Popen([sys.executable, "-c", APPENDER, os.fspath(workspace)], stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()
    landed = stale = 0
    until = time.monotonic() + SECONDS / 4

    def theirs(data: str) -> int:
        return max((int(line.split()[1]) for line in data.splitlines() if line.startswith("theirs")), default=0)

    def add(old: OpenFile | None) -> bytes:
        return (b"" if old is None else old.read_at(0, 100_000)) + b"ours\n"

    try:
        while time.monotonic() < until or landed + stale <= 10:
            before = theirs((workspace / "log").read_text()) if (workspace / "log").exists() else 0
            try:
                await files.replace("log", add)
                landed += 1
            except Exception as e:
                if getattr(e, "code", "") != "stale_file":
                    raise
                stale += 1
            assert theirs((workspace / "log").read_text()) >= before
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert not [name for name in os.listdir(workspace) if name.startswith(".toolkit")]


def tools(workspace: Path) -> tuple[Tool, Tool]:
    files = HostFiles(workspace, fsync=False)
    return read_file_tool(files), edit_file_tool(files)


async def test_fifty_parallel_edits_of_one_file_all_land(workspace: Path) -> None:
    _, edit = tools(workspace)
    (workspace / "a.txt").write_text("".join(f"line {number:02}\n" for number in range(50)))
    edits = [{"old_text": f"line {number:02}", "new_text": f"LINE {number:02}"} for number in range(50)]
    results = await asyncio.gather(*(edit(path="a.txt", edits=[one]) for one in edits))
    assert [result.text for result in results if result.is_error] == []
    assert (workspace / "a.txt").read_text() == "".join(f"LINE {number:02}\n" for number in range(50))
