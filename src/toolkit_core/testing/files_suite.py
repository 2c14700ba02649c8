"""The conformance suite of the `Files` port: what every tool over it relies on.

Each check takes a fresh port over an empty root and fails with AssertionError. In a test::

    @pytest.mark.parametrize("check", FILES_CHECKS, ids=lambda check: check.__name__)
    async def test_my_files(check):
        await check(MyFiles(...))
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from toolkit_core.errors import ToolError
from toolkit_core.ports.files import Files, OpenFile, Pieces


def whole(file: OpenFile) -> bytes:
    """All bytes of an open file, read in steps of three."""
    data = b""
    while more := file.read_at(len(data), 3):
        data += more
    return data


async def put(files: Files, path: str, content: bytes) -> None:
    """Make or replace a file."""
    await files.replace(path, lambda _old: content)


async def code_of(work: Awaitable[object]) -> str:
    """The code that something fails with, "" where it does not."""
    try:
        await work
    except ToolError as e:
        return e.code if e.message else "an error that says nothing"
    return ""


async def gives_back_what_was_written(files: Files) -> None:
    """Any bytes come back, in pieces too, and folders are made."""
    every_byte = bytes(range(256)) * 5
    await put(files, "new/deep/a.bin", every_byte)
    assert await files.read("new/deep/a.bin", whole) == every_byte
    await files.replace("new/deep/a.bin", lambda _old: Pieces([b"one", memoryview(b"xtwox")[1:4], b""]))
    assert await files.read("new/deep/a.bin", whole) == b"onetwo"
    await put(files, "empty", b"")
    assert await files.read("empty", whole) == b""


async def tells_created_from_replaced(files: Files) -> None:
    """`Written` agrees with what was there and what is there now."""
    made = await files.replace("a", lambda old: b"1" if old is None else b"wrong")
    assert (made.created, made.path.subject, made.stat.size_bytes) == (True, "a", 1)
    replaced = await files.replace("a", lambda old: b"wrong" if old is None else whole(old) + b"23")
    assert (replaced.created, replaced.stat.size_bytes, replaced.recovery_copy) == (False, 3, None)
    assert await files.read("a", whole) == b"123"


async def reads_at_any_offset(files: Files) -> None:
    """`read_at` behaves like pread(2)."""
    await put(files, "a", b"0123456789")
    found = await files.read("a", lambda f: (f.read_at(2, 3), f.read_at(8, 100), f.read_at(10, 5), f.read_at(99, 1)))
    assert found == (b"234", b"89", b"", b"")
    assert await files.read("a", lambda f: (f.path.subject, f.stat.size_bytes)) == ("a", 10)


async def passes_on_what_the_callables_raise(files: Files) -> None:
    """A failure inside `consume` or `produce` passes, and nothing is changed by it."""

    def fail(_file: OpenFile | None) -> bytes:
        raise ToolError("mine", code="no_match")

    await put(files, "a", b"old")
    assert await code_of(files.read("a", fail)) == "no_match"
    assert await code_of(files.replace("a", fail)) == "no_match"
    assert await code_of(files.replace("b", fail)) == "no_match"
    assert await files.read("a", whole) == b"old"
    assert await code_of(files.read("b", whole)) == "not_found"


async def has_the_codes(files: Files) -> None:
    """Missing, folder, impossible path, outside."""
    await put(files, "d/a", b"x")
    assert await code_of(files.read("no", whole)) == "not_found"
    assert await code_of(files.read("no/a", whole)) == "not_found"
    assert await code_of(files.list("no", 5)) == "not_found"
    assert await code_of(files.read("d", whole)) == "is_a_directory"
    assert await code_of(files.replace("d", lambda _old: b"x")) == "is_a_directory"
    for path in ("", "a\0b", "\ud83d"):
        assert await code_of(files.read(path, whole)) == "invalid_arguments", repr(path)
        assert await code_of(files.replace(path, lambda _old: b"x")) == "invalid_arguments", repr(path)
    assert await files.read("d/a", whole) == b"x"


async def keeps_inside_the_root(files: Files) -> None:
    """`..` never leads out, in any method."""
    for path in ("../out", "d/../../out", "/etc/passwd"):
        assert await code_of(files.resolve(path)) == "access_denied", path
        assert await code_of(files.read(path, whole)) == "access_denied", path
        assert await code_of(files.replace(path, lambda _old: b"x")) == "access_denied", path
        assert await code_of(files.list(path, 5)) == "access_denied", path


async def resolves_every_spelling_alike(files: Files) -> None:
    """One file has one real path and one subject."""
    await put(files, "d/a", b"x")
    plain = await files.resolve("d/a")
    for path in ("d/a", "./d/a", "d//a", "d/./a", "d/../d/a", plain.real):
        again = await files.resolve(path)
        assert (again.real, again.subject, again.inside) == (plain.real, "d/a", True), path
        assert await files.read(path, whole) == b"x", path


async def lists_by_name(files: Files) -> None:
    """The first entries by name, and how many there are."""
    for name in ("c", "a", "b", "d/e"):
        await put(files, name, b"")
    listing = await files.list(".", 3)
    assert [(entry.name, entry.kind) for entry in listing.entries] == [("a", "file"), ("b", "file"), ("c", "file")]
    assert listing.total == 4
    assert [(entry.name, entry.kind) for entry in (await files.list(".", 9)).entries][-1] == ("d", "directory")
    assert [entry.name for entry in (await files.list("d", 9)).entries] == ["e"]


async def serialises_writers(files: Files) -> None:
    """Thirty increments of one file are thirty, or say `stale_file`."""

    def plus_one(old: OpenFile | None) -> bytes:
        return str(int(whole(old)) + 1 if old is not None else 1).encode()

    codes = await asyncio.gather(*(code_of(files.replace("n", plus_one)) for _ in range(30)))
    assert set(codes) <= {"", "stale_file"}
    assert await files.read("n", whole) == str(codes.count("")).encode()


FILES_CHECKS: Final[tuple[Callable[[Files], Awaitable[None]], ...]] = (
    gives_back_what_was_written,
    tells_created_from_replaced,
    reads_at_any_offset,
    passes_on_what_the_callables_raise,
    has_the_codes,
    resolves_every_spelling_alike,
    lists_by_name,
    serialises_writers,
)
"""What every adapter keeps."""

CONFINED_FILES_CHECKS: Final = (keeps_inside_the_root,)
"""What an adapter keeps that confines paths to its root; on a separate machine the root is a base only."""
