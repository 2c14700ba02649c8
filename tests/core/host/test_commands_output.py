"""Output: always drained, kept in bounded memory as head and tail, cut on character borders."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit_core.host.commands import HostCommands
from toolkit_core.host.drain import Drain, HeadAndTail

MIB = 1_048_576


@pytest.fixture
async def commands(tmp_path: Path) -> AsyncIterator[HostCommands]:
    made = HostCommands(tmp_path)
    yield made
    await made.aclose()


async def test_all_is_kept_up_to_the_cap(commands: HostCommands) -> None:
    result = await commands.run(f"head -c {MIB} /dev/zero | tr '\\0' x")
    assert result.stdout == b"x" * MIB
    assert result.stdout_cut == 0


async def test_one_byte_more_is_cut_and_counted(commands: HostCommands) -> None:
    result = await commands.run(f"head -c {MIB + 1} /dev/zero | tr '\\0' x; echo whole >&2")
    assert (len(result.stdout), result.stdout_cut, result.stdout_cut_at) == (MIB, 1, MIB // 2)
    assert (result.stderr, result.stderr_cut) == (b"whole\n", 0)


async def test_head_and_tail_of_a_flood_are_kept_and_memory_is_not(commands: HostCommands) -> None:
    await commands.run("yes | head -c 8000000")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await commands.run("seq 1 26000000; echo END >&2", timeout_seconds=100)
    assert result.exit_code == 0
    assert result.stdout.startswith(b"1\n2\n3\n")
    assert result.stdout.endswith(b"25999999\n26000000\n")
    assert len(result.stdout) == MIB
    assert len(result.stdout) + result.stdout_cut > 200_000_000
    assert result.stderr == b"END\n"
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < 8 * MIB + 2 * MIB


async def test_both_streams_flood_at_once(commands: HostCommands) -> None:
    result = await commands.run("yes out | head -c 20000000 & yes err | head -c 20000000 >&2; wait")
    assert len(result.stdout) + result.stdout_cut == 20_000_000
    assert len(result.stderr) + result.stderr_cut == 20_000_000
    assert set(result.stdout.split()) == {b"out"}
    assert set(result.stderr.split()) == {b"err"}


async def test_a_flood_is_cut_off_at_the_timeout_and_shown_so_far(commands: HostCommands) -> None:
    result = await commands.run("yes", timeout_seconds=1)
    assert result.timed_out
    assert len(result.stdout) == MIB
    assert result.stdout_cut > 0


async def test_cancelling_a_flood_leaves_no_thread_and_no_descriptor(commands: HostCommands) -> None:
    await commands.run("yes | head -c 5000000")
    before = len(os.listdir("/proc/self/fd"))
    running = asyncio.create_task(commands.run("yes"))
    await asyncio.sleep(1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    until = time.monotonic() + 10
    while len(os.listdir("/proc/self/fd")) > before and time.monotonic() < until:
        await asyncio.sleep(0.05)
    assert len(os.listdir("/proc/self/fd")) == before


async def test_a_cut_never_falls_inside_a_character(tmp_path: Path) -> None:
    text = "\U0001f600\u4e16a\u00fc" * 40
    (tmp_path / "text").write_text(text, encoding="utf-8")
    for cap in range(40, 60):
        commands = HostCommands(tmp_path, max_output_bytes=cap)
        result = await commands.run("cat text")
        head, tail = result.stdout[: result.stdout_cut_at], result.stdout[result.stdout_cut_at :]
        assert text.startswith(head.decode())
        assert text.endswith(tail.decode())
        assert len(result.stdout) + result.stdout_cut == len(text.encode())
        assert cap - 8 < len(result.stdout) <= cap
        await commands.aclose()


async def test_bytes_that_are_no_text_come_as_they_are(commands: HostCommands) -> None:
    every = bytes(range(256)) * 3
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 3)"
    assert (await commands.run(f'{sys.executable} -I -S -c "{code}"')).stdout == every


async def test_a_listener_hears_the_end_of_a_flood(commands: HostCommands) -> None:
    heard: list[bytes] = []
    await commands.run("seq 1 2000000", on_output=lambda _, chunk: heard.append(chunk))
    assert heard[0].startswith(b"1\n2\n")
    assert b"".join(heard).endswith(b"1999999\n2000000\n")


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=30), st.integers(min_value=8, max_value=64))
def test_head_and_tail_are_the_streams_own(chunks: list[bytes], cap: int) -> None:
    sink = HeadAndTail(cap)
    stream = b"".join(chunks)
    for chunk in chunks:
        feed(sink, chunk)
    kept = sink.kept()
    assert len(kept.data) + kept.cut == len(stream)
    if len(stream) <= cap:
        assert kept.data == stream
    else:
        head, tail = kept.data[: kept.cut_at], kept.data[kept.cut_at :]
        assert stream.startswith(head)
        assert stream.endswith(tail)
        assert cap - 6 <= len(kept.data) <= cap


@given(st.text(min_size=30, max_size=200), st.integers(min_value=16, max_value=40))
def test_a_text_is_cut_on_character_borders(text: str, cap: int) -> None:
    try:
        stream = text.encode()
    except UnicodeEncodeError:
        return
    sink = HeadAndTail(cap)
    feed(sink, stream)
    kept = sink.kept()
    if kept.cut:
        assert text.startswith(kept.data[: kept.cut_at].decode())
        assert text.endswith(kept.data[kept.cut_at :].decode())


def feed(sink: HeadAndTail, chunk: bytes) -> None:
    readable, writable = os.pipe()
    os.write(writable, chunk)
    os.close(writable)
    while sink.read_from(readable):
        pass
    os.close(readable)


async def test_a_drain_ends_with_its_terminal() -> None:
    """The end of a terminal is EIO, not an empty read."""
    master, slave = os.openpty()
    sink = HeadAndTail(100)
    drain = Drain(master, sink)
    os.write(slave, b"hi\n")
    os.close(slave)
    await asyncio.wait_for(drain.ended, 10)
    assert sink.kept().data == b"hi\r\n"
