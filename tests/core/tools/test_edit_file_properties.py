"""For any bytes and any edits: outside the spans nothing changes, and the diff leads from the old to the new."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support import require
from toolkit_core.errors import ToolError
from toolkit_core.tools._codec import Codec
from toolkit_core.tools._edit_engine import Edit, apply_edits
from toolkit_core.tools._needle import Needle, sample
from toolkit_core.tools._pieces import PieceTable
from toolkit_core.tools._span_diff import span_diff

SMALL = st.text("ab\n\r\u00e9", max_size=8)
LINES = st.lists(st.text("ab é", max_size=5), max_size=25)
ENDS = st.lists(st.sampled_from(["\n", "\r\n", "\r", "\n"]), min_size=26, max_size=26)
EDITS = st.lists(
    st.builds(Edit, st.text("ab\n\ré ", min_size=1, max_size=4), SMALL, st.booleans()), min_size=1, max_size=5
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    return "".join(line + end for line, end in zip(draw(LINES), draw(ENDS), strict=False)) + draw(SMALL)


@st.composite
def texts_and_edits(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    """Old texts are parts of the text, so that most edits apply."""
    text = draw(texts()) + "end"
    edits: list[Edit] = []
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text) - 1))
        old = text[start : start + draw(st.integers(1, 12))]
        edits.append(Edit(old, draw(SMALL), draw(st.sampled_from([True, True, False]))))
    return text, edits


def by_hand(text: str, edits: list[Edit]) -> str | None:
    """The same edits the slow way, on text whose line ends are all alike; None where one does not apply."""
    for edit in edits:
        starts = [i for i in range(len(text)) if text.startswith(edit.old_text, i)]
        if not starts or (len(starts) > 1 and not edit.replace_all):
            return None
        text = text.replace(edit.old_text, edit.new_text)
    return text


PLAIN = st.text("ab\né ", max_size=60)
PLAIN_EDIT = st.builds(Edit, st.text("ab\né ", min_size=1, max_size=4), st.text("ab\né ", max_size=5), st.booleans())


def outcome(data: bytes, edits: list[Edit], codec: Codec | None = None) -> tuple[PieceTable | None, str]:
    """The table, or the code of the failure."""
    try:
        return apply_edits(data, codec or Codec(), edits).table, ""
    except ToolError as e:
        return None, e.code


@given(PLAIN, st.lists(PLAIN_EDIT, min_size=1, max_size=5))
def test_agrees_with_plain_replacement(text: str, edits: list[Edit]) -> None:
    expected = by_hand(text, edits)
    table, code = outcome(text.encode(), edits)
    if table is None:
        assert expected is None or code == "no_change"
    else:
        assert b"".join(table.parts).decode() == expected


@given(texts_and_edits())
def test_crlf_and_lf_differ_in_nothing_but_the_line_ends(case: tuple[str, list[Edit]]) -> None:
    text, edits = case
    unix = text.replace("\r", "")
    plain = [Edit(e.old_text.replace("\r", "") or "a", e.new_text.replace("\r", ""), e.replace_all) for e in edits]
    outcomes: list[str] = []
    for data in (unix.encode(), unix.replace("\n", "\r\n").encode()):
        try:
            after = b"".join(apply_edits(data, Codec(), plain).table.parts).decode()
        except ToolError as e:
            outcomes.append(e.code)
            continue
        if "\n" in unix:  # a text without any has no line ends to follow
            assert "\r" not in after.replace("\r\n", "") or data == unix.encode()
            assert data == unix.encode() or "\n" not in after.replace("\r\n", "")
        outcomes.append(after.replace("\r\n", "\n"))
    assert outcomes[0] == outcomes[1]


def as_bytes(case: tuple[str, list[Edit]]) -> tuple[bytes, list[Edit]]:
    return b"\xff\xfe\x00" + case[0].encode(), case[1]


@given(st.tuples(st.binary(max_size=80), EDITS) | texts_and_edits().map(as_bytes))
def test_bytes_outside_the_spans_never_change(case: tuple[bytes, list[Edit]]) -> None:
    data, edits = case
    try:
        table = apply_edits(data, Codec(), edits).table
    except ToolError:
        return
    after = b"".join(table.parts)
    at, kept = 0, 0
    for change in table.changes():
        gap = data[at : change.old_start]
        assert after[kept : kept + len(gap)] == gap
        kept += len(gap)
        assert after[kept : kept + len(change.new)] == change.new
        kept += len(change.new)
        at = change.old_end
    assert after[kept:] == data[at:]


@given(st.sampled_from(["utf-16-le", "utf-16-be"]), texts_and_edits())
def test_utf16_is_edited_like_utf8(codec: str, case: tuple[str, list[Edit]]) -> None:
    text, edits = case
    mark = "\ufeff".encode(codec)
    outcomes: list[str] = []
    for kind, data in ((Codec(), text.encode()), (Codec(codec, 2, 2), mark + text.encode(codec))):
        try:
            table = apply_edits(data, kind, edits).table
        except ToolError as e:
            outcomes.append(e.code)
            continue
        after = b"".join(table.parts)
        outcomes.append(after.decode() if kind.width == 1 else after.decode(codec).removeprefix("\ufeff"))
        outcomes.append(span_diff(table, kind, "f").text)
    assert outcomes[: len(outcomes) // 2] == outcomes[len(outcomes) // 2 :]


HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")


def applied(old: str, diff: str) -> str:
    """A strict reader of unified diffs."""
    lines, out, at = re.findall(r"[^\n]*\n|[^\n]+", old), list[str](), 0
    rows = re.findall(r"[^\n]*\n", diff)[2:]
    index = 0
    while index < len(rows):
        header = HUNK.fullmatch(rows[index])
        assert header is not None, rows[index]
        first, count = int(header[1]), int(header[2] or 1)
        new_first, new_count = int(header[3]), int(header[4] or 1)
        index += 1
        start = first if count == 0 else first - 1
        out += lines[at:start]
        assert len(out) == (new_first if new_count == 0 else new_first - 1)
        at, before = start, len(out)
        while index < len(rows) and not rows[index].startswith("@@"):
            sign, text = rows[index][0], rows[index][1:]
            index += 1
            if index < len(rows) and rows[index].startswith("\\"):
                text = text[:-1]
                index += 1
            if sign in " -":
                assert lines[at] == text
                at += 1
            if sign in " +":
                out.append(text)
        assert at - start == count
        assert len(out) - before == new_count
    return "".join(out + lines[at:])


@given(texts_and_edits())
def test_the_diff_leads_from_the_old_text_to_the_new(case: tuple[str, list[Edit]]) -> None:
    text, edits = case
    try:
        table = apply_edits(text.encode(), Codec(), edits).table
    except ToolError:
        return
    diff = span_diff(table, Codec(), "f")
    after = b"".join(table.parts).decode()
    assert applied(text, diff.text) == after
    old_lines, new_lines = text.split("\n"), after.split("\n")
    differing = [i for i, (a, b) in enumerate(zip(old_lines, new_lines, strict=False), 1) if a != b]
    first = differing[0] if differing else min(len(old_lines), len(new_lines)) + 1
    assert diff.first_changed_line in (first, first - 1, first + 1)


def test_git_applies_the_diff(tmp_path: Path) -> None:
    git = shutil.which("git")
    require(git, "no git")
    assert git is not None
    subprocess.run([git, "init", "-q", tmp_path], check=True)
    config = [git, "-C", tmp_path, "-c", "core.autocrlf=false", "-c", "core.whitespace=cr-at-eol"]
    names = ["f.txt", "with space.txt", 'quo"te\\.txt', "naïve.txt", "tab\there.txt"]
    count = 0

    @given(texts_and_edits(), st.sampled_from(names))
    def check(case: tuple[str, list[Edit]], name: str) -> None:
        nonlocal count
        text, edits = case
        try:
            table = apply_edits(text.encode(), Codec(), edits).table
        except ToolError:
            return
        (tmp_path / name).write_bytes(text.encode())
        diff = span_diff(table, Codec(), name).text
        done = subprocess.run([*config, "apply", "-"], input=diff.encode(), capture_output=True, check=False)
        if not b"".join(table.parts):
            return  # git takes an emptied file for a removed one in some versions
        assert done.returncode == 0, done.stderr.decode() + diff
        assert (tmp_path / name).read_bytes() == b"".join(table.parts)
        count += 1

    check()
    assert count > 5


def letters(count: int) -> st.SearchStrategy[bytes]:
    return st.text("abc", min_size=1, max_size=count).map(str.encode)


@given(st.lists(letters(6), max_size=12), st.text("abc", min_size=1, max_size=5), st.integers(0, 30))
def test_matches_across_pieces_are_found_as_in_joined_text(parts: list[bytes], wanted: str, start: int) -> None:
    table = PieceTable(b"".join(parts))
    joined = b"".join(parts)
    at = 0
    for part in parts:  # cut the table at every part by replacing each second one with itself
        table.replace([(at, at + len(part))], [bytes(bytearray(part))])
        at += len(part)
    found = table.find(Needle.of(wanted, Codec(), "lf"), min(start, len(joined)))
    expected = joined.find(wanted.encode(), min(start, len(joined)))
    assert found == (None if expected < 0 else (expected, expected + len(wanted)))


@given(letters(3000), st.text("abcde", min_size=2, max_size=6))
def test_a_rare_byte_finds_the_same(data: bytes, wanted: str) -> None:
    plain = Needle.of(wanted, Codec(), "lf")
    rare = Needle.of(wanted, Codec(), "lf", {**dict.fromkeys(range(256), 9), ord(wanted[-1]): 0})
    assert rare.rare is not None
    assert plain.find(data, 0, len(data)) == rare.find(data, 0, len(data))
    assert sum(sample(data * 20).values()) <= 16_384
