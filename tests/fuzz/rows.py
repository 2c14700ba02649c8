"""ripgrep's rows: the same however the stream is cut, and any bytes at all are taken."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from toolkit_core.host.ripgrep_rows import RawRow, RowReader

_PATH = st.binary(min_size=1, max_size=8).map(lambda name: b"./" + name.replace(b"\0", b"_"))
_LINE = st.binary(max_size=30).map(lambda text: text.replace(b"\n", b"_"))
_NUMBER = st.integers(1, 10**6).map(lambda number: b"%d" % number)
_ROW = st.tuples(_PATH, st.just(b"\0"), _NUMBER, st.just(b"\0"), _NUMBER, st.just(b"\0"), _LINE).map(b"".join)
_CONTEXT = st.tuples(_PATH, st.just(b"\0"), _NUMBER, st.just(b"-"), _LINE).map(b"".join)
_NOTE = _PATH.map(lambda path: path + b': binary file matches (found "\\0" byte around offset 3)')
_GIANT = st.tuples(_ROW | _CONTEXT, st.integers(60_000, 70_000).map(lambda size: b"x" * size)).map(b"".join)
_PIECE = _ROW | _CONTEXT | st.just(b"--") | _NOTE | st.binary(max_size=12) | _GIANT
INPUTS = st.tuples(st.lists(_PIECE, max_size=5).map(b"\n".join), st.lists(st.integers(1, 70_000), max_size=6))


def check(sent: Any) -> None:
    """Cut in two ways."""
    stream, cuts = sent
    whole = stream + b"\n"
    rows, reader = fed([whole])
    assert len(reader.held) <= 140_000
    cut: list[bytes] = []
    rest = whole
    for size in cuts:
        cut.append(rest[:size])
        rest = rest[size:]
    other, second = fed([*cut, rest])
    if len(whole) < 60_000:
        assert rows == other
        assert (reader.binary, reader.malformed) == (second.binary, second.malformed)


def fed(blocks: list[bytes]) -> tuple[list[RawRow], RowReader]:
    """The rows of a stream in blocks."""
    reader = RowReader()
    return [row for block in blocks for row in reader.feed(block)], reader
