"""The output window: nothing is left out unsaid, and recall returns exactly what was."""

from __future__ import annotations

import json
import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit_core.errors import ToolError
from toolkit_core.output_window import Window, bounded, slice_chars, slice_lines, window

GAP = re.compile(r"\[lines? (\d+)(?:–(\d+))? omitted \((\d+) characters\)(?:; recall (\{.*?\}))?\]")  # noqa: RUF001 - a range
LONG = re.compile(r"\[line continues for (\d+) more characters(?:; recall (\{.*?\}))?\]")

SMALL = Window(limit_chars=60, head_chars=24, tail_chars=36, line_chars=10)


def test_a_text_within_the_window_is_verbatim_even_as_one_line() -> None:
    for text in ("", "a\n", "x" * 30_000, "\n" * 30_000, "é" * 30_000):
        assert bounded(text) == text


def test_whole_lines_from_both_ends_and_one_line_that_names_the_rest() -> None:
    lines = [f"line {i}" for i in range(1, 20_001)]
    shown = window("\n".join(lines), recall_id="e7").split("\n")

    [gap] = [line for line in shown if GAP.fullmatch(line)]
    first, last, chars, call = GAP.fullmatch(gap).groups()  # pyright: ignore[reportOptionalMemberAccess]  (just matched)
    omitted = lines[int(first) - 1 : int(last)]
    assert shown == [*lines[: int(first) - 1], gap, *lines[int(last) :]]
    assert int(chars) == sum(len(line) + 1 for line in omitted)
    assert json.loads(call) == {"entry_id": "e7", "start_line": int(first), "end_line": int(last)}
    assert sum(len(line) + 1 for line in shown[: int(first) - 1]) <= 12_000
    assert sum(len(line) + 1 for line in shown[int(first) :]) <= 18_000


def test_one_omitted_line_is_named_as_one() -> None:
    assert (
        Window(limit_chars=5, head_chars=3, tail_chars=3).apply("ab\ncd\nef")
        == "ab\n[line 2 omitted (3 characters)]\nef"
    )


def test_lines_are_numbered_within_the_recorded_text() -> None:
    text = "\n".join(f"row {i}" for i in range(10_000))
    found = GAP.search(window(text, first_line=501))
    plain = GAP.search(window(text))
    assert found is not None
    assert plain is not None
    assert int(found[1]) == int(plain[1]) + 500
    assert int(found[2]) == int(plain[2]) + 500


@pytest.mark.parametrize("text", ["Z" * 250_000 + "\n", "Z" * 250_000, "Z" * 250_000 + "\r\n", "\u0431" * 40_000])
def test_a_giant_line_is_cut_and_never_lost(text: str) -> None:
    shown = window(text, recall_id="e1")
    assert shown.startswith(text[:2_000] + "[line continues for ")
    found = LONG.search(shown)
    assert found is not None
    call = json.loads(found[2])
    assert text[: call["start_char"]] + text[call["start_char"] : call["end_char"]] == text.split("\n")[0]
    assert int(found[1]) == call["end_char"] - call["start_char"]


def test_a_giant_line_among_many_falls_into_the_named_range_or_is_shown_cut() -> None:
    text = "".join(f"line {i}\n" for i in range(50)) + "Z" * 250_000 + "\n" + "".join(f"tail {i}\n" for i in range(50))
    shown = window(text)
    assert "line 0" in shown
    assert "tail 49" in shown
    assert LONG.search(shown)
    assert len(shown) < 40_000


def test_a_cut_does_not_part_a_letter_from_its_accent() -> None:
    text = "e\u0301" * 20_000
    first = window(text).split("[")[0]
    assert not unicodedata.combining(text[len(first)])


@given(st.lists(st.text("ab\u00e9\u0301\r", max_size=25), max_size=40))
def test_every_line_is_shown_or_named_and_recall_gives_back_exactly_what_was_omitted(lines: list[str]) -> None:
    text = "\n".join(lines)
    shown = SMALL.apply(text, recall_id="e1")
    if len(text) <= 60:
        assert shown == text
        return
    whole, rebuilt = text.split("\n"), list[str]()
    for line in shown.split("\n"):
        if gap := GAP.fullmatch(line):
            call = json.loads(gap[4])
            piece = slice_lines(text, call["start_line"], call["end_line"])
            assert len(piece.text) + 1 == int(gap[3])
            rebuilt += piece.text.split("\n")
        elif cut := LONG.search(line):
            call = json.loads(cut[2])
            rebuilt.append(line[: cut.start()] + slice_chars(text, call["start_char"], call["end_char"]).text)
        else:
            rebuilt.append(line)
    assert rebuilt == whole


def test_the_cost_is_linear_in_the_text() -> None:
    def cost(text: str) -> float:
        best = 9.0
        for _ in range(3):
            start = time.perf_counter()
            window(text)
            best = min(best, time.perf_counter() - start)
        return best

    for unit in ("x" * 99 + "\n", "x", "\n"):
        small, large = unit * (2_000_000 // len(unit)), unit * (20_000_000 // len(unit))
        assert cost(large) < 60 * cost(small) + 0.05


def test_sizes_must_be_positive() -> None:
    with pytest.raises(ValueError, match="positive"):
        Window(limit_chars=0)


def test_slices_are_bounded_and_say_where_to_go_on() -> None:
    text = "\n".join(f"line {i}" for i in range(1, 10_001))
    piece = slice_lines(text, 2, None)
    assert len(piece.text) < 30_000
    assert f"go on with start_line {piece.last + 1}]" in piece.text
    rest = slice_lines(text, piece.last + 1, piece.last + 1)
    assert rest.text == f"line {piece.last + 1}"
    chars = slice_chars("y" * 100_000, 5, 90_000)
    assert (chars.first, chars.last) == (5, 29_005)
    assert "go on with start_char 29005]" in chars.text
    assert slice_lines("z" * 60_000, 1, 1).text.startswith(
        "z" * 29_000 + "\n[31000 more characters; go on with start_char 29000]"
    )


def test_slices_past_the_end_say_how_much_there_is() -> None:
    with pytest.raises(ToolError, match="has 2 lines"):
        slice_lines("a\nb", 3, None)
    with pytest.raises(ToolError, match="has 3 characters"):
        slice_chars("abc", 3, 9)
