"""Glob patterns against a slow oracle, and what each sign means."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit_core.glob_pattern import BadGlobError, escaped, parse_glob


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True),
        ("*.py", ".py", True),
        ("*.py", "src/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("src/**/*.{json,xml}", "src/a.json", True),
        ("src/**/*.{json,xml}", "src/b/c.xml", True),
        ("src/**/*.{json,xml}", "src/b/c.txt", False),
        ("src/**", "src/a/b", True),
        ("src/**", "src", False),
        ("**", "a/b", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "ab", False),
        ("a**b", "axxb", True),
        ("a**b", "a/b", False),
        ("[{]kind[}]*.md", "{kind} a.md", True),
        ("{kind}*.md", "{kind} a.md", True),
        ("*yearly budget*.md", "yearly budget a.md", True),
        ("!a", "!a", True),
        ("!a", "b", False),
        ("[!a]", "b", True),
        ("[^a]", "a", False),
        ("[]a]", "]", True),
        ("[a-c]x", "bx", True),
        ("[", "[", True),
        ("a[b", "a[b", True),
        (r"\*", "*", True),
        (r"\*", "x", False),
        (r"a\{b,c\}", "a{b,c}", True),
        ("{a,b/c}.x", "b/c.x", True),
        ("x{,y}", "x", True),
        ("x{,y}", "xy", True),
        ("{a{b,c},d}", "ac", True),
        ("{a", "{a", True),
        ("a,b}", "a,b}", True),
        ("./src//*.py", "src/a.py", True),
        ("?", "é", True),
        ("*", "new\nline", True),
        (".*", ".env", True),
        ("*", ".env", True),
    ],
)
def test_a_pattern_matches_what_its_signs_say(pattern: str, path: str, expected: bool) -> None:
    assert parse_glob(pattern).matches(path) is expected


def test_a_trailing_slash_asks_for_folders_only() -> None:
    assert parse_glob("src/*/").matches("src/a", folder=True)
    assert not parse_glob("src/*/").matches("src/a")


def test_a_file_filter_without_a_slash_holds_at_any_depth() -> None:
    pattern = parse_glob("*.{py,pyi}", any_depth=True)
    assert pattern.matches("a.py")
    assert pattern.matches("x/y/a.pyi")
    assert not parse_glob("src/*.py", any_depth=True).matches("x/src/a.py")


@pytest.mark.parametrize("pattern", ["", "/", "[z-a]", "{,}", "{a,b}" * 9, "x" * 5000])
def test_a_pattern_that_cannot_be_meant_is_refused(pattern: str) -> None:
    with pytest.raises(BadGlobError):
        parse_glob(pattern)


def test_many_stars_do_not_backtrack() -> None:
    pattern = parse_glob("*a" * 40 + "b")
    before = time.monotonic()
    assert not pattern.matches("a" * 255)
    assert time.monotonic() - before < 1


def test_nested_braces_do_not_take_long_to_be_refused() -> None:
    before = time.monotonic()
    parse_glob("{" * 2000)
    with pytest.raises(BadGlobError):
        parse_glob("{a," * 600 + "}" * 600)
    assert time.monotonic() - before < 5


def test_the_folders_that_a_pattern_spells_out_are_split_off() -> None:
    folders, rest = parse_glob("src/x/{a,b}/*.py").split_folder()
    assert folders == ("src", "x")
    assert rest.matches("a/m.py")
    assert parse_glob("{a,b}/x").split_folder()[0] == ()
    assert parse_glob("{a/b,a/c}/x").split_folder()[0] == ("a",)


_NAMES = st.text(alphabet="ab.-", min_size=1, max_size=4).filter(lambda name: name not in (".", ".."))
_PIECES = st.sampled_from(["a", "b", ".", "-", "*", "?", "[ab]", "[!a]", "[a-b]", "**"])
_PARTS = st.lists(_PIECES, min_size=1, max_size=4).map("".join).filter(lambda part: part not in (".", ".."))


def _oracle(pattern: list[str], path: list[str]) -> bool:
    """Part by part, by plain recursion; a `**` at the end stands for at least one name."""
    if not pattern:
        return not path
    if pattern[0] == "**":
        rest = pattern[1:] or ["*"]
        return any(_oracle(rest, path[skip:]) for skip in range(len(path)))
    return bool(path) and _part_oracle(pattern[0], path[0]) and _oracle(pattern[1:], path[1:])


def _part_oracle(part: str, name: str) -> bool:
    if not part:
        return not name
    if part[0] == "*":
        return any(_part_oracle(part[1:], name[skip:]) for skip in range(len(name) + 1))
    if not name:
        return False
    if part[0] == "[":
        inner, _, rest = part[1:].partition("]")
        negated = inner.startswith("!")
        chars = {"a-b": "ab"}.get(inner.lstrip("!"), inner.lstrip("!"))
        return (name[0] in chars) is not negated and _part_oracle(rest, name[1:])
    return part[0] in ("?", name[0]) and _part_oracle(part[1:], name[1:])


@given(pattern=st.lists(_PARTS, min_size=1, max_size=4), path=st.lists(_NAMES, min_size=1, max_size=4))
@settings(max_examples=600, deadline=None)
def test_matching_agrees_with_a_slow_oracle(pattern: list[str], path: list[str]) -> None:
    assert parse_glob("/".join(pattern)).matches("/".join(path)) is _oracle(pattern, path)


@given(text=st.text(min_size=1, max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_pattern_or_refused(text: str) -> None:
    try:
        parse_glob(text).matches("a/b")
    except BadGlobError:
        return


@given(name=st.text(min_size=1, max_size=20).filter(lambda name: "/" not in name and name not in (".", "..")))
@settings(max_examples=300, deadline=None)
def test_an_escaped_name_matches_itself_alone(name: str) -> None:
    pattern = parse_glob(escaped(name))
    assert pattern.matches(name)
    assert not pattern.matches(name + "x")
