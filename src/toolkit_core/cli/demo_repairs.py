"""Small repairs that a scripted brain can think of: one operator or number of one line changed."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_SWAPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # the commonest slips first: each try costs a test run
    ("<", ("<=", ">")),
    (">", (">=", "<")),
    ("<=", ("<", ">=")),
    (">=", (">", "<=")),
    ("==", ("!=",)),
    ("!=", ("==",)),
    ("and", ("or",)),
    ("or", ("and",)),
    ("+", ("-",)),
    ("-", ("+",)),
    ("*", ("/", "//")),
    ("/", ("//", "*")),
    ("//", ("/", "%", "*")),
    ("%", ("//",)),
    ("+=", ("-=", "=")),
    ("-=", ("+=",)),
    ("=", ("+=",)),
    ("min", ("max",)),
    ("max", ("min",)),
    ("True", ("False",)),
    ("False", ("True",)),
    ("any", ("all",)),
    ("all", ("any",)),
)
_ORDER = {token: number for number, (token, _) in enumerate(_SWAPS)}
_REPLACEMENTS: dict[str, tuple[str, ...]] = dict(_SWAPS)
_NUMBER_ORDER = len(_SWAPS)


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


def repairs(body: Mapping[int, str]) -> list[Repair]:
    """All repairs of a function's lines, the likeliest first, the `def` line left alone."""
    ranked: list[tuple[int, int, Repair]] = []
    skipped = _docstring_lines(body)
    for number, line in list(body.items())[1:]:
        if number not in skipped:
            ranked += [(rank, number, repair) for rank, repair in _line_repairs(number, line)]
    return [repair for _, _, repair in sorted(ranked, key=lambda item: item[:2])]


def _line_repairs(number: int, line: str) -> Iterator[tuple[int, Repair]]:
    for token in _tokens(line):
        for rank, new in _alternatives(token):
            changed = line[: token.start[1]] + new + line[token.end[1] :]
            yield rank, Repair(number, changed, f"Line {number} says `{token.string}`; should it be `{new.strip()}`?")


def _alternatives(token: tokenize.TokenInfo) -> Iterator[tuple[int, str]]:
    for new in _REPLACEMENTS.get(token.string, ()):
        yield _ORDER[token.string], new
    if token.type == tokenize.NUMBER and token.string.isdigit():
        value = int(token.string)
        yield _NUMBER_ORDER, str(value + 1)
        if value > 0:
            yield _NUMBER_ORDER, str(value - 1)


def _tokens(line: str) -> Iterator[tokenize.TokenInfo]:
    """The line's tokens, columns as in the line; an unfinished bracket or string only ends them."""
    source = line.strip()
    shift = len(line) - len(line.lstrip())
    try:
        for token in tokenize.generate_tokens(io.StringIO(source + "\n").readline):
            if token.start[0] == 1 and token.string.strip():
                yield token._replace(start=(1, token.start[1] + shift), end=(1, token.end[1] + shift))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return


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
