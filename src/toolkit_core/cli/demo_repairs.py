"""Small repairs that a scripted brain can think of: one operator, number or bound of one line changed."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_SWAPS: dict[str, tuple[str, ...]] = {
    # the commonest slips first: each try costs a test run
    "<": ("<=", ">"),
    ">": (">=", "<"),
    "<=": ("<", ">="),
    ">=": (">", "<="),
    "==": ("!=",),
    "!=": ("==",),
    "and": ("or",),
    "or": ("and",),
    "+": ("-", "*"),
    "-": ("+",),
    "*": ("+", "//", "/"),
    "/": ("//", "*"),
    "//": ("/", "%", "*"),
    "%": ("//",),
    "+=": ("-=", "="),
    "-=": ("+=",),
    "not": ("",),
    "min": ("max",),
    "max": ("min",),
    "True": ("False",),
    "False": ("True",),
    "any": ("all",),
    "all": ("any",),
    "in": ("not in",),
}
_ORDER = {token: rank for rank, token in enumerate([*_SWAPS, "number", "bound", "scale", "="])}
_FORMATTED = re.compile(r"\{([^{}!:]+)")


@dataclass(frozen=True)
class Repair:
    """One line changed.

    Attributes:
        line: Its number.
        text: The whole line as it would be.
        why: What is changed, for the transcript.
    """

    line: int
    text: str
    why: str


@dataclass(frozen=True)
class _Token:
    kind: int
    text: str
    start: int
    end: int


def repairs(body: Mapping[int, str]) -> list[Repair]:
    """All repairs of these lines, the likeliest first; `def` lines and docstrings are left alone."""
    ranked: list[tuple[int, int, Repair]] = []
    skipped = _docstring_lines(body)
    for number, line in body.items():
        if number not in skipped and not line.lstrip().startswith(("def ", "async def ", "@")):
            ranked += [(rank, number, repair) for rank, repair in _line_repairs(number, line)]
    return [repair for _, _, repair in sorted(ranked, key=lambda item: item[:2])]


def _line_repairs(number: int, line: str) -> Iterator[tuple[int, Repair]]:
    tokens = list(_tokens(line))
    for index, token in enumerate(tokens):
        after = tokens[index + 1].text if index + 1 < len(tokens) else ""
        for rank, new in _alternatives(token, after):
            changed = line[: token.start] + new + line[token.end :]
            yield (
                rank,
                Repair(number, changed, f"Line {number} says `{line.strip()}`; should it be `{changed.strip()}`?"),
            )


def _alternatives(token: _Token, after: str) -> Iterator[tuple[int, str]]:
    for new in _SWAPS.get(token.text, ()):
        yield _ORDER[token.text], new
    if token.text == "=":
        yield _ORDER["="], "+="
    if token.kind == tokenize.NUMBER and token.text.isdigit():
        value = int(token.text)
        yield from ((_ORDER["number"], str(near)) for near in (value + 1, value - 1) if near >= 0)
        yield from ((_ORDER["scale"], str(far)) for far in (value * 10, value // 10) if value >= 10)
    if token.kind == tokenize.NAME and after in {")", "]", ""} and token.text not in _SWAPS:
        yield from ((_ORDER["bound"], f"{token.text}{off}") for off in (" + 1", " - 1"))


def _tokens(line: str) -> Iterator[_Token]:
    """The line's tokens with their columns; an unfinished bracket or string only ends them."""
    source = line.strip()
    shift = len(line) - len(line.lstrip())
    try:
        for token in tokenize.generate_tokens(io.StringIO(source + "\n").readline):
            if token.start[0] == 1 and token.string.strip():
                found = _Token(token.type, token.string, token.start[1] + shift, token.end[1] + shift)
                yield from _inside(found) if token.type == tokenize.STRING else [found]
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return


def _inside(string: _Token) -> Sequence[_Token]:
    """The tokens between the braces of an f-string (Python 3.12 splits them itself); none in other strings."""
    if "f" not in string.text[:2].lower():
        return []
    found: list[_Token] = []
    for match in _FORMATTED.finditer(string.text):
        shift = string.start + match.start(1)
        found += [_Token(t.kind, t.text, t.start + shift, t.end + shift) for t in _tokens(match[1])]
    return found


def _docstring_lines(body: Mapping[int, str]) -> set[int]:
    """Numbers of lines inside triple quotes, where no code stands."""
    inside: set[int] = set()
    is_open = False
    for number, line in body.items():
        quotes = line.count('"""') + line.count("'''")
        if is_open or quotes:
            inside.add(number)
        is_open ^= quotes % 2 == 1
    return inside
