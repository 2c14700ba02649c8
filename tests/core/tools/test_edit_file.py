from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from toolkit_core.host.files import HostFiles
from toolkit_core.limits import EDIT_OCCURRENCES
from toolkit_core.result import ToolResult
from toolkit_core.testing.files import MemoryFiles
from toolkit_core.tool import Tool
from toolkit_core.tools import edit_file_tool

BOM = b"\xef\xbb\xbf"


async def edited(data: bytes, *edits: tuple[str, str] | tuple[str, str, bool]) -> tuple[ToolResult, bytes]:
    """One call on a file in memory: the result, and the bytes afterwards."""
    files = MemoryFiles({"f.txt": data})
    listed = [dict(zip(("old_text", "new_text", "replace_all"), edit, strict=False)) for edit in edits]
    result = await edit_file_tool(files)(path="f.txt", edits=listed)
    return result, files.contents["f.txt"]


async def ok(data: bytes, *edits: tuple[str, str] | tuple[str, str, bool]) -> bytes:
    result, after = await edited(data, *edits)
    assert not result.is_error, result.text
    return after


async def fails(data: bytes, *edits: tuple[str, str] | tuple[str, str, bool]) -> tuple[str, str]:
    result, after = await edited(data, *edits)
    assert result.error is not None, result.text
    assert after == data, "a failed call must write nothing"
    return result.error.code, result.text


async def test_replaces_one_place_and_shows_a_diff() -> None:
    result, after = await edited(b"one\ntwo\nthree\n", ("two", "2"))
    assert after == b"one\n2\nthree\n"
    assert result.text.split("\n")[0] == "Edited f.txt: 1 replacement, first changed line 2."
    assert result.data == {
        "path": "f.txt",
        "replacements": 1,
        "first_changed_line": 2,
        "diff": "--- a/f.txt\n+++ b/f.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
    }


async def test_edits_are_made_on_the_running_text() -> None:
    assert await ok(b"a b c", ("a", "x y"), ("y b", "z"), ("x z c", "done")) == b"done"


async def test_a_failing_edit_is_named_and_nothing_is_written() -> None:
    code, text = await fails(b"a b", ("a", "A"), ("missing", "x"), ("b", "B"))
    assert code == "no_match"
    assert "edits[1]" in text


async def test_an_edit_may_not_find_what_an_earlier_one_made_twice() -> None:
    code, text = await fails(b"a b", ("a", "b"), ("b", "c"))
    assert code == "ambiguous_match"
    assert "edits[1]" in text


@pytest.mark.parametrize(
    ("data", "old", "new", "after"),
    [
        (b"north\r\neast\r\nsouth", "north\neast", "NORTH\nEAST", b"NORTH\r\nEAST\r\nsouth"),
        (BOM + b"uno\r\ndos\r\ntres\r\n", "uno\r\ndos", "UNO\r\nDOS", BOM + b"UNO\r\nDOS\r\ntres\r\n"),
        (BOM + b"import os\nprint(1)\n", "import os\n", "import sys\n", BOM + b"import sys\nprint(1)\n"),
        (b"a\r\nb\nc\r\nd\n", "b", "B", b"a\r\nB\nc\r\nd\n"),
        (b"a\r\nb\nc\r\nd\n", "a\nb\nc", "A\nB\nC", b"A\r\nB\nC\r\nd\n"),
        (b"a\r\nb\nc\r\nd\n", "a\nb\nc", "a\nnew\nb\nc", b"a\r\nnew\r\nb\nc\r\nd\n"),
        (b"a\r\nb\r\n", "b", "b\nc", b"a\r\nb\r\nc\r\n"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"a\nb\r\nc\n", "a", "a\nA", b"a\nA\nb\r\nc\n"),
        (b"a\nb\r\nc\n", "b", "b\nB", b"a\nb\r\nB\r\nc\n"),
        (b"abc", "b", "x\ny", b"ax\nyc"),
        (b"a\r\nb\r\n", "\nb\n", "\nB\n", b"a\r\nB\r\n"),
        (b"a\r\nb\nc", "\n", "", None),
        (b"a\r\nb", "\n", "", b"ab"),
        (b"p\r\nq", "p\r\nq", "p\nq", b"p\nq"),
        (b"p\nq", "p\nq", "p\r\nq", b"p\r\nq"),
        (b"a\rb\r", "a\rb", "c", b"c\r"),
        (b"limit = 10\n# na\xefve cap\n", "limit = 10", "limit = 20", b"limit = 20\n# na\xefve cap\n"),
        (b"\x00\xff\xfe binary x \x80\n", "x", "y", b"\x00\xff\xfe binary y \x80\n"),
        (b'x = "1"\nx = \xe2\x80\x9c1\xe2\x80\x9d', 'x = "1"', "x = 2", b"x = 2\nx = \xe2\x80\x9c1\xe2\x80\x9d"),
        (b"'{0}'\n", "'{0}'", "\u2018{0}\u2019", b"\xe2\x80\x98{0}\xe2\x80\x99\n"),
        (b"run(x)\n", "run(x)", "run($& $$ $1 $` \\1 \\g<0> \\n z)", b"run($& $$ $1 $` \\1 \\g<0> \\n z)\n"),
    ],
)  # fmt: skip
async def test_only_the_span_changes(data: bytes, old: str, new: str, after: bytes | None) -> None:
    if after is None:
        assert (await fails(data, (old, new)))[0] == "ambiguous_match"
        return
    assert await ok(data, (old, new)) == after
    assert await ok(data, (old, new, True)) == after
    assert await ok(data + b"~", ("~", "!"), (old, new)) == after + b"!"


