"""read_file, write_file and edit_file against sed, cat and open+write."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.row import Row, Work
from benchmarks.search import answered
from toolkit_core.host.files import HostFiles
from toolkit_core.tools import ReadRecord, edit_file_tool, read_file_tool, write_file_tool

if TYPE_CHECKING:
    from benchmarks.peers import Peers

MB = 1_000_000
LINE = b"2024-05-01T12:00:00 INFO worker[%07d] finished the job and went on to the next one\n"
BLOCK = b"".join(LINE % number for number in range(20_000))
PAUSE_SECONDS = 0.03  # sooner than a clock's tick after a write, bytes are compared as well


def rows(peers: Peers, folder: Path, *, quick: bool) -> Iterator[Row]:
    """All rows."""
    yield from reading(peers, folder, large_mb=52 if quick else 525)
    yield from writing(folder)
    yield from editing(peers, folder)


def write_log(path: Path, megabytes: int) -> int:
    """A log of that size; its number of lines."""
    blocks = max(1, megabytes * MB // len(BLOCK))
    with path.open("wb") as file:
        for _ in range(blocks):
            file.write(BLOCK)
    return blocks * 20_000


def sed(path: Path, first: int, last: int) -> Work:
    """Lines `first` to `last`, and no further."""
    return lambda: subprocess.run(
        ["sed", "-n", f"{first},{last}p;{last}q", os.fspath(path)], check=True, stdout=subprocess.PIPE
    )


def reading(peers: Peers, folder: Path, *, large_mb: int) -> Iterator[Row]:
    """Pages of large and small files."""
    read = read_file_tool(HostFiles(folder), record=ReadRecord())
    large = folder / "large.log"
    last = write_log(large, large_mb)

    def page(name: str, target: float, path: Path, offset: int, limit: Work, memory_mb: float | None = None) -> Row:
        given = {"root": str(folder), "path": str(path), "offset": offset}
        others = {"deepagents read": ("deepagents", "read", given)}
        if offset > 0:
            others["langchain-community ReadFileTool"] = ("langchain-community", "community_read", given)
        call = answered(lambda: read(path=path.name, offset=offset))
        return Row(name, target, call, limit, peers.of(others), memory_mb)

    yield page(f"read lines 50,000-52,000 of {large_mb} MB", 1.0, large, 50_000, sed(large, 50_000, 51_999), 16)
    yield page(
        f"read by number near the end of {large_mb} MB", 1.0, large, last - 2500, sed(large, last - 2500, last - 501)
    )
    yield page(f"read from the end of {large_mb} MB", 1.0, large, -2000, sed(large, last - 1999, last))
    small = folder / "small.py"
    small.write_bytes(b"".join(b"    value_%d = compute(%d)\n" % (number, number) for number in range(2_000)))
    yield page("read 2,000 lines of a small file, numbered", 0.8, small, 1, sed(small, 1, 2_000))
    one_line = folder / "oneline.js"
    one_line.write_bytes(b"x" * (200 * MB))
    cat = ["cat", os.fspath(one_line)]
    yield page(
        "read one line of 200 MB", 0.8, one_line, 1, lambda: subprocess.run(cat, check=True, stdout=subprocess.PIPE)
    )
    large.unlink()
    one_line.unlink()


def writing(folder: Path) -> Iterator[Row]:
    """Whole files, with and without fsync."""
    synced, fast = write_file_tool(HostFiles(folder)), write_file_tool(HostFiles(folder, fsync=False))

    def write(tool: Any, text: str) -> Work:
        return answered(lambda: tool(path="tool.txt", content=text))

    for size, target in ((1_000, 2.2), (MB, 1.6), (50 * MB, 1.25)):
        text = "x" * (size - 1) + "\n"
        data = text.encode()
        raw, careful = raw_write(folder / "raw.txt", data), careful_write(folder, data)
        for how, bare, tool, most in (("no fsync", raw, fast, target), ("fsync", careful, synced, 1.15)):
            yield Row(
                f"write {size:,} bytes, {how}",
                most,
                write(tool, text),
                bare,
                pause_seconds=PAUSE_SECONDS,
                floor=in_worker_thread(bare),
            )


def in_worker_thread(bare: Work) -> Work:
    """The same where it does not stop the event loop."""
    return lambda: asyncio.to_thread(bare)


def raw_write(path: Path, data: bytes) -> Work:
    """Open, write, close."""
    return lambda: path.write_bytes(data)


def careful_write(folder: Path, data: bytes) -> Work:
    """The whole careful sequence by hand: temporary, write, fsync, rename, fsync of the folder."""

    def replace() -> None:
        temporary = folder / ".bare.tmp"
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(folder / "bare.txt")
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    return replace


def editing(peers: Peers, folder: Path) -> Iterator[Row]:
    """One line of a large file, and many."""
    tool = edit_file_tool(HostFiles(folder, fsync=False))
    for size, target in ((MB, 1.6), (50 * MB, 1.3)):
        path, theirs = folder / f"edit{size}.txt", folder / f"theirs{size}.txt"
        half = (b"y" * 79 + b"\n") * (size // 160)
        for each in (path, theirs):
            each.write_bytes(half + b"limit = 10 # the line that is edited\n" + half)
        others = {"deepagents edit": ("deepagents", "edit", {"root": str(folder), "path": str(theirs)})}
        yield Row(
            f"edit one line in {size:,} bytes",
            target,
            answered(flipping(tool, path.name)),
            raw_edit(path),
            peers.of(others),
            floor=in_worker_thread(raw_edit(path)),
            memory_target_mb=3 * size / MB if size > MB else None,
            pause_seconds=PAUSE_SECONDS,
        )
    for what, line in (("", None), (" of log lines", LINE % 0)):
        one = many_edits(tool, folder, 1, line=line)
        yield Row(
            f"20 edits in 10 MB{what} against one",
            2.0,
            many_edits(tool, folder, 20, line=line),
            one,
            pause_seconds=PAUSE_SECONDS,
            floor=one_and_passes(one, 19, line or b"z"),
        )


def one_and_passes(one: Work, passes: int, line: bytes) -> Work:
    """One edit, and for each further one what shows that its text is unique: a pass over 10 MB."""
    data = line * (10 * MB // len(line))

    async def run() -> None:
        await one()
        for number in range(passes):
            data.find(b"name_%d = 10" % number)

    return run


def raw_edit(path: Path) -> Work:
    """Read, replace, write."""

    def edit() -> None:
        data = path.read_bytes()
        path.with_suffix(".out").write_bytes(data.replace(b"limit = 10", b"limit = 20", 1))

    return edit


def flipping(tool: Any, name: str) -> Callable[[], Awaitable[Any]]:
    """Edit the same line to and fro."""
    pair = ["limit = 10 ", "limit = 20 "]

    def edit() -> Awaitable[Any]:
        old, new = pair
        pair.reverse()
        return tool(path=name, edits=[{"old_text": old, "new_text": new}])

    return edit


def many_edits(
    tool: Any, folder: Path, count: int, *, megabytes: float = 10, most: int = 20, line: bytes | None = None
) -> Work:
    """So many of `most` lines that are spread over a file, to and fro; between them is one long line, or many."""
    path = folder / f"many{count}-{most}-{megabytes}-{line is None}.txt"
    size = int(megabytes * MB / most)
    filler = "z" * size + "\n" if line is None else line.decode() * (size // len(line))
    path.write_text("".join(f"name_{number} = 10\n{filler}" for number in range(most)))
    pair = ["= 10\n", "= 20\n"]

    def edit() -> Awaitable[Any]:
        old, new = pair
        pair.reverse()
        first = (most - count) // 2  # one edit is one in the middle
        texts = [f"name_{number} " for number in range(first, first + count)]
        return tool(path=path.name, edits=[{"old_text": text + old, "new_text": text + new} for text in texts])

    return answered(edit)
