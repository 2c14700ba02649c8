"""What a model is told when its old text is not there: the closest lines and what differs, never a loose match."""

from __future__ import annotations

import time
import unicodedata

import pytest

from toolkit_core.errors import ToolError
from toolkit_core.tools._codec import Codec
from toolkit_core.tools._edit_engine import Edit, apply_edits


def refused(data: bytes, old_text: str, codec: Codec | None = None) -> ToolError:
    with pytest.raises(ToolError) as caught:
        apply_edits(data, codec or Codec(), [Edit(old_text, "new")])
    assert caught.value.code == "no_match"
    return caught.value


def said(data: bytes, old_text: str) -> str:
    error = refused(data, old_text)
    return f"{error.message} {error.hint} {error.detail}"


@pytest.mark.parametrize(
    ("data", "old", "says"),
    [
        ("if x:\n\t\tprintln(2)\n", "        println(2)", ("line 2", "tabs", "spaces")),
        ("if x:\n    run()\n", "\trun()", ("line 2", "spaces where old_text has tabs")),
        ("def f():\n    return 1\n", "def f():\n  return 1", ("line 1", "number of blanks")),
        ("a = 1  \nb = 2\n", "a = 1\nb = 2", ("line 1", "whitespace at the end")),
        ("price: 5\u00a0EUR\n", "price: 5 EUR", ("line 1", "U+00A0")),
        ("Ask \u201cwho pays\u201d first.\n", 'Ask "who pays" first.', ("line 1", "quotation", "U+201C", "U+201D")),
        ("it\u2019s here\n", "it's here", ("line 1", "U+2019")),
        ("pages 3\u20135\n", "pages 3-5", ("line 1", "dashes", "U+2013")),
        ("zero\u200bwidth\n", "zerowidth", ("line 1", "invisible", "U+200B")),
        (unicodedata.normalize("NFD", "café au lait\n"), "café au lait", ("line 1", "Unicode form", "decomposed")),
        ("café\n", unicodedata.normalize("NFD", "café"), ("line 1", "Unicode form", "composed")),
        ("o\ufb03ce\n", "office", ("line 1", "Unicode form", "compatibility")),
        ("Hello World\n", "hello world", ("line 1", "letter case")),
        ("x = 'a\\nb'\n", "x = 'a\nb'", ("line 1", "escaped form")),
        ('say("hi")\n', 'say(\\"hi\\")', ("line 1", "escapes")),
        ("a\n\tb\n", "a\\n\\tb", ("line 1", "escapes")),
        ("if a < b && c\n", "if a &lt; b &amp;&amp; c", ("line 1", "HTML entities")),
        ("<p>a &lt; b</p>\n", "a < b", ("line 1", "HTML entities")),
        ("one\ntwo\nthree\n", "     2\ttwo\n     3\tthree", ("line 2", "line numbers")),
        ("a\nb\n", "a\r\nb", ("line 1", "line ends")),
        ("a\rb\rc", "a\nb", ("line 1", "line ends")),
        ("def area(w, h):\n    return w * h\n", "def area(w, d):\n    return w * d", ("line 1", "character 13")),
    ],
)
def test_names_the_line_and_what_differs(data: str, old: str, says: tuple[str, ...]) -> None:
    text = said(data.encode(), old)
    for part in says:
        assert part.lower() in text.lower(), text


def test_a_byte_that_is_no_text_cannot_be_matched_by_its_escape() -> None:
    assert "no text" in said(b"# na\xefve cap\n", "na\\xEFve")


def test_several_differences_are_all_named() -> None:
    text = said("\tsay(\u201cHi\u201d)\n".encode(), '    say("hi")')
    for part in ("tabs", "U+201C", "letter case"):
        assert part in text


@pytest.mark.parametrize(
    "data", [b"\t\tprintln(1)\n", "Ask \u201cwho\u201d\n".encode(), "cafe\u0301\n".encode(), b"a &lt; b\n", b""]
)
def test_for_an_unrelated_text_no_cause_is_named(data: bytes) -> None:
    text = said(data, "zzz_nowhere_qqq")
    for word in ("tab", "space", "whitespace", "indent", "quot", "Unicode", "escape", "entit", "case", "line end"):
        assert word not in text, text
    assert "No line is similar" in text


def test_the_closest_lines_are_shown_with_their_numbers() -> None:
    data = b"".join(b"line %d is here\n" % n for n in range(50)) + b"def compute_total(items, tax):\n    pass\n"
    error = refused(data, "def compute_totals(items, taxes):\n    pass")
    assert error.detail == "    51\tdef compute_total(items, tax):\n    52\t    pass"


def test_an_edit_that_fails_after_others_sees_their_text() -> None:
    with pytest.raises(ToolError) as caught:
        apply_edits(b"alpha beta\n", Codec(), [Edit("alpha", "gamma"), Edit("Gamma beta", "x")])
    assert "edits[1]" in caught.value.message
    assert "letter case" in caught.value.message
    assert "gamma beta" in caught.value.detail


def test_utf16_is_compared_as_text() -> None:
    data = b"\xff\xfe" + "Hello\r\nWorld\r\n".encode("utf-16-le")
    error = refused(data, "hello", Codec("utf-16-le", 2, 2))
    assert "letter case" in error.message


@pytest.mark.parametrize(
    ("data", "old"),
    [
        (b"x" * 60_000_000, "y" * 100),
        (b"the quick brown fox jumps\n" * 2_000_000, "the quick brown fox leaps\nover"),
        (b"a b c d e f g\n" * 3_000_000, "a b c d e f h\n" * 1000),
        (("\u201cq\u201d " * 20 + "\n").encode() * 100_000, '"q" "r"'),
        (b"\n" * 10_000_000, "\t\n\t"),
        (b"{" * 5_000_000, "{" * 19_000 + "}"),
        (b"word " * 1_000_000, "w" * 3_000_000),
    ],
)
def test_the_search_for_a_reason_is_bounded(data: bytes, old: str) -> None:
    started = time.perf_counter()
    refused(data, old)
    assert time.perf_counter() - started < 10  # seconds on a busy machine; a fraction of one else


def test_where_not_everything_was_compared_nothing_is_claimed_of_the_rest() -> None:
    text = said(b"filler line\n" * 500_000 + b"\tneedle here\n", "    needle here")
    assert "No line is similar" not in text
    assert "at its start" in text