@pytest.mark.parametrize(("codec", "mark"), [("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")])
async def test_utf16_stays_utf16(codec: str, mark: bytes) -> None:
    data = mark + "hello\r\nwörld 😀\r\n".encode(codec)
    assert await ok(data, ("hello\nwörld 😀", "bye\n문\nend")) == mark + "bye\r\n문\r\nend\r\n".encode(codec)


async def test_utf16_is_matched_on_whole_units() -> None:
    data = b"\xff\xfe" + "\u6100\u0061".encode("utf-16-le")  # its bytes 00 61 | 61 00 hold "a" at an odd place too
    assert data.find("a".encode("utf-16-le")) % 2 == 0 or data.count(b"a\x00") == 1
    assert await ok(data, ("a", "b")) == b"\xff\xfe" + "\u6100b".encode("utf-16-le")


async def test_utf16_with_an_odd_byte_at_its_end_keeps_it() -> None:
    data = b"\xff\xfe" + "a\n".encode("utf-16-le") + b"\x07"
    assert await ok(data, ("a", "b")) == b"\xff\xfe" + "b\n".encode("utf-16-le") + b"\x07"


async def test_replace_all_replaces_every_place_from_the_left() -> None:
    result, after = await edited(b"aaaa b aaa", ("aa", "x", True))
    assert after == b"xx b xa"
    assert result.data is not None
    assert result.data["replacements"] == 3


async def test_what_occurs_twice_is_ambiguous_with_count_and_lines() -> None:
    code, text = await fails(b"x = 1\ny = 2\nx = 1\n", ("x = 1", "x = 2"))
    assert code == "ambiguous_match"
    assert "2 times" in text
    assert "lines 1, 3" in text
    assert "replace_all" in text


async def test_what_overlaps_itself_is_ambiguous() -> None:
    assert (await fails(b"aaa", ("aa", "b")))[0] == "ambiguous_match"


async def test_many_occurrences_are_counted_up_to_a_limit() -> None:
    _, text = await fails(b"x\n" * 200_000, ("x", "y"))
    assert "more than 1,000 times" in text


@pytest.mark.parametrize("edits", [[("", "X")], [("", "X", True)], [("m", "M"), ("", "X"), ("o", "O")]])
async def test_an_empty_old_text_is_refused_with_what_to_do_instead(edits: list[Any]) -> None:
    code, text = await fails(b"mno", *edits)
    assert code == "invalid_arguments"
    assert "append" in text
    assert (await fails(b"", *edits[-1:] if len(edits) == 1 else edits))[0] == "invalid_arguments"


@pytest.mark.parametrize(
    "edits",
    [
        [("a", "a")],
        [("a", "b"), ("b", "a")],
        [("b", "x"), ("x\n", "x\n")],
        [("a", "b"), ("b\n", "a\n")],
    ],
)
async def test_what_changes_nothing_is_no_success(edits: list[tuple[str, str]]) -> None:
    data = b"a\n" if edits[0][0] == "a" else b"b\n"
    assert (await fails(data, *edits))[0] == "no_change"


