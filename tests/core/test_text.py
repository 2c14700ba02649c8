from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolkit_core.text import (
    after_newlines,
    decoded,
    first_surrogate,
    newlines_in,
    one_line_name,
    raw_name,
    shown_name,
    shown_text,
)

NAME_BYTES = st.binary(min_size=1, max_size=40).filter(lambda name: b"\0" not in name and b"/" not in name)


def test_a_name_in_utf8_is_shown_as_it_is() -> None:
    assert shown_name("naïve 文.txt") == "naïve 文.txt"


def test_a_byte_that_is_no_text_is_shown_escaped() -> None:
    assert shown_name(decoded(b"caf\xe9.txt")) == "caf\\xe9.txt"


def test_a_headline_has_one_line_whatever_the_name() -> None:
    assert one_line_name("a\nb\x1b[31m\u202e.txt") == "a\\x0ab\\x1b[31m\\u202e.txt"


def test_a_name_without_escapes_has_no_other_spelling() -> None:
    assert raw_name("plain.txt") is None


def test_an_escape_never_yields_a_separator_or_nul() -> None:
    assert raw_name("..\\x2f..\\x00") is None


@given(NAME_BYTES)
def test_what_was_shown_of_bytes_is_taken_back_as_those_bytes(name: bytes) -> None:
    shown = shown_name(decoded(name))
    assert first_surrogate(shown) is None
    if b"\\x" not in name:
        assert (raw_name(shown) or shown).encode("utf-8", "surrogateescape") == name


@given(st.binary())
def test_shown_text_has_neither_nul_nor_surrogates(data: bytes) -> None:
    shown = shown_text(decoded(data))
    assert "\0" not in shown
    shown.encode("utf-8")


@given(st.binary(max_size=20_000).map(lambda data: data.replace(b"\x07", b"\n")))
def test_newlines_are_counted_and_found_like_the_slow_way(data: bytes) -> None:
    assert newlines_in(data) == data.count(b"\n")
    for count in {1, data.count(b"\n") // 2, data.count(b"\n")} - {0}:
        if count <= data.count(b"\n"):
            at = after_newlines(data, count)
            assert data[:at].count(b"\n") == count
            assert data[at - 1 : at] == b"\n"


def test_the_newline_of_a_long_block_is_found_by_halving() -> None:
    data = b"x" * 50_000 + b"\n" + b"y" * 50_000 + b"\n"
    assert after_newlines(data, 2) == len(data)
