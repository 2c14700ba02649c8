"""Many edits in one call: each costs about the same, and a cancelled call ends."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit_core.errors import ToolError
from toolkit_core.host.files import HostFiles
from toolkit_core.host.hop import Stop, in_thread
from toolkit_core.tools import edit_file_tool
from toolkit_core.tools._codec import Codec
from toolkit_core.tools._edit_engine import Edit, apply_edits
from toolkit_core.tools._needle import Needle
from toolkit_core.tools._piece_chunks import Piece, PieceChunks
from toolkit_core.tools._pieces import PieceTable

END_OF_LINE = ["\n", "\r\n", "mixed"]


def numbered(count: int, end: str) -> str:
    ends = [end] * count if end != "mixed" else ["\n", "\r\n"] * count
    return "".join(f"line {i}{ends[i]}" for i in range(count))


@pytest.mark.parametrize("end", END_OF_LINE)
def test_three_thousand_edits_take_about_a_second(end: str) -> None:
    text = numbered(3_000, end)
    edits = [Edit(f"line {i}\n", f"LINE {i}\n") for i in range(3_000)]
    before = time.process_time()
    table = apply_edits(text.encode(), Codec(), edits).table
    assert time.process_time() - before < 8, "each edit must not walk what all before it left (was 35 s and more)"
    assert b"".join(table.parts).decode() == text.replace("line", "LINE")


def test_edits_after_very_many_replacements_stay_cheap() -> None:
    text = "x" * 40_000 + numbered(1_000, "\n")
    edits = [Edit("x", "yy", replace_all=True), *(Edit(f"line {i}\n", "") for i in range(1_000))]
    before = time.process_time()
    table = apply_edits(text.encode(), Codec(), edits).table
    assert time.process_time() - before < 8
    assert b"".join(table.parts) == b"y" * 80_000


@given(st.text("ab\n", max_size=80), st.data(), st.sampled_from([0, 3, 16, 1_000]))
def test_pieces_hold_the_running_text_however_much_of_it_is_joined(
    text: str, data: st.DataObject, joined_bytes: int
) -> None:
    table, running = PieceTable(text.encode(), joined_bytes=joined_bytes), text
    for _ in range(data.draw(st.integers(0, 12))):
        cuts = sorted(data.draw(st.sets(st.integers(0, len(running)), max_size=6)))
        spans = list(zip(cuts[::2], cuts[1::2], strict=False))
        news = [data.draw(st.text("ab\n", max_size=4)) for _ in spans]
        table.replace(spans, [new.encode() for new in news])
        for (start, end), new in reversed(list(zip(spans, news, strict=True))):
            running = running[:start] + new + running[end:]
        assert len(table) == len(running)
        wanted = data.draw(st.text("ab\n", min_size=1, max_size=3))
        start = data.draw(st.integers(0, len(running)))
        found = table.find(Needle.of(wanted, Codec(), "lf"), start)
        assert (found[0] if found else -1) == running.find(wanted, start)
    assert b"".join(table.parts).decode() == table.bytes_at(0, len(table)).decode() == running
    old = text
    for change in reversed(list(table.changes())):
        old = old[: change.old_start] + change.new.decode() + old[change.old_end :]
    assert old == running


@given(st.lists(st.tuples(st.integers(0, 9_990), st.integers(1, 9), st.binary(max_size=3)), max_size=30))
def test_chunks_are_cut_and_kept_in_order(edits: list[tuple[int, int, bytes]]) -> None:
    running = bytes(i % 251 for i in range(10_000))
    chunks = PieceChunks([Piece(running, i, i + 2, True) for i in range(0, 10_000, 2)])
    for at, length, new in edits:
        start = min(at, len(running) - length)
        chunks.replace([(start, start + length)], [new])
        running = running[:start] + new + running[start + length :]
        assert b"".join(p.buffer[p.start : p.end] for p in chunks) == running
    assert len(chunks) == len(list(chunks))


def test_the_work_asks_at_every_edit_whether_to_go_on() -> None:
    asked = 0

    def stop_soon() -> None:
        nonlocal asked
        asked += 1
        if asked > 5:
            raise ToolError("cancelled")

    with pytest.raises(ToolError, match="cancelled"):
        apply_edits(numbered(50, "\n").encode(), Codec(), [Edit(f"e {i}\n", "") for i in range(50)], check=stop_soon)


async def test_a_cancelled_call_ends_and_writes_nothing(workspace: Path) -> None:
    text = "".join(f"{i:07}" + "x" * 200 + "\n" for i in range(40_000))
    (workspace / "f").write_text(text)
    edits = [{"old_text": f"{i:07}x", "new_text": f"{i}y"} for i in range(20_000)]
    tool = edit_file_tool(HostFiles(workspace))
    call = asyncio.ensure_future(tool(path="f", edits=edits))
    await asyncio.sleep(1.5)
    assert not call.done(), "control: the call takes long"
    before = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert time.monotonic() - before < 3
    assert (workspace / "f").read_text() == text
    assert [path.name for path in workspace.iterdir()] == ["f"]


async def test_what_a_thread_raises_long_after_its_call_was_cancelled_is_nobodys_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))

    async def left(awaitable: asyncio.Future[None]) -> None:
        task = asyncio.ensure_future(awaitable)
        await asyncio.sleep(0)
        task.cancel()  # as the bounded clean-up does once its time is over

    monkeypatch.setattr("toolkit_core.host.hop.finish", left)

    def deaf(stop: Stop) -> None:
        time.sleep(0.3)
        stop.check()

    work: Callable[[Stop], None] = deaf
    call = asyncio.ensure_future(in_thread(work))
    await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    del call
    await asyncio.sleep(0.6)
    gc.collect()
    assert reported == []