async def test_line_ends_alone_are_a_change_only_when_they_change() -> None:
    assert (await fails(b"p\r\nq", ("p\nq", "p\nq")))[0] == "no_change"
    assert (await fails(b"p\r\nq", ("p\nq", "p\r\nq")))[0] == "no_change"
    assert await ok(b"p\r\nq", ("p\r\nq", "p\nq")) == b"p\nq"


async def test_lone_surrogates_are_refused_in_both_texts() -> None:
    for edit in (("\ud83d", "x"), ("a", "\udcff")):
        code, text = await fails(b"a\xff", edit)
        assert code == "invalid_arguments"
        assert "U+D" in text


async def test_a_file_too_large_is_refused_before_it_is_read(workspace: Path) -> None:
    (workspace / "big").touch()
    os.truncate(workspace / "big", 64 * 1024 * 1024 + 1)
    result = await edit_file_tool(HostFiles(workspace))(path="big", edits=[{"old_text": "a", "new_text": "b"}])
    assert result.error is not None
    assert (result.error.code, "67,108,864" in result.text) == ("too_large", True)


async def test_growth_past_the_limit_is_refused_before_it_is_made() -> None:
    files = MemoryFiles({"f": b"x" * 10_000})
    tool = edit_file_tool(files, max_file_bytes=20_000)
    result = await tool(path="f", edits=[{"old_text": "x", "new_text": "y" * 10_000_000, "replace_all": True}])
    assert result.error is not None
    assert result.error.code == "too_large"
    assert files.contents["f"] == b"x" * 10_000
    big = await tool(path="f", edits=[{"old_text": "x", "new_text": "yy", "replace_all": True}])
    assert not big.is_error


async def test_too_many_places_are_refused() -> None:
    code, text = await fails(b"x" * 300_000, ("x", "y", True))
    assert (code, "250,000" in text) == ("too_large", True)


async def test_a_missing_file_and_a_folder_have_their_codes(workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "readme.md").touch()
    tool = edit_file_tool(HostFiles(workspace))
    edits = [{"old_text": "a", "new_text": "b"}]
    for path, code in (("no.txt", "not_found"), ("README.md", "not_found"), ("sub", "is_a_directory")):
        result = await tool(path=path, edits=edits)
        assert result.error is not None
        assert result.error.code == code
    assert "readme.md" in (await tool(path="README.md", edits=edits)).text
    assert not list((workspace / "sub").iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        {"edits": [{"old_text": "a", "new_text": "b"}]},
        {"edits": {"old_text": "a", "new_text": "b"}},
        {"edits": '[{"old_text": "a", "new_text": "b"}]'},
        {"edits": [{"oldText": "a", "newText": "b", "replaceAll": "true"}]},
        {"edits": '{"old_string": "a", "new_string": "b"}'},
        {"old_text": "a", "new_text": "b"},
        {"old_string": "a", "new_string": "b", "replace_all": None},
        {"oldText": "a", "newText": "b", "edits": None},
        {"old_str": "a", "new_str": "b"},
    ],
)
async def test_edits_are_taken_in_the_shapes_that_models_send(arguments: dict[str, Any]) -> None:
    files = MemoryFiles({"f": "a\n"})
    tool = edit_file_tool(files)
    result = await tool.call({"file_path": "f", **arguments})
    assert not result.is_error, result.text
    assert files.contents["f"] == b"b\n"
    assert set(tool.parameters["properties"]) == {"path", "edits"}


async def test_raw_newlines_in_a_json_text_are_content() -> None:
    files = MemoryFiles({"f": "a\n"})
    await edit_file_tool(files)(path="f", edits='[{"old_text": "a", "new_text": "b\nc"}]')
    assert files.contents["f"] == b"b\nc\n"


async def test_the_schema_asks_for_old_text() -> None:
    schema = edit_file_tool(MemoryFiles()).parameters["properties"]["edits"]
    assert schema["minItems"] == 1
    assert schema["items"]["properties"]["old_text"]["minLength"] == 1
    assert schema["items"]["required"] == ["old_text", "new_text"]


