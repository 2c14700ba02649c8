"""Reading a file page by page gives back every line and every character exactly once."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit_core.host.bridge import run_blocking
from toolkit_core.result import ToolResult
from toolkit_core.testing.files import MemoryFiles
from toolkit_core.tools import read_file_tool

CUT = re.compile(r" \[cut: characters [\d,]+ to [\d,]+ of (?:[\d,]+|more); offset=(\d+), char_offset=(\d+) reads on\]$")
LINE_CHARS = 20


@dataclass
class Reader:
    """Reads on as the text of each page says."""

    data: bytes
    limit: int
    output_bytes: int

    def __post_init__(self) -> None:
        self.tool = read_file_tool(
            MemoryFiles({"f": self.data}), max_line_chars=LINE_CHARS, max_output_bytes=self.output_bytes
        )

    def page(self, **arguments: int) -> ToolResult:
        return run_blocking(self.tool.call({"path": "f", "limit": self.limit, **arguments})).raise_for_error()

    def rows(self, result: ToolResult) -> list[tuple[int, str]]:
        body = result.text.split("\n", 1)[1]
        parts = re.split(r"(?:^|\n) *(\d+)\t", body)[1:]
        return [(int(number), text) for number, text in zip(parts[::2], parts[1::2], strict=True)]

    def whole_line(self, number: int, shown: str) -> str:
        cut = CUT.search(shown)
        if cut is None:
            return shown
        assert int(cut[1]) == number
        rest = self.rows(self.page(offset=number, limit=1, char_offset=int(cut[2])))
        return shown[: cut.start()] + self.whole_line(number, rest[0][1])

    def lines(self) -> list[str]:
        found: list[str] = []
        offset = 1
        while True:
            result = self.page(offset=offset)
            assert result.data is not None
            if result.data["last_line"] == 0:
                return found
            rows = self.rows(result)
            assert [number for number, _ in rows] == list(
                range(result.data["first_line"], result.data["last_line"] + 1)
            )
            assert offset == result.data["first_line"] == len(found) + 1
            found += [self.whole_line(number, text) for number, text in rows]
            if result.data["next_offset"] is None:
                assert result.data["total_lines"] == len(found)
                return found
            offset = result.data["next_offset"]


def expected(text: str) -> list[str]:
    lines = text.split("\n")
    ended, last = lines[:-1], lines[-1]
    return [line.removesuffix("\r") for line in ended] + ([last] if last else [])


# Digits before a tab would read as a number of the view in this test's own parser.
TEXT = st.text(st.characters(exclude_categories=["Cs", "Nd", "No", "Nl"], exclude_characters="\0\t[]"), max_size=120)
WITH_LINES = st.lists(TEXT | st.just("") | st.just("x" * 95), max_size=12).map("\n".join)


@given(WITH_LINES, st.integers(1, 5), st.sampled_from([40, 200, 10_000]))
def test_every_character_comes_once(text: str, limit: int, output_bytes: int) -> None:
    text = text.removeprefix("\ufeff")
    assert Reader(text.encode(), limit, output_bytes).lines() == expected(text)


@given(WITH_LINES, st.sampled_from(["utf-16-le", "utf-16-be", "utf-8"]), st.integers(1, 5))
def test_every_character_comes_once_behind_a_mark(text: str, codec: str, limit: int) -> None:
    assert Reader(("\ufeff" + text).encode(codec), limit, 300).lines() == expected(text)


@given(st.binary(max_size=200), st.integers(1, 5))
def test_every_byte_comes_once_whatever_it_is(data: bytes, limit: int) -> None:
    data = b"." + data.replace(b"\0", b"").replace(b"\t", b"").replace(b"[", b"").replace(b"\\", b"")
    data = re.sub(rb"\d", b"", data)
    lines = Reader(data, limit, 500).lines()
    raw = [re.sub(rb"\\x([0-9A-F]{2})", lambda m: bytes.fromhex(m[1].decode()), line.encode()) for line in lines]
    assert raw == [
        line.encode("utf-8", "surrogateescape") for line in expected(data.decode("utf-8", "surrogateescape"))
    ]


@given(st.lists(st.text("ab\r", max_size=30), min_size=1, max_size=30).map("\n".join), st.integers(1, 40))
def test_from_the_end_gives_the_same_lines_as_from_the_start(text: str, count: int) -> None:
    reader = Reader(text.encode(), 1000, 1_000_000)
    every = reader.lines()
    if every:
        rows = reader.rows(reader.page(offset=-count))
        assert [number for number, _ in rows] == list(range(max(1, len(every) - count + 1), len(every) + 1))
        assert [reader.whole_line(number, shown) for number, shown in rows] == every[-count:]


@pytest.mark.parametrize("size", [262_143, 262_144, 262_145, 524_288])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"", b"\xc3\xa9\n"])
def test_lines_across_blocks_are_whole(size: int, end: bytes) -> None:
    first = b"x" * (size - len(end)) + end
    data = first + b"second\nthird"
    reader = Reader(data, 100, 1_000_000)
    rows = reader.rows(reader.page(offset=2 if end else 1))
    if end:
        assert rows == [(2, "second"), (3, "third")]
        [(_, last)] = reader.rows(reader.page(offset=1, limit=1, char_offset=size - len(end) - 5))
        assert last == "xxxxx" + end.decode().strip()
    else:
        assert rows[1] == (2, "third")
