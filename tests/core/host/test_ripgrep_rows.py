"""ripgrep's output as rows, however it is cut into blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit_core.host.ripgrep_rows import RowReader
from toolkit_core.limits import GREP_ROW_CHARS
from toolkit_core.search_text import cut_line


def read(
    data: bytes, *, sizes: list[int] | None = None
) -> tuple[list[tuple[bytes, int, str, bool, bool, str]], RowReader]:
    reader = RowReader()
    rows: list[tuple[bytes, int, str, bool, bool, str]] = []
    at = 0
    for size in sizes or [len(data)]:
        rows += reader.feed(data[at : at + size])
        at += size
    rows += reader.feed(data[at:])
    return rows, reader


def test_names_with_colons_spaces_newlines_and_odd_bytes_survive() -> None:
    names = [b"./log:7:old.txt", b"./a b", b"./new\nline", b"./bad\xff", b"./--"]
    rows, _ = read(b"".join(name + b"\x001\x001\x00hit\n" for name in names))
    assert [row[0] for row in rows] == names


def test_context_rows_and_gaps_are_told_apart_from_matches() -> None:
    rows, _ = read(b"./a\x001-before\n./a\x002\x003\x00match\n--\n./a\x009\x001\x00again-1:2\n")
    assert [(row[1], row[2], row[3], row[4]) for row in rows] == [
        (1, "before", True, False),
        (2, "match", False, False),
        (9, "again-1:2", False, True),
    ]


def test_a_carriage_return_at_the_end_is_dropped() -> None:
    rows, _ = read(b"./a\x001\x001\x00text\r\n./a\x002-more\r\n")
    assert [row[2] for row in rows] == ["text", "more"]


@pytest.mark.parametrize("note", [b"binary file matches", b"WARNING: stopped searching binary file after match"])
def test_a_note_on_a_binary_file_is_counted_and_no_row(note: bytes) -> None:
    line = b"./x: y.bin: " + note + b' (found "\\0" byte around offset 12)\n'
    rows, reader = read(b"./a\x001\x001\x00hit\n" + line + b"./b\x001\x001\x00hit\n")
    assert [row[0] for row in rows] == [b"./a", b"./b"]
    assert reader.binary == 1


def test_a_giant_line_is_cut_while_it_streams_and_shows_its_match() -> None:
    line = b"y" * 3_000_000 + b"HIT" + b"z" * 3_000_000
    data = b"./a\x001\x003000001\x00" + line + b"\n./a\x002\x001\x00next\n"
    reader = RowReader()
    rows: list[tuple[bytes, int, str, bool, bool, str]] = []
    largest = 0
    for at in range(0, len(data), 65_536):
        rows += reader.feed(data[at : at + 65_536])
        largest = max(largest, len(reader.held))
    assert [(len(row[2]), row[5]) for row in rows] == [(GREP_ROW_CHARS, "both"), (4, "")]
    assert "HIT" in rows[0][2]
    assert largest < 200_000


def test_a_giant_line_whose_match_is_at_its_start_is_cut_at_the_end() -> None:
    rows, _ = read(b"./a\x001\x001\x00HIT" + b"z" * 500_000 + b"\n", sizes=[65_536] * 6)
    assert rows[0][2] == "HIT" + "z" * 497
    assert rows[0][5] == "end"


_NAMES = st.binary(min_size=1, max_size=12).filter(lambda name: b"\0" not in name and b": " not in name)
_TEXTS = st.binary(max_size=40).filter(lambda text: not {10, 0}.intersection(text) and not text.endswith(b"\r"))
_ROWS = st.tuples(_NAMES, st.integers(1, 10**7), _TEXTS, st.booleans())


@given(rows=st.lists(_ROWS, max_size=12), sizes=st.lists(st.integers(1, 30), max_size=40))
def test_rows_come_out_as_they_went_in_whatever_the_blocks(
    rows: list[tuple[bytes, int, bytes, bool]], sizes: list[int]
) -> None:
    data = b""
    for name, line, text, context in rows:
        name = b"./" + name
        data += b"%b\0%d-%b\n" % (name, line, text) if context else b"%b\0%d\x001\0%b\n" % (name, line, text)
    found, reader = read(data, sizes=sizes)
    expected = [(b"./" + n, line, text.decode("utf-8", "backslashreplace"), context) for n, line, text, context in rows]
    assert [(row[0], row[1], row[2], row[3]) for row in found] == expected
    assert reader.malformed == 0


@given(lead=st.text(max_size=900), rest=st.text(max_size=900))
def test_a_cut_row_is_a_piece_of_the_line_that_holds_the_start_of_the_match(lead: str, rest: str) -> None:
    line = (lead + "M" + rest).replace("\r", " ")
    start = len(lead.encode("utf-8", "surrogatepass"))
    text, cut = cut_line(line.encode("utf-8", "surrogatepass"), start)
    assert len(text) <= GREP_ROW_CHARS
    assert "M" in text
    assert (cut == "") == (len(line) <= GREP_ROW_CHARS) or "\\x" in text