async def test_the_description_claims_reading_first_only_where_it_is_required(workspace: Path) -> None:
    tool: Tool = edit_file_tool(HostFiles(workspace))
    assert "must have been read" not in tool.description


async def test_text_beyond_ascii_in_a_file_that_is_not_utf8_is_said() -> None:
    result, after = await edited(b"na\xefve x", ("x", "é"))
    assert after == b"na\xefve \xc3\xa9"
    assert "not UTF-8" in result.text


async def test_a_giant_line_gives_a_small_result() -> None:
    result, after = await edited(b"x" * 3_000_000 + b" old " + b"y" * 3_000_000, ("old", "new"))
    assert b" new " in after
    assert len(result.to_json()) < 5_000
    assert "too long to show" in result.text


async def test_edits_beside_giant_lines_have_small_diffs() -> None:
    data = b"".join(b"name_%d\n%s\n" % (n, b"z" * 400_000) for n in range(10))
    result, _ = await edited(data, *[(f"name_{n}\n", f"NAME_{n}\n") for n in range(10)])
    assert result.data is not None
    assert len(result.data["diff"]) < 2_000


async def test_the_lines_of_an_ambiguous_text_are_where_it_starts() -> None:
    code, text = await fails(b"a\nb\nx\na\nb\nx\na\nb\n", ("a\nb\n", "c"))
    assert code == "ambiguous_match"
    assert "old_text occurs 3 times, at lines 1, 4, 7; nothing" in text


async def test_one_edit_is_named_as_such_and_several_by_number() -> None:
    assert "The edit: old_text" in (await fails(b"a a\n", ("a", "b")))[1]
    assert "edits[1]: old_text" in (await fails(b"a b b\n", ("a", "c"), ("b", "d")))[1]


async def test_line_ends_that_an_edit_brings_in_are_known_to_the_next() -> None:
    assert await ok(b"a\nb\nc\n", ("a\nb\n", "a\r\nb\r\n"), ("b\nc", "X")) == b"a\r\nX\n"


async def test_the_same_text_in_the_files_line_ends_is_no_change() -> None:
    code, text = await fails(b"a\r\nb\r\n", ("a\nb", "a\r\nb"))
    assert code == "no_change"
    assert "with the line ends of the file" in text
    code, text = await fails(b"a\n", ("a", "a"))
    assert code == "no_change"
    assert "old_text and new_text are the same" in text
    assert "with the line ends" not in text


async def test_as_many_places_as_are_taken_are_changed_and_no_more() -> None:
    assert await ok(b"ab" * EDIT_OCCURRENCES, ("a", "c", True)) == b"cb" * EDIT_OCCURRENCES
    code, text = await fails(b"ab" * (EDIT_OCCURRENCES + 1), ("a", "c", True))
    assert code == "too_large"
    assert f"more than {EDIT_OCCURRENCES:,} times" in text


@pytest.mark.parametrize(
    ("times", "says"),
    [
        (10, "occurs 10 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10; nothing"),
        (11, "occurs 11 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ...; nothing"),
        (1_000, "occurs 1,000 times"),
        (1_001, "occurs more than 1,000 times"),
    ],
)
async def test_places_are_named_up_to_ten_and_counted_up_to_a_thousand(times: int, says: str) -> None:
    code, text = await fails(b"x\n" * times, ("x", "y"))
    assert code == "ambiguous_match"
    assert says in text


async def test_a_file_that_begins_with_a_line_end_has_its_places_named_right() -> None:
    _, text = await fails(b"\nx\nx\n", ("x", "y"))
    assert "at lines 2, 3; nothing" in text


async def test_a_file_may_grow_up_to_the_limit_wherever_it_is_edited() -> None:
    files = MemoryFiles({"f.txt": b"a" * 90 + b"\nend\n"})  # 95 bytes
    tool = edit_file_tool(files, max_file_bytes=100)
    result = await tool(path="f.txt", edits=[{"old_text": "end", "new_text": "the end."}])
    assert result.error is None, result.text
    result = await tool(path="f.txt", edits=[{"old_text": "the end.", "new_text": "the end.."}])
    assert result.error is not None
    assert result.error.code == "too_large"
    assert "101 bytes long; at most 100" in result.text
